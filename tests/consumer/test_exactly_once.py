"""Consumers that are killed or frozen at every step, on a real broker and a real lake: each record is there once."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from consumer.decide.claims import writer
from consumer.decide.location import dead_letters, is_name, location
from consumer.session import open_session, release
from consumer.verify import PartitionAccount
from domain.messages import Action, ConsumerReport, ConsumerState
from domain.partitions import TopicPartition
from tests.consumer.consumer_driver import Driver, StartProcess
from tests.consumer.consumer_program import ConsumerProgram
from tests.consumer.table_files import accounts
from tests.made_tables import constrain
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedSpark


class Records(NamedTuple):
    """What each partition gets."""

    first: int
    """Before the first process begins: three cycles' worth, and some."""
    more: int
    """Once the last one reads."""
    size: int
    """Of each, in bytes."""

    @property
    def all(self) -> int:
        return self.first + self.more


LARGE = Records(100, 25, 4_000)
"""So few that one which the table refuses is found by few appends."""
STRAGGLES_S = 3.0
"""How long after the end the lake is given for what a dead process may still have under way."""
FOR_EVER_S = 600.0
"""A lease of one that is to end because others took over, and for no other reason."""

ALL_AT_ONCE = 5_000_000
"""Bytes of a batch of one to which nothing happens: all that is left is one append."""

KILL, FREEZE = "SIGKILL", "SIGSTOP"

Fault = dict[str, Any]


def fault(signal_name: str, when: str, step: str, call: int = 1, seconds: float = 0.0) -> Fault:
    return {"signal": signal_name, "when": when, "step": step, "call": call, "seconds": seconds}


def in_flight(seed: int) -> Fault:
    """A kill while the lake writes."""
    chance = random.Random(seed)
    return fault(KILL, "during", "write", call=chance.randint(1, 3), seconds=chance.uniform(0.05, 0.9))


LATE_S = 3.0
"""A commit that was begun before a write, as none may be, would have arrived by then."""
WHILE_IT_READS = [
    fault(KILL, "before", "write", call=2, seconds=LATE_S),
    fault(KILL, "after", "write", call=2),
    *(fault(KILL, when, "commit", call=2) for when in ("before", "after")),
    fault(KILL, "before", "obey"),
    fault(KILL, "after", "obey"),
    *(in_flight(seed) for seed in range(6)),
]
OF_A_WRITE = [fault(KILL, "after", "write", call=2), fault(KILL, "after", "commit", call=2), in_flight(0)]
"""Those that a table's name could change something of."""
WHILE_IT_TAKES_OVER = [
    *(fault(KILL, when, step) for step in ("fence", "seal", "ask", "commit") for when in ("before", "after")),
    fault(KILL, "during", "seal", seconds=0.3),
    fault(KILL, "before", "write"),
]
HALF_WAY = fault(KILL, "during", "write", call=2, seconds=0.6)
"""Whoever takes over has something to write."""
WITH_A_JVM_OF_ITS_OWN = [
    *(in_flight(seed) for seed in range(30, 33)),
    fault(KILL, "after", "write", call=2),
    fault(KILL, "after", "commit", call=2),
    fault(FREEZE, "before", "write", call=2),
    fault(FREEZE, "during", "write", call=2, seconds=0.2),
]
WHILE_A_RECORD_IS_LOOKED_FOR = [
    *(fault(KILL, "before", "write", call=call) for call in (2, 4, 7)),
    fault(KILL, "during", "write", call=5, seconds=0.4),
    *(fault(KILL, when, "set aside") for when in ("before", "after")),
    fault(KILL, "during", "set aside", seconds=0.3),
    fault(FREEZE, "before", "set aside"),
]
WHILE_A_RECORD_IS_SET_ASIDE = [fault(KILL, "after", "set aside"), fault(FREEZE, "before", "set aside")]
FROZEN = [
    *(fault(FREEZE, when, step, call=2) for step in ("write", "commit") for when in ("before", "after")),
    fault(FREEZE, "during", "write", call=2, seconds=0.2),
    fault(FREEZE, "before", "find"),
    fault(FREEZE, "before", "commit"),
]


def name(fault: Fault) -> str:
    return "-".join(f"{value:.2g}" if isinstance(value, float) else str(value) for value in fault.values())


