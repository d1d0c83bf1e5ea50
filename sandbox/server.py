"""What the servers of our own have in common: a port, a folder, a process, and when it is ready."""

import re
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from app.child import Child
from app.errors import KcgaError
from sandbox.ports import LOOPBACK, free_port, listens, require_free

READY_WITHIN_S = 600.0
"""Quiet machines need some seconds; where several things start on two slow cores, minutes."""

_ATTEMPTS = 3
_PORT_LOST = re.compile("Address already in use|BindException")


class Server(ABC):
    """A server of this machine that lives as long as its context, or from `start()` to `stop()`; started once.

    Args:
        folder: takes all its files; made if it does not exist. To be removed only after `stop()`.
        port: where clients connect; a free one if not given.
    """

    title: ClassVar[str]
    """What messages call it."""

    def __init__(self, folder: Path, port: int | None) -> None:
        self._folder = folder.absolute()
        self._given_port = port
        self._port = port
        self._child: Child | None = None
        self._stopped = False
        self._starting = threading.Lock()

    @property
    def log(self) -> Path:
        """The file with what it said."""
        return self._folder / "log"

    @property
    def address(self) -> str:
        """`host:port` for its clients; known once it is started."""
        if self._port is None:
            raise RuntimeError(f"{self.title} was not started")
        return f"{LOOPBACK}:{self._port}"

    @property
    def child(self) -> Child:
        """Its process."""
        if self._child is None:
            raise RuntimeError(f"{self.title} was not started")
        return self._child

    def start(self, ready_within_s: float = READY_WITHIN_S) -> None:
        """Starts it, and returns when it serves.

        Raises:
            KcgaError: the port is taken; it ended or was not ready in time, with the end of its log; it was stopped.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for attempt in range(1, _ATTEMPTS + 1):
                if self._given_port is None:
                    self._port = free_port()
                else:
                    self._port = require_free(self._given_port, self.title)
                try:
                    self._run(self._prepare(self._port))
                    self.child.wait_ready(self._is_ready, ready_within_s)
                    return
                except KcgaError:
                    if self._stopped or attempt == _ATTEMPTS or not self._lost_its_port():
                        raise
                    self.child.stop()
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise KcgaError(f"{self.title} cannot be started: {error}") from error
            raise

    def begin_again(self) -> Child:
        """Starts it anew once it has ended, on the same port and with the same data; does not wait until it serves."""
        self.child.stop()  # whatever it left
        return self._run(self.child.again())

    @property
    def serves(self) -> bool:
        """Whether a client is served now."""
        return self.child.running and self._is_ready()

    def stop(self) -> None:
        """Ends it and waits for its end; a `start()` that another thread is in fails then. Can be called again."""
        with self._starting:
            self._stopped = True
        if self._child is not None:
            self._child.stop()

    def _run(self, child: Child) -> Child:
        """Makes `child` the process of this server, unless that is stopped."""
        with self._starting:
            if self._stopped:
                raise KcgaError(f"{self.title} was stopped while it started")
            self._child = child
            child.start()
        return child

    def _lost_its_port(self) -> bool:
        """Whether another program took the port that was free a moment before; nobody asked for that one."""
        said = [] if self._child is None else self._child.tail(200)
        return self._given_port is None and any(map(_PORT_LOST.search, said))

    def _is_ready(self) -> bool:
        # First whether anything listens at all: clients complain in the log when nothing does.
        return listens(int(self.address.rpartition(":")[2])) and self._answers()

    @abstractmethod
    def _prepare(self, port: int) -> Child:
        """Writes what it needs into its folder; the process to start."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a client is served."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
