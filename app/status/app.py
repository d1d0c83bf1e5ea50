"""What the controller answers over HTTP: the page, health, figures, the API, and what an operator asks for.

Everything can be read by whoever reaches the port. What changes something needs the token; without one in the settings
nothing can be changed. Every refusal is JSON with a reason.
"""

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, Self

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.control import require_parked
from app.errors import KcgaError
from app.status.board import Board
from app.status.health import Health
from domain.group_view.decision_log import DecisionRecord
from domain.group_view.explanation import explain
from domain.group_view.picture import GroupPicture, History, Shown
from domain.messages import ControlAction, Decision

PAGE = Path(__file__).parent / "page"
LOOK_EVERY_S = 1.0
RETRY_MS = 2_000
"""After which a page that lost its connection asks again."""
LONGEST_BODY = 1_000
"""Bytes: every request that is understood is far shorter."""
MOST_PAGES = 100
"""So many pages are kept up to date at the same time; a page takes a connection."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

Ask = Callable[[ControlAction, str | None], None]
"""Sends the request, and its topic if it has one, to the group's controller, whichever leads; raises `AskError` where
that fails."""


_Args = ParamSpec("_Args")
_MAKES_AN_APP = threading.Lock()


class AskError(Exception):
    """What was asked could not be passed on; says why."""


class ExplainedDecision(Shown):
    """A decision in words, and its whole record."""

    explanation: tuple[str, ...]
    """Lines; those that begin with `  - ` belong to the one before."""
    record: Decision


class Abilities(Shown):
    """What this page may do."""

    control: bool
    """Requests are taken from whoever has the token."""


class ControlBody(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    action: ControlAction
    topic: str | None = None
    """Of `unpark`, which needs one that is parked; of nothing else."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.action is ControlAction.UNPARK) != (self.topic is not None):
            raise ValueError("unpark needs a topic, and nothing else takes one")
        return self


def one_at_a_time(make: Callable[_Args, FastAPI]) -> Callable[_Args, FastAPI]:
    """FastAPI changes what the whole process warns of while it adds a route: two apps of two threads, such as those of
    two groups, are not made at the same time."""

    @wraps(make)
    def made(*args: _Args.args, **kwargs: _Args.kwargs) -> FastAPI:
        with _MAKES_AN_APP:
            return make(*args, **kwargs)

    return made