class Scene:
    """Consumers that follow one another on the partitions of one topic."""

    def __init__(
        self,
        driver: Driver,
        start_process: StartProcess,
        partitions: list[TopicPartition],
        lake: Path | None = None,
        records: Records = LARGE,
    ) -> None:
        self.root = "" if lake is None else str(lake)
        """The folder, or the schema of a catalog, of their tables."""
        self._folder = Path(self.root)
        self._driver = driver
        self._start_process = start_process
        self._partitions = partitions
        self._former: list[ConsumerReport] = []
        self._records = records
        for partition in partitions:
            driver.produce(partition, 0, records.first, records.size)

    def begin(self, number: int, fault: Fault | None = None, *, told: bool, **settings: Any) -> ConsumerProgram:
        """Begins the next process, as consumer `number`, told of the ones before or left to find their claims."""
        former = {report.incarnation for report in self._former}
        process = self._start_process(number, fault, **({"lake_root": self.root} if self.root else {}), **settings)
        ready = self._driver.wait_for(
            lambda report: report.state is ConsumerState.READY and report.incarnation not in former
        )
        seal = [writer(report.consumer, report.incarnation) for report in self._former] if told else []
        self._driver.command(Action.START, self._partitions, ready, seal=seal)
        self._former.append(ready)
        return process

    def held(self, table: str) -> dict[int, PartitionAccount]:
        """The account of each partition in the table."""
        return accounts(self._folder / table.rpartition(".")[2] if is_name(table) else Path(table))

    def wait_until_set_aside(self, records: int) -> None:
        """Waits until a process has set so many records aside."""
        self._driver.wait_for(lambda report: report.dead_letters == records)

    def wait_until_taken_over(self) -> None:
        """Waits until the process that began last reads."""
        newest = self._former[-1].incarnation
        self._driver.wait_for(
            lambda report: report.incarnation == newest and bool(report.partitions) and not report.taking_over
        )

    def wakes_up_and_fails(self, zombie: ConsumerProgram) -> bool:
        """Whether one that was frozen ends with an error, as the one that began last has taken over from it. It learns
        that by its next commit, for which it is given something to read."""
        zombie.send_signal(signal.SIGCONT)
        self.wait_until_taken_over()
        self.produce_more()
        return failed(zombie)

    def produce_more(self) -> None:
        for partition in self._partitions:
            self._driver.produce(partition, self._records.first, self._records.more, self._records.size)

    def read_the_rest(self) -> None:
        """Waits until the process that began last has read everything."""
        everything = dict.fromkeys(self._partitions, self._records.all)
        self._driver.wait_until_committed(everything)
        self._driver.listen(STRAGGLES_S)


@pytest.fixture
def partitions(data_topic: str) -> list[TopicPartition]:
    return [TopicPartition(data_topic, number) for number in range(4)]


@pytest.fixture
def scene(driver: Driver, start_process: StartProcess, partitions: list[TopicPartition], lake_root: Path) -> Scene:
    return Scene(driver, start_process, partitions, lake_root)


@pytest.fixture
def by_name(request: pytest.FixtureRequest, scene: Scene) -> None:
    """Tables are written by their names in a catalog, where the test's parameter says so."""
    if request.param:
        scene.root = request.getfixturevalue("schema")


EachOnce = Callable[[], None]


@pytest.fixture
def each_once(scene: Scene, partitions: list[TopicPartition]) -> EachOnce:
    """Makes sure that the lake holds each record once."""

    def each_once() -> None:
        count = LARGE.all
        account = PartitionAccount(rows=count, distinct_offsets=count, first_offset=0, last_offset=count - 1)
        held = scene.held(location(scene.root, partitions[0].topic))
        assert held == {partition.partition: account for partition in partitions}

    return each_once


REFUSED = (3, 35)
"""Offsets of partition 1 that the table refuses."""


@pytest.fixture
def refusing(spark_server: SharedSpark, scene: Scene, by_name: None, partitions: list[TopicPartition]) -> None:
    """The owner of the table has made it so."""
    del by_name  # it has said where the table is
    table = location(scene.root, partitions[0].topic)
    session = open_session(spark_server.remote)
    constrain(session, table, f"NOT (partition = 1 AND offset IN {REFUSED})")
    release(session)


def killed(process: ConsumerProgram) -> bool:
    return process.wait(PATIENCE_S) == -signal.SIGKILL


def failed(process: ConsumerProgram) -> bool:
    """Whether it ended by itself, with an error."""
    return (process.wait(PATIENCE_S) or 0) > 0


def frozen(process: ConsumerProgram) -> bool:
    return wait_until(lambda: process.frozen)


@pytest.mark.slow
@pytest.mark.usefixtures("by_name")
@pytest.mark.parametrize(
    ("fault", "by_name"),
    [
        *(pytest.param(each, False, id=name(each)) for each in WHILE_IT_READS),
        *(pytest.param(each, True, id=f"{name(each)}-by name") for each in WHILE_IT_READS if each in OF_A_WRITE),
    ],
    indirect=["by_name"],
)
def test_a_kill_while_it_reads_costs_no_record_and_doubles_none(
    fault: Fault, scene: Scene, each_once: EachOnce
) -> None:
    assert killed(scene.begin(1, fault, told=False))
    scene.begin(1, told=fault["call"] == 2, batch_bytes=ALL_AT_ONCE)
    scene.produce_more()
    scene.read_the_rest()
    each_once()


