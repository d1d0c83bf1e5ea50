from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.commands import NO_COMMAND, Change, Holding
from domain.messages import Action, ConsumerCommand, Order, PartitionRef
from domain.partitions import TopicPartition

A, B, C = (TopicPartition("data", number) for number in range(3))
BEGIN = Holding(consumer=3, incarnation="now")


def command(
    action: Action,
    *partitions: TopicPartition,
    sequence: int,
    epoch: int = 1,
    consumer: int = 3,
    incarnation: str = "now",
) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=consumer,
        incarnation=incarnation,
        epoch=epoch,
        plan=1,
        sequence=sequence,
        action=action,
        partitions=tuple(map(PartitionRef.of, partitions)),
    )


def start(*partitions: TopicPartition, sequence: int, epoch: int = 1) -> ConsumerCommand:
    return command(Action.START, *partitions, sequence=sequence, epoch=epoch)


def stop(*partitions: TopicPartition, sequence: int, epoch: int = 1) -> ConsumerCommand:
    return command(Action.STOP, *partitions, sequence=sequence, epoch=epoch)


def test_a_process_begins_with_nothing() -> None:
    assert BEGIN.partitions == ()
    assert BEGIN.applied == NO_COMMAND


def test_commands_say_what_to_stop_and_what_to_start() -> None:
    holding, change = BEGIN.apply([start(B, A, sequence=1)])
    assert change == Change(start=(A, B))
    holding, change = holding.apply([stop(A, sequence=2), start(C, sequence=3)])
    assert change == Change(stop=(A,), start=(C,))
    assert holding.partitions == (B, C)
    assert holding.applied == Order(1, 3)


@pytest.mark.parametrize(
    "other",
    [
        command(Action.START, A, sequence=1, consumer=4),
        command(Action.START, A, sequence=1, incarnation="before"),
    ],
)
def test_a_command_for_another_process_changes_nothing(other: ConsumerCommand) -> None:
    assert BEGIN.apply([other]) == (BEGIN, Change())


def test_a_late_command_changes_nothing() -> None:
    holding, _ = BEGIN.apply([start(A, sequence=1), stop(A, sequence=2)])
    assert holding.apply([start(A, sequence=1)]) == (holding, Change())


def test_a_deposed_controllers_command_changes_nothing() -> None:
    holding, _ = BEGIN.apply([start(A, sequence=1, epoch=2)])
    assert holding.apply([stop(A, sequence=99, epoch=1)]) == (holding, Change())


def test_a_start_of_what_is_held_goes_on_with_the_same_stint() -> None:
    holding, _ = BEGIN.apply([start(A, sequence=1)])
    again, change = holding.apply([start(A, sequence=2)])
    assert change == Change()
    assert again.stints == {A: Order(1, 1)}
    assert again.applied == Order(1, 2)


def test_a_partition_that_is_stopped_and_started_at_once_begins_a_new_stint() -> None:
    holding, _ = BEGIN.apply([start(A, sequence=5)])
    holding, change = holding.apply([stop(A, sequence=1, epoch=2), start(A, sequence=5, epoch=2)])
    assert change == Change(stop=(A,), start=(A,))
    assert holding.stints == {A: Order(2, 5)}


def test_a_partition_that_is_started_and_stopped_at_once_was_never_held() -> None:
    holding, change = BEGIN.apply([start(A, sequence=1), stop(A, sequence=2)])
    assert change == Change()
    assert holding.applied == Order(1, 2)


partitions = st.lists(st.sampled_from([A, B, C]), max_size=3, unique=True)
commands = st.builds(
    lambda action, held, sequence, epoch, consumer, incarnation: command(
        action, *held, sequence=sequence, epoch=epoch, consumer=consumer, incarnation=incarnation
    ),
    st.sampled_from(Action),
    partitions,
    st.integers(1, 12),
    st.integers(1, 3),
    st.sampled_from([3, 3, 3, 4]),
    st.sampled_from(["now", "now", "now", "before"]),
)
streams = st.lists(commands, max_size=30)


def counted(stream: list[ConsumerCommand]) -> list[ConsumerCommand]:
    """Those that count: for this process, and newer than all before."""
    mine = [command for command in stream if (command.consumer, command.incarnation) == (3, "now")]
    newest = list(accumulate((command.order for command in mine), max, initial=NO_COMMAND))
    return [command for command, before in zip(mine, newest, strict=False) if command.order > before]


@given(streams)
def test_what_is_held_is_what_the_newest_counted_command_of_each_partition_says(stream: list[ConsumerCommand]) -> None:
    holding, _ = BEGIN.apply(stream)
    newest = {ref.key: command.action for command in counted(stream) for ref in command.partitions}
    assert set(holding.partitions) == {partition for partition, action in newest.items() if action is Action.START}


@given(streams, st.lists(st.integers(0, 30)))
def test_it_makes_no_difference_how_many_commands_are_taken_at_a_time(
    stream: list[ConsumerCommand], cuts: list[int]
) -> None:
    at_once, _ = BEGIN.apply(stream)
    holding, reading = BEGIN, set[TopicPartition]()
    bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for begin, end in pairwise(bounds):
        before = holding
        holding, change = holding.apply(stream[begin:end])
        assert holding.applied >= before.applied
        assert set(change.stop) <= reading, "only what is read is stopped"
        reading -= set(change.stop)
        assert not reading & set(change.start), "nothing is started twice"
        reading |= set(change.start)
    assert holding == at_once
    assert reading == set(at_once.partitions)


@given(streams)
def test_a_stream_that_comes_twice_changes_nothing_the_second_time(stream: list[ConsumerCommand]) -> None:
    holding, _ = BEGIN.apply(stream)
    assert holding.apply(stream) == (holding, Change())


@given(st.lists(st.tuples(st.sampled_from(Action), partitions), max_size=10), st.data())
def test_after_its_stop_was_carried_out_no_earlier_start_brings_a_partition_back(
    history: list[tuple[Action, list[TopicPartition]]], data: st.DataObject
) -> None:
    sent = [command(action, *held, sequence=n) for n, (action, held) in enumerate(history, start=1)]
    last = stop(A, sequence=len(sent) + 1)
    before = data.draw(st.lists(st.sampled_from(sent), max_size=20)) if sent else []
    after = data.draw(st.lists(st.sampled_from([*sent, last]), max_size=20))
    holding, _ = BEGIN.apply([*before, last])
    holding, _ = holding.apply(after)
    assert A not in holding.partitions
    assert holding.applied == last.order


def test_a_start_says_whom_to_seal_first() -> None:
    first = start(A, sequence=1).model_copy(update={"seal": ("2/b", "1/a")})
    second = start(B, sequence=2).model_copy(update={"seal": ("1/a",)})
    holding, change = BEGIN.apply([first, second])
    assert change == Change(start=(A, B), seal=("1/a", "2/b"))
    assert holding.apply([first])[1] == Change()
