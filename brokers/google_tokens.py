"""Access tokens for Google's managed Kafka, by application default credentials.

Those are a service account's key, a workload identity, a person's login, or what the metadata server of Google's
machines and pods tells. What brokers are shown has the form of a JWT, with the access token in place of a signature.
"""

import base64
import json
import os
import time
from collections.abc import Callable
from datetime import UTC
from functools import partial
from typing import Any

import urllib3

from brokers.clients import REQUEST_LIMIT_S
from brokers.errors import in_one_line
from brokers.tokens import Token, TokenError, Tokens, TokenSettingsError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
HEADER = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
PRINCIPAL = "GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL"
"""The variable by which Google's own server of tokens is told who one is, where credentials do not say."""
_NOBODY = (None, "", "default")


class GoogleTokens(Tokens):
    """
    Args:
        clock: seconds; never goes back.

    Raises:
        TokenSettingsError: google-auth is not installed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__("the access token of Google has expired", clock=clock)
        try:
            import google.auth.transport.urllib3
        except ImportError as error:
            raise TokenSettingsError(
                "google takes google-auth, which is not installed: pip install 'kcga[gcp]'"
            ) from error
        transport = google.auth.transport.urllib3.Request(urllib3.PoolManager())  # type: ignore[no-untyped-call]
        self._transport = partial(transport, timeout=REQUEST_LIMIT_S)
        self._credentials: Any = None

    def _answer(self) -> Token:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

        try:
            if self._credentials is None:
                self._credentials, _ = google.auth.default(scopes=[SCOPE])
            self._credentials.refresh(self._transport)
        except DefaultCredentialsError as error:
            raise TokenError(
                f"there is no access token: no credentials of Google are found ({in_one_line(error)}); name a key by "
                "GOOGLE_APPLICATION_CREDENTIALS, or give this pod or machine a service account"
            ) from error
        except (GoogleAuthError, OSError, ValueError) as error:
            raise TokenError(
                f"there is no access token: Google gives none ({in_one_line(error)}); correct the credentials, or what "
                "their service account may do"
            ) from error
        principal = getattr(self._credentials, "service_account_email", None)
        if principal in _NOBODY:
            principal = os.environ.get(PRINCIPAL)
        if not principal:
            raise TokenError(
                "there is no access token: the credentials of Google do not say whose they are; set "
                f"{PRINCIPAL} to the address of the account"
            )
        expires_at = self._credentials.expiry.replace(tzinfo=UTC).timestamp()
        claims = {"exp": expires_at, "iss": "Google", "iat": time.time(), "sub": principal}
        parts = (json.dumps(HEADER), json.dumps(claims), self._credentials.token)
        return Token(".".join(map(_base64url, parts)), principal, expires_at)


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
