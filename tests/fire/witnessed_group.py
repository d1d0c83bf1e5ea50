"""A group that is looked at by nothing but its reports, and what is in its lake."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from app.settings import Settings
from bench.stepped_load import nothing
from consumer.verify import verify
from domain.assignment import ConsumerId
from domain.messages import ParkedTopic
from domain.partitions import TopicPartition
from tests.fire.group import BUSY, CALM, Group, speeds
from tests.fire.witness import Witness
from tests.services import SharedSpark

TOLD_LINES = 15
"""Of a log, before the line that matters."""


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


class WitnessedGroup(Group):
    """A group that is looked at by nothing but its reports, by the brokers' clock."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        settings: Settings,
        speeds: Mapping[TopicPartition, float],
        value: Callable[[TopicPartition], bytes] = nothing,
    ) -> None:
        super().__init__(stack, folder, settings, speeds, value)
        self._topics = Counter(partition.topic for partition in self.partitions)
        self.witness = Witness(
            settings.kafka.bootstrap_servers,
            settings.kafka.group,
            settings.topics.metadata,
            self._topics,
            settings.controller.heartbeat_timeout_s,
        )
        stack.callback(self.witness.close)

    @property
    def is_placed(self) -> bool:
        return self.witness.placed()

    @property
    def readers(self) -> list[ConsumerId]:
        """The consumers that hold anything."""
        return [consumer for consumer, held in self.witness.held().items() if held]

    @property
    def parked(self) -> tuple[ParkedTopic, ...]:
        """By the newest claim, also on trial."""
        claim = self.witness.claim
        return claim.parked_or_on_trial if claim is not None else ()

    @property
    def held_topics(self) -> set[str]:
        return {partition.topic for partitions in self.witness.held().values() for partition in partitions}

    def picture(self) -> object:
        return self.witness.held(), self.witness.reasons

    def grows(self) -> None:
        """There is more to read than one can; returns when there are others, and they have read what there was."""
        self.load.step(speeds(self.partitions, BUSY))
        self.wait("others read", lambda: len(self.readers) > 1)
        self.converges("they have read")

    def shrinks(self) -> None:
        """One can read it all; returns when one does, and has read what there was."""
        self.load.step(speeds(self.partitions, CALM))
        self.wait("one reads", lambda: len(self.readers) == 1)
        self.converges("it has read")

    @property
    def gave_up(self) -> list[str]:
        """What consumers said that ended by themselves, before it as well."""
        logs = [file.read_text().splitlines() for file in self.settings.local.folder.glob("consumer-*.log")]
        return [
            "\n".join(lines[max(0, end - TOLD_LINES) : end + 1])
            for lines in logs
            for end, line in enumerate(lines)
            if " ends: " in line
        ]

    def require_all_once(self, spark: SharedSpark) -> None:
        """Ends the load, and looks at what is in the lake once all is read."""
        self.load.stop()
        self.converges("everything is read")
        assert all(child.running for child in self.children.values())
        accounts = verify(spark.remote, self.settings.consumer.lake_root, self._topics).values()
        in_lake, in_kafka = sum(account.distinct_offsets for account in accounts), self.in_kafka
        acknowledged = self.load.acknowledged
        assert self.load.unacknowledged == 0
        assert in_lake == in_kafka == acknowledged > 0, (in_lake, in_kafka, acknowledged, accounts)
        assert sum(account.doubled for account in accounts) == 0
        assert self.witness.most_readers.count == 1, self.witness.most_readers
