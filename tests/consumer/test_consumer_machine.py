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
from tests.examples import examples

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
    """A machine, and services that do what chance says. Tables refuse every so manyth record."""

    def __init__(self, seed: int = 0, refuse_every: int | None = None, **settings: object) -> None:
        self.random = Random(seed)
        self.refuse_every = refuse_every
        chosen = SETTINGS.model_copy(update=settings)
        self.machine = ConsumerMachine(Holding(1, "a"), "group", COMMANDS, chosen, 0.0)
        self.now = 0.0
        self.asked: dict[int, actions.Ask] = {}
        self.fetch: actions.Fetch | None = None
        self.reports: list[ConsumerReport] = []
        self.reading: dict[TopicPartition, int] = {}
        self.held_back: set[str] = set()
        self.rows: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        self.dead_letters: defaultdict[TopicPartition, set[int]] = defaultdict(set)
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
                if isinstance(ask, actions.Write | actions.SetAside) and partition in ask.batch:
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
            case actions.Write(topic=topic, version=version) if version > self.versions[topic]:
                if not self.is_refused(ask):
                    self.versions[topic] = version
                    for record in records_of(ask):
                        self.rows[record.partition].append(record.offset)
            case actions.SetAside():
                (record,) = records_of(ask)
                self.dead_letters[record.partition].add(record.offset)
            case actions.Commit():
                for partition, position in ask.positions.items():
                    assert partition == COMMANDS or position.offset <= len(self.settled(partition)), "ahead of the lake"
                self.committed.update(ask.positions)
            case _:
                pass

    def refuses(self, record: Record) -> bool:
        return self.refuse_every is not None and record.offset % self.refuse_every == self.refuse_every - 1

    def is_refused(self, ask: actions.Write) -> bool:
        return any(map(self.refuses, records_of(ask)))

    def settled(self, partition: TopicPartition) -> list[int]:
        return sorted([*self.rows[partition], *self.dead_letters[partition]])

    def answer(self, number: int, *, fails: bool = False) -> None:
        ask = self.asked.pop(number)
        is_new = isinstance(ask, actions.Write) and ask.version > self.versions[ask.topic]
        if isinstance(ask, actions.Write) and is_new and not fails and self.is_refused(ask):
            self.versions[ask.topic] = ask.version  # what it names takes no effect any more
            self.handle(events.Failed(self.now, number, "its constraint", of_lake=True, of_record=True))
            return
        if fails and isinstance(ask, actions.Write) and self.random.random() < 0.3:
            self.handle(events.Failed(self.now, number, "no registry"))
            return
        if fails:
            if self.random.random() < 0.5:
                self.carry_out(ask)
            self.handle(events.Failed(self.now, number, "refused", of_lake=not isinstance(ask, actions.Commit)))
            return
        self.carry_out(ask)
        positions = None
        if isinstance(ask, actions.TakeOver):
            positions = {each: Reached(self.next_position(each)) for each in ask.partitions}
        self.handle(events.Done(self.now, number, positions))

    def next_position(self, partition: TopicPartition) -> int:
        """Behind the last row and the last dead letter, or where the commit is."""
        committed = self.committed.get(partition, Committed(0)).offset
        return max([committed, *(offset + 1 for offset in self.settled(partition))])

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


def records_of(ask: actions.Write | actions.SetAside) -> list[Record]:
    return ask.batch.by_topic[ask.topic][ask.part.first : ask.part.end]


@pytest.mark.parametrize("refuse_every", [None, 7, 2], ids=["all are taken", "some are refused", "half are refused"])
@pytest.mark.parametrize("seed", range(examples(20)))
def test_whatever_happens_when_each_record_is_written_once_and_what_is_let_go_is_not_read(
    seed: int, refuse_every: int | None
) -> None:
    play = Play(seed, refuse_every)
    for _ in range(400):
        play.step()
    play.refuse_every = None
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
        settled = play.settled(partition)
        assert settled == list(range(len(settled)))
        assert settled, "it went on"
        assert all(refuse_every and row % refuse_every == refuse_every - 1 for row in play.dead_letters[partition])
        assert play.committed[partition] == Committed(len(settled))


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


def refusing(refuse_every: int, **settings: object) -> Play:
    """A machine that reads two partitions of a topic whose table refuses records."""
    play = Play(3, refuse_every, **settings)
    begun(play)
    play.handle(commands=(play.command(Do.START, *PARTITIONS[:2]),))
    return play


