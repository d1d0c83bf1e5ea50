"""How long people wait for what they ask about a group, by its size: `python -m bench.asking`.

Topics on a real broker hold what a monitor, a controller and consumers would have said up to now; nobody else is at
work. What is timed is the whole command, from its start to its end. Writes a page into a folder.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from confluent_kafka import Producer

from app.jars import KAFKA, obtain
from app.java import find_java
from app.settings import Settings, load
from app.topics import Cluster
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet
from bench.running_group import asked
from bench.spoken_group import CAPACITY, settings_text
from cli.live.plan import plan_now
from domain.assignment import Assignment
from domain.messages import ConsumerReport, ConsumerState, ControllerClaim, Decision, PartitionRef, WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Lag, Method, Origin, WriteSpeeds
from domain.streams import paper_stream
from sandbox.broker import Broker

COMMANDS = ("explain", "plan", "status")
PARTITIONS_OF_A_CONSUMER = 20
"""About so many: the capacity is that many times what the speeds of a partition are on average."""
DELTA = 1.0
"""The largest change of a speed in a second, in percent of the highest at the beginning."""
EVERY_S = 1.0
"""The monitor and the consumers speak so often."""


class Group:
    """Says what the components of a group would have said."""

    def __init__(self, servers: str, folder: Path, group: str, partitions: int, seed: int) -> None:
        self.file = folder / f"{group}.toml"
        highest = 2 * CAPACITY / PARTITIONS_OF_A_CONSUMER
        self.file.write_text(settings_text(servers, group))
        self.settings: Settings = load(self.file)
        names = self.settings.topics.names
        # They are told when each record came: what is an hour old is said at once.
        counts = {names.write_speed: 1, names.metadata: 1, names.decisions: 1}
        Cluster(servers).create(counts, settings={name: {"message.timestamp.type": "CreateTime"} for name in counts})
        Cluster(servers).ensure_internal_topics(names, self.settings.controller.highest_consumer)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "log_level": 0})
        seconds = int(self.settings.controller.scale_down_window_s)
        self._speeds = list(
            paper_stream(partitions, seconds, DELTA, capacity=highest, clamp=highest, seed=seed, topic=group)
        )

    def speak(self) -> Assignment:
        """Everything up to now; returns the assignment, which is the plan that the controller would have made."""
        now = time.time()
        times = [now - EVERY_S * back for back in range(len(self._speeds) - 1, -1, -1)]
        self._say(self.settings.topics.write_speed, map(_measured, times, self._speeds), times)
        decision = plan_now(self.settings)
        self._say(self.settings.topics.decisions, [decision], [now])
        readers = Assignment({entry.key: entry.consumer for entry in decision.assignment})
        heard = times[-int(self.settings.controller.heartbeat_timeout_s / EVERY_S) :]
        for number, at in enumerate(heard):
            claim = ControllerClaim(epoch=decision.epoch, incarnation="a", sequence=number, sent_at=at)
            reports = [_report(consumer, number, at, held) for consumer, held in readers.by_consumer.items()]
            self._say(self.settings.topics.metadata, [claim, *reports], [at] * (1 + len(reports)))
        return readers

    def _say(
        self,
        topic: str,
        messages: Iterable[WriteSpeedReport | ConsumerReport | ControllerClaim | Decision],
        times: Iterable[float],
    ) -> None:
        """On partition 0, which all of them are on."""
        for message, at in zip(messages, times, strict=True):
            self._producer.produce(topic, message.encode(), partition=0, timestamp=int(1000 * at))
            self._producer.poll(0)
        self._producer.flush()


def _measured(at: float, speeds: dict[TopicPartition, float]) -> WriteSpeedReport:
    return WriteSpeedReport.of(
        WriteSpeeds(
            measured_at=at,
            bytes_per_s=speeds,
            origins=dict.fromkeys(speeds, Origin(Method.STORED_BYTES, 0.1)),
            lags={partition: Lag(int(speed), 5 * speed, 5.0) for partition, speed in speeds.items()},
        )
    )


def _report(consumer: int, sequence: int, at: float, held: Iterable[TopicPartition]) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer,
        incarnation="a",
        sequence=sequence,
        sent_at=at,
        state=ConsumerState.READY,
        partitions=tuple(map(PartitionRef.of, sorted(held))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.asking", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[20, 200, 1_000], metavar="N")
    parser.add_argument("--times", type=int, default=5, help="that each command is asked (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    before = await_quiet(options.busy)
    rows = list[Sequence[object]]()
    with (
        tempfile.TemporaryDirectory(prefix="kcga-asking-") as made,
        Broker(Path(made, "broker"), jars=obtain(KAFKA), java=find_java()) as broker,
    ):
        for partitions in options.partitions:
            for name in COMMANDS:
                times = []
                for number in range(options.times):
                    # Another group each time: what is said is not fresh for ever, and said again it would count twice.
                    title = f"{name}-{partitions}-{number}"
                    group = Group(broker.bootstrap_servers, Path(made), title, partitions, options.seed)
                    readers = group.speak()
                    times.append(asked(name, group.file))
                figures = (f"{of(times):.2f}" for of in (statistics.median, min, max))
                rows.append((partitions, len(readers.consumers), f"`kcga {name}`", *figures))
    headings = ("partitions", "consumers", "command", "median, s", "shortest, s", "longest, s")
    facts = run_facts("bench.asking", before, [("Asked", f"{options.times} times each"), ("Seed", str(options.seed))])
    write_page(options.folder / "asking.md", PAGE.format(facts=facts, table=markdown_table(headings, rows)))


PAGE = """\
# How long an answer takes

{facts}

{table}

Each is the whole command, from its start to its end. The topics hold what a monitor, a controller and its consumers
would have said: speeds and lags of all partitions every second of the scale-down window, of five minutes, and
consumers' reports every second. `kcga plan` reads all of that, 300,000 measurements at 1,000 partitions, and its solver
has the controller's time limit less what reading took. `kcga status` draws the whole group. Beside a group that is at
work on the same cores: [how fast a group reacts](reaction.md).
"""


if __name__ == "__main__":
    main()
