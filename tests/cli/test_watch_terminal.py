"""The picture in the terminal, and the lines where there is none."""

import io
import sys

import pytest
from rich.console import Console

from cli.terminal.glyphs import TopicPalette
from cli.terminal.live_view import LiveView
from cli.terminal.plain_lines import PlainLines
from cli.terminal.screen import GroupScreen
from domain.consumer_class import ConsumerClass
from domain.group_view.fold import GroupFold, GroupMessage
from domain.group_view.view import GroupView
from domain.messages import ConsumerState, ControllerClaim, Standing
from sandbox.incident import Incident
from tests.sandbox.watch_messages import (
    BEGAN,
    CAPACITY,
    PACKING,
    decision,
    report,
    resting,
    story,
    told,
    write_speeds,
)


class AsciiFile(io.StringIO):
    encoding = "ascii"


def console(width: int = 80, height: int = 40, **options: object) -> Console:
    settings: dict[str, object] = {
        "file": io.StringIO(),
        "force_terminal": True,
        "color_system": "256",
        "record": True,
        "_environ": {},
    }
    return Console(width=width, height=height, **{**settings, **options})  # type: ignore[arg-type]


def picture(view: GroupView, phase: str | None = None, **options: object) -> list[str]:
    screen = GroupScreen(view, CAPACITY, PACKING, TopicPalette(), phase)
    target = console(**{"no_color": True, **options})  # type: ignore[arg-type]
    target.print(screen)
    return [line.rstrip() for line in target.export_text().splitlines()]


def claim_of_large(consumer: int) -> ControllerClaim:
    """By which this consumer is of the class `large`, and all others are ordinary."""
    standing = Standing(began_at=BEGAN, counted_on=(1, 2), classes={"large": (consumer,)})
    return ControllerClaim(epoch=1, incarnation="a", sent_at=BEGAN, standing=standing)


@pytest.fixture(scope="module")
def view() -> GroupView:
    return told(story()).view()


def test_a_consumer_of_another_class_is_drawn_against_its_own_capacity() -> None:
    large = ConsumerClass("large", 4 * CAPACITY, 3.0)
    fold = told([write_speeds(BEGAN, {"orders-0": 2 * CAPACITY}), report(1, BEGAN, "orders-0")])
    fold.receive(claim_of_large(1))
    target = console(no_color=True)
    target.print(GroupScreen(fold.view(), CAPACITY, PACKING, TopicPalette(), classes=[large]))
    line, below = target.export_text().partition(" 50%")[::2]
    assert line.splitlines()[-1].startswith("●   1")
    assert below.splitlines()[1].strip() == "large"


def test_the_picture_in_80_columns(view: GroupView) -> None:
    assert picture(view, "a partition gets hot") == PICTURE.splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("encoding", [io.StringIO, AsciiFile])
def test_no_line_is_wider_than_the_terminal(view: GroupView, width: int, encoding: type[io.StringIO]) -> None:
    assert max(map(len, picture(view, "load rises", width=width, file=encoding()))) <= width


def test_a_terminal_that_knows_ascii_alone_gets_nothing_else(view: GroupView) -> None:
    assert "\n".join(picture(view, "load rises", file=AsciiFile())).isascii()


def test_nothing_in_the_picture_sets_a_ground(view: GroupView) -> None:
    target = console()
    segments = target.render(GroupScreen(view, CAPACITY, PACKING, TopicPalette()), target.options)
    assert all(segment.style is None or segment.style.bgcolor is None for segment in segments)


def test_before_anything_is_known_the_picture_says_so() -> None:
    lines = picture(GroupFold(since=BEGAN).view())
    assert "no consumers yet" in lines
    assert "no decision yet" in lines


@pytest.mark.parametrize("height", [24, 30, 40])
def test_the_picture_fits_the_height_of_the_terminal_however_many_consumers_there_are(height: int) -> None:
    fold = GroupFold()
    fold.receive(write_speeds(BEGAN, {f"orders-{number}": 1e6 for number in range(50)}))
    for number in range(50):
        fold.receive(report(number + 1, BEGAN, f"orders-{number}"))
    for number in range(1, 5):
        fold.receive(decision(number, BEGAN + number, {"orders-0": (None, 1)}))
    lines = picture(fold.view(), height=height)
    assert len(lines) < height
    shown = [line for line in lines if line.startswith("●")]
    assert f"      and {50 - len(shown)} more consumers: {50 - len(shown):.1f} MB/s" in lines


