"""What an operator can set of the controller."""

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from controller.decide.learned_capacity import learned_capacity
from controller.decide.periods import Period, Schedule
from domain.assignment import HIGHEST_CONSUMER, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.messages import Decision, Throughput
from domain.partitions import TopicPartition
from domain.speeds import HIGHEST_SPEED, LEAST_CAPACITY
from solver import ENGINES

Seconds = Annotated[float, Field(ge=0.001, le=86_400, allow_inf_nan=False)]
BytesPerS = Annotated[float, Field(ge=LEAST_CAPACITY, le=HIGHEST_SPEED, allow_inf_nan=False)]

AUTHORS_HEADROOM = 0.75
"""The share of a consumer's capacity that the paper's authors filled when they packed."""
HEADROOM_AHEAD = 0.8
"""The same of what most partitions are foreseen to grow to: growth is what part of the room is for."""
SPARE_NUMBERS = 8
"""So many consumers may hang, and keep their numbers, until there are none left for others."""
DEFAULT_WEIGHT = 0.5
AUTO = "auto"
DEFAULT_HANDOVER_S = 5.0
"""What a change of a consumer's partitions took the paper's authors."""
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})[-/](?P<partition>[0-9]{1,9})")


def _or_auto(schema: dict[str, Any]) -> None:
    """The word goes for the number, too."""
    number = {name: schema.pop(name) for name in ("type", "minimum", "maximum")}
    schema["anyOf"] = [number, {"const": AUTO}]


