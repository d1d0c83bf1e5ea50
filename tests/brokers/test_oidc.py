"""Access tokens of an identity provider, by a provider on this machine; with a broker: tests/cli/test_access_tokens."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.oidc import OidcTokens, fault_of
from brokers.tokens import TokenError, TokenSettingsError
from tests.certificates import Authority
from tests.identity_provider import IdentityProvider
from tests.patience import PATIENCE_S, wait_until


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    folder = tmp_path_factory.mktemp("identity")
    provider = IdentityProvider(folder / "provider", Authority(folder / "ca"), lifetime_s=3600)
    yield provider
    provider.close()


@pytest.fixture
def provider(serving: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> IdentityProvider:
    monkeypatch.setattr("brokers.oidc.REQUEST_LIMIT_S", PATIENCE_S)
    serving.lifetime_s, serving.answer = 3600, None
    serving.given.clear()
    return serving


def test_a_token_is_kept_as_long_as_it_is_good(provider: IdentityProvider) -> None:
    tokens = OidcTokens({**provider.client("kcga-monitor"), "sasl.oauthbearer.extensions": "pool=a, cluster=b"})
    tokens.renew()
    first = tokens.token()
    tokens.renew()
    assert (tokens.token(), provider.given) == (first, ["kcga-monitor"])
    assert tokens.extensions() == {"pool": "a", "cluster": "b"}


def test_a_token_is_renewed_before_it_expires_and_asked_for_again_after_the_provider_was_away(
    provider: IdentityProvider,
) -> None:
    ahead_s = 0.0
    tokens = OidcTokens(provider.client("kcga-monitor"), clock=lambda: time.monotonic() + ahead_s)
    tokens.renew()
    first, deadline = tokens.token(), time.monotonic() + PATIENCE_S
    provider.answer, ahead_s = (503, b"busy"), 0.9 * 3600
    tokens.renew()
    assert tokens.token() == first, "it is good though no other has come"
    provider.answer = None
    while tokens.token() == first:
        ahead_s += 1
        tokens.renew()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(provider.given) == 2
    ahead_s += 3601
    with pytest.raises(TokenError, match="has expired"):
        tokens.token()
    tokens.renew()
    assert len({first, tokens.token()}) == 2


def test_a_token_that_was_renewed_meanwhile_is_not_asked_for_again(provider: IdentityProvider) -> None:
    ahead_s = 0.0
    tokens = OidcTokens(provider.client("kcga-monitor"), clock=lambda: time.monotonic() + ahead_s)

    class Overtaken:
        """A lock that is had once another thread has renewed the token."""

        def __init__(self) -> None:
            self.is_held = False

        def acquire(self, blocking: bool) -> bool:
            assert not blocking
            tokens._ask()
            self.is_held = True
            return True

        def release(self) -> None:
            self.is_held = False

    tokens.renew()
    ahead_s = 0.9 * 3600
    lock = Overtaken()
    tokens._asks = lock  # type: ignore[assignment]
    tokens.renew()
    wait_until(lambda: not lock.is_held)
    assert len(provider.given) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, b'{"error": "invalid_client"}'), r"answers 401 \(.*invalid_client.*correct sasl.oauthbearer.client.id"),
        ((503, b""), r"answers 503 \(Service Unavailable\); is sasl.oauthbearer.token.endpoint.url right"),
        (
            (200, b"<html>\nhello</html>"),
            r"something else \(<html> hello</html>\); .* must be a token endpoint",
        ),
        ((200, b'{"access_token": "opaque-secret"}'), r"something else \(\{\"access_token\": \*\*\*\}\); .*JWT"),
        ((200, b'{"access_token": "a.e30.c"}'), "claim exp"),
        ((200, b"[" * 10_000), "something else"),
    ],
)
def test_what_a_provider_answers_in_place_of_a_token_is_one_line_with_what_would_be_right(
    provider: IdentityProvider, answer: tuple[int, bytes], said: str
) -> None:
    provider.answer = answer
    tokens = OidcTokens(provider.client("kcga-monitor"))
    with pytest.raises(TokenError, match=said) as raised:
        tokens.renew()
    assert provider.url in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(TokenError, match=said):
        tokens.token()


def test_a_token_that_has_expired_already_is_told(provider: IdentityProvider) -> None:
    provider.lifetime_s = -60
    assert "set the clocks" in (fault_of(provider.client("kcga-monitor")) or "")


def test_a_wrong_secret_a_provider_that_is_away_and_one_that_cannot_be_trusted_are_told_apart(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    assert "no such client" in (fault_of(provider.client("kcga-monitor", "wrong")) or "")
    other = Authority(tmp_path / "other").certificate
    said = fault_of({**provider.client("kcga-monitor"), "https.ca.location": str(other)})
    assert "https.ca.location must name the certificate" in (said or "")
    with provider.away():
        assert "does not answer" in (fault_of(provider.client("kcga-monitor")) or "")
    assert fault_of(provider.client("kcga-monitor")) is None


def test_the_authority_may_be_a_folder_or_text(provider: IdentityProvider) -> None:
    client = provider.client("kcga-monitor")
    assert fault_of({**client, "https.ca.location": str(provider.ca.parent)}) is not None, "no folder of hashes"
    del client["https.ca.location"]
    assert fault_of({**client, "https.ca.pem": provider.ca.read_text()}) is None


COMPLETE = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://identity/token",
    "sasl.oauthbearer.client.id": "kcga",
    "sasl.oauthbearer.client.secret": "secret",
}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method must be oidc"),
        ({"sasl.oauthbearer.client.secret": ""}, "sasl.oauthbearer.client.secret must be set"),
        ({"sasl.oauthbearer.token.endpoint.url": "identity/token"}, "must begin with https://"),
        ({"sasl.oauthbearer.grant.type": "jwt-bearer"}, "must be client_credentials"),
        ({"https.ca.location": "/no/such/file"}, "https.ca.location is /no/such/file, which cannot be read"),
    ],
)
def test_a_property_that_is_missing_or_cannot_be_followed_is_named(more: dict[str, str], said: str) -> None:
    with pytest.raises(TokenSettingsError, match=said):
        OidcTokens({**COMPLETE, **more})


def test_nothing_is_asked_of_who_needs_no_token() -> None:
    assert fault_of({"sasl.mechanism": "PLAIN"}) is None
    assert fault_of({"sasl.mechanism": "OAUTHBEARER"}) is None
