"""Access tokens by Google's application default credentials: a service account's key, and a token endpoint here."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.google_tokens import PRINCIPAL, GoogleTokens
from brokers.tokens import TokenError
from sandbox.ports import LOOPBACK
from tests.google_endpoint import TokenEndpoint, decoded
from tests.patience import PATIENCE_S

ACCOUNT = "kcga@project.iam.gserviceaccount.com"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TokenEndpoint]:
    made, file = TokenEndpoint(ACCOUNT), tmp_path / "key.json"
    monkeypatch.setattr("brokers.google_tokens.REQUEST_LIMIT_S", PATIENCE_S)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with made.serving():
        file.write_text(made.key_file())
        yield made


def parts_of(token: str) -> tuple[Any, Any, str]:
    assert "=" not in token
    header, claims, access = map(decoded, token.split("."))
    return json.loads(header), json.loads(claims), access.decode()


def test_a_token_names_the_service_account_and_holds_its_access_token(endpoint: TokenEndpoint) -> None:
    tokens = GoogleTokens()
    tokens.renew()
    header, claims, access = parts_of(tokens.token())
    assert header == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert (claims["iss"], claims["sub"], access) == ("Google", ACCOUNT, endpoint.given[0])
    assert claims["iat"] <= time.time() < claims["exp"] <= time.time() + 3600
    text, expires_at, principal, extensions = tokens("")
    assert (text, expires_at, principal, extensions) == (tokens.token(), claims["exp"], ACCOUNT, {})
    assert len(endpoint.given) == 1


def test_it_is_renewed_before_it_ends_and_what_is_refused_meanwhile_changes_nothing(endpoint: TokenEndpoint) -> None:
    ahead_s = 0.0
    tokens = GoogleTokens(clock=lambda: time.monotonic() + ahead_s)
    first = tokens("")[0]
    ahead_s = 0.9 * 3600
    endpoint.refuses = 400, b'{"error": "invalid_grant", "error_description": "Account is disabled"}'
    assert tokens("")[0] == first, "it is good though no other is given"
    ahead_s += 10
    endpoint.refuses = None
    assert parts_of(tokens("")[0])[2] == endpoint.given[1]


def test_an_account_that_is_refused_and_an_endpoint_that_is_away_are_one_line(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endpoint.refuses = 400, b'{"error": "invalid_grant", "error_description": "Account is disabled"}'
    with pytest.raises(TokenError, match=r"Google gives none \(.*Account is disabled.*\); correct") as raised:
        GoogleTokens().renew()
    assert "\n" not in str(raised.value)
    away = tmp_path / "away.json"
    away.write_text(endpoint.key_file(token_uri=f"http://{LOOPBACK}:1/token"))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(away))
    with pytest.raises(TokenError, match=r"Google gives none \(.*refused"):
        GoogleTokens().renew()


@pytest.mark.parametrize("text", [None, "", "{}", '{"type": "service_account"}'])
def test_a_key_that_is_missing_or_none_is_one_line(
    text: str | None, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(TokenError, match=r"no credentials of Google are found .*GOOGLE_APPLICATION_CREDENTIALS"):
        GoogleTokens().renew()
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    with pytest.raises(TokenError, match="no credentials of Google are found"):
        GoogleTokens().renew()
    assert not endpoint.given


def test_credentials_that_do_not_say_whose_they_are_take_the_variable_of_googles_own_server(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As those of a person's login."""
    person = {"type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "token"}
    file = tmp_path / "person.json"
    file.write_text(json.dumps({**person, "token_uri": endpoint.url}))
    endpoint.refuses = 200, b'{"access_token": "ya29.person", "expires_in": 3600}'
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", endpoint.url)
    with pytest.raises(TokenError, match=f"do not say whose they are; set {PRINCIPAL}"):
        GoogleTokens().renew()
    monkeypatch.setenv(PRINCIPAL, "person@example.com")
    tokens = GoogleTokens()
    tokens.renew()
    _, claims, access = parts_of(tokens.token())
    assert (claims["sub"], access) == ("person@example.com", "ya29.person")
