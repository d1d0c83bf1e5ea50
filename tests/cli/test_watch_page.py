"""The page of a group that is watched, in a real browser: a group as it is told, moment by moment."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect
from prometheus_client import CollectorRegistry

from app.status.server import StatusServer
from app.watch.advice import Advice
from app.watch.decide.membership import Membership
from app.watch.decide.watcher import Watcher
from app.watch.page import make_page
from tests import web
from tests.cli.test_watcher import group, speeds_of, watcher
from tests.page_watch import DESKTOP, PHONE, opened, serious_faults
from tests.patience import PATIENCE_S

UNEVEN = group(("orders-0", "orders-1"), ("orders-2",))
"""With speeds of 80, 70 and 1, where a consumer reads 100 at most."""
SPEEDS = (80.0, 70.0, 1.0)


@dataclass
class Watched:
    watcher: Watcher
    advice: Advice
    url: str
    at: float = 1000.0

    def look(self, found: Membership | None = UNEVEN, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.at += 1
            self.advice.tell(self.watcher.look(self.at, found, speeds_of(self.at, *SPEEDS), {}))


@pytest.fixture
def seen() -> Iterator[Watched]:
    advice, registry, server = Advice("billing", 60.0), CollectorRegistry(), StatusServer("127.0.0.1", 0)
    registry.register(advice)
    with server.serve(make_page(advice, registry, server.stopping)):
        yield Watched(watcher(), advice, server.url)


def test_it_shows_who_has_too_much_and_what_kcga_would_do(browser: Browser, seen: Watched) -> None:
    with opened(browser, seen.url) as page:
        expect(page.locator("#advice")).to_have_text("Nobody has looked at the group yet.")
        seen.look()
        expect(page.locator("#group")).to_have_text("billing")
        expect(page.locator("#standing")).to_contain_text("1 overloaded")
        expect(page.locator("#standing")).to_contain_text("1 idle")
        expect(page.locator("#t-consumers")).to_have_text("2")
        expect(page.locator("#t-consumers-note")).to_have_text(re.compile(r"^\d consumers needed$"))
        expect(page.locator("#advice")).to_have_text(re.compile(r"^kcga would now .*: "))
        expect(page.locator("#remarks li").first).to_contain_text("150% of a consumer's capacity to read, while")
        expect(page.locator(".row")).to_have_count(2)
        expect(page.locator(".row .load b")).to_have_text([re.compile("^150.%$"), re.compile("^1.%$")])
        expect(page.locator(".row .why").first).to_contain_text("has more to read than a consumer can")
        expect(page.locator(".row .why").last).to_contain_text("has next to nothing to read")
        expect(page.locator(".part.leaving")).not_to_have_count(0)
        assert "would move from consumer" in (page.locator(".part.leaving").first.get_attribute("aria-label") or "")


def test_it_shows_what_rebalances_cost_and_what_a_week_would_save(browser: Browser, seen: Watched) -> None:
    seen.look()
    with opened(browser, seen.url) as page:
        expect(page.locator("#rebalances-empty")).to_be_visible()
        expect(page.locator("#saving-empty")).to_be_visible()
        seen.look(group((), (), state="PreparingRebalance"), seconds=4)
        expect(page.locator("#standing")).to_contain_text("a rebalance is under way")
        expect(page.locator("tbody tr")).to_contain_text("is under way")
        seen.look(seconds=2)
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr td").nth(2)).to_have_text("9 s")  # three partitions, from one look to the last
        expect(page.locator("#t-rebalances-note")).to_have_text("9 s unread, of all partitions")
        expect(page.locator("#saving li").last).to_contain_text("a week like this: ")
        expect(page.locator("#t-week-note")).to_have_text("in place of 336")


def test_what_is_not_known_is_said_and_the_group_stays_as_it_was(browser: Browser, seen: Watched) -> None:
    seen.look()
    with opened(browser, seen.url) as page:
        expect(page.locator(".row")).to_have_count(2)
        seen.look(None)
        expect(page.locator("#standing")).to_contain_text("who is in the group is not known")
        expect(page.locator("#advice")).to_contain_text("no advice")
        expect(page.locator(".row")).to_have_count(2)


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)])
def test_everybody_can_use_it_on_any_screen(browser: Browser, seen: Watched, size: tuple[int, int], dark: bool) -> None:
    seen.look(seconds=3)
    with opened(browser, seen.url, size, dark=dark) as page:
        expect(page.locator(".row")).to_have_count(2)
        assert serious_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        button = page.locator("#theme")
        button.click()
        expect(button).to_have_text("Light")


def test_the_same_is_there_in_json_and_nothing_before_the_first_look(seen: Watched) -> None:
    assert web.get(f"{seen.url}/api/state", timeout=PATIENCE_S).json() == {
        "reason": "nobody has looked at the group yet"
    }
    seen.look()
    told = web.get(f"{seen.url}/api/state", timeout=PATIENCE_S).raise_for_status().json()
    assert (told["moment"]["group"], told["moment"]["consumers"]) == ("billing", 2)
    assert told["advice"].startswith("kcga would now")
    assert "kcga_watch_consumers" in web.get(f"{seen.url}/metrics", timeout=PATIENCE_S).text
    assert web.get(f"{seen.url}/readyz", timeout=PATIENCE_S).is_success
    refused = web.get(f"{seen.url}/api/history", timeout=PATIENCE_S)
    assert refused.status_code == 404
    assert "default-src 'self'" in refused.headers["content-security-policy"]
