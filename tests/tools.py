"""What tests need that only a system can bring: what is missing on this one, and what is not tested without it.

`python -m tests.tools` tells, `python -m tests.tools --install` brings it (as root, on Debian). Standard library alone:
it runs before there is an environment.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INSTALL = "make tools"
NOT_TESTED = "NOT TESTED"
"""How the reason of a skipped test begins."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of the system's."""

    title: str
    programs: tuple[str, ...]
    """Any of these is enough; a name in PATH, or a path."""
    package: str
    """Debian's."""
    untested: str
    """What is not tested without it."""
    service: str | None = None
    """What its package would begin at once, open to the network or not: the program alone is needed."""

    def find(self) -> Path | None:
        """Where it is; None where it is not installed."""
        found = next(filter(None, map(shutil.which, self.programs)), None)
        return Path(found) if found else None


# An old Go is enough: it fetches the one that the module asks for.
GO = Tool(
    "Go",
    ("go", "/usr/local/go/bin/go"),
    "golang-go",
    "anything on a real Kubernetes API server or a server of Google's object store",
)
CHROMIUM = Tool(
    "Chromium", ("chromium", "chromium-browser", "google-chrome"), "chromium", "the status page in a browser"
)
PROMETHEUS = Tool(
    "Prometheus", ("prometheus",), "prometheus", "the dashboard's queries on a real Prometheus", service="prometheus"
)
PROMTOOL = Tool("promtool", ("promtool",), "prometheus", "the alert rules")
OPENSSL = Tool("openssl", ("openssl",), "openssl", "a cluster that is secured by TLS")
COMPILER = Tool("C compiler", ("cc", "gcc", "clang"), "build-essential", "a component whose clock is wrong or is set")
JAVAC = Tool(
    "Java compiler",
    ("javac", f"{os.environ.get('JAVA_HOME', '/usr')}/bin/javac"),
    "openjdk-17-jdk-headless",
    "a watch beside a group of Kafka's Java client",
)
POSTGRES = Tool(
    "Postgres",
    ("postgres", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True))),
    "postgresql",
    "the sink that keeps records in Postgres",
    service="postgresql",
)
OPTIONAL = (GO, CHROMIUM, PROMETHEUS, PROMTOOL, OPENSSL, COMPILER, JAVAC, POSTGRES)

_ROOT = "root: pods as processes of this machine, a disk that is full and a table that is read-only are not tested"


def missing() -> list[Tool]:
    """The tools that are not installed."""
    return [tool for tool in OPTIONAL if tool.find() is None]


def untested() -> list[str]:
    """What is not tested on this machine and why, a line each."""
    lines = [f"{tool.title}: {tool.untested} is not tested" for tool in missing()]
    return lines if os.geteuid() == 0 else [*lines, _ROOT]


def report() -> str:
    """What is missing, what is therefore not tested, and what brings it; empty where all is there."""
    lines = untested()
    if not lines:
        return ""
    advice = f"`{INSTALL}` installs what is missing (Debian, as root); as root everything is tested."
    return "\n".join(["Missing on this machine:", *(f"  - {line}" for line in lines), advice])


def install(tools: Sequence[Tool]) -> None:
    """Installs Debian's packages of the tools, and what `make` needs to set up its environment.

    Raises:
        SystemExit: this is no Debian, or not root; with what would have to be installed.
    """
    packages = sorted({tool.package for tool in tools})
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        packages.append("openjdk-17-jre-headless")
    if subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode != 0:
        packages.append("python3-venv")
    if not packages:
        return
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise SystemExit(f"{INSTALL} installs as root and on Debian only; to be installed: {' '.join(packages)}")
    for service in {tool.service for tool in tools if tool.service}:
        unit = Path(f"/etc/systemd/system/{service}.service")
        unit.parent.mkdir(parents=True, exist_ok=True)
        if not unit.is_symlink():
            unit.symlink_to("/dev/null")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "--yes", "--no-install-recommends", *packages]):
        done = subprocess.run([apt, *command], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise SystemExit(f"apt-get {' '.join(command)} failed with exit code {done.returncode}")
    print(f"Installed: {' '.join(packages)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools", description=__doc__)
    parser.add_argument("--install", action="store_true", help="installs what is missing")
    if parser.parse_args().install:
        install(missing())
    if said := report():
        print(said)


if __name__ == "__main__":
    main()
