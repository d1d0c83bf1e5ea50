"""An identity provider on this machine: access tokens for client credentials over TLS, and the keys to check them."""

import base64
import json
import ssl
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from sandbox.ports import LOOPBACK
from sandbox.security import TokenIssuer
from tests import http_server
from tests.certificates import Authority, openssl
from tests.conftest import installed
from tests.tools import OPENSSL

AUDIENCE, SCOPE, SECRET = "kafka", "read-logs", "client's own"


class IdentityProvider:
    """Gives a token to any client that knows the secret; who that is, is the client's id.

    Args:
        folder: takes its keys.
        authority: who signs its certificate.
        lifetime_s: of its tokens.
    """

    def __init__(self, folder: Path, authority: Authority, lifetime_s: float) -> None:
        folder.mkdir()
        self._key, self._issuer = folder / "tokens.key", "https://kcga.tests"
        openssl("genrsa", "-out", str(self._key), "2048")
        self.lifetime_s = lifetime_s
        self.audience = AUDIENCE
        self.answer: tuple[int, bytes] | None = None
        """In place of a token."""
        self.given: list[str] = []
        """To whom, token by token."""
        self.classes: Sequence[Path] = ()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(authority.key_store())
        self._server = http_server.serve(self._answer, tls=self._context)
        self._port = self._server.server_port
        self.ca = authority.certificate

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}/token"

    @property
    def issuer(self) -> TokenIssuer:
        keys = f"https://{LOOPBACK}:{self._port}/keys"
        return TokenIssuer(issuer=self._issuer, audience=AUDIENCE, keys=keys, ca=self.ca)

    def client(self, user: str, secret: str = SECRET) -> dict[str, str]:
        """How a client of that id gets its tokens, by librdkafka's names."""
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.id": user,
            "sasl.oauthbearer.client.secret": secret,
            "sasl.oauthbearer.scope": SCOPE,
            "https.ca.location": str(self.ca.absolute()),
        }

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within it nobody answers there."""
        self.close()
        try:
            yield
        finally:
            self._server = http_server.serve(self._answer, self._port, self._context)

    def close(self) -> None:
        http_server.close(self._server)

    def _answer(self, asked: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        if asked.command == "GET":
            return 200, json.dumps({"keys": [self._public_key()]}).encode()
        return self._granted(asked.headers.get("authorization", ""), http_server.form_of(asked))

    def _granted(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if self.answer is not None:
            return self.answer
        user, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if secret != SECRET:
            return 401, json.dumps({"error": "invalid_client", "error_description": "no such client"}).encode()
        if form != {"grant_type": ["client_credentials"], "scope": [SCOPE]}:
            return 400, json.dumps({"error": "invalid_request", "error_description": str(form)}).encode()
        self.given.append(user)
        answer = {"access_token": self.token(user), "token_type": "Bearer", "expires_in": self.lifetime_s}
        return 200, json.dumps(answer).encode()

    def token(self, user: str) -> str:
        now = time.time()
        claims = {
            "iss": self._issuer,
            "aud": self.audience,
            "sub": user,
            "scope": SCOPE,
            "iat": int(now),
            "exp": int(now + self.lifetime_s),
            "jti": uuid.uuid4().hex,
        }
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': 'tests'})}.{_encoded(claims)}"
        command: list[str | Path] = [installed(OPENSSL), "dgst", "-sha256", "-sign", str(self._key)]
        signature = subprocess.run(command, input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{_base64url(signature)}"

    def _public_key(self) -> dict[str, str]:
        command: list[str | Path] = [installed(OPENSSL), "rsa", "-in", str(self._key), "-noout", "-modulus"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        modulus = bytes.fromhex(told.strip().removeprefix("Modulus="))
        exponent = _base64url((65_537).to_bytes(3, "big"))
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "tests", "n": _base64url(modulus), "e": exponent}


def _encoded(value: Any) -> str:
    return _base64url(json.dumps(value).encode())


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
