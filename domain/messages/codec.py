"""How a message becomes bytes, and how bytes from anywhere become a valid message or one clear error."""

from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from domain.partitions import HIGHEST_ID, TopicPartition
from domain.printable import printable
from domain.secrecy import masked
from domain.speeds import HIGHEST_SPEED

# Every number has an upper bound that nobody reaches, so that sums of many, dates and figures can be made of it.

SpeedBytesPerS = Annotated[float, Field(ge=0, le=HIGHEST_SPEED, allow_inf_nan=False)]
EpochSeconds = Annotated[float, Field(ge=0, le=32_503_680_000, allow_inf_nan=False)]
"""Up to the year 3000."""
Amount = Annotated[float, Field(ge=0, le=HIGHEST_SPEED)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""As many as Kafka has offsets."""
Words = Annotated[str, AfterValidator(masked), AfterValidator(printable)]
"""Text for people: what errors said may be in it."""


class MessageError(ValueError):
    """Bytes that are not a message of the kind that was expected; says which field is wrong, and how."""


class Part(BaseModel):
    """A part of a message: immutable, finite, and of exactly the types it names. Unknown fields are left aside."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, extra="ignore")


def _all_printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{name!r} has characters that are not printable")
    return name


Topic = Annotated[str, Field(min_length=1, max_length=249), AfterValidator(_all_printable)]
"""Files that are solved may have names that Kafka would not take; none that a terminal would act on."""
PartitionNumber = Annotated[int, Field(ge=0, le=HIGHEST_ID)]


class PartitionRef(Part):
    """A partition on the wire."""

    topic: Topic
    partition: PartitionNumber

    @staticmethod
    def of(partition: TopicPartition) -> "PartitionRef":
        return _reference(*partition)

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@lru_cache(maxsize=10_000)
def _reference(topic: str, partition: int) -> PartitionRef:
    """Every report of a consumer names the same ones again."""
    return PartitionRef(topic=topic, partition=partition)


def _listed(
    given: tuple[PartitionRef, ...] | dict[Topic, tuple[PartitionNumber, ...]],
) -> tuple[PartitionRef, ...]:
    if isinstance(given, tuple):
        return given
    return tuple(PartitionRef(topic=topic, partition=number) for topic, numbers in given.items() for number in numbers)


def _by_topic(partitions: tuple[PartitionRef, ...]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition.partition)
    return grouped


def _compact(_source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    either = tuple[PartitionRef, ...] | dict[Topic, tuple[PartitionNumber, ...]]
    written = core_schema.plain_serializer_function_ser_schema(_by_topic)
    return core_schema.no_info_after_validator_function(_listed, handler(either), serialization=written)


Partitions = Annotated[tuple[PartitionRef, ...], GetPydanticSchema(_compact)]
"""Many partitions: by topic, `{"orders": [0, 1, 2]}`, a few bytes each; or one by one, as version 0.1 wrote them."""


class Message(Part):
    """What is sent as one record: JSON that names its version.

    A version grows when an old reader would misunderstand the message; a field that it can leave aside needs none.
    """

    version: Literal[1] = 1
    group: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Whose message it is: of several groups on the same topics each leaves those of the others aside. None in what
    version 0.1 wrote, and then it is one's own."""

    def is_of(self, group: str) -> bool:
        return self.group is None or self.group == group

    def encode(self) -> bytes:
        return self.model_dump_json().encode()

    @classmethod
    def decode(cls, data: bytes | None) -> Self:
        """The message in `data`.

        Raises:
            MessageError: `data` is no such message.
        """
        try:
            return cls.model_validate_json(data or b"")
        except ValidationError as error:
            raise MessageError(describe(cls.__name__, error)) from error


def describe(what: str, error: ValidationError) -> str:
    """The faults in one line, at most three of them."""
    faults = error.errors(include_url=False, include_context=False)
    shown = "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'the message'}: {fault['msg'].lower()}" for fault in faults[:3]
    )
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return printable(f"not a {what}: {shown}{more}")
