"""How kafka-python is told what librdkafka's properties say: kcga's settings name each property once, in its names.

kafka-python is there for DescribeLogDirs, and for records as brokers keep them, neither of which librdkafka has.
"""

import ssl
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from brokers.errors import in_one_line
from brokers.oidc import PROPERTIES, OidcTokens
from brokers.tokens import CALLBACK, MECHANISM, TokenSettingsError


class ConnectionSettingsError(ValueError):
    """A property of the Kafka client that the monitor cannot follow: says which, and what it can."""


def _upper_case(value: str) -> str:
    return value.upper()


def _verbatim(value: str) -> str:
    return value


_ARGUMENTS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "client.id": ("client_id", _verbatim),
    "security.protocol": ("security_protocol", _upper_case),
    "sasl.mechanism": ("sasl_mechanism", _upper_case),
    "sasl.mechanisms": ("sasl_mechanism", _upper_case),
    "sasl.username": ("sasl_plain_username", _verbatim),
    "sasl.password": ("sasl_plain_password", _verbatim),
    "ssl.ca.location": ("ssl_cafile", _verbatim),
    "ssl.certificate.location": ("ssl_certfile", _verbatim),
    "ssl.key.location": ("ssl_keyfile", _verbatim),
    "ssl.key.password": ("ssl_password", _verbatim),
    "ssl.crl.location": ("ssl_crlfile", _verbatim),
}
_CA, _CERTIFICATE, _KEY = _TEXTS = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem")
"""PEM in place of files."""
_HOSTNAME_CHECK = "ssl.endpoint.identification.algorithm"
_VERIFICATION = "enable.ssl.certificate.verification"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", MECHANISM)


def kafka_python_arguments(bootstrap_servers: str, client_config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a kafka-python client that connects as librdkafka does with `client_config`.

    Properties that do not say how to connect and who one is are left aside.

    Args:
        bootstrap_servers: `host:port`, separated by commas.
        client_config: librdkafka's properties, such as `security.protocol`, and whom to ask for access tokens.

    Raises:
        ConnectionSettingsError: there is no server, or a property of security that kafka-python has no counterpart for.
    """
    servers = [server.strip() for server in bootstrap_servers.split(",") if server.strip()]
    if not servers:
        raise ConnectionSettingsError("bootstrap_servers is empty: it must name a broker, such as kafka-1:9092")
    arguments: dict[str, Any] = {"bootstrap_servers": servers}
    for name, value in client_config.items():
        if name in _ARGUMENTS:
            argument, translate = _ARGUMENTS[name]
            arguments[argument] = translate(value)
        elif name == _HOSTNAME_CHECK:
            arguments["ssl_check_hostname"] = value.lower() != "none"
        elif name not in (*PROPERTIES, *_TEXTS) and name.startswith(("ssl.", "sasl.", "security.")):
            raise ConnectionSettingsError(
                f"the monitor cannot follow the property {name}: of security it knows "
                f"{', '.join(sorted([*_ARGUMENTS, *PROPERTIES, *_TEXTS, _HOSTNAME_CHECK, _VERIFICATION]))}"
            )
    _require(arguments, "security_protocol", "security.protocol", _PROTOCOLS)
    if arguments.get("security_protocol", "").startswith("SASL"):
        arguments.setdefault("sasl_mechanism", "GSSAPI")  # librdkafka's default
    _require(arguments, "sasl_mechanism", "sasl.mechanism", _MECHANISMS)
    if arguments.get("sasl_mechanism") == MECHANISM:
        try:
            arguments["sasl_oauth_token_provider"] = client_config.get(CALLBACK) or OidcTokens(client_config)
        except TokenSettingsError as error:
            raise ConnectionSettingsError(str(error)) from error
    verifies = client_config.get(_VERIFICATION, "true").lower() != "false"
    if not verifies or any(name in client_config for name in _TEXTS):
        try:
            arguments["ssl_context"] = _context(arguments, client_config, verifies=verifies)
        except OSError as error:
            raise ConnectionSettingsError(
                f"{', '.join(_TEXTS)}, or the files that are named in their place, must hold PEM: {in_one_line(error)}"
            ) from error
    return arguments


def _require(arguments: Mapping[str, Any], argument: str, name: str, known: tuple[str, ...]) -> None:
    if argument in arguments and arguments[argument] not in known:
        raise ConnectionSettingsError(f"{name} is {arguments[argument]}: it must be one of {', '.join(known)}")


def _context(arguments: Mapping[str, Any], client_config: Mapping[str, str], *, verifies: bool) -> ssl.SSLContext:
    """What librdkafka does by these properties; where the verification of certificates is switched off, it encrypts,
    and trusts anyone.

    Raises:
        OSError: what is to be PEM is none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verifies and arguments.get("ssl_check_hostname", True)
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    elif _CA in client_config or "ssl_cafile" in arguments:
        context.load_verify_locations(arguments.get("ssl_cafile"), cadata=client_config.get(_CA))
    else:
        context.load_default_certs()
    if verifies and "ssl_crlfile" in arguments:
        context.load_verify_locations(arguments["ssl_crlfile"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    password = arguments.get("ssl_password", "")  # without any, one would be asked for on the terminal
    if _CERTIFICATE in client_config:
        with tempfile.NamedTemporaryFile("w") as both:  # which nobody else may read; Python takes no text
            both.write(f"{client_config.get(_KEY, '')}\n{client_config[_CERTIFICATE]}\n")
            both.flush()
            context.load_cert_chain(both.name, password=password)
    elif "ssl_certfile" in arguments:
        context.load_cert_chain(arguments["ssl_certfile"], arguments.get("ssl_keyfile"), password)
    return context