class ControllerSettings(BaseModel):
    """Capacities in bytes/s, times in seconds. What holds voluntary plans back: `docs/decisions/0005-restraint.md`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    mode: Literal["manage", "observe"] = "manage"
    """`observe`: says what kcga would do with an ordinary group of this name, as `kcga watch` does, and does none of
    it: nothing is written to Kafka, and no consumer is created, deleted or told anything. See `docs/watch.md`."""
    consumer_capacity: Annotated[BytesPerS, Field(json_schema_extra=_or_auto)] = 2_300_000
    """What one consumer reads at most; above it the controller reacts at once. The default is the paper's consumer.
    `auto`: learned from the rates that consumers report, and `capacity_floor` until they do."""
    capacity_floor: BytesPerS = 2_300_000
    """The least that `consumer_capacity = "auto"` comes to."""
    capacity_ceiling: BytesPerS = 100_000_000
    """The most that `consumer_capacity = "auto"` comes to."""
    capacity_confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    """With `consumer_capacity = "auto"`: how sure it must be that the mean rate of a consumer is no lower, by
    Student's t."""
    packing_capacity: BytesPerS | None = None
    """What a plan gives a consumer at most, so that it has room to grow; unless set 0.75 of `consumer_capacity`, and
    0.8 where it is made for what most partitions are foreseen to grow to."""
    migration_weight: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)] | None = None
    """Lambda: how many consumers it is worth to move one consumer's capacity less; 0.5 unless it or prices are set."""
    consumer_hour_price: Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)] | None = None
    """What a consumer costs for an hour, in any currency. With `unread_partition_second_price` it gives lambda, in
    place of `migration_weight`: for as long as `scale_down_window_s`, or `interval_s` if that is longer. See
    `docs/lambda.md`."""
    unread_partition_second_price: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    """What it costs that a partition as fast as a consumer's capacity has no reader for a second; slower ones cost in
    proportion. With `consumer_hour_price` it gives lambda, in place of `migration_weight`."""
    handover_s: Annotated[Seconds | None, Field(validate_default=True)] = None
    """With `consumer_hour_price`: for how long a partition that moves has no reader; 5 s unless set."""
    engine: str = "auto"
    """`auto`, an exact engine, or a heuristic: see `kcga solve --help`. Where a heuristic's plan breaks a rule, another
    plan is made by rule."""
    time_limit_s: Seconds = 1.0
    """How long one call of the solver may take."""
    rscore_tolerance: Annotated[float, Field(ge=0, le=1)] = 0.01
    """A plan is good enough, and is not searched any further, once it is proven to move at most this share of a
    consumer's capacity more than the best. 0 searches for the optimum."""
    recovery_time_s: Annotated[float, Field(ge=0, le=604_800, allow_inf_nan=False)] = 300.0
    """Within what time a backlog is to be drained: a partition counts as its write speed and its backlog over this. 0
    leaves backlogs out, as in the paper. See `docs/decisions/0008-backlog.md`."""
    interval_s: Seconds = 60.0
    """How often the assignment is considered anew while nothing forces it."""
    least_interval_s: Seconds = 5.0
    """The least time between two decisions, whatever forces them, unless all partitions together have become a quarter
    larger than the last one was made for."""
    scale_down_window_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 300.0
    """A plan with fewer consumers must fit the highest speeds of a window so long, and such plans are so far apart."""
    migration_budget: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None
    """The Rscore that all plans of a `migration_window_s` may cost together, in consumers; no limit unless set. Plans
    that have to be count, and are not held back."""
    migration_window_s: Annotated[float, Field(ge=1, le=2_678_400, allow_inf_nan=False)] = 3600.0
    """The time over which `migration_budget` adds up what plans cost."""
    quiet_periods: tuple[Period, ...] = ()
    """Times at which nothing is changed that can stay as it is."""
    max_consumers: Annotated[int, Field(ge=1, le=HIGHEST_CONSUMER)] = 100
    """The most consumers that a plan may have. `consumer.metadata` has a partition for each, and a few more."""
    min_consumers: Annotated[int, Field(ge=0, le=HIGHEST_CONSUMER)] = 1
    """The fewest consumers that a plan may have, as far as there are partitions for them. With 0 nobody reads once
    there was nothing to read for `idle_time_s`, until there is."""
    idle_time_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 300.0
    """With `min_consumers = 0`: nobody reads any more once nothing was written, and nothing was left to read, for so
    long."""
    forecast: bool = False
    """Where the past of a partition, or of all together, proves a forecast, plans are made for what is to come until
    they are carried out: before a consumer is above its capacity. A plan that has to be is made for where a climb leads
    that is only just seen, and none with fewer consumers in a steep fall. See `docs/decisions/0023-forecast.md`."""
    schedules: tuple[Schedule, ...] = ()
    """Times at which a plan has more consumers than `min_consumers` at least: before a load that comes by the clock."""
    spare_consumers: Annotated[int, Field(ge=0, le=100)] = 0
    """So many consumers more are kept ready without a partition, within `max_consumers`: where it takes long to start
    one, a plan need not wait for it. The paper's authors kept one."""
    pinned: Mapping[str, Annotated[int, Field(ge=1, le=HIGHEST_CONSUMER)]] = {}
    """Partitions that one consumer reads and no other: `orders-3 = 1`."""
    heartbeat_timeout_s: Seconds = 40.0
    """A consumer that is silent for longer is taken for dead: it is ended, and its partitions go to others. Longer than
    the consumers' `lease_s`, so that one that lives has ended by itself before. One whose process ends is not waited
    for."""
    ready_timeout_s: Seconds = 90.0
    """A new consumer that is not ready within this time is given up; so is one that a controller finds when it begins,
    and that does not obey it within this time."""
    creation_retry_s: Seconds = 120.0
    """After a consumer could not be created, or was not ready in time, no plan has more consumers than could be for so
    long, unless one that was created since is ready."""
    acknowledge_timeout_s: Seconds = 10.0
    """A command that is not acknowledged within this time is sent again."""
    obey_timeout_s: Seconds = 300.0
    """A consumer that reports, and does not do within this time what it was told, is given up like one that is silent.
    To be much longer than a write to the lake may take."""
    synchronize_timeout_s: Seconds = 10.0
    """A consumer that a controller finds when it begins, and that is silent for so long, is taken for dead: nothing is
    decided until all others have obeyed it, each after the batch that it is writing."""
    park_after_s: Seconds = 30.0
    """A topic whose table refuses whatever it is given for so long is parked: nobody reads it, and nothing is planned
    for it. It is tried again after twice this time, then after twice as long each time, up to an hour; and by `kcga
    unpark`. See `docs/lake.md`."""
    speeds_timeout_s: Seconds = 30.0
    """Write speeds older than this are not decided on."""

    _learns_capacity: bool = PrivateAttr(default=False)
    _classes: tuple[ConsumerClass, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _begins_at_the_floor(cls, given: object, checked: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict) or given.get("consumer_capacity") != AUTO:
            return checked(given)
        floor = given.get("capacity_floor", cls.model_fields["capacity_floor"].default)
        settings = checked({**given, "consumer_capacity": floor})
        settings._learns_capacity = True
        return settings

    @property
    def observes(self) -> bool:
        """Whether it only says what it would do."""
        return self.mode == "observe"

    @property
    def learns_capacity(self) -> bool:
        """Whether `consumer_capacity` is `auto`."""
        return self._learns_capacity

    @property
    def classes(self) -> tuple[ConsumerClass, ...]:
        """What consumers there may be beside ordinary ones; they are set with the consumers'."""
        return self._classes

    @property
    def every_class(self) -> tuple[ConsumerClass, ...]:
        """The classes that consumers may be of, the ordinary one first."""
        return _with_ordinary(self.consumer_capacity, self._classes)

    @property
    def largest(self) -> float:
        """The capacity of the largest class, in bytes/s."""
        return max(each.capacity for each in self.every_class)

    def with_classes(self, classes: Iterable[ConsumerClass]) -> Self:
        """The settings where consumers may be of these classes, too."""
        settings = self.model_copy()
        settings._classes = tuple(classes)
        return settings

    def class_named(self, name: str) -> ConsumerClass:
        """The class of that name; the ordinary one where there is none: it was taken out of the settings."""
        ordinary, *others = self.every_class
        return next((each for each in others if each.name == name), ordinary)

    # Rules between fields are checked with the later one, and only where the earlier ones are right themselves: so all
    # faults of a file are named at once.

    @field_validator("packing_capacity")
    @classmethod
    def _packing_within_capacity(cls, packing: float | None, info: ValidationInfo) -> float | None:
        capacity = info.data.get("consumer_capacity")
        if packing is not None and capacity is not None and packing > capacity:
            raise ValueError(
                f"packing_capacity ({packing:g}) is above consumer_capacity ({capacity:g}): it must be at most that"
            )
        return packing

    @field_validator("capacity_ceiling")
    @classmethod
    def _floor_within_ceiling(cls, ceiling: float, info: ValidationInfo) -> float:
        floor = info.data.get("capacity_floor")
        if floor is not None and floor > ceiling:
            raise ValueError(
                f"capacity_ceiling ({ceiling:g}) is below capacity_floor ({floor:g}): it must be at least that"
            )
        return ceiling

    @field_validator("handover_s")
    @classmethod
    def _one_form_of_lambda(cls, handover_s: float | None, info: ValidationInfo) -> float | None:
        weight, hour, second = (
            info.data.get(name, math.nan)  # wrong itself, but given
            for name in ("migration_weight", "consumer_hour_price", "unread_partition_second_price")
        )
        prices = {"consumer_hour_price": hour, "unread_partition_second_price": second, "handover_s": handover_s}
        given = [name for name, value in prices.items() if value is not None]
        if given and weight is not None:
            raise ValueError(
                f"migration_weight and {' and '.join(given)} are both set: set either migration_weight, or "
                "consumer_hour_price and unread_partition_second_price"
            )
        if given and (hour is None or second is None):
            missing = [name for name, value in prices.items() if value is None and name != "handover_s"]
            raise ValueError(f"{' and '.join(given)} is set, {' and '.join(missing)} is not: lambda needs both prices")
        return handover_s

    @field_validator("engine")
    @classmethod
    def _engine_exists(cls, engine: str) -> str:
        if engine not in ENGINES:
            raise ValueError(f"there is no engine {engine!r}: it must be one of {', '.join(ENGINES)}")
        return engine

    @field_validator("min_consumers")
    @classmethod
    def _fewest_within_most(cls, fewest: int, info: ValidationInfo) -> int:
        most = info.data.get("max_consumers")
        if most is not None and fewest > most:
            raise ValueError(f"min_consumers ({fewest}) is above max_consumers ({most}): it must be at most that")
        return fewest

    @field_validator("schedules")
    @classmethod
    def _scheduled_within_most(cls, schedules: tuple[Schedule, ...], info: ValidationInfo) -> tuple[Schedule, ...]:
        most = info.data.get("max_consumers")
        for schedule in schedules:
            if most is not None and schedule.min_consumers > most:
                raise ValueError(
                    f"the schedule {schedule.cron!r} has min_consumers ({schedule.min_consumers}) above max_consumers "
                    f"({most}): it must be at most that"
                )
        return schedules

    @field_validator("pinned")
    @classmethod
    def _pinned_to_consumers_that_can_be(
        cls, pinned: Mapping[str, ConsumerId], info: ValidationInfo
    ) -> Mapping[str, ConsumerId]:
        most = info.data.get("max_consumers")
        faults = []
        names: dict[TopicPartition, str] = {}
        for name, consumer in pinned.items():
            try:
                partition = parse_partition(name)
            except ValueError as error:
                faults.append(str(error))
                continue
            if partition in names:
                faults.append(f"{names[partition]!r} and {name!r} are the same partition")
            names[partition] = name
            if most is not None and consumer > most:
                faults.append(f"{name} is pinned to consumer {consumer}: it must be at most max_consumers, {most}")
        if faults:
            raise ValueError("; ".join(faults))
        return pinned

    def having_learned(self, told: Iterable[Throughput]) -> Self:
        """The settings with the capacity by what consumers told, if it is to be learned and any has."""
        learned = learned_capacity(told, self.capacity_floor, self.capacity_ceiling, self.capacity_confidence)
        if not self.learns_capacity or learned is None:
            return self
        return self.model_copy(update={"consumer_capacity": learned})

    def as_decided(self, decision: Decision | None) -> Self:
        """The settings with the capacity that the decision rests on, if it is to be learned."""
        if not self.learns_capacity or decision is None or decision.capacity is None:
            return self
        return self.model_copy(update={"consumer_capacity": decision.capacity})

    @property
    def packing(self) -> float:
        """What a plan gives a consumer at most, in bytes/s."""
        return AUTHORS_HEADROOM * self.consumer_capacity if self.packing_capacity is None else self.packing_capacity

    @property
    def packing_ahead(self) -> float:
        """The same where the plan is for what most partitions are foreseen to grow to."""
        return HEADROOM_AHEAD * self.consumer_capacity if self.packing_capacity is None else self.packing_capacity

    @property
    def highest_consumer(self) -> int:
        """The highest number that a consumer may have."""
        return self.max_consumers + SPARE_NUMBERS

    @property
    def weight(self) -> float:
        """Lambda, in consumers per unit of Rscore."""
        if self.consumer_hour_price is None or self.unread_partition_second_price is None:
            return DEFAULT_WEIGHT if self.migration_weight is None else self.migration_weight
        return migration_weight(
            consumer_hour_price=self.consumer_hour_price,
            unread_partition_second_price=self.unread_partition_second_price,
            handover_s=DEFAULT_HANDOVER_S if self.handover_s is None else self.handover_s,
            stands_s=max(self.interval_s, self.scale_down_window_s),
        )

    @property
    def budget(self) -> float:
        """The Rscore that plans may cost within `migration_window_s`; infinite where there is no limit."""
        return math.inf if self.migration_budget is None else self.migration_budget

    @property
    def pins(self) -> dict[TopicPartition, ConsumerId]:
        """The partitions that one consumer must read, and which."""
        return {parse_partition(name): consumer for name, consumer in self.pinned.items()}


@lru_cache(maxsize=64)
def _with_ordinary(capacity: float, classes: tuple[ConsumerClass, ...]) -> tuple[ConsumerClass, ...]:
    """It is asked for each consumer at every turn."""
    return (ConsumerClass(ORDINARY, capacity, 1.0), *classes)


def parse_partition(name: str) -> TopicPartition:
    """The partition that is named `orders-3`, as Kafka's own tools and logs write it, or `orders/3`.

    Raises:
        ValueError: `name` is neither.
    """
    named = _PARTITION.fullmatch(name)
    if named is None:
        raise ValueError(f"{name!r} names no partition: it must be a topic and a number, such as orders-3")
    return TopicPartition(named["topic"], int(named["partition"]))


def migration_weight(
    *, consumer_hour_price: float, unread_partition_second_price: float, handover_s: float, stands_s: float
) -> float:
    """Lambda = (u * h) / (c * T / 3600): what it costs to move a full partition, over what a consumer costs meanwhile.

    Args:
        consumer_hour_price: c, the price of a consumer for an hour, above 0, in any currency.
        unread_partition_second_price: u, the price of one second without a reader of a partition that is as fast as a
            consumer's capacity, in the same currency; slower partitions count in proportion, as in the Rscore.
        handover_s: h, the seconds for which a partition that moves is not read.
        stands_s: T, the seconds for which a consumer that a plan saves stays saved, or one that it adds is there.
    """
    consumer = consumer_hour_price * stands_s / 3600
    return unread_partition_second_price * handover_s / consumer