def test_a_consumer_that_is_not_well_is_marked_and_says_why() -> None:
    fold = GroupFold(silent_after_s=15)
    fold.receive(write_speeds(BEGAN + 20, {"orders-0": 4.2e6, "orders-1": 1e6}))
    fold.receive(decision(1, BEGAN, {"orders-0": (None, 1), "orders-1": (None, 2)}))
    fold.receive(report(1, BEGAN + 20, "orders-0", state=ConsumerState.DEGRADED, reason="the lake is full"))
    fold.receive(report(2, BEGAN, "orders-1"))
    fold.receive(report(3, BEGAN + 20, state=ConsumerState.STARTING))
    lines = picture(fold.view())
    overloaded = next(line for line in lines if line.startswith("▲   1 "))
    assert "█" in overloaded
    assert "140%" in overloaded
    assert "      degraded: the lake is full" in lines
    assert "      silent: no report from it" in lines
    assert any(line.startswith("○   3 starting") for line in lines)
    assert "no reader   orders-1 → 2" in lines


def test_partitions_that_do_not_fit_in_their_line_are_counted() -> None:
    fold = GroupFold()
    fold.receive(write_speeds(BEGAN, {f"orders-{number}": 1.0 for number in range(30)}))
    assert any(line.startswith("no reader   orders-0   orders-1") and "more" in line for line in picture(fold.view()))


def test_a_group_in_which_nobody_has_to_read_says_so() -> None:
    fold = GroupFold()
    fold.receive(write_speeds(BEGAN, {"orders-0": 0.0}))
    fold.receive(resting(1, rests=True))
    lines = picture(fold.view())
    assert "nothing to read: nobody reads until there is" in lines
    assert not any(line.startswith("no reader") for line in lines)
    (said,) = PlainLines().lines(fold.view(), None)
    assert said.endswith("Rscore 0.00, nothing to read")


def test_a_terminal_shows_the_picture_and_keeps_the_last_one(view: GroupView) -> None:
    target = console()
    with LiveView(target, CAPACITY, PACKING) as live:
        live.update(view, "load rises")
        live.update(view, "load falls")
    assert isinstance(target.file, io.StringIO)
    assert "load falls" in target.file.getvalue()


def test_standard_output_is_left_alone_while_the_picture_is_shown(
    view: GroupView, capsys: pytest.CaptureFixture[str]
) -> None:
    with LiveView(console(), CAPACITY, PACKING) as live:
        live.update(view)
        sys.stdout.write("{}\n")
    assert capsys.readouterr().out == "{}\n"


@pytest.mark.parametrize("options", [{"force_terminal": False}, {"_environ": {"TERM": "dumb"}}])
def test_elsewhere_there_are_plain_lines_without_control_characters(
    view: GroupView, options: dict[str, object]
) -> None:
    target = console(**options)  # type: ignore[arg-type]
    with LiveView(target, CAPACITY, PACKING) as live:
        live.update(view, "load rises")
        live.update(view, "load rises")
    assert isinstance(target.file, io.StringIO)
    lines = target.file.getvalue().splitlines()
    assert [line[:14] for line in lines] == [
        "00:05  decided",
        "00:24  decided",
        "01:00  decided",
        "01:22  decided",
        "01:27  3 consu",
    ]
    assert "\x1b" not in target.file.getvalue()


