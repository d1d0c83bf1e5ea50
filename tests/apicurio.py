"""Apicurio Registry, in memory, on this machine: a schema registry of others that has Confluent's API, too."""

import fcntl
import hashlib
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from urllib.request import urlopen

from app.child import Child
from app.errors import KcgaError
from app.ivy import REPOSITORY_VARIABLE
from app.jars import cache_folder
from app.java import Java, find_java
from app.pyspark_home import pyspark_home
from sandbox.server import Server
from tests.archives import unpack

VERSION = "3.0.9"
"""The newest that runs on Java 17."""
_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
_ARCHIVE = f"apicurio-registry-app-{VERSION}-all.tar.gz"
_WITHIN_S = 20 * 60
_IVY = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="kcga" module="apicurio"/>
<dependencies defaultconfmapping="default->default">
<dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
<artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
</dependency>
</dependencies>
</ivy-module>
"""


class Apicurio(Server):
    """A registry without a schema.

    Args:
        folder: takes its log.
    """

    title = "Apicurio Registry"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, None)
        self._java, self._program = find_java(), obtain()

    @property
    def url(self) -> str:
        """Of the API that is Confluent's."""
        return f"http://{self.address}/apis/ccompat/v7"

    def _prepare(self, port: int) -> Child:
        host = self.address.rpartition(":")[0]
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", f"-Dquarkus.http.host={host}", f"-Dquarkus.http.port={port}"]
        command: list[str | Path] = [self._java.executable, *options, "-jar", self._program]
        return Child(self.title, command, self.log, folder=self._folder)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/schemas/types", timeout=10):  # noqa: S310
                return True
        except OSError:
            return False


def obtain() -> Path:
    """Its program, fetched once into kcga's cache; several processes may ask for it at once.

    Raises:
        KcgaError: it is not to be had.
    """
    folder = cache_folder().absolute() / "apicurio" / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"apicurio-registry-app-{VERSION}-runner.jar"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _fetch(find_java(), Path(scratch))
                with tarfile.open(Path(scratch, _ARCHIVE)) as archive:
                    unpack(archive, folder, [each for each in archive if each.name != program.name])
                    unpack(archive, folder, [archive.getmember(program.name)])
    return program


def _fetch(java: Java, folder: Path) -> None:
    root = os.environ.get(REPOSITORY_VARIABLE)
    resolver = f'<ibiblio name="maven" m2compatible="true" usepoms="false"{f" root={root!r}" if root else ""}/>'
    settings = f'<ivysettings><settings defaultResolver="maven"/><resolvers>{resolver}</resolvers></ivysettings>'
    (folder / "settings.xml").write_text(settings)
    (folder / "ivy.xml").write_text(_IVY)
    (ivy,) = (pyspark_home() / "jars").glob("ivy-*.jar")
    options = ["-settings", "settings.xml", "-ivy", "ivy.xml", "-types", "tar.gz", "-cache", "cache"]
    options += ["-retrieve", "[artifact]-[revision]-all.[ext]"]
    command = [str(java.executable), "-jar", str(ivy), *options]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    archive = folder / _ARCHIVE
    if not archive.exists():
        raise KcgaError(f"Apicurio Registry cannot be fetched: {said.stdout[-1000:]}{said.stderr[-1000:]}")
    with archive.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != _SHA256:
            raise KcgaError(f"{_ARCHIVE} was fetched, but is not the right one")
