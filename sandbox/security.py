"""A secure broker of our own: SASL_SSL with SCRAM, or tokens, and nobody may do anything that no right allows.

Certificates are not made here: they are what one hands over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.errors import UsageError

MECHANISM = "SCRAM-SHA-512"
ADMINISTRATOR = "admin"
_URLS_THAT_ARE_ASKED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """An identity provider whose access tokens a broker takes (SASL OAUTHBEARER)."""

    issuer: str
    """As its tokens name it."""
    audience: str
    """Whom its tokens for the brokers are for."""
    keys: str
    """Where its public keys are: the URL of its JWKS."""
    ca: Path
    """PEM: the certificate of who signed the provider's own."""

    @property
    def jvm(self) -> tuple[str, ...]:
        """Options of the broker's Java."""
        return (f"-D{_URLS_THAT_ARE_ASKED}={self.keys}",)

    def broker_settings(self) -> dict[str, str]:
        package, mechanism = "org.apache.kafka.common.security.oauthbearer", "listener.name.sasl_ssl.oauthbearer"
        # The claim is for a token of the broker's own, which it makes and never shows anybody.
        trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{self.ca.absolute()}"'
        login = f'{package}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="unused" {trust};'
        return {
            f"{mechanism}.sasl.jaas.config": login,
            f"{mechanism}.sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
            f"{mechanism}.connections.max.reauth.ms": "3600000",  # it ends connections whose token has expired
            "sasl.oauthbearer.jwks.endpoint.url": self.keys,
            "sasl.oauthbearer.expected.issuer": self.issuer,
            "sasl.oauthbearer.expected.audience": self.audience,
        }


@dataclass(frozen=True, slots=True)
class BrokerSecurity:
    """What a secure broker needs to begin.

    Raises:
        UsageError: the password has other characters than letters, digits, `.`, `_` and `-`.
    """

    key_store: Path
    """PEM: the broker's private key and its certificate."""
    ca: Path
    """PEM: the certificate of who signed it."""
    administrator_password: str
    """Of the user `admin`, who may do everything; other users and their rights are the administrator's to make."""
    tokens: TokenIssuer | None = None
    """Whose access tokens are taken besides, if anybody's."""

    def __post_init__(self) -> None:
        if not _PLAIN.fullmatch(self.administrator_password):
            raise UsageError("the administrator's password must be of letters, digits, '.', '_' and '-'")

    @property
    def scram(self) -> str:
        """The administrator, as the storage is formatted with."""
        return f"{MECHANISM}=[name={ADMINISTRATOR},password={self.administrator_password}]"

    @property
    def jvm(self) -> tuple[str, ...]:
        """Options of the broker's Java."""
        return () if self.tokens is None else self.tokens.jvm

    def broker_settings(self) -> dict[str, str]:
        """What goes into the broker's settings; the controller's listener is this process's own, and plain."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="{ADMINISTRATOR}" password="{self.administrator_password}";'
        return {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": MECHANISM if self.tokens is None else f"{MECHANISM},OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": login,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_store.absolute()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca.absolute()),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMINISTRATOR};User:ANONYMOUS",
            **({} if self.tokens is None else self.tokens.broker_settings()),
        }

    def client_settings(self, user: str, password: str) -> Mapping[str, str]:
        """What a client of that user is configured with, by librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self.ca.absolute()),
        }

    @property
    def administrator(self) -> Mapping[str, str]:
        return self.client_settings(ADMINISTRATOR, self.administrator_password)
