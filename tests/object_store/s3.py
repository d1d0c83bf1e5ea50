"""A server of S3's API on this machine: moto, in an environment of its own, since it needs other versions than kcga.

`environment()` makes that once, from what `requirements.txt` locks with hashes.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import httpx

from app.child import Child
from app.errors import KcgaError
from app.jars import cache_folder
from sandbox.ports import LOOPBACK
from sandbox.server import READY_WITHIN_S, Server
from tests import web
from tests.object_store import BUCKET
from tests.patience import PATIENCE_S

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PROGRAM = Path(__file__).with_name("meeting_moto.py")


def environment() -> Path:
    """The Python of moto's environment.

    Raises:
        KcgaError: its packages are not to be had.
    """
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    folder = cache_folder().absolute() / "moto" / f"{python}-{key}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            _run(sys.executable, "-m", "venv", "--without-pip", str(made))
            packages = made / "lib" / python / "site-packages"
            install = ("install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(REQUIREMENTS))
            _run(sys.executable, "-m", "pip", *install, "--target", str(packages))
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder / "bin" / "python"


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise KcgaError(f"the packages of moto are not to be had: {ended.stderr.strip()}")


class S3(Server):
    """Serves one bucket, `BUCKET`, to whoever asks; what is in it is gone with it."""

    title = "moto"
    scheme = "s3a"
    java_environment: Mapping[str, str] = MappingProxyType({})
    """Of a Java that is to come here: nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, None)

    @property
    def conf(self) -> dict[str, str]:
        """Spark's settings for tables there."""
        return {
            "spark.hadoop.fs.s3a.endpoint": f"http://{self.address}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "anybody",
            "spark.hadoop.fs.s3a.secret.key": "anything",
        }

    def start(self, ready_within_s: float = READY_WITHIN_S) -> None:
        """And makes the bucket."""
        super().start(ready_within_s)
        httpx.put(f"http://{self.address}/{BUCKET}", timeout=PATIENCE_S).raise_for_status()

    def _prepare(self, port: int) -> Child:
        arguments: list[str | Path] = [environment(), PROGRAM, LOOPBACK, str(port)]
        return Child(self.title, arguments, self.log, folder=self._folder)

    def _answers(self) -> bool:
        try:
            return web.get(f"http://{self.address}/moto-api/", timeout=10).is_success
        except httpx.TransportError:
            return False
