"""The consumer's machine by itself, whatever is answered, refused or not answered when, and told it meanwhile."""

from collections import Counter, defaultdict
from random import Random

import pytest

from consumer.decide import actions, events
from consumer.decide.actions import Action
from consumer.decide.batch import Record
from consumer.decide.claims import Committed, claim
from consumer.decide.commands import Holding
from consumer.decide.machine import ConsumerError, ConsumerMachine, LeaseError
from consumer.decide.out_of_range import PassedOver
from consumer.decide.reached import Reached
from consumer.settings import ConsumerSettings
from domain.messages import Action as Do
from domain.messages import ConsumerCommand, ConsumerReport, ConsumerState, PartitionRef
from domain.partitions import TopicPartition
from tests.checked_machines import checked_consumer

PARTITIONS = tuple(TopicPartition(topic, number) for topic in ("clicks", "orders") for number in range(2))
COMMANDS = TopicPartition("consumer.metadata", 1)
SETTINGS = ConsumerSettings(
    spark_remote="sc://nowhere",
    lake_root="/lake",
    batch_bytes=1_000,
    wait_time_secs=1.0,
    lease_s=30.0,
    write_limit_s=20.0,
    give_up_after_s=80_000.0,
    renew_claims_s=50.0,
)


class Play:
    """A machine, and services that do what chance says."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.machine = ConsumerMachine(Holding(1, "a"), "group", COMMANDS, SETTINGS, 0.0)
        self.now = 0.0
        self.asked: dict[int, actions.Ask] = {}
        self.fetch: actions.Fetch | None = None
        self.reports: list[ConsumerReport] = []
        self.reading: dict[TopicPartition, int] = {}
        self.held_back: set[str] = set()
        self.rows: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        self.versions: Counter[str] = Counter()
        self.committed: dict[TopicPartition, Committed] = {}
        self.sequence = 0
        self.stop = False

    @property
    def report(self) -> ConsumerReport:
        return self.reports[-1]

    def handle(
        self, *happened: events.Event, commands: tuple[ConsumerCommand, ...] = (), reports_arrive: bool = True
    ) -> None:
        """What has happened, and a look around; then what the machine wants, and what must hold of it."""
        fetched: list[events.Event] = []
        if self.fetch is not None:
            fetched, self.fetch = [self.fetched(self.fetch)], None
        arrived = self.now if reports_arrive else None
        found = tuple(sorted(self.machine.to_place)) if self.machine.ready else ()
        looked = events.Looked(self.now, self.stop, arrived, commands, self.sequence, found)
        for action in checked_consumer(self.machine, *fetched, *happened, looked):
            self.perform(action)

    def perform(self, action: Action) -> None:
        match action:
            case actions.Fetch():
                assert not any(isinstance(ask, actions.Commit) for ask in self.asked.values())
                self.fetch = action
            case actions.StopReading():
                for partition in action.partitions:
                    self.reading.pop(partition, None)
            case actions.ReadFrom():
                claims = {self.committed[partition].claimant for partition in action.positions}
                assert claims == {"1/a"}, "it is read once it is claimed"
                self.reading.update((each, reached.offset) for each, reached in action.positions.items())
            case actions.HoldBack():
                self.held_back.add(action.topic)
                self.reading.update((each, reached.offset) for each, reached in action.positions.items())
            case actions.Resume():
                self.held_back.remove(action.topic)
            case actions.Send():
                self.check_let_go(action.report)
                self.reports.append(action.report)
            case actions.Note() | actions.Wait():
                pass
            case _:
                one_at_a_time = actions.Commit | actions.OpenSession | actions.TakePlace
                if isinstance(action, one_at_a_time):
                    assert not any(type(ask) is type(action) for ask in self.asked.values())
                self.asked[action.ask] = action

    def check_let_go(self, report: ConsumerReport) -> None:
        """What it says that it does not hold, it does not read; and where it may still write rows, it claims them."""
        for partition in set(PARTITIONS) - {ref.key for ref in report.partitions}:
            assert partition not in self.reading or report.state is ConsumerState.LEAVING
            for ask in self.asked.values():
                if isinstance(ask, actions.Write) and partition in ask.batch:
                    assert self.committed[partition].claimant == "1/a"
                if isinstance(ask, actions.TakeOver) and partition in ask.partitions:
                    assert not self.machine.is_asked(ask.ask, self.now)

    def fetched(self, fetch: actions.Fetch) -> events.Fetched:
        records = []
        for partition, offset in self.reading.items():
            if partition.topic not in self.held_back:
                count = self.random.randrange(3)
                records += [Record(partition, offset + each, 0, None, b"." * 50, ()) for each in range(count)]
                self.reading[partition] += count
        return events.Fetched(self.now, tuple(records[: fetch.records * 100]), 0.0, 0.0)

    def command(self, action: Do, *partitions: TopicPartition) -> ConsumerCommand:
        self.sequence += 1
        return ConsumerCommand(
            consumer=1,
            incarnation="a",
            epoch=1,
            plan=1,
            sequence=self.sequence,
            action=action,
            partitions=tuple(map(PartitionRef.of, sorted(partitions))),
        )

    def carry_out(self, ask: actions.Ask) -> None:
        match ask:
            case actions.Write(topic=topic, version=version, batch=batch) if version > self.versions[topic]:
                self.versions[topic] = version
                for record in batch.by_topic[topic]:
                    self.rows[record.partition].append(record.offset)
            case actions.Commit():
                for partition, position in ask.positions.items():
                    assert partition == COMMANDS or position.offset <= len(self.rows[partition]), "ahead of the lake"
                self.committed.update(ask.positions)
            case _:
                pass

    def answer(self, number: int, *, fails: bool = False) -> None:
        ask = self.asked.pop(number)
        if fails:
            if self.random.random() < 0.5:
                self.carry_out(ask)
            self.handle(events.Failed(self.now, number, "refused", of_lake=not isinstance(ask, actions.Commit)))
            return
        self.carry_out(ask)
        positions = None
        if isinstance(ask, actions.TakeOver):
            positions = {each: Reached(len(self.rows[each])) for each in ask.partitions}
        self.handle(events.Done(self.now, number, positions))

    def step(self) -> None:
        """Something happens."""
        self.now += self.random.choice([0.01, 0.1, 1.0])
        chance = self.random.random()
        if self.asked and chance < 0.5:
            self.answer(self.random.choice(sorted(self.asked)), fails=self.random.random() < 0.3)
        elif chance < 0.6:
            action = self.random.choice([Do.START, Do.STOP])
            some = self.random.sample(PARTITIONS, self.random.randint(1, 3))
            self.handle(commands=(self.command(action, *some),))
        else:
            self.handle()

    def settle(self) -> None:
        """Everything is answered from now on, until there is nothing more to do."""
        for _ in range(300):
            self.now += 0.5
            if self.asked:
                self.answer(min(self.asked))
            else:
                self.handle()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_when_each_record_is_written_once_and_what_is_let_go_is_not_read(seed: int) -> None:
    play = Play(seed)
    for _ in range(400):
        play.step()
    play.handle(commands=(play.command(Do.START, *PARTITIONS),))
    play.settle()
    assert play.report.state is ConsumerState.READY
    assert [ref.key for ref in play.report.partitions] == sorted(PARTITIONS)
    assert play.report.taking_over == ()
    play.stop = True
    while not play.machine.ended:
        play.now += 0.1
        if play.asked:
            play.answer(min(play.asked))
        else:
            play.handle()
    assert play.reports[-1].state is ConsumerState.LEAVING
    for partition in PARTITIONS:
        rows = play.rows[partition]
        assert rows == list(range(len(rows)))
        assert rows, "it went on"
        assert play.committed[partition] == Committed(len(rows))


def begun(play: Play) -> None:
    """It has a place and a session."""
    play.handle()
    play.answer(min(play.asked))
    play.answer(min(play.asked))
    assert play.report.state is ConsumerState.READY


def only_ask(play: Play) -> actions.Ask:
    (ask,) = play.asked.values()
    return ask


def test_before_anything_it_takes_its_place_and_a_session() -> None:
    play = Play()
    play.handle()
    assert isinstance(only_ask(play), actions.TakePlace)
    assert play.reports == [], "nobody hears of it before it can be fenced"
    play.answer(min(play.asked))
    assert isinstance(only_ask(play), actions.OpenSession)
    assert play.report.state is ConsumerState.STARTING


def test_a_start_is_acknowledged_taken_over_claimed_and_read_in_this_order() -> None:
    play = Play()
    begun(play)
    play.handle(commands=(play.command(Do.START, PARTITIONS[0]),))
    seen: list[type] = []
    while not play.reading:
        kinds = {type(ask) for ask in play.asked.values()} - set(seen[-1:])
        seen += kinds
        if play.asked:
            play.answer(min(play.asked))
        else:
            play.handle()
    assert seen == [actions.Commit, actions.TakeOver, actions.Commit]
    assert play.report.applied.sequence == 1


@pytest.mark.parametrize("ask", [actions.TakePlace, actions.OpenSession, actions.Commit])
def test_what_only_a_new_process_may_mend_ends_it_after_its_time(ask: type) -> None:
    play = Play()
    play.handle()
    while not isinstance(only_ask(play), ask):
        play.answer(min(play.asked))
        if not play.asked:
            play.handle(commands=(play.command(Do.START, PARTITIONS[0]),))
    play.answer(min(play.asked), fails=True)
    play.now += SETTINGS.lease_s / 2
    play.handle()
    assert isinstance(only_ask(play), ask), "it is tried again"
    play.now += SETTINGS.give_up_after_s
    with pytest.raises(ConsumerError):
        play.answer(min(play.asked), fails=True)


def test_one_whose_lease_has_run_out_does_nothing_more() -> None:
    play = Play()
    begun(play)
    play.now += SETTINGS.lease_s
    with pytest.raises(LeaseError):
        play.handle(reports_arrive=False)


def test_a_write_that_is_not_answered_is_tried_again_and_holds_up_its_topic_alone() -> None:
    play = Play(1)
    begun(play)
    play.handle(commands=(play.command(Do.START, *PARTITIONS),))
    while not any(isinstance(ask, actions.Write) and ask.topic == "orders" for ask in play.asked.values()):
        play.now += 0.1
        numbers = sorted(play.asked)
        if numbers:
            play.answer(numbers[0])
        else:
            play.handle()
    hanging = {number for number, ask in play.asked.items() if isinstance(ask, actions.Write) and ask.topic == "orders"}
    before = len(play.rows[PARTITIONS[0]])
    while len(play.rows[PARTITIONS[0]]) < before + 100:
        play.now += 0.1
        for number, ask in list(play.asked.items()):
            if isinstance(ask, actions.Write) and ask.topic == "orders":
                hanging.add(number)
            elif number not in hanging:
                play.answer(number)
        play.handle()
    assert len(hanging) > 1
    assert "no answer within 20 s" in str(play.report.reason)
    assert play.rows[PARTITIONS[2]] == []


def test_a_log_that_was_cut_off_ends_the_batch_and_what_is_committed_tells_which_leaders_records_it_counts() -> None:
    """In one batch the last offset of the partition would be the highest one, of a record that the log has no more."""
    play = Play()
    begun(play)
    (partition, *_) = PARTITIONS
    play.handle(commands=(play.command(Do.START, partition),))
    while not play.reading:
        if play.asked:
            play.answer(min(play.asked))
        else:
            play.handle()
    play.reading.clear()
    for epoch, offsets in ((3, range(40, 50)), (4, range(40, 43))):
        records = tuple(Record(partition, offset, 0, None, b".", (), epoch=epoch) for offset in offsets)
        play.fetch = None
        play.handle(events.Fetched(play.now, records, 0.0, 0.0))
        assert play.fetch is not None, "the batch may grow"
        play.fetch = None
        play.handle(events.Looked(play.now, passed_over=(PassedOver(partition, 40, 50, were_read=True),)))
        assert play.fetch is None
        write = only_ask(play)
        assert isinstance(write, actions.Write)
        assert write.batch.epochs == {partition.partition: epoch}
        play.rows[partition] = list(range(offsets.start))
        while play.asked:
            play.answer(min(play.asked))
        assert play.committed[partition] == Committed(offsets.stop, claim("1/a"), epoch)
