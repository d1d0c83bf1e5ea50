"""What the network of the fire does to connections."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from sandbox.ports import LOOPBACK
from tests.fire.network import Line, Network
from tests.patience import PATIENCE_S

A_MOMENT_S = 0.3


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network(1)
    network.start()
    yield network
    network.stop()


@pytest.fixture
def line(network: Network) -> Iterator[Line]:
    """The way to something that sends everything back."""
    (line,) = network.lines
    with socket.create_server((LOOPBACK, line.to_port)) as server:
        thread = threading.Thread(target=send_back, args=(server,))
        thread.start()
        yield line
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def send_back(server: socket.socket) -> None:
    echoes = []
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            break
        echoes.append(threading.Thread(target=echo, args=(connection,)))
        echoes[-1].start()
    for each in echoes:
        each.join()


def echo(connection: socket.socket) -> None:
    with connection:
        while data := connection.recv(1000):
            connection.sendall(data)


def a_request(client: bytes) -> bytes:
    """As Kafka's clients begin."""
    return struct.pack(">ihhih", 10 + len(client), 18, 3, 1, len(client)) + client


def connected(line: Line, client: bytes) -> socket.socket:
    connection = socket.create_connection((LOOPBACK, line.from_port), timeout=PATIENCE_S)
    connection.sendall(a_request(client))
    return connection


def received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := connection.recv(1000)):
        data += more
    return data


def test_what_is_sent_arrives(line: Line) -> None:
    request = a_request(b"kcga-consumer-1")
    with connected(line, b"kcga-consumer-1") as connection:
        assert received(connection, len(request)) == request
        connection.sendall(b"more")
        assert received(connection, 4) == b"more"


def test_what_is_held_up_of_one_client_arrives_later_and_nothing_of_others_is(network: Network, line: Line) -> None:
    request = a_request(b"held")
    with connected(line, b"held") as held, connected(line, b"free") as free:
        received(held, len(request))
        received(free, len(request))
        network.hold_up("held")
        held.sendall(b"late")
        free.sendall(b"soon")
        assert received(free, 4) == b"soon"
        held.settimeout(A_MOMENT_S)
        with pytest.raises(TimeoutError):
            held.recv(1)
        held.settimeout(PATIENCE_S)
        network.go_on("held")
        assert received(held, 4) == b"late"


def test_who_connects_to_a_broker_that_is_away_is_disconnected(network: Network) -> None:
    (line,) = network.lines
    with connected(line, b"anyone") as connection:
        assert connection.recv(1) == b""


def test_a_port_that_others_took_meanwhile_is_an_error() -> None:
    network = Network(1)
    with socket.create_server((LOOPBACK, network.lines[0].from_port)), pytest.raises(OSError, match="in use"):
        network.start()
    network.stop()
