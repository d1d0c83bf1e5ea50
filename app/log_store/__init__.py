"""A log of Delta Lake's tables on S3 that several may write to, compiled once by the Scala that Spark brings."""

import hashlib
import importlib.resources
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.errors import KcgaError
from app.jars import CACHE_VARIABLE, cache_folder
from app.java import find_java
from app.pyspark_home import pyspark_home

CLASS = "kcga.ConditionalPutLogStore"

_SOURCE = "ConditionalPutLogStore.scala"
_MADE = "made.jar"
_OF_SPARK = ("scala-compiler", "scala-library", "scala-reflect", "hadoop-client-api")
_WITHIN_S = 120.0


def log_store(jars: Sequence[Path], environment: Mapping[str, str] = os.environ) -> Path:
    """The jar of `CLASS`, from the cache where it is there.

    Args:
        jars: those of Delta Lake and of Hadoop's connector to S3.
        environment: names the cache's folder, and Java.

    Raises:
        KcgaError: there is no Java, it does not compile, or it cannot be stored.
    """
    source = importlib.resources.files(__package__).joinpath(_SOURCE).read_bytes()
    made_of = hashlib.sha256(source + "".join(sorted(jar.name for jar in jars)).encode()).hexdigest()
    jar = cache_folder(environment).absolute() / "log-store" / f"{made_of[:16]}.jar"
    if jar.exists():
        return jar
    try:
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            _compile(source, jars, Path(scratch), environment).replace(jar)
    except OSError as error:
        raise KcgaError(
            f"the log store of S3 cannot be stored: {error}; {CACHE_VARIABLE} names another folder"
        ) from error
    return jar


def _compile(source: bytes, jars: Sequence[Path], scratch: Path, environment: Mapping[str, str]) -> Path:
    (scratch / _SOURCE).write_bytes(source)
    of_spark = [jar for name in _OF_SPARK for jar in (pyspark_home() / "jars").glob(f"{name}-*.jar")]
    path = os.pathsep.join(map(str, [*of_spark, *jars]))
    options: list[str] = ["-cp", path]
    try:
        compiled = subprocess.run(
            [str(find_java(environment).executable), *options, "scala.tools.nsc.Main", *options, "-d", _MADE, _SOURCE],
            cwd=scratch,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WITHIN_S,
        )
    except subprocess.TimeoutExpired as error:
        raise KcgaError(f"the log store of S3 was not compiled within {_WITHIN_S:g} s") from error
    made = scratch / _MADE
    if compiled.returncode or not made.exists():
        raise KcgaError(f"the log store of S3 does not compile: {compiled.stdout.strip()}{compiled.stderr.strip()}")
    return made
