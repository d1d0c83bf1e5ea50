"""Where PySpark is installed, found without the seconds that importing it takes."""

from importlib.util import find_spec
from pathlib import Path

from app.errors import KcgaError


def pyspark_home() -> Path:
    """The folder of the installed PySpark, with Spark's jars and scripts in it.

    Raises:
        KcgaError: the installed PySpark is only Spark Connect's client, or there is none.
    """
    spec = find_spec("pyspark")
    home = None if spec is None or spec.origin is None else Path(spec.origin).parent
    if home is None or not (home / "jars").is_dir():
        raise KcgaError(
            "there is no PySpark with Spark inside (the package pyspark, not pyspark-client): install kcga anew"
        )
    return home
