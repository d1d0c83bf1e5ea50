"""What breaks when, drawn from a seed: the same seed, the same faults at the same moments."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

FIRST_AFTER_S = 12.0
"""The group has begun to read by then."""
GAPS_S = (2.0, 8.0)
"""From one fault to the next: many last longer than that, so several hold at one time."""


class Kind(StrEnum):
    KILL_CONSUMER = "a consumer is killed"
    FREEZE_CONSUMER = "a consumer is frozen"
    CUT_OFF_CONSUMER = "a consumer is cut off from Kafka: what it sends and is sent comes late"
    KILL_CONTROLLER = "the controller is killed"
    FREEZE_CONTROLLER = "the controller is frozen"
    SECOND_CONTROLLER = "a second controller begins"
    KILL_MONITOR = "the monitor is killed"
    FREEZE_BROKER = "one broker of three is frozen"
    KILL_BROKER = "one broker of three is killed, and started again later"
    PAUSE_NETWORK = "the network pauses: no message moves"
    FREEZE_SPARK = "Spark is frozen"
    FULL_DISK = "the lake's disk is full"
    REPEAT_MESSAGES = "old messages come again, and late"


LONGEST_S = {
    Kind.FREEZE_CONSUMER: 60.0,  # longer than a lease, and than a consumer is waited for
    Kind.CUT_OFF_CONSUMER: 60.0,
    Kind.FREEZE_CONTROLLER: 30.0,
    Kind.FREEZE_BROKER: 20.0,  # longer than its cluster waits for it
    Kind.KILL_BROKER: 20.0,
    Kind.PAUSE_NETWORK: 8.0,
    Kind.FREEZE_SPARK: 10.0,
    Kind.FULL_DISK: 10.0,
    Kind.REPEAT_MESSAGES: 20.0,
}
"""How long a fault holds at most; those that are not named are over at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    """Since the load began."""
    kind: Kind
    lasts_s: float
    choice: float
    """From 0 to 1: which of those that it can befall."""

    def __str__(self) -> str:
        lasting = f", for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.at_s:6.1f} s  {self.kind}{lasting}"


def schedule(seed: int, seconds: float, kinds: Collection[Kind] = tuple(Kind)) -> list[Fault]:
    """The faults of a run that lasts so long, in the order of time; every kind comes before any comes again."""
    chance = Random(seed)
    return list(_drawn(chance, seconds, sorted(kinds)))


def _drawn(chance: Random, seconds: float, kinds: list[Kind]) -> Iterator[Fault]:
    at = FIRST_AFTER_S
    left: list[Kind] = []
    while at < seconds:
        if not left:
            left = chance.sample(kinds, len(kinds))
        kind = left.pop()
        lasts = chance.uniform(1.0, LONGEST_S[kind]) if kind in LONGEST_S else 0.0
        yield Fault(at, kind, lasts, chance.random())
        at += chance.uniform(*GAPS_S)
