"""Several groups in one process: what they share, and that what ends one ends no other."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from app import groups
from app.errors import KcgaError, UsageError
from app.groups import GroupKeeper, Groups, Together, end, named, settings_files
from app.status.groups import make_groups_app
from app.status.server import StatusServer
from app.telemetry.process import process_registry
from cli.commands.controller import controller
from controller.fleet import ConsumerFleet, FleetError, Revisions
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from tests import web
from tests.app.conftest import Controllers
from tests.patience import PATIENCE_S, wait_until

TEXT = """\
[kafka]
bootstrap_servers = "127.0.0.1:1"
group = "{name}"
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
[local]
folder = "{name}"
"""


def write(folder: Path, *names: str) -> dict[str, Path]:
    """The settings file of each group."""
    files = {name: folder / f"{name}.toml" for name in names}
    for name, file in files.items():
        file.write_text(TEXT.format(name=name))
    return files


@contextmanager
def kept(files: dict[str, Path]) -> Iterator[dict[str, GroupKeeper]]:
    """The groups, controlled."""
    together = Together()
    keepers = {name: GroupKeeper(name, file, together) for name, file in files.items()}
    for keeper in keepers.values():
        keeper.begin()
    try:
        yield keepers
    finally:
        end(list(keepers.values()), PATIENCE_S)


@pytest.mark.parametrize("error", [KcgaError("no Kafka broker answers"), ZeroDivisionError("a fault")], ids=str)
def test_a_controller_that_ends_is_begun_anew_and_the_others_go_on(
    controllers: Controllers, tmp_path: Path, error: Exception
) -> None:
    controllers.failing["clicks"] = error
    with kept(write(tmp_path, "clicks", "orders", "views")) as keepers:
        wait_until(lambda: controllers.begun.count("clicks") > 1)
        assert str(error) in (keepers["clicks"].fault or "")
        wait_until(lambda: all(keepers[name].shown is not None for name in ("orders", "views")))
        del controllers.failing["clicks"]
        wait_until(lambda: keepers["clicks"].shown is not None and keepers["clicks"].fault is None)
        assert [controllers.begun.count(name) for name in ("orders", "views")] == [1, 1]


@pytest.mark.usefixtures("controllers")
def test_settings_that_are_wrong_harm_their_own_group_until_they_are_right(tmp_path: Path) -> None:
    files = write(tmp_path, "clicks", "orders")
    right = files["clicks"].read_text()
    files["clicks"].write_text(right.replace("[kafka]", "[kafka]\nport = 9092"))
    with kept(files) as keepers:
        wait_until(lambda: keepers["clicks"].fault is not None and keepers["orders"].shown is not None)
        assert "kafka.port" in (keepers["clicks"].fault or "")
        files["clicks"].write_text(right)
        wait_until(lambda: keepers["clicks"].shown is not None)


@pytest.mark.parametrize(
    ("own", "others", "what"),
    [
        ('group = "clicks"', 'group = "orders"', "both of the group 'orders' of 127.0.0.1:1"),
        ('folder = "clicks"', 'folder = "orders"', "both those of local.folder"),
    ],
)
def test_one_group_and_one_folder_have_one_file(
    controllers: Controllers, tmp_path: Path, own: str, others: str, what: str
) -> None:
    files = write(tmp_path, "clicks", "orders")
    files["clicks"].write_text(files["clicks"].read_text().replace(own, others))
    with kept(files) as keepers:
        wait_until(lambda: bool(controllers.begun) and any(keeper.fault for keeper in keepers.values()))
        faults = [keeper.fault for keeper in keepers.values() if keeper.fault is not None]
        assert len(faults) == 1
        assert what in faults[0]
        assert len(controllers.begun) == 1


def test_stopping_ends_a_group_that_waits_to_be_begun_anew(controllers: Controllers, tmp_path: Path) -> None:
    controllers.failing["orders"] = KcgaError("no Kafka broker answers")
    with kept(write(tmp_path, "orders")) as keepers:
        wait_until(lambda: len(controllers.begun) > 2)
    assert not keepers["orders"].at_work


class Fleet:
    """Consumers in memory."""

    def __init__(self) -> None:
        self.there_are: set[ConsumerId] = set()

    def consumers(self) -> frozenset[ConsumerId]:
        return frozenset(self.there_are)

    def revisions(self) -> Revisions:
        return Revisions(None, frozenset())

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:  # noqa: ARG002
        self.there_are.add(consumer)

    def delete(self, consumer: ConsumerId) -> None:
        self.there_are.discard(consumer)


def test_all_groups_together_have_no_more_consumers_than_may_be() -> None:
    together = Together(most_consumers=3)
    fleets: list[ConsumerFleet] = [together.limited(Path(name), Fleet()) for name in ("clicks", "orders")]
    for fleet, consumer in ((fleets[0], 1), (fleets[1], 1), (fleets[1], 2)):
        fleet.create(consumer)
    with pytest.raises(FleetError, match="together have 3 consumers, as many as they may"):
        fleets[0].create(2)
    assert fleets[0].consumers() == {1}
    fleets[1].delete(2)
    assert fleets[1].consumers() == {1}
    fleets[0].create(2)
    with pytest.raises(FleetError):
        fleets[1].create(2)
    together.leave(Path("orders"))
    fleets[0].create(3)


def test_consumers_that_were_there_before_count() -> None:
    together, before = Together(most_consumers=1), Fleet()
    before.create(7)
    together.limited(Path("clicks"), before).consumers()
    with pytest.raises(FleetError):
        together.limited(Path("orders"), Fleet()).create(1)


def test_a_group_has_the_name_of_its_file(tmp_path: Path) -> None:
    files = write(tmp_path, "orders", "clicks")
    assert named(list(files.values())) == files
    with pytest.raises(UsageError, match="have the same name"):
        named([tmp_path / "a" / "orders.toml", tmp_path / "b" / "orders.toml"])
    with pytest.raises(UsageError, match="must be of letters"):
        named([tmp_path / "my orders.toml"])


def test_the_command_takes_files_and_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[tuple[list[Path], int | None]] = []
    monkeypatch.setattr(groups, "run_controllers", lambda *given: ran.append(given))
    monkeypatch.setattr("app.components.run_controller", lambda file: ran.append(([file], None)))
    monkeypatch.setattr("app.logs.configure", lambda _: None)
    files = [write(tmp_path, name)[name] for name in ("clicks", "orders")]
    controller([tmp_path], 9)
    controller(files)
    controller(files[:1])
    assert ran == [([tmp_path], 9), (files, None), (files[:1], None)]
    assert settings_files([tmp_path]) == files
    with pytest.raises(UsageError, match=r"set controller\.max_consumers"):
        controller(files[:1], 9)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no settings file in"):
        settings_files([tmp_path / "empty"])


@pytest.fixture
def followed(controllers: Controllers, tmp_path: Path) -> Iterator[Groups]:
    """Those of a folder with two groups, both at work."""
    write(tmp_path, "clicks", "orders")
    groups = Groups([tmp_path], Together())
    groups.look()
    wait_until(lambda: at_work(groups) == ["clicks", "orders"] == sorted(controllers.begun))
    yield groups
    end(list(groups), PATIENCE_S)


def at_work(groups: Groups) -> list[str]:
    return sorted(each.name for each in groups if each.shown is not None)


def test_files_that_come_and_go_are_taken_up_and_the_others_are_left_alone(
    controllers: Controllers, followed: Groups, tmp_path: Path
) -> None:
    with served(followed) as client:
        assert client.get("/groups/views/").status_code == 404
        write(tmp_path, "views")
        followed.look_again()
        wait_until(lambda: at_work(followed) == ["clicks", "orders", "views"])
        assert client.get("/groups/views/api/state").json()["group"] == "views"
        (tmp_path / "clicks.toml").unlink()
        followed.look_again()
        assert [row["name"] for row in client.get("/api/groups").json()] == ["orders", "views"]
        assert client.get("/groups/clicks/api/state").json() == {"reason": "there is no group clicks"}
        write(tmp_path, "clicks")

        def again() -> bool:
            """The former keeper of the group has to end first."""
            followed.look_again()
            return at_work(followed) == ["clicks", "orders", "views"]

        wait_until(again)
        wait_until(lambda: len(controllers.begun) >= 4)
    assert sorted(controllers.begun) == ["clicks", "clicks", "orders", "views"]


def test_a_file_that_changes_has_the_controller_of_its_group_alone_begin_anew(
    controllers: Controllers, followed: Groups, tmp_path: Path
) -> None:
    file = tmp_path / "clicks.toml"
    right = file.read_text()
    file.write_text(right.replace('["orders"]', '["orders", "bills"]'))
    followed.look_again()
    assert controllers.begun.count("clicks") == 1, "it may be written still"
    followed.look_again()
    wait_until(lambda: controllers.begun.count("clicks") == 2 and at_work(followed) == ["clicks", "orders"])
    file.write_text(right.replace("[kafka]", "[kafka]\nport = 9092"))
    with capture_logs() as logged:
        for _ in range(3):
            followed.look_again()
    assert [line["group"] for line in logged if "kafka.port" in line["reason"]] == ["clicks"]
    (clicks,) = (each for each in followed if each.name == "clicks")
    clicks.leads(2)  # what its controller says changes nothing of what is wrong with the file
    assert "kafka.port" in (clicks.fault or "")
    assert at_work(followed) == ["clicks", "orders"], "it goes on with the settings of before"
    file.write_text(right)
    for _ in range(3):
        followed.look_again()
    assert clicks.fault is None
    wait_until(lambda: controllers.begun.count("clicks") == 3 and at_work(followed) == ["clicks", "orders"])
    assert controllers.begun.count("orders") == 1


def test_files_that_cannot_be_told_apart_change_nothing(followed: Groups, tmp_path: Path) -> None:
    (tmp_path / "two words.toml").write_text("")
    with capture_logs() as logged:
        for _ in range(2):
            followed.look_again()
    (line,) = logged
    assert "two words.toml: the name of a settings file must be of letters" in line["reason"]
    for file in tmp_path.glob("*.toml"):
        file.unlink()
    followed.look_again()
    assert at_work(followed) == ["clicks", "orders"]


@contextmanager
def served(keepers: Iterable[GroupKeeper]) -> Iterator[httpx.Client]:
    server = StatusServer("127.0.0.1", 0)
    app = make_groups_app(keepers, process_registry())
    with server.serve(app), web.client(base_url=server.url, timeout=PATIENCE_S) as client:
        yield client


def test_the_page_has_a_table_of_all_and_the_page_of_each(controllers: Controllers, tmp_path: Path) -> None:
    controllers.failing["clicks"] = KcgaError("no Kafka broker answers")
    with kept(write(tmp_path, "orders", "clicks", "views")) as keepers, served(keepers.values()) as client:
        wait_until(lambda: keepers["clicks"].fault is not None)
        wait_until(lambda: {"orders", "views"} <= set(controllers.begun))
        rows = {row["name"]: row for row in client.get("/api/groups").json()}
        assert list(rows) == ["clicks", "orders", "views"]
        assert rows["clicks"]["fault"] == "no Kafka broker answers"
        assert (rows["clicks"]["role"], rows["orders"]["role"]) == (None, "leader")
        assert "Groups" in client.get("/").text
        assert client.get("/static/groups.js").status_code == 200
        assert client.get("/groups/orders/").text == client.get("/groups/views/").text
        assert client.get("/groups/orders/static/main.js").status_code == 200
        assert client.get("/groups/orders/api/state").json()["group"] == "orders"
        refused = client.get("/groups/clicks/api/state")
        assert (refused.status_code, refused.json()["reason"]) == (503, "clicks: no Kafka broker answers")
        assert client.get("/groups/bills/").status_code == 404
        assert client.get("/healthz").json() == {"ok": True, "reason": "2 of 2 groups"}
        assert client.get("/readyz").status_code == 503  # none has write speeds


def test_figures_of_all_groups_are_families_once_with_the_group_as_a_label(
    controllers: Controllers, tmp_path: Path
) -> None:
    controllers.failing["clicks"] = KcgaError("no Kafka broker answers")
    with kept(write(tmp_path, "orders", "clicks", "views")) as keepers, served(keepers.values()) as client:
        wait_until(lambda: keepers["clicks"].fault is not None and {"orders", "views"} <= set(controllers.begun))
        for _ in range(2):
            lines = client.get("/metrics").text.splitlines()
            types = [line for line in lines if line.startswith("# TYPE")]
            assert len(types) == len(set(types))
            assert len(lines) == len(set(lines))
            for name in ("orders", "views"):
                assert any(f'group="{name}"' in line for line in lines)
            assert 'kcga_group_at_work{name="clicks"} 0.0' in lines
            assert 'kcga_group_at_work{name="orders"} 1.0' in lines
