"""What breaks in the fire, and how long."""

from collections.abc import Collection
from enum import StrEnum
from itertools import takewhile

from sandbox.chaos import schedule as chaos

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


Fault = chaos.Fault[Kind]


def schedule(seed: int, seconds: float, kinds: Collection[Kind] = tuple(Kind)) -> list[Fault]:
    """The faults of a run that lasts so long, in the order of time; every kind comes before any comes again."""
    drawn = chaos.faults(seed, sorted(kinds), LONGEST_S, GAPS_S)
    return list(takewhile(lambda fault: fault.at_s < seconds, drawn))
