"""The messages on `consumer.metadata`: commands on partition N to consumer N, all else on partition 0.

Commands and reports are made to be lost, doubled and reordered. A consumer carries a command out only if it is
addressed to this very process (`incarnation`) and newer than the last one it carried out (`order`). A report is a
full account: the newest command carried out and all partitions held, so that the newest report alone is enough, and
the acknowledgement of a command is any report that has `applied >= command.order`.
"""

from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from domain.assignment import ConsumerId
from domain.consumer_class import CLASS_NAME
from domain.messages.codec import (
    Amount,
    Count,
    EpochSeconds,
    Message,
    MessageError,
    Part,
    PartitionNumber,
    PartitionRef,
    Partitions,
    Topic,
    Words,
    describe,
)
from domain.partitions import HIGHEST_ID

ConsumerNumber = Annotated[int, Field(ge=1, le=HIGHEST_ID)]
Incarnation = Annotated[str, Field(pattern=r"^[ -~]{1,64}$")]
Writer = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,9}/[ -~]{1,64}$")]
"""A process that writes: `consumer/incarnation`."""
ConsumersByClass = dict[Annotated[str, Field(pattern=f"^{CLASS_NAME.pattern}$")], tuple[ConsumerNumber, ...]]
"""The consumers of each class of `[[consumer.classes]]`; those that are left out are ordinary."""
Revision = Annotated[str, Field(pattern=r"^[ -~]{1,64}$")]
"""A digest of what a consumer begins with: its image, its template and its settings."""


def writer(consumer: ConsumerId, incarnation: str) -> str:
    """The name of a process as a `Writer`."""
    return f"{consumer}/{incarnation}"


class Order(NamedTuple):
    """The place of a command among all that a consumer ever gets: later ones compare greater."""

    epoch: Count
    """Of the controller; each new leader has a higher one."""
    sequence: Count
    """Of the command within the epoch; starts at 1."""


class Action(StrEnum):
    STOP = "stop"
    START = "start"


class ConsumerCommand(Message):
    """From the controller: stop, or start, reading these partitions.

    A start may name writers to `seal`: processes that may have read one of these partitions, or may be about to, and
    are not known to have released it, because they ended or are taken to have ended. Before it reads, the consumer
    makes sure that nothing more of theirs takes effect, in the lake or in the group's commits; a process that is
    sealed while it lives has to end. Naming one that had released everything does no harm.
    """

    kind: Literal["command"] = "command"
    consumer: ConsumerNumber
    incarnation: Incarnation
    epoch: Count
    plan: Count
    """The decision that it belongs to."""
    sequence: Count
    action: Action
    partitions: tuple[PartitionRef, ...]
    seal: tuple[Writer, ...] = ()
    """Of a start only."""

    @property
    def order(self) -> Order:
        return Order(self.epoch, self.sequence)


class ConsumerState(StrEnum):
    STARTING = "starting"
    """Alive; its Kafka client or its Spark session is not ready yet."""
    READY = "ready"
    DEGRADED = "degraded"
    """Keeps its data and retries; `reason` says what is wrong."""
    LEAVING = "leaving"
    """Has let go of all its partitions and will not answer again."""


class Read(PartitionRef):
    """Records of one partition that one cycle fetched and wrote: the proof of who read what, and when."""

    stint: Order
    """The start command under which they were read."""
    first_offset: Count
    last_offset: Count
    records: Count
    first_read_at: EpochSeconds
    last_read_at: EpochSeconds


class Cycle(Part):
    """What one cycle of a consumer did."""

    bytes: Count
    """Uncompressed: keys and values of the records."""
    records: Count
    fetch_s: Amount
    write_s: Amount
    reads: tuple[Read, ...]


class Throughput(Part):
    """How fast a consumer is while it always has enough to do, over its newest such cycles; bytes are uncompressed."""

    bytes_per_s: Annotated[Amount, Field(gt=0)]
    """Of keys and values: all bytes of these cycles over all their time."""
    variation: Amount
    """The standard deviation of a cycle's rate over the rate; cycles weigh by their time."""
    cycles: Annotated[Count, Field(ge=1)]
    record_bytes: Amount
    """The mean of a record's key and value, lately."""
    compression: Annotated[Amount, Field(gt=0)] | None = None
    """Bytes of records for each byte that the brokers sent, if known."""


