"""What tests need and only Go's modules have: Kubernetes' own parts, an object store's server, an operator's schemas.

Each program is a module of the tests, built once, and kept in kcga's cache folder by the hash of the module.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.child import Child
from app.errors import KcgaError
from app.jars import cache_folder

_BUILD_WITHIN_S = 45 * 60


def program(module: Path) -> Path:
    """Where the program of a module is, once it is built."""
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum", "main.go"):
        digest.update((module / file).read_bytes())
    return cache_folder().absolute() / "go-programs" / digest.hexdigest()[:16] / module.name


def build(go: Path, module: Path) -> Path:
    """The program of a module, built if it is not there. Takes minutes; several processes may ask for it at once.

    Raises:
        KcgaError: it cannot be built; with what Go said.
    """
    built = program(module)
    built.parent.mkdir(parents=True, exist_ok=True)
    with (built.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _compile(_new_enough(go, module), module, built)
    return built


def source(go: Path, module: Path) -> Path:
    """The folder with the source of the one module that a module of the tests requires, fetched if it is not there.

    Raises:
        KcgaError: it cannot be had, or is another than the module names by its hash; with what Go said.
    """
    (required,) = re.findall(r"^require (\S+) (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    return Path(json.loads(_output([go, "mod", "download", "-json", "@".join(required)], module))["Dir"])


def _new_enough(go: Path, module: Path) -> Path:
    """Go as the module asks for it. From 1.21 on it fetches that by itself; an older one is asked to, as for a module.

    Raises:
        KcgaError: it is not to be had.
    """
    said = _output([go, "version"])
    release = re.search(r"go1\.(\d+)", said)
    if release is None or int(release[1]) >= 21:
        return go
    # The toolchain is left out where it is no newer than what the module needs.
    named = re.findall(r"^(?:toolchain go|go )([\d.]+)$", (module / "go.mod").read_text(), re.MULTILINE)
    system, architecture = said.split()[-1].split("/")
    wanted = f"golang.org/toolchain@v0.0.1-go{named[-1]}.{system}-{architecture}"
    # Its checksum is checked as that of any module. Modules are read-only, and nothing in them can be run.
    folder = Path(json.loads(_output([go, "mod", "download", "-json", "-modcacherw", wanted]))["Dir"])
    for command in (*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")):
        command.chmod(0o755)
    return folder / "bin" / "go"


def _output(command: Sequence[str | Path], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder or tempfile.gettempdir(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KcgaError(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _compile(go: Path, module: Path, built: Path) -> None:
    arriving = built.with_suffix(".new")
    # Where it is built says nothing about it: the module alone does. What would only be for debuggers is not compiled.
    flags = ["-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", f"-ldflags=-s -w {_stamps(module)}"]
    command: list[str | Path] = [go, "build", *flags, "-o", arriving, "."]
    # A compiler that runs for seconds need not look for memory to free.
    environment = {"GOGC": "400", **os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto"}
    log = built.parent / "build.log"
    log.unlink(missing_ok=True)
    with Child(f"the build of {module.name}", command, log, folder=module, environment=environment) as child:
        if child.wait(_BUILD_WITHIN_S) != 0:
            raise child.error(f"{module.name} could not be built")
    arriving.replace(built)


def _stamps(module: Path) -> str:
    """Linker flags by which Kubernetes' parts know their version; none for other programs."""
    found = re.search(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)", (module / "go.mod").read_text())
    if found is None:
        return ""
    version, major, minor = found.groups()
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
