"""One run of `kcga up`, until the load has risen and fallen: its status page in a real browser, and what it leaves.

One partition outgrows a consumer meanwhile, so there are two classes of them.

`make pictures` puts the pictures of the page into docs/images; otherwise they go into the test's own folder.
"""

import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from app.decisions import find_decision
from app.settings import load
from cli.commands.record import record_speeds
from cli.files.stream_file import read_stream
from cli.live.plan import plan_now
from cli.packing.controller_replay import controller_replay
from domain.assignment import ConsumerId
from domain.group_view.explanation import explain
from domain.messages import ConsumerReport, ControllerClaim, Decision, Restraint, WriteSpeedReport
from domain.partitions import TopicPartition
from solver import Status
from tests import web
from tests.page_watch import PHONE, opened, serious_faults
from tests.patience import PATIENCE_S, wait_until
from tests.prometheus import Prometheus
from tests.recorded_decisions import TIME_LIMIT_S, Came, not_foretold, on_topics
from tests.running_up import leaves_no_process, running_up, wait_for
from tests.test_deploy_observability import RULES_FILE, Query, dashboard_queries
from tests.tools import NOT_TESTED

pytestmark = [pytest.mark.integration, pytest.mark.slow(200), pytest.mark.timeout(1800)]

SIMULATED_WITHIN_S = 15
OBEYED_WITHIN_S = 30
"""Consumers that take longer to begin and to take over have no time: the group then decides otherwise."""
SILENT_FOR_S = 5
"""A controller or a monitor that stands still for longer decides, or measures, later than any simulated one."""
PICTURES = "KCGA_PICTURES"
NUMBER = re.compile(r"\d+\.\d\d")
VARIABLE = re.compile(r"label_values\((?P<series>\w+), (?P<label>\w+)\)")


