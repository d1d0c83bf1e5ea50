"""Access tokens of an identity provider (OIDC) for kafka-python, by the properties by which librdkafka gets its own.

Where `sasl.oauthbearer.method` is `oidc`, librdkafka asks for tokens, renews and shows them by itself; it gives none
away.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPSHandler, Request, build_opener

from kafka.net.sasl.oauth import AbstractTokenProvider

from brokers.clients import REQUEST_LIMIT_S
from brokers.errors import in_one_line
from domain.secrecy import masked

MECHANISM = "OAUTHBEARER"
_OF_TOKENS = "sasl.oauthbearer."
_METHOD, _GRANT, _URL = f"{_OF_TOKENS}method", f"{_OF_TOKENS}grant.type", f"{_OF_TOKENS}token.endpoint.url"
_ID, _SECRET = f"{_OF_TOKENS}client.id", f"{_OF_TOKENS}client.secret"
_SCOPE, _EXTENSIONS = f"{_OF_TOKENS}scope", f"{_OF_TOKENS}extensions"
_CA, _CA_TEXT = "https.ca.location", "https.ca.pem"
PROPERTIES = frozenset({_METHOD, _GRANT, _URL, _ID, _SECRET, _SCOPE, _EXTENSIONS, f"{_OF_TOKENS}sub.claim.name"})
"""Those of librdkafka's that begin with `sasl.` and are followed here."""
_REQUIRED = (_URL, _ID, _SECRET)
_RENEWED_AFTER = 0.8
"""Of a token's life, as librdkafka has it."""
_ASK_AGAIN_S = 5.0
_LARGEST_ANSWER = 1_000_000
_SHOWN = 200
"""Of what a provider says, in characters."""


class TokenSettingsError(ValueError):
    """A property is missing or cannot be followed: says which."""


class TokenError(Exception):
    """There is no access token: says why, from whom, and what would be right, in one line."""


