"""What the monitor may be told: which topics, how often, over which window."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from domain.speeds import Source
from domain.topics import LEGAL_NAME
from monitor.measure.interest import is_expression


class MonitorSettings(BaseModel):
    """The monitor's settings; all times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    topics: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names, or regular expressions where they begin with `^`. As in librdkafka, an expression need only match the
    beginning of a name: end it with `$` where it must match all of it."""
    source: Literal["auto"] | Source = "auto"
    """What tells the write speeds. `log_dirs`: what brokers say that logs take on their disks, which is exact and takes
    the right Describe on the cluster. `offsets`: end offsets, and samples of records for their size, which takes the
    right Read on the topics. `auto`: the first where the brokers allow it, otherwise the second.
    `prometheus`: a Prometheus, which has to be asked for by this name."""
    prometheus_url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")] | None = None
    """Where Prometheus is asked, with `source = "prometheus"`: the part before `/api/v1/query`."""
    prometheus_query: Annotated[str, Field(min_length=1)] | None = None
    """What it is asked: an instant vector of the bytes that the log of each partition has, or that were written to it
    so far, such as `kafka_log_log_size`. Where several series are of one partition, the largest counts."""
    prometheus_labels: tuple[Annotated[str, Field(min_length=1)], Annotated[str, Field(min_length=1)]] = (
        "topic",
        "partition",
    )
    """The labels that tell topic and partition."""
    prometheus_token: SecretStr | None = None
    """A secret that is sent to Prometheus (`Authorization: Bearer`)."""
    prometheus_ca: Path | None = None
    """PEM: the certificate of who signed Prometheus' own, where the system does not know them."""
    interval_s: Annotated[float, Field(ge=0.05, le=60)] = 1.0
    """Time from one measurement to the next."""
    window_s: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """The time that a write speed is an average over: the measurements of the last so many seconds."""
    follow_changes: bool = True
    """Whether the speed of a partition that is written faster or slower than before is that of since then, not that of
    the whole window: once each of the newest measurements was faster than all before, or each was slower. So the group
    grows and shrinks sooner. Without it a speed is the paper's. See `docs/decisions/0028-changes.md`."""
    hold_s: Annotated[float, Field(ge=0, le=3600)] = 15.0
    """How long a partition that cannot be measured keeps its last good speed; afterwards it is unknown."""
    discovery_interval_s: Annotated[float, Field(ge=0.05, le=3600)] = 5.0
    """How often the whole cluster is searched for new topics that match a regular expression, and where `source` is
    `auto`, how often brokers are asked for sizes that they have refused to tell."""
    request_timeout_s: Annotated[float, Field(ge=0.5, le=120)] = 5.0
    """How long a broker, or Prometheus, may take to answer before it counts as away."""

    @field_validator("topics")
    @classmethod
    def _names_or_expressions(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if is_expression(topic):
                try:
                    re.compile(topic)
                except re.error as error:
                    raise ValueError(f"{topic!r} begins with ^ and is no valid regular expression: {error}") from error
            elif not LEGAL_NAME.fullmatch(topic):
                raise ValueError(
                    f"{topic!r} cannot be the name of a topic: it must be 1 to 249 letters, digits, dots, underscores "
                    "or hyphens, or a regular expression that begins with ^"
                )
        if len(set(topics)) < len(topics):
            twice = min(topic for topic in topics if topics.count(topic) > 1)
            raise ValueError(f"{twice!r} is named twice: name each topic and each expression once")
        return topics

    @model_validator(mode="after")
    def _window_holds_measurements(self) -> Self:
        if self.window_s < 2 * self.interval_s:
            raise ValueError(
                f"window_s is {self.window_s:g} and interval_s is {self.interval_s:g}: the window must be at least "
                f"two intervals long ({2 * self.interval_s:g} s), or there is nothing to take a difference of"
            )
        return self

    @model_validator(mode="after")
    def _knows_whom_to_ask(self) -> Self:
        if self.source is Source.PROMETHEUS and None in (self.prometheus_url, self.prometheus_query):
            raise ValueError(
                'source is "prometheus": prometheus_url and prometheus_query must say whom to ask, and what'
            )
        return self
