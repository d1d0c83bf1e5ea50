"""The advised number for those who keep their autoscaler: metrics, health, a KEDA external scaler over real gRPC."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from app.errors import KcgaError
from app.watch.advice import Advice, NoAdviceError
from app.watch.decide.watcher import Moment
from cli.live.keda import METRIC, messages, scaler
from cli.main import app
from sandbox.ports import LOOPBACK
from tests import go_program
from tests.cli.keda_client import Keda
from tests.cli.test_watcher import group, speeds_of, watched, watcher
from tests.conftest import installed
from tests.patience import PATIENCE_S
from tests.tools import GO

HOLDS_S = 60.0
DESCRIPTION = files("cli.live.keda") / "externalscaler.json"
TYPES = {
    "string": FieldDescriptor.TYPE_STRING,
    "bool": FieldDescriptor.TYPE_BOOL,
    "int64": FieldDescriptor.TYPE_INT64,
    "double": FieldDescriptor.TYPE_DOUBLE,
}
NEEDS_TWO = (60.0, 60.0, 60.0)
SPREAD = group(("orders-0",), ("orders-1",), ("orders-2",))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def advice(clock: Clock) -> Advice:
    return Advice("billing", HOLDS_S, clock)


@pytest.fixture
def keda(advice: Advice) -> Iterator[Keda]:
    with scaler(advice, LOOPBACK) as address, Keda(address) as client:
        yield client


def unknown() -> Moment:
    """Its coordinator does not answer."""
    return watcher().look(1000.0, None, speeds_of(1000.0, *NEEDS_TWO), {})


def figure(advice: Advice, name: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(advice)
    return registry.get_sample_value(f"kcga_watch_{name}", {"group": "billing"})


def test_what_is_advised_is_the_plan_that_holds_now() -> None:
    held_back = watched(SPREAD, 20.0, 20.0, 20.0, seconds=3)
    carried_out = watched(SPREAD, 20.0, 20.0, 20.0, seconds=30)
    grows = watched(group(("orders-0", "orders-1", "orders-2")), *NEEDS_TWO)
    assert [(each.needed, each.advised) for each in (held_back, carried_out, grows)] == [(1, 3), (1, 1), (3, 3)]
    assert unknown().advised is None


def test_advice_holds_for_a_while_where_nobody_can_tell(advice: Advice, clock: Clock) -> None:
    with pytest.raises(NoAdviceError, match="no advice yet"):
        _ = advice.consumers
    advice.tell(watched(SPREAD, *NEEDS_TWO))
    clock.now = HOLDS_S
    advice.tell(unknown())
    assert advice.consumers == 3
    assert (advice.alive().ok, advice.ready().ok) == (True, True)
    clock.now += 1
    with pytest.raises(NoAdviceError, match="61 s old"):
        _ = advice.consumers
    assert (advice.alive().ok, advice.ready().ok) == (True, False)
    clock.now += HOLDS_S
    assert not advice.alive().ok


def test_metrics_are_of_what_is_known(advice: Advice, clock: Clock) -> None:
    assert figure(advice, "consumers") is None
    advice.tell(watched(group(("orders-0", "orders-1"), ("orders-2",)), 90.0, 60.0, 5.0, seconds=5))
    names = ("consumers", "consumers_advised", "consumers_overloaded", "consumers_idle", "write_speed_bytes_per_second")
    assert [figure(advice, name) for name in names] == [2, 2, 1, 1, 155.0]
    assert figure(advice, "rebalances_total") == 0
    assert figure(advice, "consumer_hours_total") == pytest.approx(2 * 5 / 3600)
    clock.now = HOLDS_S + 1
    assert (figure(advice, "consumers_advised"), figure(advice, "consumers")) == (None, 2)


def test_keda_scales_to_what_is_advised(advice: Advice, keda: Keda) -> None:
    advice.tell(watched(SPREAD, *NEEDS_TWO))
    (spec,) = keda.ask("GetMetricSpec").metricSpecs
    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == (METRIC, 1, 1)
    (value,) = keda.ask("GetMetrics").metricValues
    assert (value.metricName, value.metricValue, value.metricValueFloat) == (METRIC, 3, 3)
    assert keda.ask("IsActive").result


def refusal(keda: Keda, method: str, **metadata: str) -> Any:
    with pytest.raises(grpc.RpcError) as raised:
        keda.ask(method, **metadata)
    return raised.value


def test_keda_is_told_why_there_is_no_advice(keda: Keda) -> None:
    for method in ("GetMetrics", "IsActive"):
        refused = refusal(keda, method)
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert "no advice yet" in refused.details()
    assert keda.ask("GetMetricSpec").metricSpecs


def test_advice_is_for_one_group(advice: Advice, keda: Keda) -> None:
    advice.tell(watched(SPREAD, *NEEDS_TWO))
    assert keda.ask("GetMetrics", group="billing").metricValues
    for method in ("GetMetrics", "IsActive", "GetMetricSpec"):
        refused = refusal(keda, method, group="another")
        assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "billing, not for another" in refused.details()


def test_what_keda_may_also_ask_is_refused_as_it_expects(keda: Keda) -> None:
    """It then asks as before."""
    stream = keda.channel.unary_stream(
        "/externalscaler.ExternalScaler/StreamMetricSpec",
        request_serializer=lambda told: told.SerializeToString(),
        response_deserializer=messages()["GetMetricSpecResponse"].FromString,
    )
    with pytest.raises(grpc.RpcError) as raised:
        next(stream(messages()["ScaledObjectRef"](), timeout=PATIENCE_S))
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.integration
def test_the_service_is_the_one_that_keda_asks() -> None:
    """By the file that KEDA's own client is made of."""
    keda = go_program.source(installed(GO), Path(__file__).parent / "kedaproto")
    proto = (keda / "pkg" / "scalers" / "externalscaler" / "externalscaler.proto").read_text()
    described = DESCRIPTION.read_text()
    bodies = dict(re.findall(r"^message (\w+) \{(.*?)^\}", proto, re.MULTILINE | re.DOTALL))
    assert {
        (message, field.name, field.number, field.type)
        for message, of_it in messages().items()
        if message in bodies
        for field in of_it.DESCRIPTOR.fields
    } == {
        (message, name, int(number), TYPES.get(kind, FieldDescriptor.TYPE_MESSAGE))
        for message, body in bodies.items()
        for kind, name, number in re.findall(r"^ *(?:repeated )?([\w<>, ]+) (\w+) = (\d+);", body, re.MULTILINE)
    }
    methods = re.findall(r"rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)", proto)
    (service,) = json.loads(described)["service"]
    package = "externalscaler"
    assert [
        (each["name"], each["inputType"], each["outputType"], each.get("serverStreaming", False))
        for each in service["method"]
    ] == [(name, f".{package}.{takes}", f".{package}.{gives}", bool(stream)) for name, takes, stream, gives in methods]


def test_a_port_that_is_taken_is_named(advice: Advice) -> None:
    with scaler(advice, LOOPBACK) as address:
        again = scaler(advice, LOOPBACK, int(address.rpartition(":")[2]))
        with pytest.raises(KcgaError, match=f"{address} cannot be listened on for KEDA"), again:
            pass
    done = CliRunner().invoke(app, ["watch", "--group", "billing", "--keda-port", "70000"])
    assert done.exit_code == 2