@one_at_a_time
def make_app(
    board: Board,
    registry: CollectorRegistry,
    *,
    ask: Ask | None = None,
    token: str | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """The application.

    Args:
        board: what it tells.
        registry: of the figures.
        ask: passes requests on.
        token: whoever asks for something has to send it; nobody can where there is none.
        stopping: whether open connections have to end.
    """

    def pictured() -> tuple[int, Shown]:
        shown = board.picture()
        return shown.version, shown

    app = new_app("kcga", "One consumer group, as its controller sees it.", board.alive, board.ready, registry)
    _add_reading(app, board, control=ask is not None and token is not None)
    add_events(app, pictured, stopping, "The group")
    _add_control(app, board, ask, token)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return app


class Secured:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-cache" if scope["path"].startswith("/static") else "no-store")
            await send(message)

        await self._app(scope, receive, send_secured)


def new_app(
    title: str, summary: str, alive: Callable[[], Health], ready: Callable[[], Health], registry: CollectorRegistry
) -> FastAPI:
    """What all pages have: who may ask, how they refuse, and how they tell of their health and figures."""
    app = FastAPI(title=title, summary=summary, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.add_middleware(Secured)
    add_refusals(app)
    add_health(app, alive, ready, registry)
    return app


def add_refusals(app: FastAPI) -> None:
    @app.exception_handler(AnyHTTPException)
    async def refused(request: Request, error: AnyHTTPException) -> Response:
        reasons = {
            404: f"there is nothing at {request.url.path}: /api/openapi.json lists what there is",
            405: f"{request.method} is not possible at {request.url.path}",
        }
        given = error.detail if error.detail not in ("Not Found", "Method Not Allowed") else None
        reason = given or reasons.get(error.status_code, error.detail)
        return JSONResponse({"reason": reason}, error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        reason = "; ".join(f"{fault['loc'][-1]}: {str(fault['msg']).lower()}" for fault in error.errors()[:3])
        return JSONResponse({"reason": reason}, 422)


def add_health(
    app: FastAPI, alive: Callable[[], Health], ready: Callable[[], Health], registry: CollectorRegistry
) -> None:
    """Answers `/healthz`, `/readyz` and `/metrics`."""

    def answer(health: Health) -> Response:
        return JSONResponse(asdict(health), 200 if health.ok else 503)

    responses: dict[int | str, dict[str, object]] = {503: {"model": Health}}

    @app.get("/healthz", response_model=Health, responses=responses, tags=["health"])
    def is_alive() -> Response:
        """Whether the process does anything; one that does not should be started anew."""
        return answer(alive())

    @app.get("/readyz", response_model=Health, responses=responses, tags=["health"])
    def is_ready() -> Response:
        """Whether the controller leads on fresh write speeds, or stands by."""
        return answer(ready())

    @app.get("/metrics", response_class=Response, tags=["health"])
    def metrics(request: Request) -> Response:
        """Figures in the form that the scraper accepts: OpenMetrics or Prometheus' own text."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type})


def _add_reading(app: FastAPI, board: Board, *, control: bool) -> None:
    @app.get("/api/state", tags=["group"])
    def state() -> GroupPicture:
        """The group now."""
        return board.picture()

    @app.get("/api/history", tags=["group"])
    def history() -> History:
        """The last hour."""
        return board.history()

    @app.get("/api/abilities", tags=["group"])
    def abilities() -> Abilities:
        """What can be asked for here."""
        return Abilities(control=control)

    @app.get("/api/decisions", tags=["decisions"])
    def decisions(
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        before: Annotated[
            str | None, Query(pattern=r"^[0-9]{1,18}/[0-9]{1,18}$", description="epoch/number: only those before it")
        ] = None,
    ) -> list[DecisionRecord]:
        """The newest decisions, the newest first."""
        place = tuple(map(int, before.split("/"))) if before else None
        return board.decisions((place[0], place[1]) if place else None, limit)

    @app.get("/api/decisions/{epoch}/{number}", tags=["decisions"])
    def decision(
        epoch: Annotated[int, InPath(ge=0, lt=10**18)], number: Annotated[int, InPath(ge=0, lt=10**18)]
    ) -> ExplainedDecision:
        """One decision: its record, and in words."""
        record = board.decision(epoch, number)
        if record is None:
            raise HTTPException(404, f"decision {number} of epoch {epoch} is not kept here: try kcga explain")
        return ExplainedDecision(explanation=tuple(explain(record, board.came(epoch, number))), record=record)


def add_events(
    app: FastAPI, newest: Callable[[], tuple[int, Shown | None]], stopping: Callable[[], bool], summary: str
) -> None:
    """Answers `/api/events`: again with every change, as server-sent events of the form of `/api/state`.

    Args:
        app: what it is added to.
        newest: what is to be shown, and its number; None while there is nothing yet.
        stopping: whether open connections have to end.
        summary: what that is.
    """
    pages = 0

    async def page() -> AsyncIterator[None]:
        nonlocal pages
        if pages >= MOST_PAGES:
            raise HTTPException(503, f"{MOST_PAGES} pages are open already")
        pages += 1
        try:
            yield
        finally:
            pages -= 1

    @app.get(
        "/api/events",
        response_class=EventSourceResponse,
        dependencies=[Depends(page)],
        tags=["group"],
        description=f"{summary}, again with every change, as server-sent events of the form of `/api/state`.",
    )
    async def live() -> AsyncIterator[ServerSentEvent]:
        sent = -1
        yield ServerSentEvent(retry=RETRY_MS)
        while not stopping():
            version, shown = await asyncio.to_thread(newest)
            if shown is not None and version != sent:
                yield ServerSentEvent(event="state", data=shown)
                sent = version
            await asyncio.sleep(LOOK_EVERY_S)


def _add_control(app: FastAPI, board: Board, ask: Ask | None, token: str | None) -> None:
    body = {"requestBody": {"content": {"application/json": {"schema": ControlBody.model_json_schema()}}}}

    @app.post("/api/control", status_code=202, tags=["control"], openapi_extra=body)
    async def control(request: Request) -> Health:
        """Pauses the group, ends a pause, asks for a plan now, or has a parked topic tried at once.

        `Authorization: Bearer TOKEN` is needed.
        """
        if ask is None or token is None:
            raise HTTPException(403, "nothing can be changed here: no token is set (http.token)")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # Of bytes: a text with other than ASCII characters cannot be compared in constant time.
        if scheme.lower() != "bearer" or not secrets.compare_digest(given.encode("latin-1"), token.encode()):
            raise HTTPException(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, 'the body must be application/json, such as {"action": "pause"}')
        try:
            asked = ControlBody.model_validate_json(await _body(request))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the body"
            raise HTTPException(422, f"{where}: {fault['msg'].lower()}") from error
        if asked.topic is not None:
            try:
                require_parked(asked.topic, board.parked_or_on_trial())
            except KcgaError as error:
                raise HTTPException(422, str(error)) from error
        try:
            await asyncio.to_thread(ask, asked.action, asked.topic)
        except AskError as error:
            raise HTTPException(503, str(error)) from error
        return Health(
            ok=True, reason=" ".join(filter(None, ("the controller was asked to", asked.action, asked.topic)))
        )


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            raise HTTPException(413, f"the body is longer than {LONGEST_BODY} bytes")
    return body
