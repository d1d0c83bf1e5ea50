"""Asks an external scaler as KEDA does."""

from types import TracebackType
from typing import Any, Self

import grpc

from cli.live.keda import METRIC, SERVICE, messages
from tests.patience import PATIENCE_S


class Keda:
    """A client, as long as its context.

    Args:
        address: of the scaler.
    """

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self._messages = messages()

    def ask(self, method: str, **metadata: str) -> Any:
        """What it answers; `metadata` is that of the ScaledObject's trigger."""
        message = self._messages
        scaled = message["ScaledObjectRef"](name="writers", namespace="streams", scalerMetadata=metadata)
        asked = message["GetMetricsRequest"](scaledObjectRef=scaled, metricName=METRIC)
        call = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda told: told.SerializeToString(),
            response_deserializer=message[f"{method}Response"].FromString,
        )
        return call(asked if method == "GetMetrics" else scaled, timeout=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