def goes_on(play: Play, turns: int = 300) -> list[actions.Ask]:
    """Everything is answered for so many turns: what was asked."""
    asked: list[actions.Ask] = []
    for _ in range(turns):
        play.now += 0.5
        if play.asked:
            asked.append(play.asked[min(play.asked)])
            play.answer(min(play.asked))
        else:
            play.handle()
    return asked


def test_what_was_refused_is_tried_under_another_name_for_the_lake_would_pass_over_it_under_the_same() -> None:
    play = refusing(7, most_dead_letters=0)
    asked = [ask for ask in goes_on(play) if isinstance(ask, actions.Write)]
    assert len(asked) > 10
    assert len({ask.version for ask in asked}) == len(asked)
    assert (play.report.dead_letters, play.report.reason) == (0, "its constraint")
    assert all(len(play.rows[partition]) < 7 for partition in PARTITIONS[:2])


def test_no_more_records_of_a_batch_are_set_aside_than_settings_allow_until_the_table_takes_them() -> None:
    play = refusing(1, most_dead_letters=3, wait_time_secs=60.0)
    goes_on(play)
    assert play.report.dead_letters == sum(map(len, play.dead_letters.values())) == 3
    assert play.report.state is ConsumerState.DEGRADED
    play.refuse_every = None
    goes_on(play)
    assert play.report.dead_letters == 3
    for partition in PARTITIONS[:2]:
        assert play.settled(partition) == list(range(len(play.settled(partition))))
        assert len(play.settled(partition)) > 3


def test_a_table_that_takes_nothing_has_no_batch_after_the_other_set_aside() -> None:
    play = refusing(1, most_dead_letters=5, batch_bytes=100)
    goes_on(play)
    assert play.report.dead_letters == 5
    assert play.report.state is ConsumerState.DEGRADED
    play.refuse_every = None
    goes_on(play)
    play.refuse_every = 2
    goes_on(play)
    assert play.report.dead_letters > 10, "it has taken some meanwhile"


def test_a_stop_and_the_end_wait_for_a_record_that_is_looked_for() -> None:
    play = refusing(7)
    while not any(isinstance(ask, actions.SetAside) for ask in play.asked.values()):
        play.now += 0.1
        if play.asked:
            play.answer(min(play.asked))
        else:
            play.handle()
    (looked_for,) = (ask for ask in play.asked.values() if isinstance(ask, actions.SetAside))
    (record,) = records_of(looked_for)
    play.handle(commands=(play.command(Do.STOP, *PARTITIONS[:2]),))
    while any(isinstance(ask, actions.Write | actions.SetAside) for ask in play.asked.values()):
        assert play.report.partitions
        play.now += 0.1
        play.answer(min(play.asked))
    while play.report.partitions:
        play.answer(min(play.asked))
    assert play.dead_letters[record.partition] >= {record.offset}
    assert {play.committed[partition].claimant for partition in PARTITIONS[:2]} == {None}
    assert [play.committed[each].offset for each in PARTITIONS[:2]] == [
        len(play.settled(each)) for each in PARTITIONS[:2]
    ]


def test_what_the_lake_was_never_asked_for_is_released_and_no_session_is_to_blame() -> None:
    play = Play(3)
    begun(play)
    play.handle(commands=(play.command(Do.START, *PARTITIONS[:2]),))
    asked: list[actions.Ask] = []

    def goes_on_without_a_registry() -> None:
        play.now += 0.5
        for number, ask in list(play.asked.items()):
            asked.append(ask)
            if isinstance(ask, actions.Write):
                del play.asked[number]
                play.handle(events.Failed(play.now, number, "no registry"))
            else:
                play.answer(number)
        play.handle()

    while sum(isinstance(ask, actions.Write) for ask in asked) < 10:
        goes_on_without_a_registry()
    assert (play.report.state, play.report.reason) == (ConsumerState.DEGRADED, "no registry")
    assert play.report.refusing == (), "the table is not at fault"
    play.handle(commands=(play.command(Do.STOP, *PARTITIONS[:2]),))
    while play.report.partitions:
        goes_on_without_a_registry()
    assert not any(isinstance(ask, actions.OpenSession) for ask in asked)
    assert [play.committed[partition] for partition in PARTITIONS[:2]] == [Committed(0), Committed(0)]


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
        assert write.batch.epochs(whole=True) == {partition.partition: epoch}
        play.rows[partition] = list(range(offsets.start))
        while play.asked:
            play.answer(min(play.asked))
        assert play.committed[partition] == Committed(offsets.stop, claim("1/a"), epoch)
