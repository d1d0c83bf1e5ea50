"""The advised number of consumers as a KEDA external scaler: who keeps their autoscaler has it scale by that.

KEDA asks by gRPC. Its service is described in `externalscaler.json`, a protobuf file descriptor made of the
`externalscaler.proto` of KEDA 2.21: code that protoc generates would be bound to one version of protobuf.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import grpc
import structlog
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessages

from app.errors import KcgaError
from app.watch.advice import Advice, NoAdviceError

log = structlog.get_logger(__name__)

SERVICE = "externalscaler.ExternalScaler"
METRIC = "kcga-consumers-advised"
CALLS_AT_ONCE = 4


def messages() -> dict[str, Any]:
    """The classes of KEDA's messages, by their names."""
    described = json.loads(files(__package__).joinpath("externalscaler.json").read_text())
    found = GetMessages([ParseDict(described, FileDescriptorProto())], DescriptorPool())
    return {name.rpartition(".")[2]: message for name, message in found.items()}


@contextmanager
def scaler(advice: Advice, host: str, port: int = 0) -> Iterator[str]:
    """Answers KEDA; tells at which address.

    Args:
        advice: what it is told.
        host: to listen on; one of IPv6 in brackets.
        port: 0 for any that is free.

    Raises:
        KcgaError: the address cannot be had.
    """
    server = grpc.server(
        ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="keda"), options=[("grpc.so_reuseport", 0)]
    )
    server.add_generic_rpc_handlers((_handler(advice),))
    try:
        address = f"{host}:{server.add_insecure_port(f'{host}:{port}')}"
    except RuntimeError as error:
        raise KcgaError(f"{host}:{port} cannot be listened on for KEDA: {error}") from error
    server.start()
    log.info("server started", serves="a KEDA external scaler", address=address)
    try:
        yield address
    finally:
        server.stop(grace=None).wait()


def _handler(advice: Advice) -> grpc.GenericRpcHandler:
    known = messages()

    def require_own(scaled: Any, context: grpc.ServicerContext) -> None:
        group = scaled.scalerMetadata.get("group", advice.group)
        if group != advice.group:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"advice is for the group {advice.group}, not for {group}")

    def advised(scaled: Any, context: grpc.ServicerContext) -> int:
        require_own(scaled, context)
        try:
            return advice.consumers
        except NoAdviceError as error:
            # KEDA leaves the number as it is, or takes the fallback that it was told.
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise

    def is_active(scaled: Any, context: grpc.ServicerContext) -> Any:
        return known["IsActiveResponse"](result=advised(scaled, context) > 0)

    def spec(scaled: Any, context: grpc.ServicerContext) -> Any:
        """As many as the metric says: a target of 1 for each."""
        require_own(scaled, context)
        of_metric = known["MetricSpec"](metricName=METRIC, targetSize=1, targetSizeFloat=1)
        return known["GetMetricSpecResponse"](metricSpecs=[of_metric])

    def metrics(asked: Any, context: grpc.ServicerContext) -> Any:
        consumers = advised(asked.scaledObjectRef, context)
        value = known["MetricValue"](metricName=METRIC, metricValue=consumers, metricValueFloat=consumers)
        return known["GetMetricsResponse"](metricValues=[value])

    def method(takes: str, answer: Callable[[Any, grpc.ServicerContext], Any]) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(
            answer, known[takes].FromString, lambda told: told.SerializeToString()
        )

    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "IsActive": method("ScaledObjectRef", is_active),
            "GetMetricSpec": method("ScaledObjectRef", spec),
            "GetMetrics": method("GetMetricsRequest", metrics),
        },
    )
