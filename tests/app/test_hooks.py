"""What a webhook is told, how it knows who told it, and that a webhook which is away keeps nobody waiting."""

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from structlog.contextvars import bound_contextvars, merge_contextvars

from app.hooks import webhook
from app.hooks.events import Event, EventKind, Events
from app.hooks.webhook import Webhook, signature
from app.settings import HookSettings
from domain.messages import ConsumerReport, Decision, SaturatedPartition
from sandbox.ports import LOOPBACK, free_port
from tests.app.receiver import Receive
from tests.app.status_messages import claim_with_parked
from tests.patience import PATIENCE_S
from tests.sandbox.watch_messages import BEGAN, decision, report

AT = 1_700_000_000.0
KEY = bytes(range(32))
SECRET = SecretStr(f"whsec_{b64encode(KEY).decode()}")


@pytest.fixture(autouse=True)
def _as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TOLD_WITHIN_S", PATIENCE_S)


def saturated(number: int, *names: str) -> Decision:
    partitions = (name.rpartition("-") for name in names)
    found = tuple(
        SaturatedPartition(topic=topic, partition=int(place), speed=5.0, partitions_needed=3)
        for topic, _, place in partitions
    )
    held = decision(number, AT, {"orders-0": (1, 1)}, carried_out=False)
    return held.model_copy(update={"saturated": found})


def lost(records: int, incarnation: str = "a") -> ConsumerReport:
    return report(2, AT, incarnation=incarnation).model_copy(update={"lost": records})


def kinds(events: Iterator[Event]) -> list[EventKind]:
    return [event.kind for event in events]


def test_a_plan_that_is_carried_out_is_told_and_one_that_is_not_is_not() -> None:
    carried_out = decision(7, AT, {"orders-0": (1, 2), "orders-1": (1, 1)}, epoch=3, rscore=0.25)
    (event,) = Events().decided(carried_out)
    told = json.loads(event.encode("lake writers"))
    data = told.pop("data")
    assert told == {
        "specversion": "1.0",
        "id": "decision-3-7",
        "source": "/kcga/lake%20writers",
        "type": "kcga.decision",
        "time": "2023-11-14T22:13:20+00:00",
        "datacontenttype": "application/json",
    }
    assert data["group"] == "lake writers"
    assert (data["migrations"], data["plan"]["consumers"], data["plan"]["rscore"]) == (1, 2, 0.25)
    assert data["triggers"] == ["the interval is over"]
    assert not list(Events().decided(carried_out.model_copy(update={"carried_out": False})))


def test_consumers_that_are_gone_are_told_before_the_plan_without_them() -> None:
    without = decision(8, AT, {"orders-0": (None, 1), "orders-1": (1, 1)}).model_copy(update={"lost": (2,)})
    silence, plan = Events().decided(without)
    assert (silence.kind, plan.kind) == (EventKind.SILENCE, EventKind.DECISION)
    assert silence.data == {"consumers": (2,), "partitions": ["orders-0"]}


def test_partitions_that_are_too_fast_are_told_where_they_are_others_than_before() -> None:
    events = Events()
    told = [
        [each.data["saturated"] for each in events.decided(saturated(number, *names))]
        for number, names in enumerate([(), ("orders-0",), ("orders-0",), ("orders-0", "orders-1"), ()])
    ]
    assert [[[each["partition"] for each in found] for found in each] for each in told] == [
        [],
        [[0]],
        [],
        [[0, 1]],
        [[]],
    ]


def test_lost_records_are_told_once_however_often_they_are_reported() -> None:
    events = Events()
    told = [list(events.heard(each)) for each in (lost(0), lost(3), lost(3), lost(9), lost(3), lost(1, "b"))]
    assert [[each.data["records"] for each in found] for found in told] == [[], [3], [], [9], [], [1]]
    assert len({each.id for found in told for each in found}) == 3


def test_a_parked_topic_is_told_once_until_it_was_written_again() -> None:
    events, claims = (
        Events(),
        [
            claim_with_parked(),
            claim_with_parked("orders"),
            claim_with_parked("orders", at=BEGAN + 2),
            claim_with_parked("orders", at=BEGAN + 61),  # on trial
            claim_with_parked("orders", at=BEGAN + 63, until=BEGAN + 99),
            claim_with_parked(at=BEGAN + 99),
        ],
    )
    told = [event for claim in claims for event in events.claimed(claim)]
    assert [(event.kind, event.data["topic"], event.data["reason"]) for event in told] == [
        (EventKind.PARKED, "orders", "orders: another type")
    ]
    assert len(list(events.claimed(claim_with_parked("orders", at=BEGAN + 100, until=BEGAN + 200)))) == 1


