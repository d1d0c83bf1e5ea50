"""Serves an application in a thread of this process, to clients that may be slow, silent or many."""

import asyncio
import socket
import threading
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, Self

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.child import given_listener
from app.status.hosts import KnownHosts

log = structlog.get_logger(__name__)

END_WITHIN_S = 5.0
MOST_CONNECTIONS = 400
"""A process may have a thousand files open as a rule, and needs some for Kafka."""
REQUEST_WITHIN_S = 10.0
"""A connection on which no whole request comes for so long is closed."""
UNREAD_S = 30.0
"""So is one whose client does not take what is sent."""


class PortError(OSError):
    """The port cannot be listened on; says why."""


class StatusServer:
    """Listens from the moment it is made; serves within its context.

    Args:
        host: the address to listen on.
        port: 0 for any that is free.
        allowed_hosts: names, besides this one, that requests may be for; see `KnownHosts`.
        what: is served, for the log.

    Raises:
        PortError: the address or the port cannot be had.
    """

    def __init__(
        self, host: str, port: int, *, allowed_hosts: Collection[str] = (), what: str = "the status page"
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = given_listener(port) or socket.create_server((host, port), family=family)
        except OSError as error:
            raise PortError(f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections have it from the socket that they come by
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * UNREAD_S))
        self._host = host
        self._allowed_hosts = (host, *allowed_hosts)
        self._what = what
        self._stopping = threading.Event()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        host = everywhere.get(self._host, self._host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def stopping(self) -> Callable[[], bool]:
        """Whether connections that are open have to end."""
        return self._stopping.is_set

    def serve(self, app: ASGIApp) -> Self:
        """What is to be served within the context."""
        config = uvicorn.Config(
            KnownHosts(app, self._allowed_hosts),
            http=_Connection,
            ws="none",
            log_config=None,
            log_level="error",  # what clients do wrong is nothing to log
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=int(REQUEST_WITHIN_S),
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        return self

    def __enter__(self) -> Self:
        server = self._server
        if server is None:
            raise RuntimeError("there is nothing to serve")
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [self._socket]}, name="http", daemon=True)
        self._thread.start()
        log.info("server started", serves=self._what, url=self.url)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(END_WITHIN_S)
        self._socket.close()


class _Connection(H11Protocol):
    """One of so many at most; closed unless whole requests come in time. uvicorn waits for the first one for ever."""

    _give_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._await_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
        self._give_up = self.loop.call_later(REQUEST_WITHIN_S, self._close_without_request)

    def _close_without_request(self) -> None:
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or cycle.more_body:
            self.transport.abort()
