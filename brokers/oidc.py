"""Access tokens of an identity provider (OIDC) for kafka-python, by the properties by which librdkafka gets its own.

Where `sasl.oauthbearer.method` is `oidc`, librdkafka asks for tokens, renews and shows them by itself; it gives none
away.
"""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPSHandler, Request, build_opener

from brokers.clients import REQUEST_LIMIT_S
from brokers.errors import in_one_line
from brokers.tokens import CALLBACK, MECHANISM, Token, TokenError, Tokens, TokenSettingsError
from domain.secrecy import masked

_OF_TOKENS = "sasl.oauthbearer."
_METHOD, _GRANT, _URL = f"{_OF_TOKENS}method", f"{_OF_TOKENS}grant.type", f"{_OF_TOKENS}token.endpoint.url"
_ID, _SECRET = f"{_OF_TOKENS}client.id", f"{_OF_TOKENS}client.secret"
_SCOPE, _EXTENSIONS = f"{_OF_TOKENS}scope", f"{_OF_TOKENS}extensions"
_CA, _CA_TEXT = "https.ca.location", "https.ca.pem"
PROPERTIES = frozenset({_METHOD, _GRANT, _URL, _ID, _SECRET, _SCOPE, _EXTENSIONS, f"{_OF_TOKENS}sub.claim.name"})
"""Those of librdkafka's that begin with `sasl.` and are followed here."""
_REQUIRED = (_URL, _ID, _SECRET)
_LARGEST_ANSWER = 1_000_000
_SHOWN = 200
"""Of what a provider says, in characters."""


class OidcTokens(Tokens):
    """Tokens for client credentials.

    Args:
        client_config: librdkafka's properties; those that say nothing of tokens are left aside.
        clock: seconds; never goes back.

    Raises:
        TokenSettingsError: a property is missing, or cannot be followed.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
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
        extensions = {name.strip(): value.strip() for name, _, value in pairs}
        super().__init__(f"the access token of {self._url} has expired", extensions, clock)

    def _answer(self) -> Token:
        try:
            with self._opener.open(self._request, timeout=REQUEST_LIMIT_S) as answer:
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

    def _token_in(self, body: bytes) -> Token:
        """
        Raises:
            TokenError: there is none in it.
        """
        try:
            text = json.loads(body)["access_token"]
            payload = text.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return Token(text, str(claims.get("sub", "")), float(claims["exp"]))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            remedy = f"{_URL} must be a token endpoint whose access_token is a JWT with the claim exp"
            raise self._none(f"answers something else ({_one_line(body)})", remedy) from error

    def _none(self, what: str, remedy: str) -> TokenError:
        return TokenError(f"there is no access token: the identity provider at {self._url} {what}; {remedy}")


def fault_of(client_config: Mapping[str, Any]) -> str | None:
    """Why there is no access token; None where there is one, or none is needed or can be asked for."""
    if client_config.get("sasl.mechanism", client_config.get("sasl.mechanisms", "")).upper() != MECHANISM:
        return None
    try:
        (client_config.get(CALLBACK) or OidcTokens(client_config)).renew()
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
