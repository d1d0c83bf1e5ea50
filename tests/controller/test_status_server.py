"""The server itself: a real port, a real stream."""

import json
from collections.abc import Iterator

import httpx
import pytest

from controller.status.app import make_app
from controller.status.board import Board
from controller.status.server import PortError, StatusServer
from tests.cli.watch_messages import BEGAN, report
from tests.controller.status_messages import registry_of, told_board


@pytest.fixture
def board() -> Board:
    return told_board()


@pytest.fixture
def server(board: Board) -> Iterator[StatusServer]:
    server = StatusServer("127.0.0.1", 0)
    with server.serve(make_app(board, registry_of(board), stopping=server.stopping)):
        yield server


def test_a_page_that_is_open_hears_of_every_change(server: StatusServer, board: Board) -> None:
    with httpx.stream("GET", f"{server.url}/api/events", timeout=30) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        states = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: "))
        first = next(states)
        assert first["group"] == "billing"
        board.heard(report(2, BEGAN + 2, sequence=2))
        second = next(states)
    assert second["version"] > first["version"]
    assert [each["partitions"] for each in second["consumers"] if each["consumer"] == 2] == [[]]


def test_an_open_stream_does_not_keep_the_server_from_ending(board: Board) -> None:
    server = StatusServer("127.0.0.1", 0)
    with httpx.Client(timeout=30) as client:
        with server.serve(make_app(board, registry_of(board), stopping=server.stopping)):
            stream = client.send(client.build_request("GET", f"{server.url}/api/events"), stream=True)
        assert server._thread is not None
        assert not server._thread.is_alive()
        stream.close()


def test_a_port_that_is_taken_is_one_clear_line(server: StatusServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(PortError, match=f"127.0.0.1:{port} cannot be listened on"):
        StatusServer("127.0.0.1", port)


def test_an_address_that_is_none_is_one_clear_line() -> None:
    with pytest.raises(PortError, match="cannot be listened on"):
        StatusServer("256.0.0.1", 0)
