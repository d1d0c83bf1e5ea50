"""Amazon MSK's access tokens: checked by the arithmetic of AWS' signatures, and by STS' answers of a server here."""

import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import Credentials
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from brokers.msk_iam import MskIamTokens
from brokers.tokens import TokenError, Tokens, TokenSettingsError
from sandbox.ports import LOOPBACK
from tests.object_store.s3 import S3

BROKERS = "b-1.lake.abc123.c2.kafka.eu-central-1.amazonaws.com:9098,b-2.lake.abc123.c2.kafka.eu-central-1.amazonaws.com"
KEY, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEJr//////+example=="
ROLE = "arn:aws:iam::123456789012:role/kcga"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever this machine has of AWS does not count."""
    for name in ("PROFILE", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "SESSION_TOKEN": SESSION}.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def shown(tokens: Tokens) -> str:
    """The request that a token is."""
    tokens.renew()
    text = tokens.token()
    assert not set("+/=") & set(text)
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def signature(url: str, secret: str) -> str:
    """What AWS makes of it (Signature Version 4, of a request with its signature in the query)."""
    parts = urlsplit(url)
    query = {name: value for name, value in parse_qsl(parts.query) if name not in ("X-Amz-Signature", "User-Agent")}
    canonical = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    request = f"GET\n{parts.path}\n{canonical}\nhost:{parts.netloc}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    at, (_, scope) = query["X-Amz-Date"], query["X-Amz-Credential"].split("/", 1)
    signed = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, signed.encode(), "sha256").hex()


@pytest.mark.usefixtures("keys")
def test_a_token_is_a_request_to_connect_that_the_credentials_sign() -> None:
    url = shown(MskIamTokens(BROKERS))
    parts, query = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "kafka.eu-central-1.amazonaws.com", "/")
    at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs(at.timestamp() - time.time()) < 600
    assert query == {
        "Action": "kafka-cluster:Connect",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{KEY}/{at:%Y%m%d}/eu-central-1/kafka-cluster/aws4_request",
        "X-Amz-Date": query["X-Amz-Date"],
        "X-Amz-Expires": "900",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Security-Token": SESSION,
        "X-Amz-Signature": signature(url, SECRET),
        "User-Agent": "kcga",
    }
    assert query["X-Amz-Signature"] != signature(url, SECRET.lower())


@pytest.mark.usefixtures("keys")
def test_it_is_what_botocore_signs_for_a_client_of_that_service(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = datetime(2026, 11, 25, 12, 0, 0, tzinfo=UTC).replace(tzinfo=None)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: fixed)
    emitter = HierarchicalEmitter()  # which the signer does not keep
    signer = RequestSigner(
        ServiceId("kafka-cluster"),
        "eu-central-1",
        "kafka-cluster",
        "v4-query",
        Credentials(KEY, SECRET, SESSION),
        emitter,
    )
    where = "https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect"
    request = {"method": "GET", "url": where, "body": {}, "headers": {}, "context": {}}
    url = signer.generate_presigned_url(request, operation_name="Connect", expires_in=900, region_name="eu-central-1")
    assert parse_qs(urlsplit(shown(MskIamTokens(BROKERS))).query) == {
        **parse_qs(urlsplit(url).query),
        "User-Agent": ["kcga"],
    }


@pytest.mark.usefixtures("keys")
def test_librdkafka_is_given_another_before_what_signed_it_can_have_ended() -> None:
    ahead_s = 0.0
    tokens = MskIamTokens(BROKERS, clock=lambda: time.monotonic() + ahead_s)
    first, expires_at, principal, extensions = tokens("")
    assert (principal, extensions) == (KEY, {})
    assert 0 < expires_at - time.time() <= 600, "botocore's credentials are good for ten minutes at least"
    assert tokens("")[0] == first
    ahead_s = 481.0
    time.sleep(1.1)  # signatures tell seconds
    assert tokens("")[0] != first


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("boot-x.c1.kafka-serverless.us-west-2.amazonaws.com:9098", "us-west-2"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("kafka.example.com:9098", "ap-south-1"),
    ],
)
def test_the_region_is_that_of_the_cluster(servers: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert urlsplit(shown(MskIamTokens(servers))).netloc == f"kafka.{region}.amazonaws.com"


def test_a_region_that_nobody_tells_and_a_profile_that_is_not_there_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TokenSettingsError, match=r"region of the MSK cluster is not known: .* AWS_REGION"):
        MskIamTokens("kafka.example.com:9098")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(TokenSettingsError, match=r"AWS' configuration cannot be used: .*nobody"):
        MskIamTokens(BROKERS)


def test_without_credentials_one_line_says_where_they_may_be() -> None:
    tokens = MskIamTokens(BROKERS)
    with pytest.raises(TokenError, match="no credentials of AWS are found; set AWS_ACCESS_KEY_ID"):
        tokens.renew()
    with pytest.raises(TokenError, match="no credentials of AWS are found"):
        tokens("")


def test_a_profile_may_name_a_program_whose_credentials_end_and_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told, program = tmp_path / "told.json", tmp_path / "program.py"
    program.write_text(f"print(open({str(told)!r}).read())\n")
    (tmp_path / "config").write_text(f"[profile lake]\ncredential_process = {sys.executable} {program}\n")
    monkeypatch.setenv("AWS_PROFILE", "lake")

    def tell(key: str, good_for_s: float) -> None:
        until = datetime.fromtimestamp(time.time() + good_for_s, UTC).isoformat()
        told.write_text(json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": SECRET, "Expiration": until}))

    tell("FIRST", 60)
    ahead_s = 0.0
    tokens = MskIamTokens(BROKERS, clock=lambda: time.monotonic() + ahead_s)
    assert "FIRST%2F" in shown(tokens)
    tell("SECOND", 3600)
    ahead_s = 601.0
    assert "SECOND%2F" in shown(tokens)


@pytest.mark.integration
def test_a_pod_has_the_role_that_its_web_identity_may_assume(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on EKS (IRSA), by the STS of moto's server."""
    as_a_pod(monkeypatch, tmp_path)
    with S3(tmp_path / "moto") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{server.address}")
        query = dict(parse_qsl(urlsplit(shown(MskIamTokens(BROKERS))).query))
    assert query["X-Amz-Credential"].startswith("ASIA")
    assert query["X-Amz-Security-Token"]


def test_a_role_that_may_not_be_assumed_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_a_pod(monkeypatch, tmp_path)
    with refusing() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        with pytest.raises(TokenError, match=r"AWS gives no credentials \(.*AccessDenied.*\); correct") as raised:
            MskIamTokens(BROKERS).renew()
    assert "\n" not in str(raised.value)


def as_a_pod(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    token = folder / "token"
    token.write_text("header.claims.signature")
    for name, value in {"ROLE_ARN": ROLE, "WEB_IDENTITY_TOKEN_FILE": str(token), "REGION": "eu-central-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")  # EKS sets both


@contextmanager
def refusing() -> Iterator[str]:
    """An STS that lets nobody assume anything; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = (
                b"<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform "
                b"sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>"
            )
            self.send_response(403)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer((LOOPBACK, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_port}"
        finally:
            server.shutdown()