class Up(NamedTuple):
    """A `kcga up` that runs."""

    process: Popen[bytes]
    shown: Path
    temporary: Path
    url: str
    """Of its status page."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    in_full = {"KCGA_CONTROLLER__TIME_LIMIT_S": str(TIME_LIMIT_S)}
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        leaves_no_process(monkeypatch),
        running_up(folder, "--oversized", "--output", "json", **in_full) as (process, shown, temporary),
    ):
        wait_for(lambda: "Status page: http://" in shown.read_text(), process, shown)
        (url,) = re.findall(r"Status page: (http://\S+)", shown.read_text())
        wait_for(lambda: answers(url), process, shown)
        yield Up(process, shown, temporary, url)


def test_a_scale_up_is_seen_as_it_happens_and_says_why(
    up: Up, browser: Browser, prometheus_program: Path, tmp_path: Path
) -> None:
    url = up.url
    with Prometheus(tmp_path / "prometheus", prometheus_program, rules=[RULES_FILE]) as prometheus:
        prometheus.scrape([urlsplit(url).netloc])
        began = time.time()
        with opened(browser, url) as page:
            page.evaluate("window.stayed = true")
            scale_ups = page.locator("#decisions > li.up", has_text="Scaled up")
            expect(scale_ups).not_to_have_count(0)
            expect(page.locator("#live")).to_have_text("live")
            scale_ups.first.locator("summary").click()
            opened_one = scale_ups.filter(has=page.locator("details[open]"))  # the first is another one after the next
            words = opened_one.locator(".words")
            expect(words).to_contain_text("Why it was considered:")
            expect(words).to_contain_text(re.compile(r"scaled up from \d+ to \d+ consumers"))
            expect(words).to_contain_text(
                re.compile(r"above its capacity|without a consumer|is given partitions up to")
            )
            assert page.evaluate("window.stayed"), "it was not reloaded"
            assert serious_faults(page) == []
            opened_one.locator("summary").click()
            expect(page.locator("#t-consumers")).to_have_text(re.compile(r"[3-9]"))
            pictures = Path(os.environ.get(PICTURES, tmp_path))
            draw(page, pictures / "status-page.png")
        with opened(browser, url, PHONE, dark=True) as page:
            expect(page.locator(".row").first).to_be_visible()
            expect(page.locator("#decisions > li").first).to_be_visible()
            assert serious_faults(page) == []
            draw(page, pictures / "status-page-phone.png")
        (folder,) = up.temporary.glob("kcga-*")
        decided_alike(folder)
        every_query_has_data(prometheus, [urlsplit(url).netloc, *addresses(folder)], began)
        assert {rule["name"]: rule["lastError"] for rule in prometheus.rules() if rule["health"] != "ok"} == {}


def test_what_is_recorded_of_the_run_is_decided_alike_in_a_simulation(up: Up) -> None:
    """What `kcga record` keeps of it, by `kcga simulate --policy controller`."""
    wait_for(lambda: has_scaled_down(up.url), up.process, up.shown)
    time.sleep(2 * SIMULATED_WITHIN_S)  # so much later the simulated group may scale down, or have done the next thing
    (folder,) = up.temporary.glob("kcga-*")
    assert_simulated_alike(folder / "settings.toml", up.shown.with_name("speeds.csv"))


def test_a_partition_that_outgrows_a_consumer_has_a_larger_one_for_so_long(up: Up) -> None:
    """One that comes so late, on a busy machine, that the load is over before it reads is not it: another one follows
    when the load rises again."""
    have_read: set[ConsumerId] = set()

    def has_read_and_gone() -> bool:
        consumers = web.get(f"{up.url}/api/state", timeout=PATIENCE_S).json()["consumers"]
        have_read.update(each["consumer"] for each in consumers if each["class_name"] == "large" and each["partitions"])
        return bool(have_read - {each["consumer"] for each in consumers})

    wait_for(has_read_and_gone, up.process, up.shown)
    assert "(1 large)" in up.shown.read_text()


def test_the_group_follows_the_load_and_the_lake_has_every_record_once(up: Up) -> None:
    """It ends in order where somebody interrupts it. `kcga plan` could have told each decision before it was made."""
    wait_for(lambda: has_scaled_down(up.url), up.process, up.shown)
    (folder,) = up.temporary.glob("kcga-*")
    settings = load(folder / "settings.toml")
    in_full = settings.controller.model_copy(update={"time_limit_s": TIME_LIMIT_S})
    assert not_foretold(settings.model_copy(update={"controller": in_full})) == []
    up.process.send_signal(signal.SIGINT)
    output, _ = up.process.communicate(timeout=800)
    shown = up.shown.read_text()
    assert up.process.returncode == 0, shown
    summary = json.loads(output)
    assert summary["ok"]
    assert summary["produced"] == summary["distinct"] > 0
    assert summary["duplicates"] == 0
    assert summary["max_readers"] == 1
    assert min(summary["scale_ups"], summary["scale_downs"], summary["migrations"]) >= 1
    assert min(summary["classes"]["large"].values()) >= 1
    assert summary["restarts"] == {}, shown
    assert {"rscore", "highest_lag"} <= summary.keys()
    assert "large ones" in shown
    assert "every check passed" in shown
    assert not list(up.temporary.glob("kcga-*"))


def has_scaled_down(url: str) -> bool:
    """And up, before that: the load begins low."""
    scaled_down = re.compile(r"^kcga_scale_downs_total\S* (\d+)", re.MULTILINE).search(
        web.get(f"{url}/metrics", timeout=PATIENCE_S).text
    )
    return scaled_down is not None and int(scaled_down[1]) > 0


def answers(url: str) -> bool:
    try:
        return web.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def draw(page: Page, file: Path) -> None:
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(2_500)  # the bars have come to rest
    page.mouse.move(0, 0)
    file.parent.mkdir(parents=True, exist_ok=True)
    tall = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": 1_180} if page.viewport_size else None
    page.screenshot(path=file, full_page=True, clip=tall)  # type: ignore[arg-type]


def decided_alike(folder: Path) -> None:
    """What `kcga plan` and `kcga explain` say of the live group."""
    settings = load(folder / "settings.toml")
    made = find_decision(settings)
    planned = plan_now(settings)
    assert (planned.epoch, planned.capacity) == (made.epoch, made.capacity)
    assert planned.number >= made.number
    for decision in (made, planned):
        costs = [f"{number:.2f}" for number in (decision.plan.objective, decision.plan.rscore)]
        assert set(costs) <= set(NUMBER.findall("\n".join(explain(decision))))


def assert_simulated_alike(settings_file: Path, stream: Path) -> None:
    """Whenever one of the two groups comes to have another number of consumers, the other passes that number, to one,
    sooner or later.

    Not at the same moment: simulated consumers obey at once, and each group looks for a better plan when its own
    interval is over, so one may go down in one step where the other takes two. Nor do simulated ones ever fall behind:
    what the real group decided so as to catch up, the other need not. And who reads what by then is for each group what
    it came to before: for the last few bytes one may need another consumer where the other does not.
    """
    settings = load(settings_file)
    record_speeds(settings, stream, threading.Event(), past_s=3600, seconds=0)
    replay = controller_replay(settings_file, settings.controller.consumer_capacity, settings.controller.time_limit_s)
    numbers = [len(set(assignment.values())) for _, assignment in replay.replay(read_stream(stream))]
    simulated = [range(number, number + 1) for number in numbers]
    came = on_topics(settings)
    if hindered := [
        message.number for _, message, _ in came if isinstance(message, Decision) and was_hindered(message)
    ]:
        pytest.skip(f"{NOT_TESTED}: a simulation of kcga up: solver or consumers had no time, in decisions {hindered}")
    for kind in (ControllerClaim, WriteSpeedReport):  # each second, or two
        moments = [at for at, message, _ in came if isinstance(message, kind)]
        if (silent_s := max(later - earlier for earlier, later in pairwise(moments))) > SILENT_FOR_S:
            pytest.skip(f"{NOT_TESTED}: a simulation of kcga up: there was no {kind.__name__} for {silent_s:.0f} s")
    if (slowest_s := slowest_handover_s(came)) > OBEYED_WITHIN_S:
        pytest.skip(f"{NOT_TESTED}: a simulation of kcga up: a hand-over took {slowest_s:.0f} s, consumers had no time")
    measured = [at for at, message, _ in came if isinstance(message, WriteSpeedReport) and message.speeds.bytes_per_s]
    plans = [(at, message) for at, message, _ in came if isinstance(message, Decision) and message.carried_out]
    decided = [(at, with_and_without_backlog(plan)) for at, plan in reversed(plans)]
    real = [next((numbers for at, numbers in decided if at <= moment), range(1)) for moment in measured]
    apart = round(SIMULATED_WITHIN_S / settings.monitor.interval_s)
    known = len(simulated) - apart
    """What the other group comes to after the last of these may not be recorded any more."""
    assert any(after.stop < before.stop for before, after in pairwise(real[:known])), "the fall is part of it"
    for one, other in ((real, simulated), (simulated, real)):
        for place, (before, consumers) in enumerate(pairwise(one[:known]), 1):
            near = other[max(0, place - apart) : place + apart]
            passed = range(min(each.start for each in near) - 1, max(each.stop for each in near) + 1)
            assert consumers == before or set(consumers) & set(passed), f"{place}: {real} {simulated}"


def slowest_handover_s(came: Iterable[Came]) -> float:
    """From a plan, or several in a row, until consumers told that they read what it gave them: the longest time."""
    readers: dict[TopicPartition, ConsumerId] = {}
    wanted: dict[TopicPartition, ConsumerId] = {}
    since = longest = 0.0
    for at, message, _ in came:
        obeyed = wanted.items() <= readers.items()
        match message:
            case Decision(carried_out=True):
                since = at if obeyed else since
                wanted = {entry.key: entry.consumer for entry in message.assignment}
            case ConsumerReport():
                readers = {p: consumer for p, consumer in readers.items() if consumer != message.consumer}
                readers |= {partition.key: message.consumer for partition in message.partitions}
            case _:
                pass
        longest = longest if obeyed else max(longest, at - since)
    return longest


def was_hindered(decision: Decision) -> bool:
    """Whether the solver had too little time, or consumers did not come in time: a quiet group decides otherwise."""
    return decision.status == Status.FALLBACK or any(held.by is Restraint.CREATION for held in decision.held_back)


def with_and_without_backlog(decision: Decision) -> range:
    """How many consumers were decided on, and would be at least if no partition had a backlog to drain."""
    backlog = sum(entry.backlog for entry in decision.assignment)
    fewer = math.ceil(backlog / (decision.packing_capacity or math.inf))
    return range(max(1, decision.plan.consumers - fewer), decision.plan.consumers + 1)


def every_query_has_data(prometheus: Prometheus, components: list[str], began: float) -> None:
    """Each query of the dashboard, as Grafana asks it."""
    prometheus.scrape(components)
    wanted = list(dashboard_queries())

    def without() -> list[Query]:
        return [query for query in wanted if not has_data(prometheus, query, began)]

    wait_until(lambda: not without(), lambda: f"no data: {without()}", every_s=1)


def has_data(prometheus: Prometheus, query: Query, began: float) -> bool:
    """A figure; nothing divided by nothing is none."""
    if variable := VARIABLE.fullmatch(query.text):
        return bool(prometheus.label_values(variable["label"], variable["series"]))
    expression = query.text.replace("$group", ".*")
    if query.past:
        return any(map(math.isfinite, prometheus.query_range(expression, began, time.time())))
    return any(map(math.isfinite, prometheus.query(expression)))


def addresses(folder: Path) -> Iterator[str]:
    """Where the monitor and the consumers say that they serve."""
    for log in (folder / "monitor.log", *folder.glob("consumers/*.log")):
        for line in log.read_text().splitlines():
            if '"health and metrics"' in line:
                yield urlsplit(json.loads(line)["url"]).netloc