class _Token(NamedTuple):
    text: str
    due_at: float
    """When another is asked for; s on a clock that never goes back, as the next."""
    expires_at: float


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens for client credentials, each used until shortly before it expires. From any thread.

    Args:
        client_config: librdkafka's properties; those that say nothing of tokens are left aside.
        limit_s: so long may the provider take.
        clock: seconds; never goes back.

    Raises:
        TokenSettingsError: a property is missing, or cannot be followed.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        limit_s: float = REQUEST_LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if client_config.get(_METHOD, "").lower() != "oidc":
            raise TokenSettingsError(f"sasl.mechanism is {MECHANISM}: {_METHOD} must be oidc")
        if (grant := client_config.get(_GRANT, "client_credentials")) != "client_credentials":
            raise TokenSettingsError(f"{_GRANT} is {grant}: it must be client_credentials")
        if missing := [name for name in _REQUIRED if not client_config.get(name)]:
            raise TokenSettingsError(f"{', '.join(missing)} must be set where {_METHOD} is oidc")
        self._url = client_config[_URL]
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise TokenSettingsError(f"{_URL} is {self._url!r}: it must begin with https://")
        credentials = f"{client_config[_ID]}:{client_config[_SECRET]}".encode()
        form = {"grant_type": "client_credentials"} | ({"scope": scope} if (scope := client_config.get(_SCOPE)) else {})
        headers = {"Authorization": f"Basic {base64.b64encode(credentials).decode()}", "Accept": "application/json"}
        self._request = Request(self._url, urlencode(form).encode(), headers)  # noqa: S310 (its scheme was looked at)
        self._opener = build_opener(HTTPSHandler(context=_trusting(client_config)))
        pairs = [pair.partition("=") for pair in client_config.get(_EXTENSIONS, "").split(",") if pair]
        self._extensions = {name.strip(): value.strip() for name, _, value in pairs}
        self._limit_s = limit_s
        self._clock = clock
        self._asks = threading.Lock()
        self._token: _Token | None = None
        self._fault = "no access token was asked for yet"
        self._ask_again_at = 0.0

    def token(self) -> str:
        """For kafka-python: the one that `renew` has got; it waits for nobody.

        Raises:
            TokenError: there is none, or it has expired.
        """
        token = self._token
        if token is None or token.expires_at <= self._clock():
            raise TokenError(self._fault)
        return token.text

    def extensions(self) -> dict[str, str]:
        """For kafka-python: what is told to the brokers besides."""
        return self._extensions

    def renew(self) -> None:
        """Makes sure that there is a token: waits for the first, and has the next ones asked for in the background.

        Raises:
            TokenError: there is none.
        """
        token, now = self._token, self._clock()
        if token is None or token.expires_at <= now:
            with self._asks:
                if self._token is token and self._clock() >= self._ask_again_at:
                    self._ask()
            self.token()
        elif now >= max(token.due_at, self._ask_again_at) and self._asks.acquire(blocking=False):
            threading.Thread(target=self._ask_and_release, name="access-token", daemon=True).start()

    def _ask_and_release(self) -> None:
        try:
            self._ask()
        finally:
            self._asks.release()

    def _ask(self) -> None:
        try:
            self._token = self._answer()
            self._fault = f"the access token of {self._url} has expired"
        except TokenError as error:
            self._fault = str(error)
            self._ask_again_at = self._clock() + _ASK_AGAIN_S

    def _answer(self) -> _Token:
        try:
            with self._opener.open(self._request, timeout=self._limit_s) as answer:
                return self._token_in(answer.read(_LARGEST_ANSWER))
        except HTTPError as error:
            said = _one_line(error.read(_LARGEST_ANSWER))
            remedy = f"correct {_ID}, {_SECRET} or {_SCOPE}" if error.code < 500 else f"is {_URL} right?"
            raise self._none(f"answers {error.code} ({said or error.reason})", remedy) from error
        except (OSError, HTTPException) as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, ssl.SSLError):
                remedy = f"{_CA} must name the certificate of who signed its own, and {_URL} a name that it is for"
                raise self._none(f"cannot be trusted ({in_one_line(cause)})", remedy) from error
            raise self._none(f"does not answer ({in_one_line(cause)})", f"{_URL} must be its token endpoint") from error

    def _token_in(self, body: bytes) -> _Token:
        """
        Raises:
            TokenError: there is none in it.
        """
        try:
            text = json.loads(body)["access_token"]
            payload = text.split(".")[1]
            expires = float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            remedy = f"{_URL} must be a token endpoint whose access_token is a JWT with the claim exp"
            raise self._none(f"answers something else ({_one_line(body)})", remedy) from error
        life_s, now = expires - time.time(), self._clock()
        if not life_s > 0:
            raise self._none("gives a token that has expired already", "set the clocks of this machine and of it")
        return _Token(text, now + _RENEWED_AFTER * life_s, now + life_s)

    def _none(self, what: str, remedy: str) -> TokenError:
        return TokenError(f"there is no access token: the identity provider at {self._url} {what}; {remedy}")


def fault_of(client_config: Mapping[str, str]) -> str | None:
    """Why the identity provider gives no token; None where it does, or none is needed or can be asked for."""
    if client_config.get("sasl.mechanism", client_config.get("sasl.mechanisms", "")).upper() != MECHANISM:
        return None
    try:
        OidcTokens(client_config).renew()
    except TokenSettingsError:
        return None
    except TokenError as error:
        return str(error)
    return None


def _trusting(client_config: Mapping[str, str]) -> ssl.SSLContext:
    where, text = client_config.get(_CA), client_config.get(_CA_TEXT)
    if where is None or where == "probe":
        return ssl.create_default_context(cadata=text)
    folder = Path(where).is_dir()
    try:
        return ssl.create_default_context(cafile=None if folder else where, capath=where if folder else None)
    except OSError as error:
        raise TokenSettingsError(f"{_CA} is {where}, which cannot be read: {in_one_line(error)}") from error


def _one_line(body: Any) -> str:
    """The beginning of what a provider said, without secrets."""
    return masked(" ".join(body.decode(errors="replace").split())[:_SHOWN])