@pytest.mark.slow
@pytest.mark.parametrize("fault", WHILE_IT_TAKES_OVER, ids=name)
def test_a_kill_while_it_takes_over_costs_no_record_and_doubles_none(
    fault: Fault, scene: Scene, each_once: EachOnce
) -> None:
    assert killed(scene.begin(1, HALF_WAY, told=False))
    assert killed(scene.begin(2, fault, told=False))
    scene.begin(3, told=False, batch_bytes=ALL_AT_ONCE)
    scene.produce_more()
    scene.read_the_rest()
    each_once()


@pytest.mark.slow(60)
@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(
    ("fault", "own_jvm", "by_name"),
    [
        *(pytest.param(each, False, False, id=name(each)) for each in WHILE_A_RECORD_IS_LOOKED_FOR),
        *(pytest.param(each, True, False, id=f"{name(each)}-own JVM") for each in WHILE_A_RECORD_IS_SET_ASIDE),
        *(pytest.param(each, False, True, id=f"{name(each)}-by name") for each in WHILE_A_RECORD_IS_SET_ASIDE),
    ],
    indirect=["by_name"],
)
def test_a_kill_while_a_record_is_looked_for_leaves_it_in_the_dead_letters_once_and_all_others_in_the_table(
    fault: Fault,
    own_jvm: bool,
    scene: Scene,
    partitions: list[TopicPartition],
    own_spark: dict[str, Any],
) -> None:
    befallen = scene.begin(1, fault, told=False, **(own_spark if own_jvm else {}))
    assert frozen(befallen) if fault["signal"] == FREEZE else killed(befallen)
    scene.begin(2, told=fault["signal"] == FREEZE, batch_bytes=ALL_AT_ONCE)
    if fault["signal"] == FREEZE:
        scene.wait_until_set_aside(len(REFUSED))
        assert scene.wakes_up_and_fails(befallen)
    else:
        scene.produce_more()
    scene.read_the_rest()
    (refusing,) = (partition for partition in partitions if partition.partition == 1)
    held = scene.held(location(scene.root, refusing.topic))
    assert set(held) == {partition.partition for partition in partitions}
    assert sum(account.rows for account in held.values()) == len(partitions) * LARGE.all - len(REFUSED)
    assert sum(account.distinct_offsets for account in held.values()) == len(partitions) * LARGE.all - len(REFUSED)
    letters = scene.held(dead_letters(scene.root))
    assert letters == {1: PartitionAccount(len(REFUSED), len(REFUSED), *REFUSED)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FROZEN, ids=name)
def test_one_that_was_frozen_and_wakes_up_ends_and_has_written_nothing_more(
    fault: Fault, scene: Scene, each_once: EachOnce
) -> None:
    zombie = scene.begin(1, fault, told=False, lease_s=FOR_EVER_S)
    assert frozen(zombie)
    scene.begin(2, told=True)
    time.sleep(random.Random(name(fault)).uniform(0.0, 4.0))
    assert scene.wakes_up_and_fails(zombie)
    scene.read_the_rest()
    each_once()


@pytest.mark.slow
def test_one_that_was_frozen_is_found_by_its_claim_where_nobody_names_it(scene: Scene, each_once: EachOnce) -> None:
    zombie = scene.begin(1, fault(FREEZE, "before", "write", call=2), told=False, lease_s=FOR_EVER_S)
    assert frozen(zombie)
    scene.begin(2, told=False)
    scene.wait_until_taken_over()
    assert scene.wakes_up_and_fails(zombie)
    scene.read_the_rest()
    each_once()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FROZEN, ids=name)
def test_one_that_sleeps_for_longer_than_its_lease_ends_also_where_nobody_took_over(
    fault: Fault, scene: Scene, each_once: EachOnce, driver: Driver, partitions: list[TopicPartition]
) -> None:
    sleeper = scene.begin(1, fault, told=False, lease_s=FOR_EVER_S)
    assert frozen(sleeper)
    committed = driver.committed(partitions)
    sleeper.clock.set_ahead(FOR_EVER_S + 1.0)
    sleeper.send_signal(signal.SIGCONT)
    assert failed(sleeper)
    assert driver.committed(partitions) == committed or fault["step"] == "commit", "only what was on its way"
    scene.begin(2, told=False, batch_bytes=ALL_AT_ONCE)
    scene.produce_more()
    scene.read_the_rest()
    each_once()


@pytest.mark.slow(40)
@pytest.mark.parametrize("fault", WITH_A_JVM_OF_ITS_OWN, ids=name)
def test_with_a_jvm_of_its_own_it_costs_no_record_and_doubles_none(
    fault: Fault, scene: Scene, each_once: EachOnce, own_spark: dict[str, Any]
) -> None:
    """The next one has one too the first time, and then uses the server: both write to the same tables."""
    befallen = scene.begin(1, fault, told=False, **own_spark)
    assert frozen(befallen) if fault["signal"] == FREEZE else killed(befallen)
    scene.begin(2, told=True, **(own_spark if fault is WITH_A_JVM_OF_ITS_OWN[0] else {}))
    if fault["signal"] == FREEZE:
        assert scene.wakes_up_and_fails(befallen)
    else:
        scene.produce_more()
    scene.read_the_rest()
    each_once()
