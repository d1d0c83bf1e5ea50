"""A program that runs beside kcga: how it is started, when it is ready, and that nothing of it is left.

Each child leads a session of its own: a Ctrl-C in the terminal reaches kcga alone, which then stops its children in
order. A guard (a shell that sleeps on a pipe) kills the child's process group should kcga die without doing so.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from app.errors import KcgaError

POLL_S = 0.1
_TAIL_BYTES = 64 * 1024

_LOOKED_AT = 400
_TELLS_LITTLE = re.compile(r"^\s+at \S+\(|\bINFO\b")
"""Frames of Java's stack traces, and what goes well; the cause stands before or between them."""

_GUARD = 'read -r _; kill -s KILL -- "-$1"'
"""Reading ends when the last writer of the pipe is gone: that is kcga, whichever way it died."""


LISTENER = "KCGA_LISTENER_{port}"
"""The environment variable by which a child finds the socket that it was given for this port: its descriptor."""


def given_listener(port: int) -> socket.socket | None:
    """The socket that this process was given to serve the port, once."""
    descriptor = os.environ.pop(LISTENER.format(port=port), None)
    return None if descriptor is None else socket.socket(fileno=int(descriptor))


class Child:
    """One program, which can be started once. A context starts it on entry, if that is not done, and stops it on exit.

    Args:
        name: what messages call it, as in "the Kafka broker".
        command: the program and its arguments.
        log: the file that takes its standard error, and its standard output unless `output` is given; appended to.
        output: the file that takes its standard output, emptied first.
        folder: its working directory; kcga's own if not given.
        environment: all of its environment variables; kcga's own if not given.
        listener: a socket that listens, for it to serve: its port is nobody else's before it begins, nor before another
            process of it does.
        stop_within_s: how long it may take to end once asked to; then it is killed.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        output: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        listener: socket.socket | None = None,
        stop_within_s: float = 15.0,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._output = output
        self._folder = folder
        self._environment = None if environment is None else dict(environment)
        self._listener = listener
        self._stop_within_s = stop_within_s
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Lock()
        self._stopped = False

    def again(self) -> "Child":
        """The same program with the same files, not started yet."""
        return Child(
            self.name,
            self._command,
            self.log,
            output=self._output,
            folder=self._folder,
            environment=self._environment,
            listener=self._listener,
            stop_within_s=self._stop_within_s,
        )

    def start(self) -> None:
        """Starts it; returns at once.

        Raises:
            KcgaError: the program or a file that it needs cannot be opened.
        """
        if self._process is not None:
            raise RuntimeError(f"{self.name} was started before")
        try:
            environment, handed = self._environment, []
            if self._listener is not None:
                handed = [self._listener.fileno()]
                variable = LISTENER.format(port=self._listener.getsockname()[1])
                environment = {**(os.environ if environment is None else environment), variable: str(handed[0])}
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.ExitStack() as files:
                log = files.enter_context(self.log.open("ab"))
                output = log if self._output is None else files.enter_context(self._output.open("wb"))
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=log,
                    cwd=self._folder,
                    env=environment,
                    pass_fds=handed,
                    start_new_session=True,
                )
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "guard", str(self._process.pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise KcgaError(f"{self.name} cannot be started: {error}") from error
            raise

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._started.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative where a signal ended it; None while it runs."""
        return self._started.poll()

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        code = self.exit_code
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits for its end; the exit code, or None if it still runs after `timeout_s`."""
        try:
            return self._started.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_ready(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Returns as soon as `ready()`, which is asked again and again.

        Raises:
            KcgaError: it ended instead, or was not ready within `timeout_s`; with the last lines of its log.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            if (exit_code := self.exit_code) is not None:
                raise self.error(f"{self.name} ended while it started, with exit code {exit_code}")
            if ready():
                return
            if time.monotonic() >= deadline:
                raise self.error(f"{self.name} was not ready after {timeout_s:g} s")
            time.sleep(POLL_S)

    def error(self, what: str, lines: int = 12) -> KcgaError:
        """An error that says `what` and shows the last lines of the log that tell something."""
        tail = [line for line in self.tail(_LOOKED_AT) if not _TELLS_LITTLE.search(line)][-lines:]
        said = "\n".join(f"  | {line}" for line in tail) if tail else "  | (nothing)"
        return KcgaError(f"{what}; the end of its log, {self.log}:\n{said}")

    def tail(self, lines: int) -> list[str]:
        """The last lines of its log that are not blank."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]

    def terminate(self) -> None:
        """Asks it to end (SIGTERM), and does not wait."""
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """Ends it and whatever it started itself: asks, waits, then kills. Does nothing if that is done already."""
        with self._stopping:
            process, guard = self._process, self._guard
            if process is None or self._stopped:
                return
            self._stopped = True
            try:
                self.terminate()
                self.wait(self._stop_within_s)
            finally:  # also where a second Ctrl-C cuts the waiting short
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if guard is not None and guard.stdin is not None:
                    guard.kill()
                    guard.wait()
                    guard.stdin.close()

    def __enter__(self) -> Self:
        if self._process is None:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
