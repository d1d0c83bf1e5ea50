"""A consumer's machine, whose requests take as long as a bench says."""

from bench.machine_alone import MachineAlone
from consumer.decide import actions
from consumer.decide.actions import Action, Ask
from consumer.decide.reached import Reached
from domain.messages import Action as Do
from domain.messages import ConsumerCommand, ConsumerReport, ConsumerState, PartitionRef
from domain.partitions import TopicPartition

PARTITIONS = tuple(TopicPartition("orders", number) for number in range(2))


def command(sequence: int, action: Do) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=1,
        incarnation="a",
        epoch=1,
        plan=1,
        sequence=sequence,
        action=action,
        partitions=tuple(map(PartitionRef.of, PARTITIONS)),
    )


def reports(done: list[Action]) -> list[ConsumerReport]:
    return [action.report for action in done if isinstance(action, actions.Send)]


def test_one_whose_requests_take_no_time_is_ready_and_reads_at_once() -> None:
    machine = MachineAlone(1, "a", "group", 0.0)
    assert reports(machine.look(0.0))[-1].state is ConsumerState.READY
    done = machine.look(1.0, command(1, Do.START))
    assert actions.ReadFrom(dict.fromkeys(PARTITIONS, Reached(0))) in done
    assert machine.held == PARTITIONS
    done = machine.look(2.0, command(2, Do.STOP))
    assert actions.StopReading(PARTITIONS) in done
    assert machine.held == ()


def test_it_waits_for_what_takes_long() -> None:
    def takes_s(ask: Ask) -> float:
        return 3.0 if isinstance(ask, actions.TakeOver) else 0.0

    machine = MachineAlone(1, "a", "group", 0.0, takes_s)
    machine.look(0.0)
    done = machine.look(1.0, command(1, Do.START))
    assert machine.held == PARTITIONS
    assert machine.next_answer_at == 4.0
    assert not any(isinstance(action, actions.ReadFrom) for action in done + machine.look(3.9))
    assert any(isinstance(action, actions.ReadFrom) for action in machine.look(4.0))
