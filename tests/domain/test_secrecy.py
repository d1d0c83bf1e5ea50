"""What is secret by its name or its form, and what is not."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.secrecy import is_secret, masked, names_of_secrets, redacted


def fits(schema: dict[str, Any], text: str) -> bool:
    """Whether a text fits a JSON schema of expressions."""
    return re.search(schema["pattern"], text) is not None and not ("not" in schema and fits(schema["not"], text))


@pytest.mark.parametrize(
    "name",
    [
        "token",
        "tokens",
        "password",
        "sasl.password",
        "basic.auth.user.info",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.jaas.config",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net",
        "KCGA_HTTP__TOKEN",
        "SASL_PASSWORD",
    ],
)
def test_a_secret_is_told_by_its_name(name: str) -> None:
    """Hole 18: only one path was."""
    assert is_secret(name)
    assert fits(names_of_secrets(), name)
    assert redacted({name: "geheim"}) == {name: "***"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sasl.username",
        "sasl.mechanism",
        "ssl.ca.location",
        "ssl.key.location",
        "ssl.keystore.location",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.assertion.private.key.file",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "partition",
        "key",
    ],
)
def test_what_says_where_a_secret_is_is_none(name: str) -> None:
    assert not is_secret(name)
    assert not fits(names_of_secrets(), name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sc://spark:15002/;token=geheim;user_id=me", "sc://spark:15002/;token=***;user_id=me"),
        ("https://host/path?sas_token=geheim&x=1", "https://host/path?sas_token=***&x=1"),
        ("s3a://key:geheim@bucket/lake", "s3a://key:***@bucket/lake"),
        ("abfss://container@account.dfs.core.windows.net/lake", "abfss://container@account.dfs.core.windows.net/lake"),
        ('{"sasl.password": "geheim", "a": 1}', '{"sasl.password": ***, "a": 1}'),
        ('{"sasl.password": geheim}', '{"sasl.password": ***}'),
        ("{'sasl.password': 'ge, heim'}", "{'sasl.password': ***}"),
        (
            'PlainLoginModule required username="me" password="ge heim";',
            'PlainLoginModule required username="me" password=***;',
        ),
        ('token = "geheim"', "token = ***"),
        ("authorization: Bearer abcdefghijkl", "authorization: Bearer ***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII-geheim\n-----END RSA PRIVATE KEY-----, x", "***, x"),
        ("http.token: a token must have 16 characters", "http.token: a token must have 16 characters"),
        (
            "correct sasl.username, sasl.password or sasl.mechanism",
            "correct sasl.username, sasl.password or sasl.mechanism",
        ),
        ("kafka-1:9092,kafka-2:9092", "kafka-1:9092,kafka-2:9092"),
    ],
)
def test_a_secret_is_told_by_what_is_around_it(text: str, shown: str) -> None:
    """Hole 18: it was shown whole."""
    assert masked(text) == shown
    assert redacted([{"why": text}]) == [{"why": shown}]


@given(st.text())
def test_what_is_masked_stays_as_it_is(text: str) -> None:
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize(
    "part",
    [
        "token",
        "token=",
        'token="',
        "token.a-",
        "://",
        "://a:",
        "://a:b",
        "bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "-----",
        " ",
        "a",
    ],
)
def test_text_of_any_kind_is_searched_in_no_time(part: str) -> None:
    began = time.process_time()
    masked(part * (300_000 // len(part)))
    assert time.process_time() - began < 5
