"""A real cluster that is secured by SASL_SSL, SCRAM and rights, with certificates made for it."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from app.components import command, consumer_command
from app.jars import KAFKA, obtain
from app.java import Java
from app.settings import Settings
from app.topics import Cluster as Topics
from cli.commands.acls import pattern_of, principal
from cli.rights import Component, Resource, Right
from controller.local_processes import LocalProcesses
from sandbox.broker import Broker
from sandbox.security import BrokerSecurity, TokenIssuer
from tests import patience
from tests.certificates import Authority
from tests.patience import PATIENCE_S

PASSWORD = "right"  # noqa: S105 (a test's own broker)
DATA, PREFIX = "orders", "kcga-"


class TokenProvider(Protocol):
    """Whose access tokens a broker takes."""

    given: list[str]
    """To whom, token by token."""
    classes: Sequence[Path]
    """Folders of classes that the broker checks them by."""

    @property
    def issuer(self) -> TokenIssuer: ...

    def client(self, user: str) -> dict[str, str]:
        """How a client of that user gets its tokens, by librdkafka's names."""
        ...


@dataclass(frozen=True)
class Cluster:
    broker: Broker
    security: BrokerSecurity
    other_ca: Path
    """Of an authority that has signed nothing here."""
    provider: TokenProvider | None = None
    """Whose tokens the broker takes, too."""

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({**self.client("admin")})

    def client(self, user: str, password: str = PASSWORD) -> dict[str, str]:
        access = self.security.client_settings(user, password)
        return {**access, "bootstrap.servers": self.broker.bootstrap_servers}

    def client_by_token(self, user: str) -> dict[str, str]:
        """As a client of that user is configured that shows tokens of the cluster's identity provider."""
        assert self.provider is not None
        access = {**self.client(user), **self.provider.client(user)}
        return {name: value for name, value in access.items() if name not in ("sasl.username", "sasl.password")}

    def make(self, partitions: int, *topics: str) -> None:
        """Those that there are not yet."""
        Topics(self.broker.bootstrap_servers, self.client("admin")).create(dict.fromkeys(topics, partitions))

    def grant(self, wanted: list[Right]) -> None:
        bindings = [binding(right, operation) for right in wanted for operation in right.operations]
        for granted in self.admin.create_acls(bindings).values():
            granted.result(PATIENCE_S)
        wait_for(lambda: set(bindings) <= set(self.admin.describe_acls(ALL_RIGHTS).result(PATIENCE_S)))

    def revoke(self, right: Right) -> None:
        """That was granted."""
        bindings = [binding(right, operation) for operation in right.operations]
        filters = [
            AclBindingFilter(
                each.restype,
                each.name,
                each.resource_pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            for each in bindings
        ]
        for revoked in self.admin.delete_acls(filters).values():
            revoked.result(PATIENCE_S)
        wait_for(lambda: not set(bindings) & set(self.admin.describe_acls(ALL_RIGHTS).result(PATIENCE_S)))

    def revoke_all(self) -> None:
        """Whatever anybody was granted; a superuser needs none of it."""
        for revoked in self.admin.delete_acls([ALL_RIGHTS]).values():
            revoked.result(PATIENCE_S)
        wait_for(lambda: not self.admin.describe_acls(ALL_RIGHTS).result(PATIENCE_S))


ANY: Any = None
"""For any name, user and host; confluent-kafka's types know nothing of it."""
ALL_RIGHTS = AclBindingFilter(
    ResourceType.ANY, ANY, ResourcePatternType.ANY, ANY, ANY, AclOperation.ANY, AclPermissionType.ANY
)
"""A right is given once the broker has heard of it, a moment after that was recorded."""


def binding(right: Right, operation: str) -> AclBinding:
    pattern, name = pattern_of(right)
    resources = {
        Resource.TOPIC: ResourceType.TOPIC,
        Resource.GROUP: ResourceType.GROUP,
        Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
        Resource.CLUSTER: ResourceType.BROKER,
    }
    words = {"AlterConfigs": "ALTER_CONFIGS", "DescribeConfigs": "DESCRIBE_CONFIGS"}
    return AclBinding(
        resources[right.resource],
        name,
        ResourcePatternType[pattern.upper()],
        principal(right, PREFIX),
        "*",
        AclOperation[words.get(operation, operation.upper())],
        AclPermissionType.ALLOW,
    )


@contextmanager
def secure_cluster(folder: Path, java: Java, provider: TokenProvider | None = None) -> Iterator[Cluster]:
    """With a user for each component and one more, `kcga-stranger`, none of whom may do anything yet; and `orders`.

    Args:
        folder: takes all its files.
        java: what runs it.
        provider: whose tokens it takes besides passwords.
    """
    authority, other = Authority(folder / "ca"), Authority(folder / "other-ca")
    tokens = None if provider is None else provider.issuer
    security = BrokerSecurity(authority.key_store(), authority.certificate, PASSWORD, tokens)
    jars = [*obtain(KAFKA), *(() if provider is None else provider.classes)]
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(folder / "broker", jars=jars, java=java, security=security))
        made = Cluster(broker, security, other.certificate, provider)
        stack.enter_context(made.admin)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users = [f"{PREFIX}{name}" for name in (*Component, "stranger")]
        upsertions: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, info, PASSWORD.encode()) for user in users
        ]
        for altered in made.admin.alter_user_scram_credentials(upsertions).values():
            altered.result(PATIENCE_S)
        made.make(2, DATA)
        yield made


def produce(client: Mapping[str, str], topic: str, values: list[bytes], partitions: int) -> None:
    producer = Producer({**client})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(PATIENCE_S) == 0


def wait_for(condition: Callable[[], bool], *logs: Path) -> None:
    patience.wait_until(
        condition, lambda: "\n".join(log.read_text()[-5_000:] for log in logs if log.exists()), every_s=0.5
    )


def settings_file(
    folder: Path,
    user: str,
    cluster: Cluster,
    client: Mapping[str, str],
    group: str,
    spark_remote: str,
    local: str = "",
    monitor: str = "",
) -> Path:
    """The settings of that user in a file of its name; the lake and what consumers log are in the folder, too.

    `local` and `monitor` are more settings of these sections.
    """
    file = folder / f"{user}.toml"
    entries = ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in client.items())
    file.write_text(
        f"""\
[kafka]
bootstrap_servers = "{cluster.broker.bootstrap_servers}"
group = "{group}"
client = {{ {entries} }}

[monitor]
topics = ["{DATA}"]
window_s = 4
{monitor}

[controller]
consumer_capacity = 1_000_000
max_consumers = 3

[consumer]
spark_remote = "{spark_remote}"
lake_root = "{folder}/lake"
wait_time_secs = 1

[http]
controller_port = 0

[local]
folder = "{folder}/consumers"
{local}
"""
    )
    return file


class running:  # noqa: N801 (a context, as contextlib's are)
    """A component in the background, which ends with the context."""

    def __init__(self, name: str, file: Path, log: Path) -> None:
        self._command, self._log = command(name, "--settings", str(file)), log

    def __enter__(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        assert self._process.wait(PATIENCE_S) == 0, self._log.read_text()


def end_consumers(settings: Settings, file: Path) -> None:
    LocalProcesses(settings.local.folder, lambda number, _: consumer_command(number, file), grace_s=20).close()
