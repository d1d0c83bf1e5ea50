import ssl

import pytest

from monitor.connection import ConnectionSettingsError, kafka_python_arguments


def test_servers_are_split_at_commas() -> None:
    assert kafka_python_arguments("a:9092, b:9092,", {}) == {"bootstrap_servers": ["a:9092", "b:9092"]}


def test_librdkafkas_properties_are_translated() -> None:
    arguments = kafka_python_arguments(
        "a:9092",
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "kcga",
            "sasl.password": "secret",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "client.pem",
            "ssl.key.location": "client.key",
            "ssl.endpoint.identification.algorithm": "none",
        },
    )
    assert arguments == {
        "bootstrap_servers": ["a:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "kcga",
        "sasl_plain_password": "secret",
        "ssl_cafile": "ca.pem",
        "ssl_certfile": "client.pem",
        "ssl_keyfile": "client.key",
        "ssl_check_hostname": False,
    }


def test_properties_that_say_nothing_of_the_connection_are_left_aside() -> None:
    assert kafka_python_arguments("a:9092", {"socket.timeout.ms": "10000"}) == {"bootstrap_servers": ["a:9092"]}


def test_a_verification_that_is_switched_off_is_off_for_both_clients() -> None:
    context = kafka_python_arguments(
        "a:9092", {"security.protocol": "ssl", "enable.ssl.certificate.verification": "False"}
    )["ssl_context"]
    assert context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("servers", "config", "message"),
    [
        (" , ", {}, "bootstrap_servers is empty"),
        ("a:9092", {"ssl.keystore.location": "x"}, "cannot follow the property ssl.keystore.location"),
        ("a:9092", {"security.protocol": "tls"}, "security.protocol is TLS: it must be one of PLAINTEXT, SSL"),
        ("a:9092", {"sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.method must be oidc"),
        ("a:9092", {"security.protocol": "sasl_ssl"}, "sasl.mechanism is GSSAPI: it must be one of PLAIN"),
    ],
)
def test_what_the_monitor_cannot_follow_is_one_clear_error(servers: str, config: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectionSettingsError, match=message):
        kafka_python_arguments(servers, config)
