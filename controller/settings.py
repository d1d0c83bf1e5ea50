"""What an operator can set of the controller."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
BytesPerS = Annotated[float, Field(gt=0, allow_inf_nan=False)]

AUTHORS_HEADROOM = 0.75
"""The share of a consumer's capacity that the paper's authors filled when they packed."""


class ControllerSettings(BaseModel):
    """Capacities in bytes/s, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    consumer_capacity: BytesPerS = 2_300_000
    """What one consumer reads at most; above it the controller reacts at once. The default is the paper's consumer."""
    packing_capacity: BytesPerS | None = None
    """What a plan gives a consumer at most, so that it has room to grow; 0.75 of `consumer_capacity` unless set."""
    migration_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.5
    """Lambda: how many consumers it is worth to move one consumer's capacity less."""
    engine: str = "auto"
    """`auto`, an exact engine, or a heuristic: see `kcga solve --help`."""
    time_limit_s: Seconds = 1.0
    """Of one call of the solver."""
    interval_s: Seconds = 60.0
    """How often the assignment is considered anew while nothing forces it."""
    least_interval_s: Seconds = 5.0
    """The least time between two decisions, whatever forces them."""
    max_consumers: Annotated[int, Field(ge=1, le=10_000)] = 100
    """`consumer.metadata` has one partition more than this."""
    heartbeat_timeout_s: Seconds = 15.0
    """A consumer that is silent for longer is taken for dead: it is ended, and its partitions go to others."""
    ready_timeout_s: Seconds = 90.0
    """A new consumer that is not ready by then is given up."""
    acknowledge_timeout_s: Seconds = 10.0
    """A command that is not acknowledged by then is sent again."""
    synchronize_timeout_s: Seconds = 10.0
    """How long a controller that begins waits for the consumers that it finds to report."""
    speeds_timeout_s: Seconds = 30.0
    """Write speeds older than this are not decided on."""

    @model_validator(mode="after")
    def _packing_within_capacity(self) -> Self:
        if self.packing_capacity is not None and self.packing_capacity > self.consumer_capacity:
            raise ValueError(
                f"packing_capacity ({self.packing_capacity:g}) is above consumer_capacity "
                f"({self.consumer_capacity:g}): it must be at most that"
            )
        return self

    @property
    def packing(self) -> float:
        """What a plan gives a consumer at most, in bytes/s."""
        return AUTHORS_HEADROOM * self.consumer_capacity if self.packing_capacity is None else self.packing_capacity
