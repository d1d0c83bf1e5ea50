"""The real Ivy, against a Maven repository on this machine."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app import ivy
from app.errors import KcgaError
from app.ivy import REPOSITORY_VARIABLE, Coordinates
from sandbox.ports import LOOPBACK, free_port
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.integration  # each test starts a JVM

ONE = Coordinates("org.example.one", "one", "1.0")
TWO = Coordinates("org.example", "two", "2.1")
ABSENT = Coordinates("org.example", "absent", "9.9")


@pytest.fixture(autouse=True)
def _as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "_SILENCE_S", PATIENCE_S)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a repository that has ONE and TWO, without descriptions of them."""
    root = tmp_path / "repository"
    for jar in (ONE, TWO):
        file = root / jar.group.replace(".", "/") / jar.artifact / jar.version / f"{jar.artifact}-{jar.version}.jar"
        file.parent.mkdir(parents=True)
        file.write_bytes(str(jar).encode())
    with ThreadingHTTPServer((LOOPBACK, 0), partial(Quiet, directory=str(root))) as server:
        monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://{LOOPBACK}:{server.server_port}/")
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield root
        server.shutdown()
        serving.join()


@pytest.fixture
def arrivals(tmp_path: Path) -> Path:
    folder = tmp_path / "arrivals (new) [é]"
    folder.mkdir()
    return folder


@pytest.mark.usefixtures("repository")
def test_exactly_the_jars_that_are_asked_for_arrive(arrivals: Path) -> None:
    counts: list[int] = []
    ivy.fetch([ONE, TWO], arrivals, counts.append)
    assert {file.name: file.read_bytes().decode() for file in arrivals.iterdir()} == {
        str(ONE): str(ONE),
        str(TWO): str(TWO),
    }
    assert counts == sorted(counts)
    assert counts[-1] == 2


@pytest.mark.usefixtures("repository")
def test_a_jar_that_the_repository_does_not_have_is_named(arrivals: Path) -> None:
    with pytest.raises(KcgaError, match=r"module not found: org\.example#absent;9\.9"):
        ivy.fetch([ONE, ABSENT], arrivals, lambda _: None)
    assert not list(arrivals.iterdir())


def test_a_repository_that_cannot_be_reached_is_named(arrivals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = f"http://{LOOPBACK}:{free_port()}/"
    monkeypatch.setenv(REPOSITORY_VARIABLE, nobody)
    with pytest.raises(KcgaError, match=f"{nobody}.*Connection refused") as raised:
        ivy.fetch([ONE], arrivals, lambda _: None)
    assert "\n" not in str(raised.value)
    assert not list(arrivals.iterdir())


@pytest.mark.slow
def test_a_repository_that_says_nothing_is_not_waited_for_long(arrivals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer((LOOPBACK, 0), Quiet) as silent:  # it listens, and nobody serves
        monkeypatch.setenv(REPOSITORY_VARIABLE, f"http://{LOOPBACK}:{silent.server_port}/")
        monkeypatch.setattr(ivy, "_SILENCE_S", 3.0)
        with pytest.raises(KcgaError, match="nothing arrived for 3 s"):
            ivy.fetch([ONE, TWO], arrivals, lambda _: None)


def test_a_jar_is_resolved_with_what_it_needs(repository: Path, arrivals: Path) -> None:
    description = repository / "org/example/two/2.1/two-2.1.pom"
    description.write_text(
        f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>{TWO.group}</groupId><artifactId>{TWO.artifact}</artifactId><version>{TWO.version}</version>
<dependencies><dependency>
<groupId>{ONE.group}</groupId><artifactId>{ONE.artifact}</artifactId><version>{ONE.version}</version>
</dependency></dependencies></project>"""
    )
    assert ivy.resolve([TWO], arrivals) == (TWO, ONE)
