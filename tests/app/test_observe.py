"""A controller that only observes: what it shows, and that it has nothing to act with."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs

from app import components, observe
from app.child import Child
from app.errors import KcgaError, UsageError
from app.groups import Groups, Together, end
from app.settings import Settings, load
from app.status.groups import make_groups_app
from app.status.server import StatusServer
from app.telemetry.process import process_registry
from app.watch.decide.watcher import Moment
from app.watch.looks import Look
from sandbox.ports import LOOPBACK, free_port
from solver import Problem, Solution
from tests import web
from tests.app.any_settings import settings
from tests.app.conftest import Controllers
from tests.app.test_groups import TEXT
from tests.cli.ordinary_group import RdkafkaGroup, generation, producing, wait_for_group
from tests.cli.test_watcher import group, watched
from tests.conftest import CreateTopic
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

GROWS = watched(group(("orders-0", "orders-1", "orders-2")), 60.0, 60.0, 60.0)
SHRINKS = watched(group(("orders-0",), ("orders-1",), ("orders-2",)), 20.0, 20.0, 20.0, seconds=30)
OBSERVES = '[controller]\nmode = "observe"\n'


def looks_of(*moments: Moment) -> Callable[..., Iterator[Look]]:
    """Stand for looks at a group: these, one after the other, and nothing new until they are to end."""

    def look_at(
        _settings: Settings,
        _topics: tuple[str, ...],
        stop: threading.Event,
        _solve: Callable[[Problem, str], Solution],
    ) -> Iterator[Look]:
        for moment in moments:
            yield Look(moment, None)
        stop.wait()

    return look_at


def test_advice_is_logged_where_it_changes_and_a_trouble_once(monkeypatch: pytest.MonkeyPatch) -> None:
    troubled = SHRINKS.model_copy(update={"troubles": ("a broker is away",)})
    monkeypatch.setattr(observe, "look_at", looks_of(GROWS, GROWS, SHRINKS, troubled, troubled))
    told, stop = list[Moment](), threading.Event()
    stop.set()
    with capture_logs() as lines:
        observe.look(settings(controller={"mode": "observe"}), stop, told.append)
    assert told == [GROWS, GROWS, SHRINKS, troubled, troubled]
    assert [line["advised"] for line in lines if line["event"] == "advice"] == [3, 1]
    assert "kcga would now go from 3 to 1 consumer" in lines[2]["what"]
    assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["a broker is away"]


def test_nothing_by_which_a_controller_acts_is_made_for_one_that_observes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "billing.toml"
    file.write_text(TEXT.format(name="billing") + OBSERVES)

    def acts(*_: object, **__: object) -> None:
        raise AssertionError("it acts")

    for name in ("controller.kafka.KafkaLink", "controller.local_processes.LocalProcesses", "app.components.Cluster"):
        monkeypatch.setattr(name, acts)
    observed = list[Settings]()
    monkeypatch.setattr(observe, "run_observer", observed.append)
    components.run_controller(file)
    assert [each.kafka.group for each in observed] == ["billing"]
    with pytest.raises(UsageError, match="controls nothing"):
        components.control(load(file), file, threading.Event(), acts)  # type: ignore[arg-type]
    monkeypatch.setenv("KCGA_CONTROLLER__MODE", "look")
    with pytest.raises(UsageError, match=r"controller\.mode: input should be 'manage' or 'observe'"):
        load(file)


def test_requests_are_refused() -> None:
    from app.control import ask
    from domain.messages import ControlAction

    with pytest.raises(KcgaError, match=r"only observes \(controller\.mode\)"):
        ask(settings(controller={"mode": "observe"}), ControlAction.PAUSE)


@contextmanager
def of_folder(folder: Path) -> Iterator[tuple[Groups, httpx.Client]]:
    """All groups of the folder in one process, and its page."""
    kept = Groups([folder], Together())
    server = StatusServer(LOOPBACK, 0)
    with (
        server.serve(make_groups_app(kept, process_registry())),
        web.client(base_url=server.url, timeout=PATIENCE_S) as page,
    ):
        kept.look()
        yield kept, page
        end(list(kept), PATIENCE_S)


def test_beside_others_it_is_a_row_and_a_page_until_its_file_says_manage(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(observe, "look_at", looks_of(GROWS))
    orders, billing = tmp_path / "orders.toml", tmp_path / "billing.toml"
    orders.write_text(TEXT.format(name="orders"))
    billing.write_text(TEXT.format(name="billing").replace('folder = "billing"', 'folder = "orders"') + OBSERVES)
    with of_folder(tmp_path) as (kept, page):

        def rows() -> dict[str, dict[str, object]]:
            return {row["name"]: row for row in page.get("/api/groups").json()}

        wait_until(lambda: rows()["orders"]["role"] == "leader" and rows()["billing"]["advised"] is not None)
        row = rows()["billing"]
        assert (row["role"], row["consumers"], row["advised"], row["ready"]) == ("observer", 1, 3, "advises 3")
        assert (row["partitions"], row["total_speed"], row["fault"]) == (3, 180.0, None)
        assert page.get("/groups/billing/api/state").json()["moment"]["advised"] == 3
        assert "watch.js" in page.get("/groups/billing/").text
        assert 'kcga_watch_consumers_advised{group="billing"} 3.0' in page.get("/metrics").text
        assert page.post("/groups/billing/api/control", json={"action": "pause"}).status_code in (404, 405)
        assert controllers.begun == ["orders"]
        billing.write_text(TEXT.format(name="billing"))
        kept.look_again()
        kept.look_again()
        wait_until(lambda: rows()["billing"]["role"] == "leader")
        assert controllers.begun == ["orders", "billing"]


def test_a_group_that_cannot_be_looked_at_is_tried_again(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tries, there_is = list[str](), threading.Event()

    def look_at(settings: Settings, *rest: object) -> Iterator[Look]:
        tries.append(settings.kafka.group)
        if not there_is.is_set():
            raise KcgaError("there is no group billing")
        return looks_of(GROWS)(settings, *rest)

    monkeypatch.setattr(observe, "look_at", look_at)
    (tmp_path / "billing.toml").write_text(TEXT.format(name="billing") + OBSERVES)
    with of_folder(tmp_path) as (kept, _page):
        (billing,) = kept
        wait_until(lambda: len(tries) > 1 and billing.fault == "there is no group billing")
        there_is.set()
        wait_until(lambda: billing.fault is None and billing.shown is not None)
    assert controllers.begun == []


@pytest.mark.integration
@pytest.mark.slow(20)
def test_beside_a_real_group_nothing_is_written_and_no_member_notices(
    broker: SharedBroker, create_topic: CreateTopic, admin: AdminClient, unique_name: str, tmp_path: Path
) -> None:
    servers, topic, port = broker.bootstrap_servers, create_topic(unique_name, 4), free_port()
    client = {"bootstrap.servers": servers}
    own = [f"{unique_name}.{name}" for name in ("speeds", "metadata", "decisions")]
    file, folder = tmp_path / "billing.toml", tmp_path / "consumers"
    file.write_text(
        f'[kafka]\nbootstrap_servers = "{servers}"\ngroup = "{unique_name}"\n'
        f'[topics]\nwrite_speed = "{own[0]}"\nmetadata = "{own[1]}"\ndecisions = "{own[2]}"\n'
        f'[monitor]\ntopics = ["{topic}"]\ninterval_s = 0.2\nwindow_s = 3\n'
        '[controller]\nmode = "observe"\nconsumer_capacity = 100_000\nscale_down_window_s = 0\n'
        '[consumer]\nspark_remote = "sc://127.0.0.1:1"\nlake_root = "/lake"\n'
        f'[local]\nfolder = "{folder}"\n[http]\ncontroller_port = {port}\n'
    )
    command = components.command("controller", "--settings", str(file))
    with (
        RdkafkaGroup(client, unique_name, topic) as members,
        producing(client, topic, dict.fromkeys(range(4), 5_000)),
        web.client(base_url=f"http://{LOOPBACK}:{port}", timeout=PATIENCE_S) as page,
    ):
        for _ in range(2):
            members.join()
        wait_for_group(client, unique_name, members=2)
        wait_until(lambda: set(members.assigned.values()) == {2})
        before = generation(client, unique_name)
        with Child("the controller", command, tmp_path / "log") as controller:

            def state() -> dict[str, dict[str, object]]:
                assert controller.running, (tmp_path / "log").read_text()
                try:
                    answer = page.get("/api/state")
                except httpx.TransportError:
                    return {"moment": {}}
                return answer.json() if answer.status_code == 200 else {"moment": {}}

            wait_until(lambda: state()["moment"].get("advised") == 1)
            seen = state()["moment"]
            assert (seen["group"], seen["consumers"], seen["needed"]) == (unique_name, 2, 1)
            assert f'kcga_watch_consumers_advised{{group="{unique_name}"}} 1.0' in page.get("/metrics").text
            assert page.get("/readyz").json() == {"ok": True, "reason": "advises 1"}
        assert generation(client, unique_name) == before
        assert set(members.assigned.values()) == {2}
    assert not set(own) & admin.list_topics(timeout=PATIENCE_S).topics.keys()
    listed = admin.list_consumer_groups().result(60).valid
    assert [each.group_id for each in listed if each.group_id.startswith(unique_name)] == [unique_name]
    assert not folder.exists()
    assert "kcga would now go from 2 to 1 consumer" in (tmp_path / "log").read_text()
