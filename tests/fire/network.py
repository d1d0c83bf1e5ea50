"""The network between the consumers and the brokers: it can hold up what one of them sends and is sent.

What it holds up is not lost. It arrives late, when others may have taken over from who sent it.
"""

import asyncio
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from sandbox.ports import LOOPBACK, free_port

CHUNK_BYTES = 64 * 1024
_BEFORE_NAME = struct.Struct(">i h h i h")
"""How a request of Kafka's begins: its size, its kind and version, its number, and how long the client's name is."""


class Line(NamedTuple):
    """The way to one broker."""

    from_port: int
    to_port: int


class Network:
    """Forwards connections, from `start()` to `stop()`.

    Args:
        brokers: how many there are; `lines` has a way to each.
    """

    def __init__(self, brokers: int) -> None:
        self.lines: Sequence[Line] = tuple(Line(free_port(), free_port()) for _ in range(brokers))
        self._loop = asyncio.new_event_loop()
        self._passes: dict[str, asyncio.Event] = defaultdict(_set_event)
        """Whether anything moves, for each client by its name."""
        self._over = asyncio.Event()
        self._thread: threading.Thread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the brokers that are behind it."""
        return ",".join(f"{LOOPBACK}:{line.from_port}" for line in self.lines)

    def start(self) -> None:
        """Connections are taken from now on.

        Raises:
            OSError: a port is taken meanwhile.
        """
        listening = [socket.create_server((LOOPBACK, line.from_port)) for line in self.lines]
        self._thread = threading.Thread(target=self._run, args=[listening], name="network", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends all connections."""
        if self._thread is None:
            self._loop.close()
        else:
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()

    def hold_up(self, client: str) -> None:
        """Nothing moves between the client of this name and the brokers from now on, on any of its connections."""
        self._loop.call_soon_threadsafe(lambda: self._passes[client].clear())

    def go_on(self, client: str) -> None:
        """Everything moves again; first what was held up."""
        self._loop.call_soon_threadsafe(lambda: self._passes[client].set())

    def _run(self, listening: Sequence[socket.socket]) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(listening))

    async def _serve(self, listening: Sequence[socket.socket]) -> None:
        servers = [
            await asyncio.start_server(partial(self._connect, line.to_port), sock=each)
            for line, each in zip(self.lines, listening, strict=True)
        ]
        await self._over.wait()
        for server in servers:
            server.close()

    async def _connect(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client to the broker behind the port."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                first = await reader.readexactly(_BEFORE_NAME.size)
                name = await reader.readexactly(max(0, _BEFORE_NAME.unpack(first)[-1]))
                passes = self._passes[name.decode()]
                await passes.wait()
                broker_reader, broker_writer = await asyncio.open_connection(LOOPBACK, port)
                try:
                    broker_writer.write(first + name)
                    async with asyncio.TaskGroup() as both:
                        both.create_task(_forward(reader, broker_writer, passes))
                        both.create_task(_forward(broker_reader, writer, passes))
                finally:
                    broker_writer.close()
        finally:
            writer.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            await passes.wait()
            writer.write(data)
            await writer.drain()
    writer.close()


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
