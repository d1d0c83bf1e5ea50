"""A server of Google Cloud Storage's API on this machine, under the name of the real one: fake-gcs-server."""

import subprocess
from pathlib import Path

import httpx

from app.child import Child
from app.java import Java
from sandbox.server import Server
from tests import web
from tests.certificates import Authority
from tests.object_store import BUCKET

MODULE = Path(__file__).with_name("gcsserver")
_HOST, _PASSWORD = "storage.googleapis.com", "changeit"


class GCS(Server):
    """Serves one bucket, `BUCKET`, to whoever asks; what is in it is gone with it.

    Args:
        folder: takes all its files.
        program: what `tests.go_program` made of `MODULE`.
        java: of the clients, which trust whom their store of certificates has.
    """

    title = "fake-gcs-server"
    scheme = "gs"

    def __init__(self, folder: Path, program: Path, java: Java) -> None:
        super().__init__(folder, None)
        self._program, self._java = program, java

    @property
    def conf(self) -> dict[str, str]:
        """Spark's settings for tables there."""
        user = {f"auth.{name}": "anybody" for name in ("client.id", "client.secret", "refresh.token")}
        token = {"auth.type": "USER_CREDENTIALS", "token.server.url": f"http://{self.address}/token"}
        return {f"spark.hadoop.fs.gs.{name}": value for name, value in {"project.id": "kcga", **user, **token}.items()}

    @property
    def java_environment(self) -> dict[str, str]:
        """Of a Java that is to come here."""
        return self.java_environment_with(self.trust_store)

    def java_environment_with(self, trust_store: Path) -> dict[str, str]:
        """The same, where the store of certificates is elsewhere."""
        host, _, port = self.address.partition(":")
        options = {
            "https.proxyHost": host,
            "https.proxyPort": port,
            "javax.net.ssl.trustStore": str(trust_store),
            "javax.net.ssl.trustStorePassword": _PASSWORD,
        }
        by_name = " ".join(f"-D{name}={value}" for name, value in options.items())
        return {"JAVA_TOOL_OPTIONS": by_name, "NO_GCE_CHECK": "true"}

    @property
    def trust_store(self) -> Path:
        """Certificates that whoever comes here has to trust, once it is started."""
        return self._folder / "trusted.p12"

    def _prepare(self, port: int) -> Child:
        authority = Authority(self._folder / f"authority-{port}")
        trusted: list[str | Path] = [
            "-importcert",
            "-noprompt",
            "-alias",
            f"authority-{port}",
            "-file",
            authority.certificate,
        ]
        store: list[str | Path] = ["-keystore", self.trust_store, "-storepass", _PASSWORD]
        subprocess.run([self._java.home / "bin" / "keytool", *trusted, *store], check=True, capture_output=True)
        pair = authority.key_store(f"DNS:{_HOST}")
        return Child(self.title, [self._program, str(port), pair, pair, BUCKET], self.log, folder=self._folder)

    def _answers(self) -> bool:
        try:
            return web.get(f"http://{self.address}/_internal/healthcheck", timeout=10).is_success
        except httpx.TransportError:
            return False
