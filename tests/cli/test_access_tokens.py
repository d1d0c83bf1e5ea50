"""kcga with access tokens in place of passwords: a real broker that checks them by a provider's keys, and refuses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.java import Java
from app.settings import load
from cli.rights import Component
from tests.identity_provider import AUDIENCE, IdentityProvider
from tests.secure_cluster import PREFIX, Cluster, running, settings_file, wait_for
from tests.services import SharedSpark
from tests.tokened_group import GROUP, ends_in_one_line, hold, tokened_cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow(90), pytest.mark.usefixtures("nothing_left_running")]

LIFETIME_S = 30
LIVES = 3
NO_SPARK = "sc://127.0.0.1:1"


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with tokened_cluster(tmp_path_factory.mktemp("tokens"), java, LIFETIME_S) as cluster:
        yield cluster


def test_a_group_by_tokens_goes_on_without_a_gap_while_they_expire_and_are_renewed(
    cluster: Cluster, spark_server: SharedSpark, tmp_path: Path
) -> None:
    users = [f"{PREFIX}{component}" for component in (Component.MONITOR, Component.CONTROLLER, Component.CONSUMER)]
    for_s, renewed = LIVES * LIFETIME_S, lambda tokens: min(tokens[user] for user in users) >= LIVES
    held = hold(cluster, spark_server.remote, tmp_path, for_s, renewed)
    assert held.unknown == 0
    assert (held.in_the_lake, held.doubled) == (held.produced, 0)
    assert held.warnings == []
    for done in held.commands:
        assert "Traceback" not in done.stderr
        assert "identity provider" not in done.stdout + done.stderr, (done.stdout, done.stderr)
    assert "Kafka answers" in held.commands[0].stdout
    assert held.commands[1].returncode == 0, held.commands[1].stderr


def of_operator(cluster: Cluster, folder: Path, **more: str) -> Path:
    return settings_file(folder, "operator", cluster, client_of(cluster, "kcga-operator") | more, GROUP, NO_SPARK)


def client_of(cluster: Cluster, user: str) -> dict[str, str]:
    client = cluster.client_by_token(user)
    del client["bootstrap.servers"]
    return client


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("status", {"sasl.oauthbearer.client.secret": "wrong"}, "no such client"),
        ("pause", {"https.ca.location": "THE BROKERS'"}, "https.ca.location"),
    ],
)
def test_who_is_given_no_token_is_told_in_one_line(
    cluster: Cluster, tmp_path: Path, command: str, more: Mapping[str, str], said: str
) -> None:
    brokers = {name: str(cluster.security.ca) if "BROKERS" in value else value for name, value in more.items()}
    ends_in_one_line(command, file=of_operator(cluster, tmp_path, **brokers), said=said)


def test_a_token_that_the_brokers_refuse_and_a_provider_that_is_away_are_one_line_and_waited_for(
    cluster: Cluster, tmp_path: Path
) -> None:
    provider, log = cluster.provider, tmp_path / "monitor.log"
    assert isinstance(provider, IdentityProvider)
    file = settings_file(tmp_path, "monitor", cluster, client_of(cluster, "admin"), GROUP, NO_SPARK)
    names = load(file).topics
    cluster.make(16, names.write_speed, names.metadata, names.decisions)

    def said_since(begin: int) -> str:
        return log.read_text()[begin:]

    with running("monitor", file, log):
        wait_for(lambda: "write speeds are known" in said_since(0), log)
        with refusing(provider):
            refused_once("the brokers refuse the access token", file)
            wait_for(lambda: "refuse the access token" in said_since(0), log)
            begin = len(said_since(0))
        wait_for(lambda: "the cluster is back" in said_since(begin), log)
        with provider.away():
            refused_once("the identity provider", file)
            wait_for(lambda: "does not answer" in said_since(begin), log)
            begin = len(said_since(0))
        wait_for(lambda: "the cluster is back" in said_since(begin), log)
    assert "Traceback" not in said_since(0)


def refused_once(said: str, file: Path) -> None:
    """What would begin now ends with that, in one line."""
    for command in ("status", "controller"):
        ends_in_one_line(command, file=file, said=said)


@contextmanager
def refusing(provider: IdentityProvider) -> Iterator[None]:
    """Its tokens are for somebody else than the brokers."""
    provider.audience = "somebody else"
    try:
        yield
    finally:
        provider.audience = AUDIENCE
