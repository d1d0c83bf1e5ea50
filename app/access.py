"""How the Kafka clients of the settings connect, and who they are."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from app.errors import KcgaError, UsageError
from app.settings import KafkaSettings


def client_config(kafka: KafkaSettings) -> Mapping[str, Any]:
    """The properties of all clients, by librdkafka's names: `kafka.client`, and where access tokens come from.

    Raises:
        UsageError: what the tokens take is not installed, or their settings do not go together.
        KcgaError: there is no token.
    """
    if kafka.auth is None:
        return kafka.client
    from brokers.tokens import CALLBACK, MECHANISM, TokenError, TokenSettingsError

    by_default = {"security.protocol": "SASL_SSL", "sasl.mechanism": MECHANISM}
    try:
        tokens = _tokens(kafka.auth, kafka.bootstrap_servers)
        tokens.renew()
    except TokenSettingsError as error:
        raise UsageError(f"kafka.auth: {error}") from error
    except TokenError as error:
        raise KcgaError(str(error)) from error
    return {**by_default, **kafka.client, CALLBACK: tokens}


@cache
def _tokens(source: str, bootstrap_servers: str) -> Any:
    """One of a process: all its clients show the same."""
    if source == "msk-iam":
        from brokers.msk_iam import MskIamTokens

        return MskIamTokens(bootstrap_servers)
    from brokers.google_tokens import GoogleTokens

    return GoogleTokens()
