"""A whole group of which nobody has a password: each component shows access tokens that soon expire."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from app.components import command
from app.java import Java
from app.settings import load
from cli.rights import Component, rights
from consumer.verify import verify
from tests.certificates import Authority
from tests.identity_provider import IdentityProvider
from tests.monitor.running_monitor import Reports
from tests.patience import PATIENCE_S, wait_until
from tests.secure_cluster import (
    DATA,
    PREFIX,
    Cluster,
    end_consumers,
    running,
    secure_cluster,
    settings_file,
    wait_for,
)

GROUP = "billing"


@contextmanager
def tokened_cluster(folder: Path, java: Java, lifetime_s: float) -> Iterator[Cluster]:
    """A secure cluster that takes the tokens of a provider whose authority is another than the brokers'."""
    provider = IdentityProvider(folder / "identity", Authority(folder / "identity-ca"), lifetime_s)
    try:
        with secure_cluster(folder, java, provider) as cluster:
            yield cluster
    finally:
        provider.close()


def kcga(*arguments: str, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, "--settings", str(file)), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def ends_in_one_line(*arguments: str, file: Path, said: str, code: int = 1) -> None:
    """Of whoever cannot begin. It may end before it has heard why, and then says that nobody answers."""
    lines: list[str] = []

    def says_why() -> bool:
        done = kcga(*arguments, file=file)
        lines[:] = done.stderr.splitlines()
        if arguments[0] in ("monitor", "controller"):
            # A component has logged by then, for instance that it serves its page.
            lines[:] = [line for line in lines if not line.startswith("{")]
        assert (done.returncode, len(lines)) == (code, 1), done.stderr
        return said in lines[0]

    wait_until(says_why, lambda: f"kcga {arguments[0]} does not say {said!r}, but {lines}")


NOT_YET, ALL_DOWN = "Request not valid in current SASL state", "_ALL_BROKERS_DOWN"


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen of a group that ran for a while."""

    tokens: Counter[str]
    """How many each user was given once all speeds were known."""
    unknown: int
    """Reports that had a partition of unknown speed, once all had been known."""
    logs: str
    """What the components logged, all in all."""
    produced: int
    in_the_lake: int
    doubled: int
    commands: tuple[subprocess.CompletedProcess[str], ...]
    """`kcga doctor` and `kcga status`, after all that."""

    @property
    def warnings(self) -> list[str]:
        """What they warned of, but for connections that a client made anew.

        Brokers do not hear of a new token within a second of the one before, which a busy machine hands over late
        (KIP-368): librdkafka then ends the connection, and may say once that it has no other.
        """
        warnings = [line for line in self.logs.splitlines() if "warning" in line.lower()]
        refused = [line for line in warnings if NOT_YET in line]
        down = [line for line in warnings if ALL_DOWN in line]
        return [line for line in warnings if line not in (*refused, *down[: len(refused)])]


def hold(
    cluster: Cluster,
    spark_remote: str,
    folder: Path,
    for_s: float,
    renewed: Callable[[Counter[str]], bool] = lambda _: True,
) -> Held:
    """Runs monitor, controller and consumers while records are written, so long from when all speeds are known, and
    until so many tokens were given to each user."""
    assert cluster.provider is not None
    given = cluster.provider.given

    def settings_of(user: Component, local: str = "") -> Path:
        client = cluster.client_by_token(PREFIX + user)
        del client["bootstrap.servers"]
        patient = "request_timeout_s = 60\nhold_s = 60"
        return settings_file(folder, user, cluster, client, GROUP, spark_remote, local, patient)

    of_consumers = settings_of(Component.CONSUMER)
    of_controller = settings_of(Component.CONTROLLER, f'consumer_settings = "{of_consumers}"')
    of_monitor, of_operator = settings_of(Component.MONITOR), settings_of(Component.OPERATOR)
    settings = load(of_controller)
    cluster.grant(list(rights(settings)))
    names = settings.topics
    cluster.make(16, names.write_speed, names.metadata, names.decisions)
    logs = [folder / f"{name}.log" for name in ("controller", "monitor")]
    reports = Reports(cluster.broker.bootstrap_servers, names.write_speed, cluster.client("admin"))
    began = time.time()
    producer, produced = Producer(cluster.client("admin")), 0
    try:
        with running("controller", of_controller, logs[0]), running("monitor", of_monitor, logs[1]):
            reports.until(  # of this group's monitor, not of one before it
                lambda report: report.measured_at >= began and bool(report.partitions) and not report.speeds.unknown
            )
            before, unknown, began_at = Counter(given), 0, time.monotonic()
            while (lasted_s := time.monotonic() - began_at) < for_s or not renewed(Counter(given) - before):
                assert lasted_s < PATIENCE_S, Counter(given) - before
                for partition in range(2):
                    producer.produce(DATA, b"x" * 500, partition=partition)
                    produced += 1
                assert producer.flush(PATIENCE_S) == 0
                unknown += bool(reports.next().speeds.unknown)
            tokens = Counter(given) - before
            wait_for(lambda: in_the_lake(spark_remote, settings.consumer.lake_root)[0] == produced, *logs)
            asked = tuple(kcga(name, file=of_operator) for name in ("doctor", "status"))
    finally:
        end_consumers(settings, of_consumers)
        reports.close()
    said = [log.read_text() for log in (*logs, *(folder / "consumers").glob("*.log"))]
    read, doubled = in_the_lake(spark_remote, settings.consumer.lake_root)
    return Held(tokens, unknown, "".join(said), produced, read, doubled, asked)


def in_the_lake(spark_remote: str, lake_root: str) -> tuple[int, int]:
    """How many records there are, and how many of them twice."""
    accounts = verify(spark_remote, lake_root, [DATA]).values()
    return sum(each.distinct_offsets for each in accounts), sum(each.doubled for each in accounts)