class Refusing(Part):
    """A topic whose table does not take what it is given, and will not until its owner has mended it."""

    topic: Topic
    for_s: Amount
    """How long the consumer has tried in vain."""
    reason: Words


class ConsumerReport(Message):
    """From a consumer, after every change of its state, after every cycle, and as a heartbeat."""

    kind: Literal["report"] = "report"
    consumer: ConsumerNumber
    incarnation: Incarnation
    """Drawn by the process when it begins; a restarted consumer has another."""
    sequence: Count
    """Of the report within the incarnation."""
    sent_at: EpochSeconds
    state: ConsumerState
    reason: Words | None = None
    """What keeps it from its work; or, where nothing does, what it has passed over lately because no log has it any
    more, or has set aside because a table refuses it."""
    applied_epoch: Count = 0
    applied_sequence: Count = 0
    partitions: Partitions = ()
    """All that it holds, in ascending order."""
    taking_over: Partitions = ()
    """Those of them that it does not read yet: whom the start named is not known to be sealed there."""
    cycle: Cycle | None = None
    """In the report that ends a cycle, and in no other."""
    lost: Count = 0
    """Offsets that were deleted before it could read them, since it began."""
    dead_letters: Count = 0
    """Records that it wrote to the dead letters, since it began, because their topics' tables refuse them."""
    refusing: tuple[Refusing, ...] = ()
    """By topic, in ascending order."""
    throughput: Throughput | None = None
    """None until it has had enough to do for some cycles."""

    @property
    def applied(self) -> Order:
        """The newest command that was carried out and persisted."""
        return Order(self.applied_epoch, self.applied_sequence)

    @property
    def writer(self) -> str:
        return writer(self.consumer, self.incarnation)


class CreationLimit(Part):
    """No plan has more than so many consumers for a while, because one could not be created."""

    most: Count
    """So many there were, or were still expected, when the last creation failed."""
    failed_at: EpochSeconds
    consumer: ConsumerNumber
    """Whose creation it was."""
    until: EpochSeconds


class RolloutStanding(Part):
    """How far consumers are replaced that began with another image, template or settings than consumers begin with
    now."""

    revision: Revision | None = None
    """What consumers begin with now; None where that is not known."""
    outdated: tuple[ConsumerNumber, ...] = ()
    """Those that are counted on and began with another, in ascending order."""
    retiring: ConsumerNumber | None = None
    """The one of them that is being replaced."""
    paused: bool = False
    """By an operator: none is replaced."""
    failed: ConsumerNumber | None = None
    """This one did not become ready with `revision`: no more are replaced until there is another, or an operator
    resumes."""


class ParkedTopic(Part):
    """A topic whose table takes nothing: nobody reads it until `until`. From then on it is on trial, until a consumer
    has written of it."""

    topic: Topic
    reason: Words
    """What the table said last."""
    since: EpochSeconds
    """When it was parked first, in a row."""
    until: EpochSeconds
    times: Count
    """How often in a row it was parked, since an operator last had it tried."""


class Foresight(Part):
    """How far ahead of the newest speeds a controller looks, and how well it does."""

    horizon_s: Annotated[Amount, Field(gt=0)]
    quantile: Annotated[Amount, Field(gt=0, lt=1)]
    """How often what is foreseen as the most is to hold."""
    partitions: Count
    """Of so many something is foreseen now: by a forecast of their own that counts, or by that of all together."""
    due: Count
    """Forecasts that counted, of the last minute and a half, the moments and partitions of which have come."""
    held: Count
    """Those of them that were not exceeded."""

    @property
    def held_share(self) -> float | None:
        """None where nothing was due."""
        return self.held / self.due if self.due else None


class Standing(Part):
    """How the group stands with a controller, as far as its plans rest on what nobody else says."""

    began_at: EpochSeconds
    """When the controller began: of what was measured before it knows the newest only."""
    synchronized: bool = True
    """Whether all consumers that it found obey it, or are given up: who reads what is known from then on."""
    counted_on: tuple[ConsumerNumber, ...]
    """The consumers that plans can count on, those that have not reported yet included; in ascending order."""
    hanging: tuple[ConsumerNumber, ...] = ()
    """Those that are not counted on, and not gone."""
    avoided: tuple[ConsumerNumber, ...] = ()
    """Numbers under which no consumer could be created too often: others are tried first, then these, in this order."""
    rollout: RolloutStanding | None = None
    """None where nothing is known of it."""
    classes: ConsumersByClass = Field(default_factory=dict)
    """Of those that plans can count on."""
    rests: bool = False
    """Nobody reads, and nobody has to: there is nothing to read."""
    parked: tuple[ParkedTopic, ...] = ()
    """Also those on trial; by topic, in ascending order."""
    foresight: Foresight | None = None
    """None where it does not look ahead."""

    def parked_at(self, at: float) -> tuple[ParkedTopic, ...]:
        """Those that nobody reads then, by the clock of who says so."""
        return tuple(each for each in self.parked if at < each.until)


