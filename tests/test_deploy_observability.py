"""The dashboard and the alert rules ask for figures that the program really serves, with labels it really has.

That each query of the dashboard has data in a running system is seen in test_status_page_live.py.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.registry import Collector

from app.groups import GroupKeeper, Together
from app.status.groups import GroupsMetrics
from app.telemetry.consumer import ConsumerFigures
from app.telemetry.monitor import MonitorFigures
from tests.app.status_messages import claim_with_parked, registry_of, told_board
from tests.sandbox.watch_messages import BEGAN, cycle, report

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "kcga.json").read_text())
RULES_FILE = DEPLOY / "prometheus" / "rules.yml"
RULES: dict[str, Any] = yaml.safe_load(RULES_FILE.read_text())
RULES_TEST = Path(__file__).with_name("alert_rules.yml")

SELECTOR = re.compile(r"\b((?:kcga|kafka|process)_\w+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")
BY_PROMETHEUS = {"instance", "job"}
"""Labels that it adds itself."""


@dataclass(frozen=True)
class Query:
    where: str
    text: str
    past: bool = False
    """Whether it is asked for what was, and may have no answer for the present moment."""


def queries() -> Iterator[Query]:
    yield from dashboard_queries()
    for group in RULES["groups"]:
        for rule in group["rules"]:
            yield Query(rule["alert"], rule["expr"])


def dashboard_queries() -> Iterator[Query]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield Query(f"panel {panel['title']}", target["expr"])
    for annotation in DASHBOARD["annotations"]["list"]:
        yield Query("annotation", annotation["expr"], past=True)
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield Query(f"variable {variable['name']}", variable["definition"])


@pytest.fixture(scope="module")
def served() -> dict[str, set[str]]:
    """The labels of each series that the components serve."""
    consumer, monitor = ConsumerFigures(1), MonitorFigures(30)
    consumer.tell(report(1, BEGAN, cycle=cycle()))
    labels: dict[str, set[str]] = {}
    board = told_board()
    board.heard(claim_with_parked("orders"))
    groups = GroupsMetrics([GroupKeeper("orders", Path("orders.toml"), Together())])
    for registry in (registry_of(board), consumer.registry, monitor.registry, groups):
        for name, found in labels_of(registry).items():
            labels.setdefault(name, set()).update(found)
    return labels


def labels_of(registry: Collector) -> dict[str, set[str]]:
    labels: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


@pytest.mark.parametrize("query", list(queries()), ids=lambda query: query.where)
def test_every_query_asks_for_what_is_served(query: Query, served: dict[str, set[str]]) -> None:
    selectors = SELECTOR.findall(query.text)
    assert selectors, f"no figure of kcga's in {query.text}"
    for name, matchers in selectors:
        assert name in served, f"{name} is served by nobody"
        asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert asked <= served[name] | BY_PROMETHEUS, f"{name} has no such label in {query.text}"
    everywhere = set.union(*(served[name] for name, _ in selectors)) | BY_PROMETHEUS
    for grouped in GROUPING.findall(query.text):
        assert {label.strip() for label in grouped.split(",")} <= everywhere
    assert query.text.count("(") == query.text.count(")")


def test_counters_are_only_asked_for_their_change() -> None:
    for query in queries():
        for name in re.findall(r"\w+_total", query.text):
            assert re.search(rf"(rate|increase|changes)\({name}", query.text), query


def test_prometheus_takes_the_rules_and_what_it_has_to_scrape(promtool: Path) -> None:
    checked(promtool, "check", "rules", "--lint-fatal", RULES_FILE)
    checked(promtool, "check", "config", "--lint-fatal", DEPLOY / "prometheus" / "scrape.yml")


def test_each_alert_fires_when_it_should_and_not_before(promtool: Path) -> None:
    checked(promtool, "test", "rules", RULES_TEST)
    expected = [test for scene in yaml.safe_load(RULES_TEST.read_text())["tests"] for test in scene["alert_rule_test"]]
    fire = {test["alertname"] for test in expected if test.get("exp_alerts")}
    stay = {test["alertname"] for test in expected if not test.get("exp_alerts")}
    assert fire == stay == {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}


def checked(promtool: Path, *arguments: str | Path) -> None:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_panel_has_its_place_and_a_description() -> None:
    taken: set[tuple[int, int]] = set()
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, f"{panel['title']} lies on another panel"
        taken |= cells


def test_every_alert_says_what_to_do() -> None:
    alerts = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert len({alert["alert"] for alert in alerts}) == len(alerts)
    for alert in alerts:
        assert alert.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"Kcga[A-Z]\w+", alert["alert"])
        assert re.fullmatch(r"\d+[smh]", alert["for"])
        assert alert["labels"]["severity"] in {"info", "warning", "critical"}
        assert alert["annotations"].keys() == {"summary", "description"}


def test_probes_have_a_port_that_the_network_policy_opens_to_nobody() -> None:
    """Hole 27: whoever kept the page's server busy had the pod begun anew."""
    base = ROOT / "cli" / "manifests" / "base"
    added: dict[str, list[Any]] = {}
    for each in yaml.safe_load((base / "kafka.yaml").read_text()):
        added.setdefault(each["path"].split("/containers/0/")[-1], []).append(each["value"])
    common = {name: values[0] for name, values in added.items()} | {"env": added["env/-"]}
    consumer = yaml.safe_load((base / "consumer.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]
    for container in (common, consumer):
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["KCGA_HTTP__PROBE_PORT"] == ports["probes"] != ports["http"]
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] == "probes"
    policy = yaml.safe_load((base / "network.yaml").read_text())
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "http"}]}]
