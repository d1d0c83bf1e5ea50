"""What the controller answers over HTTP, and what it refuses."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.status import app as status_app
from app.status.app import PAGE, AskError, make_app
from app.status.board import Board
from app.status.server import StatusServer
from domain.messages import ControlAction
from tests import web
from tests.app.status_messages import HOSTILE, SETTINGS, Clock, claim_with_parked, registry_of, told_board
from tests.patience import PATIENCE_S
from tests.sandbox.watch_messages import BEGAN

TOKEN = "a-token-of-some-length"  # noqa: S105
JSON = {"Content-Type": "application/json"}
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}", **JSON}


class Asked:
    """Who passes requests on; notes them."""

    def __init__(self) -> None:
        self.actions: list[ControlAction] = []
        self.topics: list[str | None] = []
        self.away = False

    def __call__(self, action: ControlAction, topic: str | None) -> None:
        if self.away:
            raise AskError("no Kafka broker answers")
        self.actions.append(action)
        self.topics.append(topic)


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


@contextmanager
def served(board: Board, ask: Asked | None = None, token: str | None = None) -> Iterator[httpx.Client]:
    server = StatusServer("127.0.0.1", 0)
    app = make_app(board, registry_of(board), ask=ask, token=token, stopping=server.stopping)
    with server.serve(app), web.client(base_url=server.url, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture(scope="module")
def client(asked: Asked) -> Iterator[httpx.Client]:
    with served(told_board(), asked, TOKEN) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_asked(asked: Asked) -> None:
    asked.actions.clear()
    asked.away = False


@pytest.mark.parametrize("action", sorted(set(ControlAction) - {ControlAction.UNPARK}))
def test_with_the_token_a_request_is_passed_on(client: httpx.Client, asked: Asked, action: ControlAction) -> None:
    answer = client.post("/api/control", json={"action": action.value}, headers=WITH_TOKEN)
    assert (answer.status_code, asked.actions) == (202, [action])


def test_a_parked_topic_can_be_asked_to_be_tried_at_once_and_no_other(asked: Asked) -> None:
    board = told_board()
    board.heard(claim_with_parked("orders", "views"))
    with served(board, asked, TOKEN) as client:

        def ask(**body: str) -> tuple[int, str]:
            answer = client.post("/api/control", json=body, headers=WITH_TOKEN)
            return answer.status_code, answer.json()["reason"]

        whole = "unpark needs a topic, and nothing else takes one"
        for body in ({"action": "unpark"}, {"action": "pause", "topic": "orders"}):
            code, reason = ask(**body)
            assert (code, whole in reason) == (422, True)
        there_are = "clicks is not parked: it must be one of orders, views"
        assert ask(action="unpark", topic="clicks") == (422, there_are)
        assert asked.actions == []
        assert ask(action="unpark", topic="orders") == (202, "the controller was asked to unpark orders")
        assert (asked.actions, asked.topics[-1]) == ([ControlAction.UNPARK], "orders")
        board.heard(claim_with_parked("views", at=BEGAN + 61))
        assert ask(action="unpark", topic="views")[0] == 202, "it is on trial"
        assert ask(action="unpark", topic="orders")[0] == 422


@pytest.mark.parametrize(
    "headers",
    [
        JSON,
        {"Authorization": "Bearer", **JSON},
        {"Authorization": "Bearer wrong", **JSON},
        {"Authorization": f"Basic {TOKEN}", **JSON},
        {"Authorization": f"Bearer {TOKEN}x", **JSON},
    ],
)
def test_without_the_token_nothing_is_passed_on(client: httpx.Client, asked: Asked, headers: dict[str, str]) -> None:
    answer = client.post("/api/control", json={"action": "pause"}, headers=headers)
    assert (answer.status_code, asked.actions) == (401, [])
    assert "token" in answer.json()["reason"]


def test_a_token_of_any_bytes_is_only_wrong(client: httpx.Client, asked: Asked) -> None:
    answer = client.post("/api/control", content=b"{}", headers={b"Authorization": b"Bearer \xff\xfe"})
    assert (answer.status_code, asked.actions) == (401, [])


def test_where_no_token_is_set_nobody_can_ask(asked: Asked) -> None:
    with served(told_board(), asked) as client:
        for given_token in ("x", "None", TOKEN):
            headers = {"Authorization": f"Bearer {given_token}", **JSON}
            answer = client.post("/api/control", json={"action": "pause"}, headers=headers)
            assert (answer.status_code, asked.actions) == (403, [])
            assert "http.token" in answer.json()["reason"]
        assert client.get("/api/abilities").json() == {"control": False}


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    path=st.sampled_from(["/api/control", "/api/state", "/api/decisions", "/api/decisions/7/1", "/healthz", "/", "/x"]),
    body=st.binary(max_size=50) | st.sampled_from([b'{"action": "pause"}', b'{"action": "replan"}']),
    header=st.sampled_from(["", "Bearer x", "bearer"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_request_without_the_token_changes_anything(
    client: httpx.Client, asked: Asked, method: str, path: str, body: bytes, header: str
) -> None:
    answer = client.request(method, path, content=body, headers={"Authorization": header, **JSON})
    assert asked.actions == []
    assert answer.status_code < 500


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"pause", 422),
        (b"[]", 422),
        (b'{"action": "stop"}', 422),
        (b'{"action": "pause", "for": 1}', 422),
        (b'{"action": ["pause"]}', 422),
        (b"{" * 2_000, 413),
    ],
)
def test_a_body_that_is_not_understood_is_refused_with_a_reason(
    client: httpx.Client, asked: Asked, body: bytes, status: int
) -> None:
    answer = client.post("/api/control", content=body, headers=WITH_TOKEN)
    assert (answer.status_code, asked.actions) == (status, [])
    assert answer.json()["reason"]


def test_a_form_of_another_site_is_refused(client: httpx.Client, asked: Asked) -> None:
    headers = {**WITH_TOKEN, "Content-Type": "text/plain"}
    answer = client.post("/api/control", content=b'{"action": "pause"}', headers=headers)
    assert (answer.status_code, asked.actions) == (415, [])


def test_a_request_that_cannot_be_passed_on_says_why(client: httpx.Client, asked: Asked) -> None:
    asked.away = True
    answer = client.post("/api/control", json={"action": "pause"}, headers=WITH_TOKEN)
    assert (answer.status_code, answer.json()["reason"]) == (503, "no Kafka broker answers")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/static/", 404),
        ("GET", "/docs", 404),
        ("GET", "/api/control", 405),
        ("POST", "/api/state", 405),
        ("DELETE", "/api/decisions/7/1", 405),
        ("GET", "/api/decisions/7/99", 404),
        ("GET", "/api/decisions/seven/1", 422),
        ("GET", "/api/decisions/7/-1", 422),
        ("GET", f"/api/decisions/{'9' * 400}/1", 422),
        ("GET", "/api/decisions?limit=0", 422),
        ("GET", "/api/decisions?before=x", 422),
    ],
)
def test_what_is_not_there_is_refused_with_a_reason(client: httpx.Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["reason"]


def test_the_page_and_its_files_come_from_here_alone(client: httpx.Client) -> None:
    for path in ("/", *(f"/static/{file.name}" for file in PAGE.iterdir())):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text


def test_markup_in_the_name_of_a_topic_is_text(client: httpx.Client) -> None:
    assert HOSTILE in client.get("/api/state").text
    assert client.get("/api/state").headers["content-type"] == "application/json"
    for script in PAGE.glob("*.js"):
        assert "innerHTML" not in script.read_text()
        assert "insertAdjacentHTML" not in script.read_text()


def test_a_decision_opens_to_its_reasons(client: httpx.Client) -> None:
    newest, first = client.get("/api/decisions").json()
    assert (newest["epoch"], newest["number"], newest["migrations"]) == (7, 2, 1)
    assert [client.get("/api/decisions?before=7/2").json()] == [[first]]
    opened = client.get("/api/decisions/7/2").json()
    assert opened["record"]["number"] == 2
    assert any("orders-0 from consumer 1 to consumer 3" in line for line in opened["explanation"])


def test_the_past_is_told(client: httpx.Client) -> None:
    history = client.get("/api/history").json()
    assert [value for _, value in history["speed"]] == [225.0]
    assert [value for _, value in history["fewest_consumers"]] == [2.0]


def test_what_there_is_is_described(client: httpx.Client) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {"/healthz", "/readyz", "/metrics", "/api/state", "/api/decisions", "/api/control"} <= paths.keys()


def test_no_two_are_made_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread took away what FastAPI had another one not be warned of, and a group that began failed."""
    making, second, new_app = threading.Lock(), threading.Event(), status_app.new_app

    def noticed(*args: Any) -> FastAPI:
        if not making.acquire(blocking=False):
            second.set()
        second.wait(0.1)
        made = new_app(*args)
        making.release()
        return made

    monkeypatch.setattr(status_app, "new_app", noticed)
    board = told_board()
    with ThreadPoolExecutor(2) as threads:
        for made in [threads.submit(make_app, board, registry_of(board)) for _ in range(2)]:
            made.result()
    assert not second.is_set()


def test_the_probes_answer_with_a_reason() -> None:
    board = Board("billing", SETTINGS, Clock())
    with served(board) as client:
        assert client.get("/healthz").status_code == 200
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["ok"]) == (503, False)
        assert answer.json()["reason"]
