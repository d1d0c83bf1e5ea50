"""Serves the application in a thread of the controller's process."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import structlog
import uvicorn

log = structlog.get_logger(__name__)

END_WITHIN_S = 5.0


class PortError(OSError):
    """The port cannot be listened on; says why."""


class StatusServer:
    """Listens from the moment it is made; serves within its context.

    Args:
        host: the address to listen on.
        port: 0 for any that is free.

    Raises:
        PortError: the address or the port cannot be had.
    """

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, reuse_port=False)
        except OSError as error:
            raise PortError(f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
        self._host = host
        self._stopping = threading.Event()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        port = self._socket.getsockname()[1]
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        host = everywhere.get(self._host, self._host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def stopping(self) -> Callable[[], bool]:
        """Whether connections that are open have to end."""
        return self._stopping.is_set

    def serve(self, app: Any) -> Self:
        """What is to be served within the context."""
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=500,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        return self

    def __enter__(self) -> Self:
        server = self._server
        if server is None:
            raise RuntimeError("there is nothing to serve")
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [self._socket]}, name="status", daemon=True
        )
        self._thread.start()
        log.info("the status page is served", url=self.url)
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
