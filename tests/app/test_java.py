"""Which Java is found, and what is said where none will do."""

from pathlib import Path

import pytest

from app.errors import KcgaError
from app.java import find_java


def install(folder: Path, script: str) -> Path:
    """A java that is a shell script, in `folder`/bin."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return folder


def saying(version: str, home: str = "/opt/java") -> str:
    return f"echo '    java.home = {home}' >&2; echo '    java.specification.version = {version}' >&2"


def test_the_java_of_this_machine_is_found() -> None:
    java = find_java()
    assert java.version >= 17
    assert java.executable.exists()


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, other = install(tmp_path / "home", saying("21")), install(tmp_path / "other", saying("17"))
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}).version == 21
    assert find_java({"PATH": str(other / "bin")}).version == 17


def test_lines_that_java_prints_besides_do_not_matter(tmp_path: Path) -> None:
    home = install(tmp_path, f"echo 'Picked up JAVA_TOOL_OPTIONS: -Da = b' >&2; {saying('17', '/opt/my java')}")
    assert find_java({"JAVA_HOME": str(home)}).home == Path("/opt/my java")


@pytest.mark.parametrize(("version", "release"), [("1.8", "8"), ("11", "11")])
def test_an_old_java_is_refused(tmp_path: Path, version: str, release: str) -> None:
    home = install(tmp_path, saying(version))
    with pytest.raises(KcgaError, match=f"is Java {release}: install Java 17 or newer, or set JAVA_HOME"):
        find_java({"JAVA_HOME": str(home)})


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PATH": ""}, "there is no Java in PATH: install Java 17 or newer"),
        ({"PATH": "/nowhere"}, "there is no Java in PATH: install Java 17 or newer"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME is /nowhere, where there is no bin/java: install Java 17 or newer"),
    ],
)
def test_the_absence_of_java_says_what_to_do(environment: dict[str, str], said: str) -> None:
    with pytest.raises(KcgaError, match=said):
        find_java(environment)


@pytest.mark.parametrize("script", ["echo 'Unable to locate a Java Runtime.' >&2; exit 1", "exit 0", "echo nonsense"])
def test_a_java_that_does_not_run_is_refused(tmp_path: Path, script: str) -> None:
    home = install(tmp_path, script)
    with pytest.raises(KcgaError, match=r"bin/java does not run \(it says: .+\): install Java 17 or newer"):
        find_java({"JAVA_HOME": str(home)})
