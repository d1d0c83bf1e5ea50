"""Fetches jars with Ivy, which ships inside PySpark: nothing but Java is needed, no Maven.

Knows nothing of locks and checksums: whoever asks checks what arrived.
"""

import errno
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from app.child import POLL_S, Child
from app.errors import KcgaError
from app.java import find_java
from app.pyspark_home import pyspark_home

REPOSITORY_VARIABLE = "KCGA_MAVEN_REPOSITORY"
"""The environment variable that names another Maven repository than the public one, such as a company's: its URL."""

_CONNECT_MS = 10_000
_READ_MS = 20_000
_DISK_FULL = "No space left on device"
_SILENCE_S = 30.0
"""Ivy shows each few kilobytes that arrive, and tells of failures only at its end."""

_DELIVERED = "[SUCCESSFUL ]"


@dataclass(frozen=True, slots=True, order=True)
class Coordinates:
    """What names a jar in a repository."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> "Coordinates":
        """The coordinates written as `group:artifact:version`.

        Raises:
            ValueError: it is not three words.
        """
        parts = text.split(":")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{text!r} is not of the form group:artifact:version")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


_RETRIEVED = "[organisation]:[artifact]:[revision]"
"""The name that Ivy gives a file: as `Coordinates` are written."""


def fetch(jars: Sequence[Coordinates], folder: Path, arrived: Callable[[int], None]) -> None:
    """Puts the files of exactly these jars into `folder`, each named as `str()` of its coordinates.

    Args:
        arrived: told again and again how many there are so far.

    Raises:
        KcgaError: some are not to be had.
        OSError: they cannot be stored.
    """
    asked = "\n".join(
        f'<dependency {_attributes(jar)} transitive="false">'
        f'<artifact name={quoteattr(jar.artifact)} type="jar" ext="jar"/></dependency>'
        for jar in jars
    )
    # The descriptions and checksums of a repository would be two more requests for each jar, and are not needed here.
    _run(asked, folder, arrived, resolver='usepoms="false" checksums=""')


def resolve(roots: Sequence[Coordinates], folder: Path) -> tuple[Coordinates, ...]:
    """Puts these jars and all that they need at run time into `folder`, and says which they are; in ascending order.

    Raises:
        KcgaError: some are not to be had.
    """
    asked = "\n".join(f"<dependency {_attributes(root)}/>" for root in roots)
    _run(asked, folder, lambda _: None, resolver="")
    return tuple(sorted(Coordinates.parse(jar.name) for jar in folder.iterdir()))


def _attributes(jar: Coordinates) -> str:
    return f'org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} conf="default"'


def _run(dependencies: str, folder: Path, arrived: Callable[[int], None], resolver: str) -> None:
    java = find_java()
    if repository := os.environ.get(REPOSITORY_VARIABLE):
        resolver += f" root={quoteattr(repository)}"
    with tempfile.TemporaryDirectory(prefix="ivy-", dir=folder) as name:
        scratch = Path(name)
        (scratch / "settings.xml").write_text(
            f"""<ivysettings>
<settings defaultResolver="maven"/>
<timeout-constraints>
<timeout-constraint name="patience" connectionTimeout="{_CONNECT_MS}" readTimeout="{_READ_MS}"/>
</timeout-constraints>
<resolvers><ibiblio name="maven" m2compatible="true" timeoutConstraint="patience" {resolver}/></resolvers>
</ivysettings>
""",
            encoding="utf-8",
        )
        (scratch / "ivy.xml").write_text(
            f"""<ivy-module version="2.0">
<info organisation="kcga" module="jars"/>
<configurations><conf name="default"/></configurations>
<dependencies defaultconfmapping="default->default">
{dependencies}
</dependencies>
</ivy-module>
""",
            encoding="utf-8",
        )
        # Paths are relative to the scratch folder, since brackets have a meaning in those that Ivy is given.
        options = ["-settings", "settings.xml", "-ivy", "ivy.xml", "-types", "jar", "bundle", "-cache", "cache"]
        options += ["-retrieve", f"jars/{_RETRIEVED}"]
        log = scratch / "log"
        with Child("Ivy", [java.executable, "-jar", _ivy_jar(), *options], log, folder=scratch) as ivy:
            said, said_at = "", time.monotonic()
            while ivy.running:
                time.sleep(POLL_S)
                before, said = said, log.read_text(errors="replace")
                arrived(said.count(_DELIVERED))
                now = time.monotonic()
                if said != before:
                    said_at = now
                elif now - said_at > _SILENCE_S:  # it would wait as long for each of the other jars
                    raise KcgaError(f"nothing arrived for {_SILENCE_S:g} s")
        if _DISK_FULL in said:
            raise OSError(errno.ENOSPC, _DISK_FULL, str(folder))
        if ivy.exit_code != 0:
            raise KcgaError(_reason(said))
        for jar in (scratch / "jars").iterdir():
            jar.rename(folder / jar.name)


def _reason(said: str) -> str:
    """The line of Ivy's output that tells most."""
    lines = [line.strip(" :\t") for line in said.splitlines() if line.strip(" :\t")]
    for word in ("Server access error", "Host ", "module not found", "FAILED", "Exception"):
        if found := next((line for line in lines if word in line), None):
            return found
    return lines[-1] if lines else "Ivy said nothing"


def _ivy_jar() -> Path:
    jar = next(iter(sorted((pyspark_home() / "jars").glob("ivy-*.jar"))), None)
    if jar is None:
        raise KcgaError(f"there is no Ivy in {pyspark_home()}: install PySpark anew (pip install pyspark)")
    return jar