def test_a_line_comes_with_every_change_and_after_ten_seconds_at_the_latest() -> None:
    fold, plain = GroupFold(since=BEGAN, silent_after_s=1e9), PlainLines()
    said = []
    messages: dict[float, GroupMessage | None] = {
        0: None,
        1: None,
        2: report(1, BEGAN + 2),
        3: write_speeds(BEGAN + 3, {"orders-0": 20.0}, {"orders-0": 1234}),
        11.9: None,
        12: None,
        13: decision(1, BEGAN + 13, {"orders-0": (1, 2)}, rscore=0.5),
        14: decision(2, BEGAN + 14, {"orders-0": (1, 2)}, carried_out=False),
    }
    for second, message in messages.items():
        fold.pass_time(BEGAN + second)
        if message is not None:
            fold.receive(message)
        said += list(plain.lines(fold.view(), None))
    assert said == [
        "00:00  0 consumers, - written, lag -, Rscore 0.00",
        "00:02  1 consumer, - written, lag -, Rscore 0.00",
        "00:12  1 consumer, 20 B/s written, lag 1,234 (4 s), Rscore 0.00, 1 partition without a reader",
        "00:13  decided: 1 consumer, 1 migration, Rscore 0.50 "
        "(the interval is over; the present assignment cannot stay as it is)",
        "00:14  decided: nothing changed (the interval is over; the present assignment cannot stay as it is)",
    ]


def test_a_line_counts_consumers_of_other_classes() -> None:
    fold = told([report(1, BEGAN), report(2, BEGAN)])
    fold.receive(claim_of_large(2))
    (line,) = PlainLines().lines(fold.view(), None)
    assert "  2 consumers (1 large), " in line


def test_there_is_no_line_without_news_however_often_the_view_is_looked_at() -> None:
    plain = PlainLines()
    view = told(story()).view()
    assert len(list(plain.lines(view, "load rises"))) == 5
    assert list(plain.lines(view, "load rises")) == []
    assert len(list(plain.lines(view, "load falls"))) == 1


INCIDENTS = [Incident(BEGAN + 10 * number, f"incident {number}") for number in range(1, 6)]


@pytest.mark.parametrize(("height", "shown"), [(40, [3, 4, 5]), (24, [5])])
def test_the_picture_shows_the_newest_incidents_where_there_is_room(
    view: GroupView, height: int, shown: list[int]
) -> None:
    target = console(no_color=True, height=height)
    target.print(GroupScreen(view, CAPACITY, PACKING, TopicPalette(), incidents=INCIDENTS))
    lines = [line.rstrip() for line in target.export_text().splitlines()]
    assert [line for line in lines if "incident" in line] == [f"00:{number}0 ▲ incident {number}" for number in shown]


def test_each_incident_is_one_line_once() -> None:
    plain = PlainLines()
    view = told(story()).view()
    list(plain.lines(view, None))
    said = [line for count in (1, 1, 3) for line in plain.lines(view, None, INCIDENTS[:count])]
    assert said == ["00:10  incident 1", "00:20  incident 2", "00:30  incident 3"]


PICTURE = """\
kcga  01:27  ·  a partition gets hot               3 consumers  ·  13 partitions
────────────────────────────────────────────────────────────────────────────────
written 6.08 MB/s   lag 47,712 (4 s)   Rscore 1.00   migrations 6   scaled ↑2 ↓0

              packing 2.25 MB/s ┊        │ capacity 3.00 MB/s         partitions
●   1 0▕ 1▕2▕3▕ 0▓▕ 1▓▕ 3▕      ┊        │                 1.72 MB/s   57%     7
                                ┊        │
▲   2  orders-0▕ 1░░░▕ orders-2░┊░░░░░░░▕│█████████        3.93 MB/s  131%     4
      degraded: Spark does not answer; 18.2 MB are kept and written again
                                ┊        │
○   3 starting                  ┊        │                     0 B/s    0%     0
      ▒▒ clicks 812 kB/s   ░░ orders 3.93 MB/s   ▓▓ payments 1.34 MB/s

on the move orders-3 2 → 3   payments-2 1 → 3
no reader   clicks-9

01:22 ✓ 3 consumers, 2 migrations, Rscore 0.29
        consumer 2 has 3,411,200 bytes/s to read, above its capacity of
        3,000,000
        3 consumers and an Rscore of 0.29 (objective 3.15); the present
        assignment cannot stay as it is
01:00 · nothing changed
00:24 ✓ 2 consumers, 4 migrations, Rscore 0.71

written      ▂▂▃▃▃▃▄▄▄▅▅▅▅▅▆▆▆▆▆▆▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▆▆▆▆▆███████████  6.08 MB/s
consumers   ▁▁▁▄▄▄▄▄▄▄▄▄▄▄▄▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆███          3
lag          ▂▂▃▃▃▃▃▃▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▅▅▆▆▇▇▇██     47,712
"""
