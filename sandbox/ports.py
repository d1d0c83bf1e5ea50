"""Ports of this machine that a child is to listen on."""

import errno
import random
import socket
from contextlib import suppress

from app.errors import KcgaError

LOOPBACK = "127.0.0.1"
"""The address of everything that kcga starts here: nothing of it can be reached from outside."""


def free_port() -> int:
    """A port on which nothing listens at this moment; none of those that Linux gives to whoever wants just any."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


def listen_on(wanted: int) -> socket.socket:
    """A socket that listens on `wanted`, or on any other port if something else does: for a child, which serves."""
    try:
        return socket.create_server((LOOPBACK, wanted))
    except OSError:
        return socket.create_server((LOOPBACK, 0))


def require_free(port: int, of: str) -> int:
    """`port` itself, if a server can listen on it.

    Raises:
        KcgaError: something else does, or the port is not for everyone to use.
    """
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as Java does: a connection that lingers is no hindrance
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise KcgaError(f"port {port} of {LOOPBACK} {reason}: {of} needs another one, or that one free") from error
    return port


def listens(port: int) -> bool:
    """Whether something accepts connections on `port`."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
