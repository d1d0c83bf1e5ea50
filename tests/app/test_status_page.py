"""The page in a real browser, on a board that was told a story."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.status.app import make_app
from app.status.board import Board
from app.status.groups import ShownGroup, make_groups_app
from app.status.server import StatusServer
from app.telemetry.process import process_registry
from domain.messages import ControlAction, TopicsOfSource
from tests.app.status_messages import (
    HOSTILE,
    SETTINGS,
    Clock,
    board_of_classes,
    claim_with_parked,
    registry_of,
    told_board,
)
from tests.page_watch import DESKTOP, PHONE, opened, serious_faults
from tests.sandbox.watch_messages import BEGAN, decision, report, resting, write_speeds

TOKEN = "a-token-of-some-length"  # noqa: S105


@dataclass
class Served:
    board: Board
    url: str
    asked: list[ControlAction]


@pytest.fixture
def served() -> Iterator[Served]:
    board, asked = told_board(), list[ControlAction]()
    server = StatusServer("127.0.0.1", 0)
    app = make_app(
        board, registry_of(board), ask=lambda action, _: asked.append(action), token=TOKEN, stopping=server.stopping
    )
    with server.serve(app):
        yield Served(board, server.url, asked)


def test_the_bars_show_who_reads_what_and_what_is_wrong(browser: Browser, served: Served) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator(".row")).to_have_count(3)
        expect(page.locator(".row[data-state=awaited] .part.awaited")).to_have_count(1)
        expect(page.locator(".part.leaving")).to_have_count(1)
        expect(page.locator(".part.oversized")).to_have_count(1)
        expect(page.locator(".part.unknown")).to_have_text("?")
        expect(page.locator("#t-partitions-note")).to_contain_text("1 moving, 1 unknown, 1 oversized")


def test_a_consumer_of_another_class_is_drawn_against_its_own_capacity(browser: Browser) -> None:
    board = board_of_classes(large=200.0, ordinary=50.0)
    server = StatusServer("127.0.0.1", 0)
    with (
        server.serve(make_app(board, registry_of(board), stopping=server.stopping)),
        opened(browser, server.url) as page,
    ):
        expect(page.locator(".row .load b")).to_have_text([re.compile("^50.%$")] * 2)
        expect(page.locator(".row .why").first).to_have_text("large")
        marks = page.evaluate(
            "[...document.querySelectorAll('.row')].map((row) => parseFloat(row.style.getPropertyValue('--capacity')))"
        )
        assert marks[0] == pytest.approx(4 * marks[1])
        assert serious_faults(page) == []


@dataclass
class Kept:
    """One of several groups."""

    name: str
    file: Path
    shown: ShownGroup | None = None
    fault: str | None = None


def test_several_groups_have_a_table_that_leads_to_the_page_of_each(browser: Browser) -> None:
    board, server = told_board(), StatusServer("127.0.0.1", 0)
    own = ShownGroup.of(board, make_app(board, registry_of(board), stopping=server.stopping), registry_of(board))
    kept = [
        Kept("orders", Path("orders.toml"), own),
        Kept("clicks", Path("clicks.toml"), fault=f"no topic {HOSTILE}"),
    ]
    app = make_groups_app(kept, process_registry())
    with server.serve(app), opened(browser, server.url) as page:
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.locator("#standing")).to_have_text("2 groups, 1 not controlled")
        expect(page.locator("tbody tr").first).to_contain_text(f"no topic {HOSTILE}")
        assert serious_faults(page) == []
        page.get_by_role("link", name="orders").click()
        expect(page.locator(".row")).to_have_count(3)
        expect(page.locator("#live")).to_have_attribute("data-live", "yes")


def test_clocks_that_differ_are_named_with_whose_and_by_how_much(browser: Browser, served: Served) -> None:
    """Issue 18: a difference of more than a few seconds is a warning on the page."""
    with opened(browser, served.url) as page:
        for number in range(3, 7):
            served.board.heard(report(number, BEGAN + 10 * number))
        served.board.heard(write_speeds(BEGAN + 3600, {"orders-0": 1.0}))
        standing = page.locator("#standing")
        expect(standing).to_contain_text("clock of the monitor 3,600 s ahead")
        expect(standing).to_contain_text("clock of consumer 6 60 s ahead")
        expect(standing).to_contain_text("2 more clocks ahead or behind")
        expect(standing).not_to_contain_text("old")


def test_topics_that_are_measured_by_offsets_are_named_with_why(browser: Browser, served: Served) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator("#sources")).to_be_hidden()
        by = TopicsOfSource(source="offsets", topics=("orders",), because="sizes are not told")
        served.board.heard(write_speeds(BEGAN, {"orders-0": 1.0}).model_copy(update={"sources": (by,)}))
        said = "write speeds are measured of orders by offsets, since sizes are not told"
        expect(page.locator("#sources")).to_have_text(said)


def test_a_group_in_which_nobody_has_to_read_says_so(browser: Browser) -> None:
    board, server = Board("billing", SETTINGS, Clock()), StatusServer("127.0.0.1", 0)
    board.heard(write_speeds(BEGAN, {"orders-0": 0.0}))
    board.heard(resting(1, rests=True))
    with (
        server.serve(make_app(board, registry_of(board), stopping=server.stopping)),
        opened(browser, server.url) as page,
    ):
        expect(page.locator("#t-partitions-note")).to_have_text("nothing to read: nobody reads until there is")
        expect(page.locator("#unread")).to_be_hidden()
        assert serious_faults(page) == []


def test_topics_that_are_parked_are_named_with_why_and_dead_letters_are_counted(
    browser: Browser, served: Served
) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator("#t-refused")).to_have_text("0")
        expect(page.locator("#t-refused-note")).to_have_text("no topic parked")
        served.board.heard(report(1, BEGAN, sequence=2).model_copy(update={"dead_letters": 1_200}))
        served.board.heard(claim_with_parked("orders", HOSTILE))
        expect(page.locator("#t-refused")).to_have_text("1,200")
        expect(page.locator("#t-refused-note")).to_have_text("2 topics parked")
        expect(page.locator("#standing")).to_contain_text("orders is parked: orders: another type")
        assert page.locator("body script").count() == 0
        assert serious_faults(page) == []


def test_markup_in_the_name_of_a_topic_stays_text(browser: Browser, served: Served) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator("#legend")).to_contain_text(HOSTILE)
        assert page.locator("body script").count() == 0


def test_a_scale_up_appears_and_opens_to_its_reason_without_a_reload(browser: Browser, served: Served) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator("#decisions > li")).to_have_count(2)
        page.evaluate("window.stayed = true")
        plan = {"orders-0": (3, 3), "orders-1": (1, 4), "clicks-0": (1, 1), "orders-9": (2, 2)}
        served.board.decided(decision(3, BEGAN + 9, plan, epoch=7, triggers=("consumer 1 has too much to read",)))
        newest = page.locator("#decisions > li").first
        expect(newest).to_contain_text("Scaled up from 3 to 4 consumers, 1 partition moved")
        newest.locator("summary").click()
        expect(newest.locator(".words")).to_contain_text("orders-1 from consumer 1 to consumer 4")
        assert page.evaluate("window.stayed")


def test_the_keyboard_reaches_every_partition(browser: Browser, served: Served) -> None:
    with opened(browser, served.url) as page:
        expect(page.locator(".row")).to_have_count(3)
        page.locator(".bar").first.focus()
        said = []
        for _ in range(5):
            said.append(page.locator("#detail").inner_text())
            page.keyboard.press("ArrowRight")
        assert len(set(said)) == 5
        page.keyboard.press("ArrowDown")
        expect(page.locator("#detail")).to_contain_text("orders-9, 130 B/s, 130 % of a consumer")
        assert page.locator(".bar[tabindex='0']").count() == 1


def test_who_has_the_token_can_pause(browser: Browser, served: Served) -> None:
    with opened(browser, served.url, no_fault=False) as page:  # the browser reports the refusal, as it should
        page.get_by_role("button", name="Operate").click()
        page.get_by_label("Token").fill("a wrong one")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#asked")).to_contain_text("the token is missing or wrong")
        assert served.asked == []
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Re-plan now").click()
        expect(page.locator("#asked")).to_contain_text("asked to replan")
        assert served.asked == [ControlAction.REPLAN]


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_keeps_people_from_using_the_page(
    browser: Browser, served: Served, size: tuple[int, int], dark: bool
) -> None:
    with opened(browser, served.url, size, dark=dark) as page:
        page.locator("#decisions summary").first.click()
        expect(page.locator(".words").first).to_contain_text("Why it was considered")
        page.get_by_role("button", name="Operate").click()
        assert serious_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_a_thousand_partitions_are_drawn_on_a_phone_too(browser: Browser) -> None:
    board = Board("large", SETTINGS, Clock())
    names = [f"orders-{number}" for number in range(1_000)]
    board.leads(1)
    board.heard(write_speeds(BEGAN, dict.fromkeys(names, 9.0)))
    for place in range(0, 1_000, 10):
        board.heard(report(1 + place // 10, BEGAN, *names[place : place + 10]))
    server = StatusServer("127.0.0.1", 0)
    with server.serve(make_app(board, registry_of(board), stopping=server.stopping)):
        for size in (DESKTOP, PHONE):
            with opened(browser, server.url, size) as page:
                expect(page.locator(".part")).to_have_count(1_000)
                expect(page.locator("#t-partitions")).to_have_text("1,000")
                assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
