"""Consumers whose sink is a program, killed and frozen at every step, and their programs: each record is there once.

The programs are the examples of the documentation, on a real broker.
"""

import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pytest

from domain.partitions import TopicPartition
from tests.consumer.consumer_driver import Driver, StartProcess
from tests.consumer.test_command_sink import EXAMPLES
from tests.consumer.test_exactly_once import (
    ALL_AT_ONCE,
    FOR_EVER_S,
    FREEZE,
    KILL,
    Fault,
    Records,
    Scene,
    fault,
    frozen,
    killed,
    name,
)
from tests.sink_examples import Example

pytestmark = [pytest.mark.integration, pytest.mark.slow(15)]

RECORDS = Records(2_000, 500, 200)
"""So many that a program takes its time."""

KILLED = [
    *(fault(KILL, when, step, call=2) for step in ("write", "commit") for when in ("before", "after")),
    *(fault(KILL, "during", "write", call=2, seconds=seconds) for seconds in (0.001, 0.01, 0.05)),
    *(fault(KILL, when, "obey") for when in ("before", "after")),
]
FROZEN = [fault(FREEZE, when, step, call=2) for step in ("write", "commit") for when in ("before", "after")]
TAKING_OVER = [fault(KILL, when, step) for step in ("fence", "seal", "ask") for when in ("before", "after")]


@pytest.fixture
def consumer_settings(example: Example) -> dict[str, Any]:
    """Short cycles, so that a test sees many."""
    return {
        "sink": "command",
        "command": example.command,
        "batch_bytes": 500_000,
        "wait_time_secs": 0.3,
        "heartbeat_s": 0.3,
        "lease_s": 600.0,
        "give_up_after_s": 600.0,
        "write_limit_s": 240.0,
    }


@pytest.fixture
def partitions(data_topic: str) -> list[TopicPartition]:
    return [TopicPartition(data_topic, number) for number in range(4)]


@pytest.fixture
def scene(driver: Driver, start_process: StartProcess, partitions: list[TopicPartition]) -> Scene:
    return Scene(driver, start_process, partitions, records=RECORDS)


@pytest.fixture
def each_once(example: Example, partitions: list[TopicPartition]) -> Callable[[], None]:
    def each_once() -> None:
        held = example.held(
            'SELECT partition, count(*), count(DISTINCT "offset"), max("offset") FROM records GROUP BY 1 ORDER BY 1'
        )
        count = RECORDS.all
        assert held == [(partition.partition, count, count, count - 1) for partition in partitions]

    return each_once


def in_both(faults: list[Fault], some: slice) -> pytest.MarkDecorator:
    """The faults on SQLite, and some of them on Postgres, too."""
    chosen = [*(("SQLite", fault) for fault in faults), *(("Postgres", fault) for fault in faults[some])]
    ids = [f"{example}-{name(fault)}" for example, fault in chosen]
    return pytest.mark.parametrize(("example", "fault"), chosen, ids=ids, indirect=["example"])


@in_both(KILLED, slice(2, 7))
def test_a_kill_while_it_reads_costs_no_record_and_doubles_none(
    fault: Fault, scene: Scene, each_once: Callable[[], None]
) -> None:
    assert killed(scene.begin(1, fault, told=False))
    scene.begin(1, told=fault["call"] == 2, batch_bytes=ALL_AT_ONCE)
    scene.produce_more()
    scene.read_the_rest()
    each_once()


@in_both(TAKING_OVER, slice(2, 4))
def test_a_kill_while_it_takes_over_costs_no_record_and_doubles_none(
    fault: Fault, scene: Scene, each_once: Callable[[], None]
) -> None:
    assert killed(scene.begin(1, KILLED[1], told=False))
    assert killed(scene.begin(2, fault, told=False))
    scene.begin(3, told=False, batch_bytes=ALL_AT_ONCE)
    scene.produce_more()
    scene.read_the_rest()
    each_once()


@in_both(FROZEN, slice(2))
def test_one_that_was_frozen_and_wakes_up_ends_and_has_written_nothing_more(
    fault: Fault, scene: Scene, each_once: Callable[[], None]
) -> None:
    zombie = scene.begin(1, fault, told=False, lease_s=FOR_EVER_S)
    assert frozen(zombie)
    scene.begin(2, told=True)
    scene.wait_until_taken_over()
    assert scene.wakes_up_and_fails(zombie)
    scene.read_the_rest()
    each_once()


@pytest.mark.slow(25)
@EXAMPLES
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_program_that_is_killed_or_frozen_is_begun_anew(
    number: signal.Signals, scene: Scene, driver: Driver, each_once: Callable[[], None], example: Example
) -> None:
    limit_s = 20.0 if number == signal.SIGSTOP else 240.0  # of an answer that does not come
    process = scene.begin(1, told=False, write_limit_s=limit_s)
    for times in range(3):
        driver.wait_until_read(500 * (times + 1))
        for program in psutil.Process(process.pid).children():
            with suppress(psutil.NoSuchProcess):  # the one before, which is not buried yet
                if example.command[-1] in program.cmdline():
                    program.send_signal(number)
    scene.produce_more()
    scene.read_the_rest()
    each_once()
