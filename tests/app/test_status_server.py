"""The server itself: a real port, a real stream."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from app.child import Child
from app.status import app
from app.status import server as of_server
from app.status.app import make_app
from app.status.board import Board
from app.status.server import PortError, StatusServer
from tests import web
from tests.app.status_messages import registry_of, told_board
from tests.patience import PATIENCE_S, wait_until
from tests.sandbox.watch_messages import BEGAN, report


@pytest.fixture
def board() -> Board:
    return told_board()


@pytest.fixture
def server(board: Board) -> Iterator[StatusServer]:
    server = StatusServer("127.0.0.1", 0)
    with server.serve(make_app(board, registry_of(board), stopping=server.stopping)):
        yield server


def test_a_page_that_is_open_hears_of_every_change(server: StatusServer, board: Board) -> None:
    with web.stream("GET", f"{server.url}/api/events", timeout=PATIENCE_S) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        states = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: "))
        first = next(states)
        assert first["group"] == "billing"
        board.heard(report(2, BEGAN + 2, sequence=2))
        second = next(states)
    assert second["version"] > first["version"]
    assert [each["partitions"] for each in second["consumers"] if each["consumer"] == 2] == [[]]


def test_an_open_stream_does_not_keep_the_server_from_ending(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_server, "END_WITHIN_S", PATIENCE_S)
    server = StatusServer("127.0.0.1", 0)
    with web.client(timeout=PATIENCE_S) as client:
        with server.serve(make_app(board, registry_of(board), stopping=server.stopping)):
            stream = client.send(client.build_request("GET", f"{server.url}/api/events"), stream=True)
        assert server._thread is not None
        assert not server._thread.is_alive()
        stream.close()


def test_no_more_pages_are_kept_up_to_date_than_so_many_and_one_that_closes_makes_room(
    server: StatusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_PAGES", 1)
    events = f"{server.url}/api/events"
    with web.stream("GET", events, timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert "retry: 2000" in lines
        refused = web.get(events, timeout=PATIENCE_S)
        assert (refused.status_code, refused.json()) == (503, {"reason": "1 pages are open already"})
    while True:
        with web.stream("GET", events, timeout=PATIENCE_S) as again:
            if again.status_code == 200:
                break
        time.sleep(0.05)


def test_a_port_that_is_taken_is_one_clear_line(server: StatusServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(PortError, match=f"127.0.0.1:{port} cannot be listened on"):
        StatusServer("127.0.0.1", port)


SERVES = """
import sys
import threading
from starlette.responses import PlainTextResponse
from app.status.server import StatusServer
with StatusServer("127.0.0.1", int(sys.argv[1])).serve(PlainTextResponse(sys.argv[2])):
    threading.Event().wait()
"""


def test_a_child_serves_the_socket_that_it_is_given_and_so_does_the_next_one(tmp_path: Path) -> None:
    """Nobody else can have the port before, between and after."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for which in ("first", "second"):
            with pytest.raises(PortError):
                StatusServer("127.0.0.1", port)
            command = [sys.executable, "-c", SERVES, str(port), which]
            with Child("the page", command, tmp_path / "log", listener=listener):
                assert web.get(f"http://127.0.0.1:{port}/", timeout=300).text == which


def test_an_address_that_is_none_is_one_clear_line() -> None:
    with pytest.raises(PortError, match="cannot be listened on"):
        StatusServer("256.0.0.1", 0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_server, "REQUEST_WITHIN_S", 0.4)
    monkeypatch.setattr(of_server, "MOST_CONNECTIONS", 8)


def connect(server: StatusServer, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Once it is; an answer may come before."""
    with connection, suppress(ConnectionError):
        while connection.recv(100_000):
            pass
    return True


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nX: ",
        b"POST /api/control HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
    ],
)
def test_after_any_crowd_that_asks_for_nothing_the_page_is_back_by_itself(server: StatusServer, said: bytes) -> None:
    """Hole 17: 500 connections that said nothing made the server refuse everything, for ever."""
    crowd = []
    for _ in range(40):
        with suppress(ConnectionError):
            crowd.append(connect(server, said))
    assert all(map(is_closed, crowd))

    def answers() -> bool:
        """To whoever asks in time."""
        with suppress(httpx.TransportError):
            return web.get(f"{server.url}/healthz", timeout=PATIENCE_S).status_code == 200
        return False

    wait_until(answers)


@pytest.mark.usefixtures("impatient")
def test_a_byte_now_and_then_is_no_request(server: StatusServer) -> None:
    """Hole 17: what comes keeps a connection open only if it amounts to a request in time."""
    with connect(server, b"GET /healthz HTTP/1.1\r\nX: ") as connection, suppress(ConnectionError):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            connection.sendall(b"a")
            time.sleep(0.05)
        pytest.fail("the connection is still there")


@pytest.mark.usefixtures("impatient")
def test_a_page_that_is_open_stays_open_while_nothing_is_asked(server: StatusServer, board: Board) -> None:
    with ExitStack() as opened:

        def states() -> Iterator[str] | None:
            """Of whoever asks in time."""
            with suppress(httpx.TransportError):
                stream = opened.enter_context(web.stream("GET", f"{server.url}/api/events", timeout=PATIENCE_S))
                lines = (line for line in stream.iter_lines() if line.startswith("data: "))
                next(lines)
                return lines
            return None

        lines = wait_until(states)
        assert lines is not None
        time.sleep(1.0)  # longer than a request may take
        board.heard(report(2, BEGAN + 2, sequence=2))
        assert next(lines)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:8470", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("evil.example@127.0.0.1", 200),  # what is before @ is no host
        ("127.0.0.1@evil.example", 421),
        ("[::1", 421),
        ("", 421),
        ("localhost", 200),
        ("LOCALHOST.:8470", 200),
        ("10.1.2.3:8470", 200),
        ("[::1]:8470", 200),
        ("kcga.example", 200),
        ("a.b.proxy.example:80", 200),
        ("proxy.example", 421),
    ],
)
def test_only_who_asks_by_a_known_name_is_answered(board: Board, host: str, status: int) -> None:
    """Hole 23: a page elsewhere could have its name lead here, and read everything."""
    server = StatusServer("127.0.0.1", 0, allowed_hosts=["kcga.example", "*.proxy.example"])
    with (
        server.serve(make_app(board, registry_of(board), stopping=server.stopping)),
        web.client(base_url=server.url, headers={"Host": host}, timeout=PATIENCE_S) as client,
    ):
        for path in ("/api/state", "/metrics", "/"):
            answer = client.get(path)
            assert answer.status_code == status
            assert status == 200 or "http.allowed_hosts" in answer.json()["reason"]


def test_whoever_names_no_host_is_no_browser_and_is_answered(server: StatusServer) -> None:
    with connect(server, b"GET /healthz HTTP/1.0\r\n\r\n") as connection:
        assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")
