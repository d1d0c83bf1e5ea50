"""A board that was told a story, and a client that asks it."""

from prometheus_client import CollectorRegistry

from app.status.board import Board
from app.status.metrics import GroupMetrics
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.consumer_class import ConsumerClass
from domain.messages import ControllerClaim, ParkedTopic, Standing
from tests.sandbox.watch_messages import BEGAN, decision, report, write_speeds

SETTINGS = ControllerSettings(consumer_capacity=100.0, packing_capacity=80.0)
HOSTILE = "<script>alert(1)</script>"
"""No topic of Kafka's can be called so; whoever may write to kcga's topics can say that one is."""


class Clock:
    def __init__(self, now: float = BEGAN) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def told_board(clock: Clock | None = None) -> Board:
    """Two consumers; orders-0 moves from 1 to 3, which does not exist yet; clicks-1 is unknown, orders-9 too fast."""
    clock = clock or Clock()
    board = Board("billing", SETTINGS, clock)
    board.leads(7)
    speeds = {"orders-0": 30.0, "orders-1": 40.0, "clicks-0": 20.0, "clicks-1": None, "orders-9": 130.0}
    board.heard(write_speeds(BEGAN, {**speeds, f"{HOSTILE}-0": 5.0}, {"orders-0": 12, "orders-1": 3}))
    before = {name: (None, 2 if name == "orders-9" else 1) for name in (*speeds, f"{HOSTILE}-0")}
    board.decided(decision(1, BEGAN, before, epoch=7))
    board.heard(report(1, BEGAN, "orders-0", "orders-1", "clicks-0", "clicks-1", f"{HOSTILE}-0"))
    board.heard(report(2, BEGAN, "orders-9"))
    after = {name: (reader, 3 if name == "orders-0" else reader) for name, (_, reader) in before.items()}
    board.decided(decision(2, BEGAN + 1, after, epoch=7, rscore=0.3))
    board.turned(BEGAN, State.MANAGE, paused=False)
    return board


def board_of_classes(large: float, ordinary: float) -> Board:
    """A large consumer of capacity 400 and an ordinary one of 100, each with a partition of that speed."""
    board = Board("billing", SETTINGS.with_classes([ConsumerClass("large", 400.0, 3.0)]), Clock())
    board.leads(1)
    board.heard(write_speeds(BEGAN, {"orders-0": large, "orders-1": ordinary}))
    board.heard(report(1, BEGAN, "orders-0"))
    board.heard(report(2, BEGAN, "orders-1"))
    standing = Standing(began_at=BEGAN, counted_on=(1, 2), classes={"large": (1,)})
    board.heard(ControllerClaim(epoch=1, incarnation="a", sent_at=BEGAN, standing=standing))
    return board


def claim_with_parked(*topics: str, at: float = BEGAN, until: float = BEGAN + 60) -> ControllerClaim:
    parked = tuple(
        ParkedTopic(topic=topic, reason=f"{topic}: another type", since=BEGAN - 60, until=until, times=2)
        for topic in topics
    )
    standing = Standing(began_at=BEGAN - 90, counted_on=(1, 2), parked=parked)
    return ControllerClaim(epoch=7, incarnation="a", sequence=int(at - BEGAN) + 1, sent_at=at, standing=standing)


def registry_of(board: Board, *, by_partition: bool = True) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(GroupMetrics(board, "billing", by_partition=by_partition))
    return registry
