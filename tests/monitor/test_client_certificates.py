"""Who one is, by a certificate alone: a real broker that asks for one, and both clients of the monitor."""

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.jars import KAFKA, obtain
from app.java import Java
from app.topics import Cluster
from domain.partitions import TopicPartition
from monitor.cluster_logs import BrokerAwayError, ClusterLogs, SizesDeniedError
from monitor.connection import ConnectionSettingsError, kafka_python_arguments
from sandbox.broker import Broker
from sandbox.security import ADMINISTRATOR, BrokerSecurity
from tests.certificates import Authority
from tests.patience import PATIENCE_S, wait_until

ORDERS = TopicPartition("orders", 0)
BY_TEXT = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}


class ByCertificates(BrokerSecurity):
    """A client is the user that its certificate names; nobody has a password."""

    def broker_settings(self) -> dict[str, str]:
        return {
            **super().broker_settings(),
            "listener.security.protocol.map": "SASL_SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        }

    def client_settings(self, user: str, password: str) -> Mapping[str, str]:
        del password
        store = str(self.ca.parent / f"{user}.store.pem")
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.ca),
            "ssl.certificate.location": store,
            "ssl.key.location": store,
        }


@pytest.fixture(scope="module")
def broker(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ByCertificates]]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder / "ca")
    authority.key_store(user="kcga-stranger")
    security = ByCertificates(authority.key_store(user=ADMINISTRATOR), authority.certificate, "none")
    with Broker(folder / "broker", jars=obtain(KAFKA), java=java, security=security) as broker:
        Cluster(broker.bootstrap_servers, security.administrator).create({ORDERS.topic: 1})
        yield broker.bootstrap_servers, security


def as_text(client: Mapping[str, str]) -> dict[str, str]:
    return {
        BY_TEXT.get(name, name): Path(value).read_text() if name in BY_TEXT else value for name, value in client.items()
    }


@pytest.mark.integration
@pytest.mark.slow(15)
@pytest.mark.parametrize("text", [False, True])
def test_a_certificate_says_who_one_is_as_files_and_as_text(broker: tuple[str, ByCertificates], text: bool) -> None:
    servers, security = broker
    for user in (ADMINISTRATOR, "kcga-stranger"):
        client = dict(security.client_settings(user, ""))
        with closing(ClusterLogs(servers, as_text(client) if text else client, PATIENCE_S)) as logs:
            if user == ADMINISTRATOR:
                # A broker tells of a topic before its log is there.
                assert wait_until(lambda: logs.sizes(1, [ORDERS])) == {ORDERS: 0}
                assert committed(logs) == {ORDERS: None}
            else:
                with pytest.raises(SizesDeniedError):
                    logs.sizes(1, [ORDERS])


def committed(logs: ClusterLogs) -> dict[TopicPartition, int | None]:
    """A broker that has just begun may not know yet that it coordinates the group."""

    def asked() -> dict[TopicPartition, int | None] | None:
        with suppress(BrokerAwayError):
            return logs.committed("readers", [ORDERS])
        return None

    return wait_until(asked, every_s=0.2) or {}


@pytest.mark.integration
def test_who_shows_no_certificate_is_told(broker: tuple[str, ByCertificates]) -> None:
    servers, security = broker
    without = {
        name: value
        for name, value in security.administrator.items()
        if name in ("security.protocol", "ssl.ca.location")
    }
    with closing(ClusterLogs(servers, without)) as logs:

        def is_told() -> bool:
            """Once the broker has said so before the time was up."""
            with pytest.raises(BrokerAwayError) as away:
                logs.sizes(1, [ORDERS])
            return "certificate" in str(away.value).lower()

        wait_until(is_told)


@pytest.mark.parametrize("name", BY_TEXT.values())
def test_text_that_is_no_pem_is_one_line_without_it(name: str) -> None:
    given = {"security.protocol": "SSL", "ssl.certificate.pem": "", name: "no-such-secret"}
    with pytest.raises(ConnectionSettingsError, match=r"ssl\.key\.pem.* must hold PEM") as raised:
        kafka_python_arguments("kafka-1:9093", given)
    assert "no-such-secret" not in str(raised.value)
