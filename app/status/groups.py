"""The page of several groups that one process controls: a table of them, and the page of each below it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from fastapi import FastAPI
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Receive, Scope, Send

from app.status.app import PAGE, new_app, one_at_a_time
from app.status.board import Board
from app.status.health import Health
from domain.group_view.picture import GroupPicture, Role, Shown

AT_WORK = "Whether a controller of this process is at work for the group, or waits for its lease: 1, or 0."


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """What shows a group whose controller is at work."""

    page: ASGIApp
    registry: CollectorRegistry
    """Of its figures."""
    alive: Callable[[], Health]
    ready: Callable[[], Health]
    standing: Callable[[], "GroupStanding"]

    @classmethod
    def of(cls, board: Board, page: ASGIApp, registry: CollectorRegistry) -> Self:
        """A group that is controlled."""
        return cls(page, registry, board.alive, board.ready, lambda: _standing(board.picture()))


class Kept(Protocol):
    """A group that the process is to control."""

    @property
    def name(self) -> str:
        """In addresses: of letters, digits, `.`, `_` and `-`; no two have the same."""

    @property
    def file(self) -> Path:
        """Its settings."""

    @property
    def shown(self) -> ShownGroup | None:
        """None while its controller is not at work."""

    @property
    def fault(self) -> str | None:
        """Why its controller ended, until it has begun anew."""


class GroupStanding(Shown):
    """How a group stands, as its row in the table has it; null is what is not known, or not of such a controller."""

    group: str | None = None
    role: Role | None = None
    state: str | None = None
    """Of the state machine."""
    paused: bool | None = None
    consumers: int | None = None
    advised: int | None = None
    """Consumers that there should be, where the controller only observes."""
    fewest_consumers: int | None = None
    partitions: int | None = None
    unread: int | None = None
    total_speed: float | None = None
    """In bytes/s."""
    lag: int | None = None
    """Records that are written and not committed."""


class GroupRow(GroupStanding):
    """A group in the table; all but its name and what is wrong is null while its controller is not at work."""

    name: str
    settings: str
    """The file."""
    fault: str | None
    ready: str
    """Whether it decides on fresh measurements, in words."""


@one_at_a_time
def make_groups_app(groups: Iterable[Kept], registry: CollectorRegistry) -> FastAPI:
    """The application: `/` is the table, `/groups/NAME/` a group's own page with all that belongs to it.

    Args:
        groups: all of them, as they are at any time.
        registry: of the process; the figures of the groups are added to it.
    """
    registry.register(GroupsMetrics(groups))

    def at_work() -> dict[str, ShownGroup]:
        return {each.name: shown for each in groups if (shown := each.shown) is not None}

    def alive() -> Health:
        # It is while one group is all right: to begin the process anew would end that.
        return _together({name: shown.alive() for name, shown in at_work().items()}, none_at_work=True)

    def ready() -> Health:
        return _together({name: shown.ready() for name, shown in at_work().items()}, none_at_work=False)

    app = new_app("kcga", "Several consumer groups, each at groups/NAME/.", alive, ready, registry)

    @app.get("/api/groups", tags=["groups"])
    def table() -> list[GroupRow]:
        """All groups, in the order of their names."""
        return [_row(each) for each in sorted(groups, key=lambda each: each.name)]

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "groups.html")

    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    app.mount("/groups/{name}", _Pages(groups))
    return app


class _Pages:
    """The page of a group while its controller is at work, and why it is not."""

    def __init__(self, groups: Iterable[Kept]) -> None:
        self._groups = groups

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["name"]
        group = next((each for each in self._groups if each.name == name), None)
        shown = None if group is None else group.shown
        await (_no_page(name, group) if shown is None else shown.page)(scope, receive, send)


def _no_page(name: str, group: Kept | None) -> ASGIApp:
    if group is None:
        return JSONResponse({"reason": f"there is no group {name}"}, 404)
    return JSONResponse({"reason": f"{name}: {group.fault or 'its controller has not begun yet'}"}, 503)


class GroupsMetrics(Collector):
    """The figures of all groups, each family once."""

    def __init__(self, groups: Iterable[Kept]) -> None:
        self._groups = groups

    def describe(self) -> Iterator[Metric]:
        """Nothing: what there is depends on the groups."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for group in self._groups:
            if (shown := group.shown) is not None:
                for family in shown.registry.collect():
                    samples = families.setdefault(family.name, family).samples
                    if samples is not family.samples:
                        samples += family.samples
        at_work = GaugeMetricFamily("kcga_group_at_work", AT_WORK, labels=["name"])
        for group in self._groups:
            at_work.add_metric([group.name], float(group.shown is not None))
        yield from (at_work, *families.values())


def _row(group: Kept) -> GroupRow:
    shown = group.shown
    if shown is None:
        return GroupRow(name=group.name, settings=str(group.file), fault=group.fault, ready="is not controlled")
    return GroupRow(
        name=group.name,
        settings=str(group.file),
        fault=group.fault,
        ready=shown.ready().reason,
        **dict(shown.standing()),
    )


def _standing(seen: GroupPicture) -> GroupStanding:
    return GroupStanding(
        group=seen.group,
        role=seen.controller.role,
        state=seen.controller.state,
        paused=seen.controller.paused,
        consumers=len(seen.consumers),
        fewest_consumers=seen.fewest_consumers,
        partitions=seen.partitions,
        unread=len(seen.unread),
        total_speed=seen.total_speed,
        lag=seen.lag,
    )


def _together(asked: Mapping[str, Health], *, none_at_work: bool) -> Health:
    """All right where one of them is."""
    if not asked:
        return Health(none_at_work, "no group is controlled")
    faults = [f"{name}: {each.reason}" for name, each in asked.items() if not each.ok]
    rest = f"; {faults[0]}" if faults else ""
    return Health(len(faults) < len(asked), f"{len(asked) - len(faults)} of {len(asked)} groups{rest}")
