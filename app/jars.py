"""The jars of Kafka, Delta Lake and object stores: the locked ones, fetched once into a cache, checked at every use.

`python -m app.jars` resolves the roots below anew and writes the locks; to be run when a version changes.
"""

import contextlib
import fcntl
import hashlib
import importlib.resources
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app import ivy
from app.errors import KcgaError, UsageError
from app.ivy import Coordinates
from app.pyspark_home import pyspark_home

CACHE_VARIABLE = "KCGA_CACHE"
"""The environment variable that names another folder for the cache."""

_ATTEMPTS = 2
_ARRIVALS = "fetching-"

Fetch = Callable[[Sequence[Coordinates], Path, Callable[[int], None]], None]
"""Puts files named as `str()` of their coordinates into a folder, and tells how many there are; see `ivy.fetch`."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that go together."""

    name: str
    """Of its lock (`name`.lock beside this module) and of its folder in the cache."""
    title: str
    """What messages call it."""
    variable: str
    """The environment variable that names a folder with one's own jars, which are used as they are."""
    roots: tuple[Coordinates, ...] = ()
    """The lock also has what these need."""
    alone: tuple[Coordinates, ...] = ()
    """Of these, all that they need is there already."""
    beside_spark: bool = True
    """Whether they are used beside PySpark's jars, so that the lock leaves out what is among those."""


@dataclass(frozen=True, slots=True)
class LockedJar:
    """One line of a lock."""

    coordinates: Coordinates
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.coordinates.artifact}-{self.coordinates.version}.jar"


def _coordinates(*texts: str) -> tuple[Coordinates, ...]:
    return tuple(map(Coordinates.parse, texts))


KAFKA = JarSet(
    name="kafka",
    title="Apache Kafka 4.3.1",
    variable="KAFKA_JARS",
    # Without the second, the broker logs nothing.
    roots=_coordinates("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"),
    beside_spark=False,
)
DELTA = JarSet(
    name="delta",
    title="Delta Lake 4.4.0",
    variable="DELTA_JARS",
    # All the rest that these name as needed (Hadoop, Parquet, Jackson ...) is already among PySpark's jars.
    alone=_coordinates(
        "io.delta:delta-kernel-api:4.4.0",
        "io.delta:delta-kernel-defaults:4.4.0",
        "io.delta:delta-kernel-unitycatalog:4.4.0",
        "io.delta:delta-spark_4.2_2.13:4.4.0",
        "io.delta:delta-storage:4.4.0",
        "io.unitycatalog:unitycatalog-client:0.6.0",
    ),
)
S3 = JarSet(
    name="s3",
    title="Hadoop's connector to S3 3.5.0",
    variable="S3_JARS",
    # What it needs of the AWS SDK: the SDK as one jar, which it names, has 686 MB.
    roots=_coordinates(
        "software.amazon.awssdk:s3:2.35.4",
        "software.amazon.awssdk:s3-transfer-manager:2.35.4",
        "software.amazon.awssdk:sts:2.35.4",
    ),
    alone=_coordinates(
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ),
)
GCS = JarSet(
    name="gcs",
    title="Hadoop's connector to Google Cloud Storage 3.5.0",
    variable="GCS_JARS",
    alone=_coordinates("org.apache.hadoop:hadoop-gcp:3.5.0"),  # all that it needs is in it
)

