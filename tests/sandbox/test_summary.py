"""The closing summary: its figures, its checks, its table."""

import io
import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from rich.console import Console

from cli.terminal.summary_table import SummaryTable
from domain.group_view.view import GroupView
from domain.messages import ConsumerState
from sandbox.readers import MostReaders, ReadLog, most_readers
from sandbox.summary import ClassCount, Summary, summarize
from tests.sandbox.watch_messages import BEGAN, cycle, decision, read, report, told, write_speeds

ALONE = {"orders-0": (None, 1), "orders-1": (None, 1)}
APART = {"orders-0": (1, 1), "orders-1": (1, 2)}
TOGETHER = {"orders-0": (1, 1), "orders-1": (2, 1)}


def run(**plans: Mapping[str, tuple[int | None, int]]) -> GroupView:
    return told(
        [
            *(
                decision(number, BEGAN + 10 * number, plan, rscore=0.25 * number)
                for number, plan in enumerate(plans.values())
            ),
            report(1, BEGAN + 2, "orders-0", cycle=cycle(read("orders-0", BEGAN + 1, BEGAN + 2), size=5_000_000)),
            write_speeds(BEGAN + 10, {"orders-0": 1.0}, {"orders-0": 70}),
            report(1, BEGAN + 12, sequence=2, state=ConsumerState.LEAVING),
            write_speeds(BEGAN + 60, {"orders-0": 1.0}, {"orders-0": 0}),
        ]
    ).view()


ONE_READER = most_readers(ReadLog([report(1, BEGAN, cycle=cycle(read("orders-0", BEGAN, BEGAN + 1)))]).stints)
TWO_READERS = most_readers(
    ReadLog(
        [
            report(1, BEGAN, cycle=cycle(read("orders-0", BEGAN, BEGAN + 9))),
            report(2, BEGAN, cycle=cycle(read("orders-0", BEGAN + 3, BEGAN + 4, stint=6)), incarnation="b"),
        ]
    ).stints
)
WHOLE = run(first=ALONE, second=APART, third=TOGETHER)


def summary(
    view: GroupView = WHOLE,
    readers: MostReaders = ONE_READER,
    produced: int = 10,
    distinct: int = 10,
    duplicates: int = 0,
    whole_story: bool = True,
    classes: Mapping[str, ClassCount] = MappingProxyType({}),
) -> Summary:
    return summarize(
        view,
        readers,
        produced=produced,
        distinct=distinct,
        duplicates=duplicates,
        whole_story=whole_story,
        classes=classes,
    )


def failed(closing: Summary) -> list[str]:
    return [check.name for check in closing.checks if not check.passed]


def test_a_whole_run_in_which_all_went_well_passes() -> None:
    closing = summary()
    assert closing.ok
    assert failed(closing) == []
    assert (closing.scale_ups, closing.scale_downs, closing.migrations) == (1, 1, 2)
    assert (closing.rscore, closing.highest_lag, closing.bytes_written) == (0.75, 70, 5_000_000)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"distinct": 9}, "records in the lake"),
        ({"distinct": 11}, "records in the lake"),
        ({"produced": 0, "distinct": 0}, "records in the lake"),
        ({"duplicates": 1}, "duplicates in the lake"),
        ({"readers": TWO_READERS}, "readers at one time"),
        ({"readers": MostReaders()}, "readers at one time"),
        ({"view": run(first=ALONE, second=TOGETHER)}, "scale-ups"),
        ({"view": run(first=APART, second={**ALONE, "orders-1": (1, 2)}, third=APART)}, "scale-downs"),
        ({"view": run(first=ALONE)}, "migrations"),
        ({"classes": {"large": ClassCount(came=1, went=0)}}, "large consumers"),
    ],
)
def test_each_fault_fails_its_check(changed: dict[str, object], name: str) -> None:
    closing = summary(**changed)  # type: ignore[arg-type]
    assert not closing.ok
    assert name in failed(closing)


def test_a_run_that_is_no_whole_story_need_not_scale() -> None:
    closing = summary(view=run(first=ALONE), whole_story=False)
    assert closing.ok
    assert [check.name for check in closing.checks] == [
        "records in the lake",
        "duplicates in the lake",
        "readers at one time",
    ]


def test_a_consumer_of_each_class_comes_and_goes_in_a_whole_story() -> None:
    classes = {"large": ClassCount(came=2, went=1)}
    closing = summary(classes=classes)
    assert closing.ok
    assert closing.classes == classes
    shown = {" ".join(line.split()) for line in table(closing, 120).splitlines()}
    assert {
        "✓ large consumers 2 came, 1 went expected 1 or more that came and went",
        "large ones 2 came, 1 went",
    } <= shown
    assert summary(view=run(first=ALONE), whole_story=False, classes={"large": ClassCount(came=0, went=0)}).ok


def test_the_json_has_the_figures_by_their_names() -> None:
    figures = json.loads(summary().model_dump_json())
    assert {
        name: figures[name]
        for name in (
            *("produced", "distinct", "duplicates", "max_readers", "scale_ups", "scale_downs", "migrations"),
            *("rscore", "highest_lag", "ok"),
        )
    } == {
        "produced": 10,
        "distinct": 10,
        "duplicates": 0,
        "max_readers": 1,
        "scale_ups": 1,
        "scale_downs": 1,
        "migrations": 2,
        "rscore": 0.75,
        "highest_lag": 70,
        "ok": True,
    }
    assert figures["seconds"] == 60
    assert figures["consumers_over_time"] == [
        {"seconds": 0, "consumers": 0},
        {"seconds": 2, "consumers": 1},
        {"seconds": 12, "consumers": 0},
    ]
    assert figures["checks"][0] == {
        "name": "records in the lake",
        "expected": "10, as produced",
        "actual": "10",
        "passed": True,
        "detail": None,
    }


def test_a_summary_that_is_read_back_is_the_same() -> None:
    closing = summary(readers=TWO_READERS)
    assert Summary.model_validate_json(closing.model_dump_json()) == closing


def table(closing: Summary, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(SummaryTable(closing))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_ticks_what_passed_and_says_where_it_failed() -> None:
    shown = table(summary(readers=TWO_READERS, duplicates=3))
    assert "2 checks failed" in shown
    assert "✓  records in the lake     10  expected 10, as produced" in shown
    assert "✗  duplicates in the lake  3   expected 0" in shown
    assert "readers at one time: orders-0 at 00:03: consumer 1 (process a, command 1.1)," in shown
    assert "every check passed" in table(summary())


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    assert max(map(len, table(summary(readers=TWO_READERS), width).splitlines())) <= width


def test_the_table_says_what_was_broken_and_begun_anew_where_anything_was() -> None:
    quiet = table(summary())
    changed = summary().model_copy(update={"faults": 5, "restarts": {"the controller": 2, "Spark": 1}})
    broken = {" ".join(line.split()) for line in table(changed).splitlines()}
    assert not any(word in quiet for word in ("chaos", "restarts"))
    assert {"chaos 5 faults", "restarts the controller 2, Spark 1"} <= broken
