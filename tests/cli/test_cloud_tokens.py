"""kcga with Amazon MSK's access tokens and Google's: whole groups on a broker that checks both as their clouds do.

That the brokers of the clouds take them was not seen: `CloudTokens` is written by what is known of them.
"""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.jars import KAFKA, obtain
from app.java import OLDEST, Java
from sandbox.security import TokenIssuer
from tests.conftest import installed
from tests.google_endpoint import TokenEndpoint
from tests.secure_cluster import Cluster, secure_cluster, settings_file
from tests.services import SharedSpark
from tests.tokened_group import GROUP, ends_in_one_line, hold
from tests.tools import JAVAC

pytestmark = [pytest.mark.integration, pytest.mark.slow(60), pytest.mark.usefixtures("nothing_left_running")]

SOURCE = Path(__file__).parent / "CloudTokens.java"
LIFETIME_S = 30
LIVES = 2
USER = "admin"
"""Who may do everything: an access key's id, and a service account, of that name."""
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105 (of the tests)
NO_SPARK = "sc://127.0.0.1:1"


@dataclass(frozen=True, slots=True)
class CloudIssuer(TokenIssuer):
    given: Path
    """Google's access tokens, line by line."""

    @property
    def jvm(self) -> tuple[str, ...]:
        return (f"-Dkcga.aws.secret={SECRET}", f"-Dkcga.google.given={self.given}")

    def broker_settings(self) -> dict[str, str]:
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        settings = {
            "sasl.jaas.config": f'{module} required unsecuredLoginStringClaim_sub="unused";',
            "sasl.server.callback.handler.class": SOURCE.stem,
            "connections.max.reauth.ms": "3600000",
        }
        return {f"listener.name.sasl_ssl.oauthbearer.{name}": value for name, value in settings.items()}


class Clouds:
    """Amazon's and Google's, as far as a broker knows of them.

    Args:
        folder: takes the class by which it checks tokens, and those that Google has given.
    """

    def __init__(self, folder: Path) -> None:
        self.given: list[str] = []
        self.classes: Sequence[Path] = (folder,)
        self.file = folder / "given"
        self.file.touch()
        path = ":".join(map(str, obtain(KAFKA)))
        compiling: list[str | Path] = [installed(JAVAC), "--release", str(OLDEST), "-cp", path, "-d", folder, SOURCE]
        subprocess.run(compiling, check=True)

    @property
    def issuer(self) -> TokenIssuer:
        return CloudIssuer("", "", "", Path(), given=self.file)

    def client(self, _user: str) -> dict[str, str]:
        """Who that is, the environment says."""
        return {"sasl.mechanism": "OAUTHBEARER"}

    def gave(self, token: str) -> None:
        with self.file.open("a") as file:
            file.write(f"{token}\n")
        self.given.append(USER)


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("clouds")
    (folder / "classes").mkdir()
    with secure_cluster(folder, java, Clouds(folder / "classes")) as cluster:
        yield cluster


@pytest.fixture
def google(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TokenEndpoint]:
    assert isinstance(cluster.provider, Clouds)
    endpoint, key = TokenEndpoint(USER, LIFETIME_S, gave=cluster.provider.gave), tmp_path / "key.json"
    with endpoint.serving():
        key.write_text(endpoint.key_file())
        monkeypatch.setenv("KCGA_KAFKA__AUTH", "google")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
        yield endpoint


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "KCGA_KAFKA__AUTH": "msk-iam",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": USER,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("google")
def test_a_group_by_googles_tokens_goes_on_without_a_gap_while_they_expire_and_are_renewed(
    cluster: Cluster, spark_server: SharedSpark, tmp_path: Path
) -> None:
    goes_on(cluster, spark_server, tmp_path, LIVES * LIFETIME_S, at_least=3 * LIVES)  # of three components and more


@pytest.mark.usefixtures("amazon")
def test_a_group_by_what_credentials_of_aws_sign_works_as_any(
    cluster: Cluster, spark_server: SharedSpark, tmp_path: Path
) -> None:
    assert goes_on(cluster, spark_server, tmp_path, 5) == 0, "no token of Google"


def goes_on(cluster: Cluster, spark_server: SharedSpark, folder: Path, for_s: float, at_least: int = 0) -> int:
    """How many tokens Google gave meanwhile: it lasts until there are so many."""
    held = hold(cluster, spark_server.remote, folder, for_s, lambda tokens: tokens[USER] >= at_least)
    assert held.unknown == 0
    assert (held.in_the_lake, held.doubled) == (held.produced, 0)
    assert held.warnings == []
    assert "Kafka answers" in held.commands[0].stdout, held.commands[0]
    assert held.commands[1].returncode == 0, held.commands[1].stderr
    return held.tokens[USER]


def all_end_in_one_line(cluster: Cluster, folder: Path, said: str) -> None:
    client = cluster.client_by_token(USER)
    del client["bootstrap.servers"]
    file = settings_file(folder, "operator", cluster, client, GROUP, NO_SPARK)
    for command in ("status", "pause", "monitor", "controller"):
        ends_in_one_line(command, file=file, said=said)


@pytest.mark.usefixtures("amazon")
@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "another"}, "the brokers refuse the access token"),
        ({"AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY_ID": ""}, "no credentials of AWS are found"),
    ],
)
def test_credentials_that_the_brokers_refuse_or_that_there_are_none_of_are_one_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, instead: dict[str, str], said: str
) -> None:
    for name, value in instead.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    all_end_in_one_line(cluster, tmp_path, said)


def test_an_account_that_google_refuses_is_one_line(cluster: Cluster, google: TokenEndpoint, tmp_path: Path) -> None:
    google.refuses = 400, b'{"error": "invalid_grant", "error_description": "Account is disabled"}'
    all_end_in_one_line(cluster, tmp_path, "Account is disabled")