_SPARK_HAS_IN_PLACE_OF = frozenset({"commons-logging"})  # jcl-over-slf4j


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where kcga keeps what it fetched."""
    return Path(environment.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("kcga"))


def locked(jar_set: JarSet) -> tuple[LockedJar, ...]:
    """The lock of a set: lines `sha256  group:artifact:version`."""
    lock = importlib.resources.files(__package__).joinpath(f"{jar_set.name}.lock").read_text()
    pairs = (line.split() for line in lock.splitlines() if not line.startswith("#"))
    return tuple(LockedJar(Coordinates.parse(coordinates), sha256) for sha256, coordinates in pairs)


def obtain(jar_set: JarSet, environment: Mapping[str, str] = os.environ, fetch: Fetch = ivy.fetch) -> tuple[Path, ...]:
    """The files of a set of jars: one's own if the set's variable names a folder, else the cache's.

    What is missing in the cache or is not what the lock says is fetched (again). Several processes may do so at once.

    Raises:
        UsageError: the variable names no folder with jars.
        KcgaError: a jar is not to be had, is not the locked one, or cannot be stored.
    """
    if own := environment.get(jar_set.variable):
        jars = tuple(sorted(Path(own).absolute().glob("*.jar")))
        if not jars:
            raise UsageError(
                f"{jar_set.variable} is {own}, which is no folder with .jar files: it should hold {jar_set.title}'s"
            )
        return jars
    folder = cache_folder(environment).absolute() / "jars" / jar_set.name
    wanted = locked(jar_set)
    try:
        if _missing(wanted, folder):
            folder.mkdir(parents=True, exist_ok=True)
            with _alone(folder, jar_set):
                _complete(jar_set, wanted, folder, fetch)
    except OSError as error:
        raise KcgaError(
            f"the jars of {jar_set.title} cannot be stored: {error}; {CACHE_VARIABLE} names another folder"
        ) from error
    return tuple(folder / jar.file_name for jar in wanted)


def _missing(wanted: Sequence[LockedJar], folder: Path) -> list[LockedJar]:
    return [jar for jar in wanted if _sha256(folder / jar.file_name) != jar.sha256]


def _complete(jar_set: JarSet, wanted: Sequence[LockedJar], folder: Path, fetch: Fetch) -> None:
    """Fetches what is missing into a folder beside, and moves what is right over, jar by jar."""
    for abandoned in folder.glob(f"{_ARRIVALS}*"):  # by a process that was killed
        shutil.rmtree(abandoned)
    wrong: list[str] = []
    for _ in range(_ATTEMPTS):
        missing = _missing(wanted, folder)
        if not missing:
            return
        with (
            tempfile.TemporaryDirectory(prefix=_ARRIVALS, dir=folder) as arrivals,
            _progress(f"Fetching the jars of {jar_set.title} (once)", len(missing)) as arrived,
        ):
            try:
                fetch([jar.coordinates for jar in missing], Path(arrivals), arrived)
            except KcgaError as error:
                raise KcgaError(
                    f"the jars of {jar_set.title} cannot be fetched ({error}): check the network, "
                    f"or set {jar_set.variable} to a folder that has them"
                ) from error
            wrong.clear()
            for jar in missing:
                arrival = Path(arrivals, str(jar.coordinates))
                if (sha256 := _sha256(arrival)) == jar.sha256:
                    arrival.replace(folder / jar.file_name)
                else:
                    wrong.append(f"{jar.coordinates} has sha256 {sha256}, {jar.sha256} is locked")
    if wrong:
        raise KcgaError(f"the jars of {jar_set.title} were fetched, but are not the right ones: {wrong[0]}")


@contextlib.contextmanager
def _alone(folder: Path, jar_set: JarSet) -> Iterator[None]:
    """Holds the folder's lock file, which the system releases if this process dies."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            Console(stderr=True).print(f"Waiting for another kcga that fetches the jars of {jar_set.title} ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda arrived: progress.update(task, completed=arrived)


def _sha256(file: Path) -> str | None:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def write_lock(jar_set: JarSet, file: Path) -> None:
    """Resolves the roots of a set and writes its lock.

    Raises:
        KcgaError: some jars are not to be had.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        jars = set(jar_set.alone)
        if jar_set.alone:
            ivy.fetch(jar_set.alone, folder, lambda _: None)
        if jar_set.roots:
            jars.update(ivy.resolve(jar_set.roots, folder))
        if jar_set.beside_spark:
            jars = {jar for jar in jars if not _is_sparks(jar)}
        lines = [f"# The jars of {jar_set.title}. Written by: python -m app.jars"]
        lines += [f"{_sha256(folder / str(jar))}  {jar}" for jar in sorted(jars)]
    file.write_text("\n".join(lines) + "\n")


def _is_sparks(jar: Coordinates) -> bool:
    sparks = (pyspark_home() / "jars").glob(f"{jar.artifact}-[0-9]*.jar")
    return jar.artifact in _SPARK_HAS_IN_PLACE_OF or any(sparks)


if __name__ == "__main__":
    for each in (KAFKA, DELTA, S3, GCS):
        write_lock(each, Path(__file__).with_name(f"{each.name}.lock"))
