"""Which Java runs the broker, Spark and Ivy."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.errors import KcgaError

OLDEST = 17
"""The oldest Java that Kafka 4 and Spark 4 both run on."""

_WHAT_TO_DO = f"install Java {OLDEST} or newer, or set JAVA_HOME to where it is"


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java."""

    home: Path
    version: int

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The Java of JAVA_HOME if that is set, else the one in PATH.

    Raises:
        KcgaError: there is none, it does not run, or it is too old.
    """
    if home := environment.get("JAVA_HOME"):
        executable = shutil.which("java", path=str(Path(home) / "bin"))
        if executable is None:
            raise KcgaError(f"JAVA_HOME is {home}, where there is no bin/java: {_WHAT_TO_DO}")
    else:
        executable = shutil.which("java", path=environment.get("PATH", ""))
        if executable is None:
            raise KcgaError(f"there is no Java in PATH: {_WHAT_TO_DO}")
    # Not the banner of `java -version`: its form differs between vendors, and other lines may stand before it.
    asked = [executable, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            asked, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KcgaError(f"{executable} does not run ({error}): {_WHAT_TO_DO}") from error
    properties = dict(re.findall(r"^\s*(java\.\S+) = (.*?)\s*$", answer.stderr + answer.stdout, re.MULTILINE))
    release = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))  # 1.8 is 8
    if answer.returncode or release is None or "java.home" not in properties:
        said = next(iter((answer.stderr + answer.stdout).strip().splitlines()), "nothing")
        raise KcgaError(f"{executable} does not run (it says: {said}): {_WHAT_TO_DO}")
    java = Java(Path(properties["java.home"]), int(release[1]))
    if java.version < OLDEST:
        raise KcgaError(f"{executable} is Java {java.version}: {_WHAT_TO_DO}")
    return java
