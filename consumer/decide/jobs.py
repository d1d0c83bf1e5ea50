"""What a consumer asks of others until it succeeds, and what it waits for."""

import math
from dataclasses import dataclass, field

from consumer.decide.actions import Note
from consumer.decide.batch import Batch
from consumer.decide.claims import Committed
from consumer.decide.commands import Holding
from consumer.decide.parts import Part
from consumer.decide.reached import Reached
from domain.messages import Read
from domain.partitions import TopicPartition


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """What is asked of others until it succeeds."""

    limit_s: float
    """What is not answered for so long has failed."""
    in_vain: str | None = None
    """What becomes of a process in which it fails for long."""
    began: float = math.inf
    """When it was asked for first."""
    ask: int | None = None
    """The number under which an answer is waited for."""
    no_answer_at: float = math.inf
    failures: int = 0
    fault: str = ""
    """Of the last failure."""
    try_again_at: float = -math.inf


@dataclass(slots=True, kw_only=True, eq=False)
class OfTable(Job):
    """What is asked of one topic's table."""

    topic: str
    refused_since: float | None = None
    """When the table was first found to be at fault; none where it is not, or is no more."""


@dataclass(slots=True, kw_only=True, eq=False)
class TakeOver(OfTable):
    """Partitions of one topic, all under the starts that held when they were asked for."""

    partitions: tuple[TopicPartition, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Write(OfTable):
    """What a batch has of one topic, on its way into the lake."""

    version: int
    batch: Batch
    part: Part
    """Of the batch: what is written next."""
    reads: tuple[Read, ...]
    positions: dict[TopicPartition, Reached]
    """To be committed once all of it is written."""
    refusal: str = ""
    """What the table said of a record that it refused."""
    settled: dict[TopicPartition, Reached] = field(default_factory=dict)
    """How far each partition is in the table, or in the dead letters, where parts of the batch are there."""
    uncertain: bool = False
    """Whether what was asked for under this name may be there, or may come yet."""

    @property
    def progresses(self) -> bool:
        """Whether nothing is amiss but a record, which is looked for."""
        return not self.failures or (self.failures == 1 and not self.part.is_whole)

    @property
    def can_be_given_up(self) -> bool:
        """Whether it does not succeed, and it is known what is there and that nothing more will come."""
        return not self.progresses and not self.uncertain


@dataclass(slots=True)
class Cycle:
    """A batch that is written, or what is written late of one."""

    began: float
    fetch_s: float = 0.0
    whole: bool = False
    """Whether the lake has taken all of it at once."""
    saturated: bool = False
    """Whether the consumer had enough to do all the time."""
    written: list[Write] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class Commit(Job):
    """Positions, and what follows once they are committed."""

    positions: dict[TopicPartition, Committed] = field(default_factory=dict)
    placed: dict[TopicPartition, Reached] = field(default_factory=dict)
    """To be read from here."""
    resumed: list[str] = field(default_factory=list)
    """Topics to be read on."""
    cycles: list[Cycle] = field(default_factory=list)
    """To be reported."""
    obeyed: tuple[Holding, Note] | None = None
    """To be acknowledged."""


class Asked:
    """What is waited for, by the numbers under which it was asked for."""

    def __init__(self) -> None:
        self._numbers = 0
        self._jobs: dict[int, Job] = {}

    def __contains__(self, ask: int) -> bool:
        return ask in self._jobs

    def ask(self, job: Job, now: float) -> int:
        """The number under which the job is asked for, which no other has."""
        self._numbers = ask = self._numbers + 1
        self._jobs[ask] = job
        job.ask, job.no_answer_at, job.began = ask, now + job.limit_s, min(job.began, now)
        return ask

    def answered(self, ask: int) -> Job | None:
        """What was asked for under this number and is waited for no more; none if it was not any more."""
        job = self._jobs.pop(ask, None)
        if job is not None:
            job.ask = None
        return job

    def overdue(self, now: float) -> list[Job]:
        """What has not been answered in time, and is waited for no more."""
        asks = [ask for ask, job in self._jobs.items() if now >= job.no_answer_at]
        return [job for ask in asks if (job := self.answered(ask)) is not None]

    def withdraw(self, job: Job) -> None:
        """Waits for it no more."""
        if job.ask is not None:
            self.answered(job.ask)
