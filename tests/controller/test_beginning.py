"""What a controller that begins reads of partition 0, and what it knows then; the brokers are in memory."""

from collections.abc import Iterable

import pytest

from controller import kafka
from controller.decide.commands import Claim
from controller.decide.history import Beginning
from controller.kafka import KafkaLink
from domain.messages import (
    Asked,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    MessageToController,
    ParkedTopic,
    RolloutStanding,
    Standing,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from domain.topics import CONTROLLER_PARTITION, TopicNames
from tests.transactional_brokers import Brokers

AN_HOUR_OF_REPORTS = 20_000
NOTHING, READS = frozenset[TopicPartition](), frozenset({TopicPartition("orders", 0), TopicPartition("orders", 2)})


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    monkeypatch.setattr(kafka, "Producer", brokers.producer)
    monkeypatch.setattr(kafka, "Consumer", brokers.consumer)
    return brokers


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes | None]:
    """All that was decoded."""
    seen: list[bytes | None] = []

    def decode(data: bytes | None) -> MessageToController:
        seen.append(data)
        return decode_to_controller(data)

    monkeypatch.setattr(kafka, "decode_to_controller", decode)
    return seen


def a_link() -> KafkaLink:
    return KafkaLink("nowhere:1", "group")


def a_report(consumer: int, state: ConsumerState = ConsumerState.READY) -> ConsumerReport:
    return ConsumerReport(consumer=consumer, incarnation="a", sequence=1, sent_at=1.0, state=state, applied_epoch=1)


def say(brokers: Brokers, messages: Iterable[MessageToController]) -> None:
    brokers.records[TopicNames().metadata, CONTROLLER_PARTITION] += [message.encode() for message in messages]


def claims(brokers: Brokers) -> list[ControllerClaim]:
    said = map(decode_to_controller, brokers.records[TopicNames().metadata, CONTROLLER_PARTITION])
    return [message for message in said if isinstance(message, ControllerClaim)]


def test_a_controller_begins_from_the_newest_claim_however_long_the_group_has_run(
    brokers: Brokers, decoded: list[bytes | None]
) -> None:
    """Hole 1: after hours the whole partition took too long, and more memory than there was."""
    say(brokers, [a_report(7)] * AN_HOUR_OF_REPORTS)
    before = a_link()
    before.begin()
    decoded.clear()
    before.send(
        [before.claim(Claim(1, paused=True, unsealed={"5/e": None}, settled=("6/f",), members={"7/a": READS}), 1.0)]
    )
    say(brokers, [a_report(8)] * 3_000)
    begun = a_link().begin()
    heard_of = {"5/e": None, "7/a": READS, "8/a": NOTHING}
    assert begun == Beginning(3, paused=True, unsealed=heard_of, settled=("6/f",), of_strangers=NOTHING)
    assert len(decoded) < 3_100, "what was said before the claim is not even decoded"


def test_what_its_predecessor_had_not_heard_when_it_claimed_is_read(brokers: Brokers) -> None:
    """Hole 1: a what was said just before a claim may not be in it; it tells up to where its controller had heard."""
    before = a_link()
    before.begin()
    say(brokers, [ControlRequest(action=ControlAction.PAUSE, sent_at=1.0), a_report(3)])
    before.send([before.claim(Claim(1, paused=False, unsealed={}, settled=()), 1.0)])
    assert a_link().begin() == Beginning(2, paused=True, unsealed={"3/a": NOTHING}, of_strangers=NOTHING)


def test_what_was_received_before_a_claim_is_not_read_again(brokers: Brokers) -> None:
    """Hole 1: the claim is all that counts of it."""
    before = a_link()
    before.begin()
    say(brokers, [a_report(3), a_report(4, ConsumerState.LEAVING)])
    assert len(before.receive(0.1)) == 3, "its own claim as well"
    before.send([before.claim(Claim(1, paused=False, unsealed={}, settled=(), members={"9/z": READS}), 1.0)])
    assert a_link().begin() == Beginning(2, unsealed={"9/z": READS}, of_strangers=NOTHING)


def test_a_claim_and_a_question_say_up_to_where_was_heard_of_either_topic(brokers: Brokers) -> None:
    link = a_link()
    link.begin()
    (begins,) = claims(brokers)
    assert (begins.heard_to, begins.speeds_heard_to) == (0, 0)
    say(brokers, [a_report(3)])
    brokers.records[TopicNames().write_speed, 0].append(WriteSpeedReport.of(WriteSpeeds(1.0, {})).encode())
    link.receive(0.1)
    asked, claim = link.heard(5.0), link.claim(Claim(1, paused=False, unsealed={}, settled=()), 5.0)
    assert asked == Asked(at=5.0, heard_to=2, speeds_heard_to=1)
    assert (claim.sent_at, claim.heard_to, claim.speeds_heard_to) == (5.0, 2, 1)


def test_a_member_that_has_left_since_the_claim_is_not_sealed(brokers: Brokers) -> None:
    before = a_link()
    before.begin()
    before.send(
        [before.claim(Claim(1, paused=False, unsealed={}, settled=(), members={"3/a": None, "4/a": None}), 1.0)]
    )
    say(brokers, [a_report(3, ConsumerState.LEAVING)])
    assert a_link().begin().unsealed == {"4/a": None}


