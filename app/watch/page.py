"""The page of a group that is watched: what `kcga watch` shows in the terminal, live in a browser, and in JSON."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry

from app.settings import HttpSettings, Port
from app.status.app import PAGE, add_events, new_app, one_at_a_time
from app.telemetry.exporter import listening
from app.telemetry.process import process_registry
from app.watch.advice import Advice
from app.watch.decide import words
from app.watch.decide.watcher import Moment
from domain.group_view.picture import Shown


class Account(Shown):
    """A group at one moment, and all there is to say of it, in sentences."""

    moment: Moment
    advice: str
    capacity: tuple[str, ...]
    """What the advice rests on, where that is an estimate."""
    remarks: tuple[str, ...]
    """What is not as it should be, the worst first."""
    saving: tuple[str, ...]
    cost: float
    """Of the newest rebalances, in partition-seconds without a reader."""


def account(moment: Moment) -> Account:
    return Account(
        moment=moment,
        advice=words.advice(moment),
        capacity=tuple(words.capacity(moment)),
        remarks=tuple(words.remarks(moment)),
        saving=tuple(words.saving(moment)),
        cost=sum(each.unassigned_s for each in moment.rebalances),
    )


@one_at_a_time
def make_page(advice: Advice, registry: CollectorRegistry, stopping: Callable[[], bool]) -> FastAPI:
    """The application.

    Args:
        advice: what it tells.
        registry: of the figures.
        stopping: whether open connections have to end.
    """
    summary = "One consumer group, and what kcga would do with it."
    app = new_app("kcga watch", summary, advice.alive, advice.ready, registry)

    def newest() -> tuple[int, Account | None]:
        number, moment = advice.newest
        return number, None if moment is None else account(moment)

    @app.get("/api/state", tags=["group"])
    def state() -> Account:
        """The group now, and what kcga would do."""
        shown = newest()[1]
        if shown is None:
            raise HTTPException(503, "nobody has looked at the group yet")
        return shown

    add_events(app, newest, stopping, "The group")

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "watch.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return app


@contextmanager
def page_served(http: HttpSettings, port: Port, advice: Advice) -> Iterator[None]:
    """Serves the page at that port, with figures, health and the API.

    Raises:
        KcgaError: the port cannot be had.
    """
    registry = process_registry()
    registry.register(advice)
    server = listening(http, port, "the page of the group")
    with server.serve(make_page(advice, registry, server.stopping)):
        yield
