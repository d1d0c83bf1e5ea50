"""Serves health, readiness and metrics of one component, by the standard library's server in a thread of its own."""

import json
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from cli.errors import KcgaError

log = structlog.get_logger(__name__)

SILENT_CLIENT_S = 10.0
"""A client that says nothing for so long is left."""


@dataclass(frozen=True, slots=True)
class Verdict:
    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Probes:
    """What is asked of a component."""

    alive: Callable[[], Verdict]
    """Whether the process does anything; one that does not should be started anew."""
    ready: Callable[[], Verdict]
    """Whether it does what it is for."""
    registry: CollectorRegistry


class Exporter:
    """Listens from the moment it is made; answers within its context.

    Args:
        host: the address to listen on.
        port: 0 for any that is free.
        probes: what it answers.

    Raises:
        KcgaError: the address or the port cannot be had.
    """

    def __init__(self, host: str, port: int, probes: Probes) -> None:
        class Handler(_Handler):
            asked = probes

        try:
            self._server = (_Server6 if ":" in host else _Server)((host, port), Handler)
        except OSError as error:
            raise KcgaError(
                f"{host}:{port} cannot be listened on ({error.strerror or error}): set another port in [http]"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        log.info("health and metrics are served", address=f"{self._server.server_address[0]!s}:{self.port}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves before its answer, as a probe that does not wait any longer, is no fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    asked: Probes
    timeout = SILENT_CLIENT_S
    server_version = "kcga"
    sys_version = ""

    def do_GET(self) -> None:  # as http.server names it
        match self.path.partition("?")[0]:
            case "/healthz":
                self._answer_verdict(self.asked.alive())
            case "/readyz":
                self._answer_verdict(self.asked.ready())
            case "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(200, content_type, encode(self.asked.registry))
            case path:
                self._answer_json(404, {"reason": f"there is nothing at {path}: try /healthz, /readyz or /metrics"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the server itself refuses: other methods, and what is no HTTP."""
        self.close_connection = True
        self._answer_json(405 if code == 501 else code, {"reason": message or "this cannot be answered"})

    def _answer_verdict(self, verdict: Verdict) -> None:
        self._answer_json(200 if verdict.ok else 503, {"ok": verdict.ok, "reason": verdict.reason})

    def _answer_json(self, status: int, value: object) -> None:
        self._answer(status, "application/json", json.dumps(value).encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Requests are not logged: probes come every few seconds."""