def test_where_the_newest_claim_names_no_members_everything_is_read_and_nothing_kept(brokers: Brokers) -> None:
    """Hole 1: claims of the version before tell neither who is a member nor up to where their controller had heard."""
    old = ControllerClaim(epoch=4, incarnation="old", sent_at=1.0, unsealed=("5/e",), settled=("6/f",))
    say(brokers, [a_report(7), *[a_report(6)] * 1_000, a_report(6), old, a_report(8)])
    heard_of = dict.fromkeys(("5/e", "6/a", "7/a", "8/a"))
    assert a_link().begin() == Beginning(epoch=5, unsealed=heard_of, settled=("6/f",))
    (begins,) = [claim for claim in claims(brokers) if claim.epoch == 5]
    assert begins.unsealed == ("5/e", "6/a", "7/a", "8/a")
    assert begins.heard_to == 1_004


def test_a_claim_whose_epoch_leaves_none_higher_is_told_and_not_followed(
    brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    """No controller could have begun after it, for as long as it is on the topic."""
    before = a_link()
    before.begin()
    before.send([before.claim(Claim(1, paused=True, unsealed={}, settled=(), members={"7/a": READS}), 1.0)])
    invented = ControllerClaim(epoch=2**63 - 1, incarnation="invented", sent_at=1.0, members=("9/z",), heard_to=0)
    say(brokers, [invented])
    assert a_link().begin() == Beginning(2, paused=True, unsealed={"7/a": READS}, of_strangers=NOTHING)
    assert "a claim is not followed" in capsys.readouterr().out


def test_a_controller_says_which_processes_it_counts_on(brokers: Brokers) -> None:
    """Hole 1: so that the next one need not find their reports."""
    link = a_link()
    link.begin()
    link.send([link.claim(Claim(1, paused=False, unsealed={}, settled=(), members={"3/a": None}), 1.0)])
    assert claims(brokers)[-1].members == ("3/a",)


def test_after_a_claim_that_does_not_say_what_each_may_read_anybody_may_have_read_anything(brokers: Brokers) -> None:
    """Hole 12: version 0.1 sent starts without a claim, so who reported after it may have been sent one."""
    before = a_link()
    before.begin()
    claim = before.claim(Claim(1, paused=False, unsealed={"5/e": READS}, settled=(), members={"3/a": READS}), 1.0)
    say(brokers, [claim.model_copy(update={"may_read": None}), a_report(4)])
    assert a_link().begin() == Beginning(2, unsealed=dict.fromkeys(("3/a", "4/a", "5/e")))


@pytest.mark.usefixtures("brokers")
def test_a_claim_says_all_that_the_next_controller_knows() -> None:
    """Hole 12: what each may read, and of whom it is not known."""
    link = a_link()
    link.begin()
    link.send(
        [
            link.claim(
                Claim(1, paused=False, unsealed={"5/e": None, "6/f": READS}, settled=(), members={"3/a": NOTHING}), 1.0
            )
        ]
    )
    heard_of = {"3/a": NOTHING, "5/e": None, "6/f": READS}
    assert a_link().begin() == Beginning(2, unsealed=heard_of, of_strangers=NOTHING)
    assert a_link().begin() == Beginning(3, unsealed=heard_of, of_strangers=NOTHING), "its first claim says it again"


def test_the_first_claim_of_a_controller_says_again_how_the_group_stood(brokers: Brokers) -> None:
    """A controller that ended at once made the next one forget a rollout's pause, and what is parked."""
    parked = ParkedTopic(topic="orders", reason="full", since=1.0, until=1e9, times=2)
    stood = Standing(began_at=1.0, counted_on=(3, 4), classes={"large": (3,)}, parked=(parked,))
    before = a_link()
    before.begin()
    before.send([before.claim(Claim(1, paused=False, unsealed={}, settled=(), standing=stood), 1.0)])
    say(brokers, [ControlRequest(action=ControlAction.PAUSE_ROLLOUT, sent_at=2.0)])
    a_link().begin()
    says = claims(brokers)[-1]
    assert says.sequence == 0
    assert says.standing is not None
    assert (says.standing.counted_on, says.standing.classes) == (stood.counted_on, stood.classes)
    assert (says.standing.began_at, says.standing.synchronized) == (says.sent_at, False)
    begun = a_link().begin()
    assert begun.rollout == RolloutStanding(paused=True)
    (still,) = begun.parked
    assert still.until - begun.parked_told_at == pytest.approx(parked.until - 1.0), "as long as before, by its clock"


def test_a_claim_that_waits_to_be_sent_says_up_to_where_was_heard_when_it_was_made(brokers: Brokers) -> None:
    """Hole 12: claims go with starts, and are kept with them while the brokers take nothing."""
    link = a_link()
    link.begin()
    claim = link.claim(Claim(1, paused=False, unsealed={}, settled=()), 1.0)
    say(brokers, [a_report(3)])
    link.receive(0.1)
    link.send([claim])
    assert a_link().begin().unsealed == {"3/a": NOTHING}
