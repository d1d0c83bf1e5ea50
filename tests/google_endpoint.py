"""Google's token endpoint, on this machine: access tokens for what a service account's key has signed."""

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from sandbox.ports import LOOPBACK
from tests import http_server


class TokenEndpoint:
    """Serves within `serving()`.

    Args:
        account: the address of the service account.
        lifetime_s: of its tokens.
        gave: is told each of them.
    """

    def __init__(self, account: str, lifetime_s: int = 3600, gave: Callable[[str], None] = lambda _token: None) -> None:
        self.account, self._lifetime_s, self._gave = account, lifetime_s, gave
        self.key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        self.given: list[str] = []
        self.refuses: tuple[int, bytes] | None = None
        """What is answered in place of a token."""
        self.url = ""

    def _granted(self, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if self.refuses is not None:
            return self.refuses
        (assertion,) = form["assertion"]
        signed, _, signature = assertion.rpartition(".")
        self.key.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        claims = json.loads(decoded(signed.partition(".")[2]))
        assert (claims["iss"], claims["aud"]) == (self.account, "https://oauth2.googleapis.com/token")
        assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
        self.given.append(f"ya29.{secrets.token_hex(8)}")
        self._gave(self.given[-1])
        return 200, json.dumps({"access_token": self.given[-1], "expires_in": self._lifetime_s}).encode()

    @contextmanager
    def serving(self) -> Iterator[None]:
        server = http_server.serve(lambda asked: self._granted(http_server.form_of(asked)))
        self.url = f"http://{LOOPBACK}:{server.server_port}/token"
        try:
            yield
        finally:
            http_server.close(server)

    def key_file(self, **instead: str) -> str:
        pem = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        account = {"type": "service_account", "client_email": self.account, "token_uri": self.url, "private_key": pem}
        return json.dumps({"project_id": "project", "private_key_id": "1", "client_id": "1", **account, **instead})


def decoded(part: str) -> bytes:
    """Of base64url without padding."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
