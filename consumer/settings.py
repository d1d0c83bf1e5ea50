"""What can be set about a consumer, checked where it enters."""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_ROOT = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


class ConsumerSettings(BaseModel):
    """The settings of all consumers of a group.

    Raises:
        pydantic.ValidationError: a value is out of its range, or a name is none that is set here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spark_remote: str
    """The Spark Connect server, as `sc://host:port`."""
    lake_root: str
    """The folder of all tables, as Spark's server sees it: an absolute path, or any Hadoop URL (gs://bucket/lake)."""
    batch_bytes: Annotated[int, Field(ge=1_000, le=64_000_000)] = 5_000_000
    """BATCH_BYTES of the paper: a fetch ends with so many bytes of keys and values. A consumer's memory grows with it,
    and what Spark takes in one request bounds it."""
    wait_time_secs: Annotated[Seconds, Field(le=60)] = 5.0
    """WAIT_TIME_SECS of the paper: a fetch ends after so many seconds with what it has. Each append to a table costs
    Spark about one second of CPU, however few its rows: with short times, consumers of little keep it busy."""
    heartbeat_s: Annotated[Seconds, Field(le=60)] = 1.0
    """The longest time between two reports."""
    write_limit_s: Seconds = 60.0
    """A write to the lake that takes longer has failed."""
    give_up_after_s: Seconds = 120.0
    """Without Kafka at the start, or without a Spark session, for so long, the consumer exits to be restarted."""

    @field_validator("spark_remote")
    @classmethod
    def _is_remote(cls, remote: str) -> str:
        if not re.fullmatch(r"sc://[^/:;]+(:\d+)?(/.*)?", remote):
            raise ValueError(f"{remote!r} names no Spark Connect server: it must look like sc://host:15002")
        return remote

    @field_validator("lake_root")
    @classmethod
    def _is_root(cls, root: str) -> str:
        if not _ROOT.match(root):
            raise ValueError(f"{root!r} is relative: it must be an absolute path, or a URL such as gs://bucket/lake")
        return root.rstrip("/") or "/"