class ControllerClaim(Message):
    """From a controller, on partition 0, when it begins to act and every few seconds: who acts under a lower epoch
    steps down.

    It says again what the next controller has to know, so that this outlives the retention of what it was learned from.
    And the controller hears it itself: all that was said on partition 0 before has then reached it.
    """

    kind: Literal["claim"] = "claim"
    epoch: Count
    incarnation: Incarnation
    sequence: Count = 0
    """Of the claim within the epoch; the first one is 0."""
    sent_at: EpochSeconds
    paused: bool = False
    unsealed: tuple[Writer, ...] = ()
    """Processes that may still write though nobody counts on them; in ascending order."""
    settled: tuple[Writer, ...] = ()
    """Processes that were heard of, and need not be sealed any more: the newest of them, the oldest first."""
    members: tuple[Writer, ...] = ()
    """Processes that are counted on, in ascending order. None of those that have said that they leave."""
    may_read: dict[Writer, dict[Topic, tuple[PartitionNumber, ...]]] | None = None
    """What, by topic, each of the unsealed and the members reads or was sent a start of, and is neither known to have
    let go nor sealed on. Who is not in it may read anything. A claim goes in one transaction with every start: who is
    in none was sent none. None in the claims of versions that sent starts alone."""
    heard_to: Count | None = None
    """The offset of partition 0 before which all is taken in that was said there: the next controller need not read
    it. None in the claims of versions that do not name members: the next one reads all that there is."""
    speeds_heard_to: Count | None = None
    """The same of `monitor.writeSpeed`, for whoever asks; None in the claims of versions that do not say it."""
    decisions: Count | None = None
    """So many decisions its controller had made, for whoever asks; None as above."""
    creation_limit: CreationLimit | None = None
    """What holds now, for whoever asks; the next controller tries anew."""
    standing: Standing | None = None
    """For whoever asks; None in the claims of versions that do not say it."""

    @property
    def rollout(self) -> RolloutStanding | None:
        return self.standing.rollout if self.standing is not None else None

    @property
    def foresight(self) -> Foresight | None:
        return self.standing.foresight if self.standing is not None else None

    @property
    def parked(self) -> tuple[ParkedTopic, ...]:
        """The topics that nobody reads when it is sent."""
        return self.standing.parked_at(self.sent_at) if self.standing is not None else ()

    @property
    def parked_or_on_trial(self) -> tuple[ParkedTopic, ...]:
        """The topics whose tables took nothing when they were tried last."""
        return self.standing.parked if self.standing is not None else ()


class ControlAction(StrEnum):
    PAUSE = "pause"
    """Nothing that has a reader is moved any more, until `resume`."""
    RESUME = "resume"
    REPLAN = "replan"
    """Make a plan now, and carry it out if it is better, whatever would hold it back."""
    PAUSE_ROLLOUT = "pause the rollout"
    """No consumer is replaced any more for what it began with, until `RESUME_ROLLOUT`."""
    RESUME_ROLLOUT = "resume the rollout"
    """Go on, also after a consumer that did not become ready."""
    UNPARK = "unpark"
    """Have a parked topic read again, since its table is mended."""


class ControlRequest(Message):
    """From an operator, on partition 0."""

    kind: Literal["control"] = "control"
    action: ControlAction
    topic: Topic | None = None
    """Of `UNPARK` only."""
    sent_at: EpochSeconds


MessageToController = ConsumerReport | ControllerClaim | ControlRequest
_to_controller: TypeAdapter[MessageToController] = TypeAdapter(
    Annotated[MessageToController, Field(discriminator="kind")]
)


def decode_to_controller(data: bytes | None) -> MessageToController:
    """The message of partition 0 in `data`.

    Raises:
        MessageError: `data` is none.
    """
    try:
        return _to_controller.validate_json(data or b"")
    except ValidationError as error:
        raise MessageError(describe("message to the controller", error)) from error
