"""An archive of Spark's and Delta Lake's classes as a JVM has them in memory (Java: class data sharing).

A JVM that maps it starts sooner than one that reads the classes from their jars. It holds for one Java and one class
path: a JVM of any other passes it over. `python -m sandbox.class_data` makes it, once for an environment or an image.
"""

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.pyspark_home import pyspark_home

_JARS, _CLASS_PATH = "spark.jars", "spark.driver.extraClassPath"


def archive_for(jars: Sequence[Path]) -> Path:
    """The archive for Spark with these jars on its class path, which need not be there.

    Args:
        jars: Delta Lake's.
    """
    parts = (str(path) for path in (pyspark_home() / "jars", *jars))
    return Path(sys.prefix, "class-data", f"{hashlib.sha256(os.pathsep.join(parts).encode()).hexdigest()[:16]}.jsa")


def jvm_options(jars: Sequence[Path]) -> tuple[str, ...]:
    """The options of a JVM that is to map the archive; none where there is no archive."""
    archive = archive_for(jars)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


def jar_settings(
    jars: Sequence[Path], of_stores: Sequence[Path], master: str, own: Mapping[str, str]
) -> Mapping[str, str]:
    """Spark's settings that bring jars, unless one's own settings do.

    Delta Lake's are on the class path: classes from jars that Spark adds by itself are in no archive. Those of object
    stores are not, so that the class path is the same whichever stores there are.

    Args:
        jars: Delta Lake's.
        of_stores: those of object stores.
        master: who does the work; the workers of a cluster are sent jars.
        own: one's own settings, which come after these but for the class path, which is after Delta Lake's jars.
    """
    if _JARS in own:
        return {}
    path = [*map(str, jars), *([own[_CLASS_PATH]] if own.get(_CLASS_PATH) else [])]
    added = of_stores if master == "local" or master.startswith("local[") else (*jars, *of_stores)
    return {
        **({_CLASS_PATH: os.pathsep.join(path)} if path else {}),
        **({_JARS: ",".join(map(str, added))} if added else {}),
    }
