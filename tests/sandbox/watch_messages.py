"""Messages as the monitor, the consumers and the controller would send them, and a story made of them."""

from collections.abc import Iterable, Iterator, Mapping
from math import sin
from types import MappingProxyType
from typing import Any

from domain.group_view.fold import GroupFold, GroupMessage, time_of
from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControllerClaim,
    Cycle,
    Decision,
    Order,
    PartitionRef,
    PartitionSpeed,
    PlanFigures,
    PlannedPartition,
    Read,
    Standing,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition

BEGAN = 1_700_000_000.0


def partition(name: str) -> TopicPartition:
    """`orders-3` is partition 3 of orders."""
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def write_speeds(
    at: float, speeds: Mapping[str, float | None], lag: Mapping[str, int] = MappingProxyType({})
) -> WriteSpeedReport:
    """`lag` is in records, of 10 bytes each; it is not known of the partitions that it leaves out."""

    def behind(name: str) -> dict[str, Any]:
        return {"lag_records": lag[name], "lag_bytes": 10.0 * lag[name], "lag_s": 4.0} if name in lag else {}

    return WriteSpeedReport(
        measured_at=at,
        partitions=tuple(
            PartitionSpeed(topic=key.topic, partition=key.partition, speed=speeds[name], **behind(name))
            for name in speeds
            for key in [partition(name)]
        ),
    )


def read(name: str, first: float, last: float, stint: int = 1, records: int = 10) -> Read:
    key = partition(name)
    return Read(
        topic=key.topic,
        partition=key.partition,
        stint=Order(1, stint),
        first_offset=0,
        last_offset=max(0, records - 1),
        records=records,
        first_read_at=first,
        last_read_at=last,
    )


def cycle(*reads: Read, size: int = 1000) -> Cycle:
    return Cycle(bytes=size, records=sum(each.records for each in reads), fetch_s=0.5, write_s=0.5, reads=reads)


def report(
    consumer: int,
    at: float,
    *names: str,
    sequence: int = 1,
    incarnation: str = "a",
    state: ConsumerState = ConsumerState.READY,
    reason: str | None = None,
    cycle: Cycle | None = None,
) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer,
        incarnation=incarnation,
        sequence=sequence,
        sent_at=at,
        state=state,
        reason=reason,
        partitions=tuple(PartitionRef.of(partition(name)) for name in names),
        cycle=cycle,
    )


def decision(
    number: int,
    at: float,
    plan: Mapping[str, tuple[int | None, int]],
    *,
    epoch: int = 1,
    carried_out: bool = True,
    rscore: float = 0.0,
    triggers: tuple[str, ...] = ("the interval is over",),
    reason: str = "the present assignment cannot stay as it is",
) -> Decision:
    """`plan` gives each partition its reader before and after."""
    consumers = len({after for _, after in plan.values()})
    return Decision(
        number=number,
        epoch=epoch,
        decided_at=at,
        triggers=triggers,
        carried_out=carried_out,
        reason=reason,
        engine="mbfp",
        status="feasible",
        solve_s=0.01,
        lower_bound=1.0,
        plan=PlanFigures(consumers=consumers, rscore=rscore, objective=consumers + rscore / 2),
        keeping=None,
        assignment=tuple(
            PlannedPartition(topic=key.topic, partition=key.partition, speed=1.0, consumer=after, previous=before)
            for name, (before, after) in plan.items()
            for key in [partition(name)]
        ),
    )


Plan = dict[str, tuple[int | None, int]]

CAPACITY = 3_000_000.0
PACKING = 0.75 * CAPACITY


def resting(sequence: int, *, rests: bool) -> ControllerClaim:
    """A claim of a controller under which there is no consumer."""
    standing = Standing(began_at=BEGAN, counted_on=(), rests=rests)
    return ControllerClaim(epoch=1, incarnation="c", sequence=sequence, sent_at=BEGAN, standing=standing)


def story() -> Iterator[GroupMessage]:
    """87 seconds of a group: a start, a scale-up, and a scale-up under way because one partition got hot."""
    yield ControllerClaim(epoch=1, incarnation="controller-a", sent_at=BEGAN)
    base = {"orders": 0.42e6, "payments": 0.21e6, "clicks": 0.12e6}
    names = [f"{topic}-{number}" for topic in sorted(base) for number in range(4)]
    for second in range(2, 88):
        at = BEGAN + second
        load = min(1.0, second / 30) * (1.55 + 0.15 * sin(second / 6))
        speeds: dict[str, float | None] = {
            name: base[name.rpartition("-")[0]] * load * (1 + 0.25 * sin(place * 2.1))
            for place, name in enumerate(names)
        }
        if second > 70:
            speeds["orders-2"] = 1.65e6
        speeds["clicks-9"] = None
        yield write_speeds(at, speeds, {"orders-0": int(4000 + 9000 * load + (second > 72) * (second - 72) * 1900)})
    first: Plan = dict.fromkeys(names, (None, 1))
    held = [name for name in names if name not in ("orders-2", "payments-2")]
    second_plan: Plan = {name: (1, 2 if name.startswith("orders") else 1) for name in names}
    third_plan: Plan = {
        name: (before, 3 if name in ("orders-3", "payments-2") else before) for name, (_, before) in second_plan.items()
    }
    yield decision(
        1, BEGAN + 5, first, triggers=("partition without a consumer: clicks-0, clicks-1, clicks-2 and 9 more",)
    )
    yield decision(
        2,
        BEGAN + 24,
        second_plan,
        rscore=0.71,
        triggers=("consumer 1 has 3,012,480 bytes/s to read, above its capacity of 3,000,000",),
        reason="2 consumers and an Rscore of 0.71 (objective 2.36); the present assignment cannot stay as it is",
    )
    yield decision(
        3,
        BEGAN + 60,
        second_plan,
        carried_out=False,
        reason="keeping everything costs 2 consumers and an Rscore of 0.00 (objective 2.00); no plan is better",
    )
    yield decision(
        4,
        BEGAN + 82,
        third_plan,
        rscore=0.29,
        triggers=("consumer 2 has 3,411,200 bytes/s to read, above its capacity of 3,000,000",),
        reason="3 consumers and an Rscore of 0.29 (objective 3.15); the present assignment cannot stay as it is",
    )
    yield report(1, BEGAN + 6, sequence=1, state=ConsumerState.STARTING)
    for second in range(7, 87, 3):
        ones = names if second < 27 else [name for name in held if not name.startswith("orders")]
        yield report(1, BEGAN + second, *ones, sequence=second, cycle=cycle(size=5_600_000))
    for second in range(24, 87, 3):
        if second < 30:
            yield report(2, BEGAN + second, sequence=second, state=ConsumerState.STARTING)
        else:
            twos = [name for name in names if name.startswith("orders")]
            yield report(2, BEGAN + second, *twos, sequence=second, cycle=cycle(size=8_100_000))
    yield report(
        2,
        BEGAN + 86.8,
        *[name for name in names if name.startswith("orders")],
        sequence=87,
        state=ConsumerState.DEGRADED,
        reason="Spark does not answer; 18.2 MB are kept and written again",
    )
    yield report(3, BEGAN + 83, sequence=1, state=ConsumerState.STARTING)


def told(messages: Iterable[GroupMessage]) -> GroupFold:
    fold = GroupFold(since=BEGAN)
    for message in sorted(messages, key=time_of):
        fold.receive(message)
    return fold
