"""Makes the archive of Spark's classes that JVMs map to start sooner, `app.class_data`: `python -m sandbox.class_data`.

A server does what a consumer asks of it, and leaves the classes when it ends. On two cores that takes a minute.
"""

import signal
import sys
import tempfile
from pathlib import Path

from app.class_data import archive_for
from app.errors import KcgaError
from app.jars import DELTA, obtain
from app.java import find_java
from sandbox.spark import SparkConnectServer, one_row, writing

_STARTS_WITHIN_S = 1800.0
"""An image may be built for another machine, which is emulated."""
_ENDED_AS_ASKED = 128 + signal.SIGTERM
"""The exit code of a JVM that has done, after SIGTERM, all that it does at its end."""


def make() -> Path:
    """Makes it for this environment and the Java that is found, in place of the one there was.

    Raises:
        KcgaError: Java, jars or PySpark are not to be had; Spark does not start, does not write, or leaves no archive;
            it cannot be stored.
    """
    java, jars = find_java(), obtain(DELTA)
    archive = archive_for(jars)
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            made = Path(scratch, "made.jsa")
            spark = SparkConnectServer(Path(scratch, "spark"), jars=jars, java=java, archive=made)
            try:
                spark.start(_STARTS_WITHIN_S)
                _ask(spark.remote, Path(scratch, "lake"))
            finally:
                spark.stop()
            if not made.exists() or spark.child.exit_code != _ENDED_AS_ASKED:  # a JVM that maps half of one crashes
                raise spark.child.error(f"Spark {spark.child.ending}, and left no archive of its classes")
            made.replace(archive)
    except OSError as error:
        raise KcgaError(f"the archive of Spark's classes cannot be stored: {error}") from error
    return archive


def _ask(remote: str, root: Path) -> None:
    """What a consumer asks of Spark, from its first table to taking over from another."""
    topic, writers = "classes", ("classes/1", "classes/2")
    with writing(remote, root, writers[0]) as former, writing(remote, root, writers[1]) as successor:
        for offset in range(3):
            former.append(topic, offset + 1, one_row(topic, offset))
        successor.seal(topic, writers[0])
        successor.last_appended(topic, [0])


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{make()}\n")
    except KcgaError as error:
        raise SystemExit(str(error)) from error
