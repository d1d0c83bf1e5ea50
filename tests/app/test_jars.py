"""The cache of jars: what is in it is what the lock says, whatever befell it."""

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import jars
from app.errors import KcgaError, UsageError
from app.ivy import Coordinates
from app.jars import DELTA, KAFKA, JarSet, LockedJar, locked, obtain


class Repository:
    """A repository of jars in memory; `broken` ones arrive with other contents."""

    def __init__(self) -> None:
        self.asked: list[list[Coordinates]] = []
        self.broken: set[str] = set()
        self.unreachable = False

    def fetch(self, wanted: Sequence[Coordinates], folder: Path, arrived: Callable[[int], None]) -> None:
        self.asked.append(list(wanted))
        if self.unreachable:
            raise KcgaError("no route to it")
        for count, jar in enumerate(wanted, start=1):
            (folder / str(jar)).write_bytes(b"broken" if jar.artifact in self.broken else contents(jar))
            arrived(count)


def contents(jar: Coordinates) -> bytes:
    return f"the jar {jar}".encode()


@pytest.fixture
def jar_set(monkeypatch: pytest.MonkeyPatch) -> JarSet:
    """Two jars that no repository has, and their lock."""
    roots = (Coordinates("g", "one", "1"), Coordinates("g", "two", "2"))
    lock = tuple(LockedJar(jar, hashlib.sha256(contents(jar)).hexdigest()) for jar in roots)
    monkeypatch.setattr(jars, "locked", lambda _: lock)
    return JarSet("set", "The Set 1.0", "SET_JARS", alone=roots)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"KCGA_CACHE": str(tmp_path / "cache")}


def test_jars_are_fetched_once(jar_set: JarSet, environment: dict[str, str]) -> None:
    repository = Repository()
    first = obtain(jar_set, environment, repository.fetch)
    again = obtain(jar_set, environment, repository.fetch)
    assert first == again
    assert [file.name for file in first] == ["one-1.jar", "two-2.jar"]
    assert [file.read_bytes() for file in first] == [contents(jar) for jar in jar_set.alone]
    assert repository.asked == [list(jar_set.alone)]


@pytest.mark.parametrize("damage", [lambda jar: jar.unlink(), lambda jar: jar.write_bytes(b"half a j")])
def test_a_jar_that_is_missing_or_damaged_is_fetched_again_alone(
    jar_set: JarSet, environment: dict[str, str], damage: Callable[[Path], None]
) -> None:
    repository = Repository()
    one, two = obtain(jar_set, environment, repository.fetch)
    damage(two)
    assert obtain(jar_set, environment, repository.fetch) == (one, two)
    assert two.read_bytes() == contents(jar_set.alone[1])
    assert repository.asked[1:] == [[jar_set.alone[1]]]


def test_a_jar_that_is_not_the_locked_one_is_refused(jar_set: JarSet, environment: dict[str, str]) -> None:
    repository = Repository()
    repository.broken = {"two"}
    with pytest.raises(KcgaError, match=r"The Set 1\.0.*not the right ones: g:two:2 has sha256 .*is locked") as raised:
        obtain(jar_set, environment, repository.fetch)
    assert "\n" not in str(raised.value)
    assert not list(Path(environment["KCGA_CACHE"]).rglob("two*"))
    assert repository.asked == [list(jar_set.alone), [jar_set.alone[1]]]  # tried again, for that one alone

    repository.broken = set()
    assert len(obtain(jar_set, environment, repository.fetch)) == 2


def test_jars_that_are_not_to_be_had_say_what_to_do_and_leave_nothing(
    jar_set: JarSet, environment: dict[str, str]
) -> None:
    repository = Repository()
    repository.unreachable = True
    with pytest.raises(KcgaError, match=r"The Set 1\.0.*\(no route to it\).*check the network.*SET_JARS") as raised:
        obtain(jar_set, environment, repository.fetch)
    assert "\n" not in str(raised.value)
    assert [file.name for file in Path(environment["KCGA_CACHE"]).rglob("*") if file.is_file()] == [".lock"]


def test_of_several_at_once_only_one_fetches(jar_set: JarSet, environment: dict[str, str]) -> None:
    repository = Repository()
    together = threading.Barrier(4)

    def obtain_together() -> tuple[Path, ...]:
        together.wait()
        return obtain(jar_set, environment, repository.fetch)

    with ThreadPoolExecutor() as pool:
        obtained = [future.result() for future in [pool.submit(obtain_together) for _ in range(together.parties)]]
    assert len(set(obtained)) == 1
    assert repository.asked == [list(jar_set.alone)]


def test_what_a_killed_process_left_is_cleared_away(jar_set: JarSet, environment: dict[str, str]) -> None:
    abandoned = Path(environment["KCGA_CACHE"], "jars", jar_set.name, "fetching-abcd")
    abandoned.mkdir(parents=True)
    obtain(jar_set, environment, Repository().fetch)
    assert not abandoned.exists()


def test_a_cache_that_cannot_be_written_says_so(jar_set: JarSet, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KcgaError, match=r"cannot be stored.*KCGA_CACHE"):
        obtain(jar_set, {"KCGA_CACHE": str(tmp_path / "file")}, Repository().fetch)


def test_a_cache_that_is_complete_need_not_be_writable(jar_set: JarSet, environment: dict[str, str]) -> None:
    obtain(jar_set, environment, Repository().fetch)
    lock = next(Path(environment["KCGA_CACHE"]).rglob(".lock"))
    lock.unlink()
    obtain(jar_set, environment, Repository().fetch)
    assert not lock.exists()


def test_jars_of_ones_own_are_used_as_they_are(jar_set: JarSet, tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).touch()
    repository = Repository()
    assert obtain(jar_set, {"SET_JARS": str(tmp_path)}, repository.fetch) == (tmp_path / "a.jar", tmp_path / "b.jar")
    assert not repository.asked


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_a_folder_of_ones_own_without_jars_is_refused(jar_set: JarSet, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=rf"SET_JARS is .*{folder}, which is no folder with \.jar files"):
        obtain(jar_set, {"SET_JARS": str(tmp_path / folder)}, Repository().fetch)


@pytest.mark.parametrize("locked_set", [KAFKA, DELTA], ids=lambda each: each.name)
def test_each_lock_names_every_root_with_a_checksum(locked_set: JarSet) -> None:
    lock = locked(locked_set)
    assert {*locked_set.roots, *locked_set.alone} <= {jar.coordinates for jar in lock}
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in lock)
    assert len({jar.file_name for jar in lock}) == len(lock)


@pytest.mark.parametrize("text", ["", "a:b", "a:b:c:d", "a::c"])
def test_coordinates_that_are_not_three_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="group:artifact:version"):
        Coordinates.parse(text)
