"""Certificates for servers of the tests, made by openssl."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import installed
from tests.tools import OPENSSL


def openssl(*arguments: str) -> None:
    subprocess.run([installed(OPENSSL), *arguments], check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates."""

    folder: Path
    certificate: Path = field(init=False)
    key: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        object.__setattr__(self, "certificate", self.folder / "ca.pem")
        object.__setattr__(self, "key", self.folder / "ca.key")
        new = ("req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "2", "-subj", "/CN=kcga tests")
        openssl(*new, "-keyout", str(self.key), "-out", str(self.certificate))

    def key_store(self, name: str = "IP:127.0.0.1", user: str = "kcga tests, a server") -> Path:
        """Key and certificate of a server on this machine, or of that name; or of a user, by the common name."""
        key, certificate, store = (self.folder / f"{user}.{end}" for end in ("key", "pem", "store.pem"))
        new = ("req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "2", "-subj", f"/CN={user}")
        signed = ("-CA", str(self.certificate), "-CAkey", str(self.key))
        extensions = ("-addext", f"subjectAltName={name}", "-addext", "basicConstraints=critical,CA:FALSE")
        openssl(*new, *signed, *extensions, "-keyout", str(key), "-out", str(certificate))
        store.write_text(key.read_text() + certificate.read_text() + self.certificate.read_text())
        return store