def test_a_signature_is_that_of_the_specification() -> None:
    """The example of Standard Webhooks' libraries: `whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`."""
    settings = HookSettings(secret=SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    assert settings.key is not None
    made = signature(settings.key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def told(url: str, registry: CollectorRegistry, **settings: Any) -> Webhook:
    patient = {"timeout_s": 300, **settings}
    return Webhook(url, HookSettings(**patient), "billing", registry, first_pause_s=0.01)


def counted(registry: CollectorRegistry, outcome: str) -> float:
    return registry.get_sample_value("kcga_hook_events_total", {"group": "billing", "outcome": outcome}) or 0.0


def test_events_come_in_their_order_and_say_who_sent_them(receive: Receive) -> None:
    receiver, registry = receive(204), CollectorRegistry()
    with told(receiver.url, registry, secret=SECRET) as hook:
        for number in range(1, 4):
            hook.decided(decision(number, AT, {"orders-0": (1, number)}))
        hook.heard(lost(5))
        receiver.wait(4)
    assert receiver.ids == ["decision-1-1", "decision-1-2", "decision-1-3", "lost-a-5"]
    assert counted(registry, "delivered") == 4
    for headers, body in receiver.heard:
        assert headers["content-type"] == "application/cloudevents+json"
        content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        assert headers["webhook-signature"] == f"v1,{b64encode(hmac.digest(KEY, content, hashlib.sha256)).decode()}"


def test_only_events_of_the_kinds_that_are_wanted_are_told(receive: Receive) -> None:
    receiver = receive(200)
    with told(receiver.url, CollectorRegistry(), events=["lost"]) as hook:
        hook.decided(decision(1, AT, {"orders-0": (1, 2)}))
        hook.heard(lost(5))
        receiver.wait(1)
    assert receiver.ids == ["lost-a-5"]


def test_an_event_is_sent_again_until_it_is_taken(receive: Receive) -> None:
    receiver, registry = receive(503, 429, 200), CollectorRegistry()
    with told(receiver.url, registry) as hook:
        hook.decided(decision(1, AT, {"orders-0": (1, 2)}))
        hook.decided(decision(2, AT, {"orders-0": (2, 1)}))
        receiver.wait(4)
    assert receiver.ids == ["decision-1-1"] * 3 + ["decision-1-2"]
    assert (counted(registry, "delivered"), counted(registry, "dropped")) == (2, 0)


@pytest.mark.parametrize("answer", [302, 400, 410])
def test_what_is_refused_is_dropped_and_said(receive: Receive, answer: int) -> None:
    receiver, registry = receive(answer), CollectorRegistry()
    of_group = bound_contextvars(group="orders")
    with structlog.testing.capture_logs([merge_contextvars]) as lines, of_group, told(receiver.url, registry) as hook:
        hook.decided(decision(1, AT, {"orders-0": (1, 2)}))
        hook.decided(decision(2, AT, {"orders-0": (2, 1)}))
        receiver.wait(2)
    assert receiver.ids == ["decision-1-1", "decision-1-2"]
    assert counted(registry, "dropped") == 2
    assert [(line["id"], line["host"], line["reason"], line["group"]) for line in lines] == [
        (event, LOOPBACK, f"it answers {answer}", "orders") for event in receiver.ids
    ]


def test_a_receiver_that_is_away_is_said_without_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TRIES", 2)
    registry = CollectorRegistry()
    with structlog.testing.capture_logs() as lines:
        with told(f"http://{LOOPBACK}:{free_port()}/?token=geheim", registry) as hook:
            hook.decided(decision(1, AT, {"orders-0": (1, 2)}))
        assert counted(registry, "dropped") == 1
    (line,) = lines
    assert "refused" in line["reason"]
    assert "geheim" not in str(line)


def test_a_receiver_that_hangs_holds_nobody_up(receive: Receive, monkeypatch: pytest.MonkeyPatch) -> None:
    """All events are handed over while it has not answered the first; what is too many is dropped, and counted."""
    monkeypatch.setattr(webhook, "MOST_WAITING", 3)
    receiver, registry = receive(200), CollectorRegistry()
    receiver.answers.clear()
    with told(receiver.url, registry, timeout_s=300) as hook:
        for number in range(1, 11):
            hook.decided(decision(number, AT, {"orders-0": (1, number)}))
        assert receiver.heard == []
        dropped = counted(registry, "dropped")
        assert dropped in (6, 7)  # the first is on its way, or waits, too
        receiver.answers.set()
        receiver.wait(10 - int(dropped))
    assert receiver.ids[0] == "decision-1-1"
    assert counted(registry, "delivered") == 10 - dropped


@pytest.mark.parametrize(
    "secret", ["geheim", "whsec_", "whsec_c2hvcnQ=", "whsec_???", f"other_{b64encode(KEY).decode()}"]
)
def test_a_secret_that_is_none_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_ and 24 to 64 bytes in base64") as raised:
        HookSettings(secret=SecretStr(secret))
    assert secret not in str(raised.value).replace("whsec_ and", "")
