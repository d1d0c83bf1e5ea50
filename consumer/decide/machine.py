"""The consumer's state machine: events in, actions out. It has no clock, no chance, no client and no log of its own.

The order is what keeps records: the lake first, then the commit to Kafka, then the acknowledgement. At every turn it
obeys, tries again what has failed, takes over what it is to read, commits what is due, and gathers the next batch while
the one before is written. One commit is under way at a time, and nothing is obeyed or fetched meanwhile.

Commands are obeyed once nothing that they stop is being written for the first time, so what was fetched of it is
committed by then; or only gathered, and is dropped: whoever reads it next fetches it again; or its table takes nothing,
and it is dropped, too, and the partition released where the table ends; or it is not known what the lake does with it,
and the partition is let go without a commit: whoever reads it next seals this process, and finds what is there.
Before a partition is read it is taken over (`consumer.decide.takeover`), beside the reading of others, and claimed; it
is released before a stop is acknowledged. Whatever is interrupted when, the next reader begins at the first record that
is not in the lake, and nobody else writes it.

Where a table refuses a record, its batch is halved until that is found (`consumer.decide.parts`), and set aside.

Whatever is asked of others has a limit. What does not succeed within it is reported, and tried again after a pause: a
write or a take-over for its topic alone; a place, a session and a commit for `give_up_after_s`, since
then only a new process may help. At every turn the lease is looked at first (`consumer.decide.lease`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby

from consumer.decide import actions, events, jobs
from consumer.decide.actions import Action, Note
from consumer.decide.backoff import pause_s
from consumer.decide.claims import RELEASED, Committed, claim, writer
from consumer.decide.commands import Holding
from consumer.decide.cycle import FetchPhase, Gathering
from consumer.decide.lease import Lease
from consumer.decide.parts import Part
from consumer.decide.rate import Pace, SaturatedRate
from consumer.decide.reached import Reached
from consumer.settings import ConsumerSettings
from domain.messages import ConsumerCommand, ConsumerReport, ConsumerState, Cycle, PartitionRef, Refusing
from domain.partitions import TopicPartition

LOOK_EVERY_S = 0.1
"""How often a wait looks at what else there is to do."""
TOLD_FOR_S = 600.0
"""How long reports tell of what was passed over or set aside."""


class ConsumerError(RuntimeError):
    """The consumer cannot go on; a new process may. Nothing that it read and did not write was committed."""


class LeaseError(ConsumerError):
    """Its lease has run out: others may read its partitions by now."""


class ConsumerMachine:
    """One incarnation of a consumer of one group; all moments are on the clock of the events.

    Args:
        holding: nothing, by a name that no other process ever has.
        group: named in reports.
        commands: where they come.
        settings: see there.
        now: when it begins.
    """

    def __init__(
        self,
        holding: Holding,
        group: str,
        commands: TopicPartition,
        settings: ConsumerSettings,
        now: float,
    ) -> None:
        self.ready = False
        """Whether it has a place and has had a session: only then are there commands for it."""
        self.ended = False
        """Whether it has left."""
        self._settings = settings
        self._group = group
        self._commands = commands
        self._inbox: list[ConsumerCommand] = []
        self._holding = self._acknowledged = holding
        self._seal: dict[TopicPartition, tuple[str, ...]] = {}
        """Whom the controller wants sealed before the partition is read."""
        self._writer = writer(holding.consumer, holding.incarnation)
        self._now = now
        self._actions: list[Action] = []
        self._asked = jobs.Asked()
        lost = f"cannot read its commands, partition {commands.partition} of {commands.topic}"
        self._place: jobs.Job | None = jobs.Job(limit_s=settings.give_up_after_s, in_vain=lost)
        """Among the commands, as long as it has none."""
        self._session: jobs.Job | None = None
        """Of Spark, in place of one that may be lost, as long as it wants one."""
        self._found: tuple[TopicPartition, ...] = ()
        self._taking_over: dict[str, jobs.TakeOver] = {}
        """By topic: none waits for the table of another."""
        self._claimed: dict[TopicPartition, Reached] = {}
        """The partitions that this process claims, and so reads, and the positions that it has committed."""
        self._due = self._new_commit()
        self._committing: jobs.Commit | None = None
        self._renewed_at = now
        self._gathering = Gathering(FetchPhase(settings.batch_bytes, settings.wait_time_secs), now)
        self._cycle: jobs.Cycle | None = None
        self._version = 0
        self._writes: dict[str, jobs.Write] = {}
        """By topic, what the lake has not taken yet. Nothing more of one that has failed is read until it has."""
        self._wrote_at = -math.inf
        """When the lake last took something."""
        self._lease: Lease | None = None
        """From the first report on."""
        self._look = events.Looked(now)
        self._told: tuple[str | None, float] = None, -math.inf
        """What was passed over or set aside last, and until when it is told."""
        self._lost = 0
        """Offsets that were deleted before they were read."""
        self._dead_letters = 0
        """Records that are in no table of a topic."""
        self._in_vain: Counter[str] = Counter()
        """By topic, records that were set aside since its table last took any."""
        self._rate = SaturatedRate()
        self._pace = Pace(settings.rate_limit)
        self._record_bytes = 0.0
        self._reports = 0
        self._reported_at = now
        self._reported: tuple[ConsumerState, str | None] | None = None

    @property
    def state(self) -> ConsumerState:
        """By its newest report."""
        return ConsumerState.STARTING if self._reported is None else self._reported[0]

    @property
    def claimed(self) -> Set[TopicPartition]:
        """What it has committed as the one who reads it."""
        return self._claimed.keys()

    @property
    def unwritten(self) -> Set[TopicPartition]:
        """What has records on their way to the lake."""
        return {partition for write in self._writes.values() for partition in write.positions}

    @property
    def commits(self) -> bool:
        """Whether a commit is under way."""
        return self._committing is not None

    @property
    def to_place(self) -> Set[TopicPartition]:
        """What is to be taken over, once it is found to be there."""
        held, claimed = self._holding.stints, self._claimed
        unclaimed = {each for each in self._acknowledged.stints if each not in claimed and each in held}
        if not unclaimed:
            return unclaimed
        waits = (job for job in self._taking_over.values() if job.ask is not None or self._now < job.try_again_at)
        under_way = {partition for job in waits for partition in job.partitions} | self._due.placed.keys()
        if self._committing is not None:
            under_way |= self._committing.placed.keys()
        refused = {topic for topic, write in self._writes.items() if write.failures}
        return {each for each in unclaimed - under_way if each.topic not in refused}

    def is_asked(self, ask: int, now: float) -> bool:
        """Whether what was asked for under this number is still wanted, and this process has the right to it; from any
        thread."""
        return ask in self._asked and not (self._lease and self._lease.over(now))

    def handle(self, *happened: events.Event) -> list[Action]:
        """Takes the events in, and says what is to be done, in this order; the last is to fetch or to wait.

        Raises:
            ConsumerError: it cannot go on.
        """
        self._actions = []
        for event in happened:
            self._now = event.at
            self._take_in(event)
        self._turn()
        return self._actions

    def _take_in(self, event: events.Event) -> None:
        match event:
            case events.Looked():
                self._look, self._found = event, event.found
                self._inbox += event.commands
                if self._lease is not None and event.arrived is not None:
                    self._lease = self._lease.renewed(event.arrived, self._now)
                for passed_over in event.passed_over:
                    self._told = str(passed_over), self._now + TOLD_FOR_S
                    self._lost += passed_over.lost
                    if passed_over.were_read:
                        self._gathering.cut(passed_over.partition)
            case events.Fetched(records=records):
                self._gathering.add(records, event.first_at, event.last_at)
            case events.Done(ask=ask) if (job := self._asked.answered(ask)) is not None:
                self._has_succeeded(job, event.positions or {})
            case events.Failed(ask=ask) if (job := self._asked.answered(ask)) is not None:
                if isinstance(job, jobs.Write) and event.of_record:
                    self._was_refused(job, event.fault, event.place)
                else:
                    self._has_failed(job, event.fault, event.of_lake, event.of_table)
            case _:
                pass

    def _turn(self) -> None:
        if self._lease is not None and self._lease.over(self._now):
            raise LeaseError(
                f"consumer {self._holding.consumer}: its lease has run out: no report has reached the brokers for "
                f"{self._lease.length_s:g} s, and others may read its partitions by now"
            )
        for job in self._asked.overdue(self._now):
            self._has_failed(job, f"no answer within {job.limit_s:g} s", of_lake=True)
        if self._look.stop:
            self._leave()
        elif self._place is not None:
            self._try(self._place)
        else:
            self._go_on()
        self._commit()
        if self.ended:
            return
        is_due = self._now - self._reported_at >= self._settings.heartbeat_s
        if self._place is None and (is_due or self._state != self._reported):
            self._report()
        self._gather()

    def _go_on(self) -> None:
        if self._inbox and not self._owes:
            self._obey()
        if not self._owes and self._now - self._renewed_at >= self._settings.renew_claims_s:
            self._renew_claims()
        if self._session is None:
            for write in self._writes.values():
                self._try(write)
            self._take_over()
        elif not any(write.ask for write in self._writes.values()):
            self._try(self._session)

    # What is asked of others

    def _try(self, job: jobs.Job) -> None:
        """Asks for it, where no answer is waited for and it is time to."""
        if job.ask is not None or self._now < job.try_again_at:
            return
        ask = self._asked.ask(job, self._now)
        match job:
            case jobs.TakeOver(partitions=partitions):
                told = {writer for partition in partitions for writer in self._seal.get(partition, ())}
                self._actions.append(actions.TakeOver(ask, partitions, frozenset(told)))
            case jobs.Write(part=part) if part.is_dead:
                self._actions.append(actions.SetAside(ask, job.topic, job.batch, part, job.refusal))
            case jobs.Write(part=part):
                self._actions.append(actions.Write(ask, job.topic, job.version, job.batch, part))
            case jobs.Commit():
                self._actions.append(actions.Commit(ask, job.positions))
            case _:
                self._actions.append(actions.OpenSession(ask) if job is self._session else actions.TakePlace(ask))

    def _has_succeeded(self, job: jobs.Job, positions: Mapping[TopicPartition, Reached]) -> None:
        match job:
            case jobs.TakeOver():
                self._claim(positions)
                self._due.placed.update(positions)
                job.partitions = tuple(partition for partition in job.partitions if partition not in positions)
                if job.partitions:
                    self._has_failed(job, "no broker tells what its log holds", of_lake=False)
                else:
                    del self._taking_over[job.topic]
            case jobs.Write():
                self._has_written(job, positions)
            case jobs.Commit():
                self._has_committed(job)
            case _ if job is self._place:
                self._place = None
                self._want_session()
            case _:
                self._note(f"a {'new ' if self.ready else ''}{self._settings.session} is there")
                self._session, self.ready = None, True

    def _has_failed(self, job: jobs.Job, fault: str, of_lake: bool, of_table: bool = False) -> None:
        if of_table and isinstance(job, jobs.OfTable) and job.refused_since is None:
            job.refused_since = self._now
        job.fault = fault
        job.failures += 1
        job.try_again_at = self._now + pause_s(job.failures)
        if isinstance(job, jobs.Write):
            job.uncertain |= of_lake and not of_table
            self._hold_back(job)
            if of_lake and self._wrote_at <= job.began:  # it may have failed for want of a session
                self._want_session()
        elif isinstance(job, jobs.TakeOver) and of_lake:
            self._want_session()
        elif job is self._place:
            self._note("the place among the commands is not known yet", reason=fault)
        is_long = self._now - job.began >= self._settings.give_up_after_s
        if job.in_vain and (is_long or (self._look.stop and isinstance(job, jobs.Commit))):
            raise ConsumerError(f"consumer {self._holding.consumer} {job.in_vain}: {fault}")

    def _want_session(self) -> None:
        if self._session is None:
            self._session = jobs.Job(limit_s=self._settings.write_limit_s, in_vain=f"has no {self._settings.session}")

    # Obeying, and leaving

    def _obey(self) -> None:
        """Follows the commands that count; acknowledges them once what they release is committed, together with its
        place among the commands and the newest that counted."""
        holding, change = self._holding.apply(self._inbox)
        stopped = set(change.stop)
        for write in self._writes.values():
            is_settled_soon = write.progresses or (write.can_be_given_up and write.ask is not None)
            if is_settled_soon and stopped & write.positions.keys():
                return
        plans = sorted({command.plan for command in self._inbox})
        self._inbox.clear()
        if holding.applied == self._holding.applied:
            return
        self._holding = holding
        self._rate = self._rate.interrupted()
        self._give_up_taking_over(stopped)
        self._gathering.batch.drop(stopped)
        self._give_up_writing(stopped)
        self._leave_unsettled(stopped)
        self._release(stopped)
        for partition in stopped:
            self._seal.pop(partition, None)
        self._seal.update(dict.fromkeys(change.start, change.seal))
        self._actions.append(actions.StopReading(change.stop))
        newest = f"{holding.incarnation} {holding.applied.epoch}.{holding.applied.sequence}"
        self._due.positions[self._commands] = Committed(self._look.taken_to, newest)
        stop, start = ([str(partition) for partition in each] for each in (change.stop, change.start))
        obeyed = {"applied": tuple(holding.applied), "plans": plans, "stopped": stop, "started": start}
        self._due.obeyed = holding, Note("a command was obeyed", obeyed)

    def _leave(self) -> None:
        """Finishes what is being written, releases all, and says so; raises where the lake does not take it."""
        for write in self._writes.values():
            if write.progresses:
                self._try(write)
        if any(write.ask for write in self._writes.values()):
            return
        if faults := [write.fault for write in self._writes.values()]:
            raise ConsumerError(f"consumer {self._holding.consumer} leaves a batch unwritten: {faults[0]}")
        self._give_up_taking_over(self._holding.stints.keys())
        if not self._owes:
            self._release(self._claimed)
        if not self._owes:
            self._report(leaving=True)
            self._note("the consumer leaves")
            self.ended = True

    def _give_up_taking_over(self, stopped: Set[TopicPartition]) -> None:
        """Lets go of a take-over that concerns any of these partitions, before the stop is acknowledged: others may
        claim them from then on. What else it concerns is taken over anew."""
        for job in list(self._taking_over.values()):
            if not stopped.isdisjoint(job.partitions):
                del self._taking_over[job.topic]
                self._asked.withdraw(job)

    def _give_up_writing(self, stopped: Set[TopicPartition]) -> None:
        """Drops what a table does not take where all of it is stopped: it is released where the table ends."""
        for write in list(self._writes.values()):
            if write.can_be_given_up and write.positions.keys() <= stopped:
                self._claimed |= {p: reached for p, reached in write.settled.items() if p in write.positions}
                self._in_vain[write.topic] = write.part.in_vain_so_far
                self._due.resumed.append(write.topic)
                del self._writes[write.topic]

    def _leave_unsettled(self, stopped: Set[TopicPartition]) -> None:
        """Lets go of partitions of which the lake has refused rows, without a commit: the claim stays as it is."""
        for write in self._writes.values():
            for partition in write.positions.keys() & stopped:
                self._note("a partition is let go unsettled", partition=str(partition), reason=write.fault)
                del write.positions[partition]
                self._claimed.pop(partition, None)

    # Commits

    @property
    def _owes(self) -> bool:
        """Whether there is anything to be committed first."""
        return self._committing is not None or bool(self._due.positions)

    def _claim(self, positions: Mapping[TopicPartition, Reached]) -> None:
        """Commits the positions as one who reads on."""
        for partition, reached in positions.items():
            self._due.positions[partition] = Committed(reached.offset, claim(self._writer), reached.epoch)

    def _release(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits the positions of those that it claims as one who reads no more."""
        for partition in self._claimed.keys() & set(partitions):
            reached = self._claimed[partition]
            self._due.positions[partition] = Committed(reached.offset, RELEASED, reached.epoch)

    def _renew_claims(self) -> None:
        """Commits all again from time to time, before Kafka forgets it; and before it forgets who commits, also where
        that has nothing: then the place among the commands."""
        self._renewed_at = self._now
        self._claim(self._claimed)
        if not self._claimed:
            self._due.positions[self._commands] = Committed(self._look.taken_to)

    def _new_commit(self) -> jobs.Commit:
        return jobs.Commit(limit_s=self._settings.give_up_after_s, in_vain="leaves without a commit")

    def _commit(self) -> None:
        """Begins a commit, or tries the one again that failed."""
        if self._cycle is not None and all(write.failures for write in self._writes.values()):
            self._due.cycles.append(self._cycle)
            self._cycle = None
        if self._committing is None and (self._due.positions or self._due.cycles):
            self._committing, self._due = self._due, self._new_commit()
        if self._committing is not None and self._committing.positions:
            self._try(self._committing)
        elif self._committing is not None:
            self._has_committed(self._committing)

    def _has_committed(self, done: jobs.Commit) -> None:
        self._committing = None
        for partition, position in done.positions.items():
            self._claimed.pop(partition, None)
            if position.claimant is not None:
                self._claimed[partition] = position.reached
        if done.placed:
            self._actions.append(actions.ReadFrom(done.placed))
        self._actions += [actions.Resume(topic) for topic in done.resumed]
        for cycle in done.cycles:
            self._end(cycle)
        if done.obeyed is not None:
            self._acknowledged, note = done.obeyed
            self._actions.append(note)
            self._report()

    # Reading and writing

    def _take_over(self) -> None:
        """Begins to take over what is to be read and was found."""
        to_place = self.to_place
        found, self._found = [partition for partition in self._found if partition in to_place], ()
        for topic, partitions in groupby(found, key=lambda partition: partition.topic):
            new = jobs.TakeOver(limit_s=self._settings.write_limit_s, topic=topic)
            job = self._taking_over.setdefault(topic, new)
            if job.ask is None and self._now >= job.try_again_at:
                job.partitions = tuple(partitions)
                self._try(job)

    def _gather(self) -> None:
        """Asks for records, or begins to write those that there are once they are a batch."""
        if not self.ready or self._look.stop or self._inbox or self._committing is not None:
            self._actions.append(actions.Wait(LOOK_EVERY_S))
            return
        ask = self._gathering.next_ask(self._now, writing=self._cycle is not None)
        batch = self._gathering.batch
        if ask is not None:
            self._actions.append(ask)
        elif self._cycle is not None or (batch.records and self._session is not None):
            self._actions.append(actions.Wait(LOOK_EVERY_S))
        elif batch.records and (wait_s := self._pace.wait_s(self._now)):
            self._actions.append(actions.Wait(min(wait_s, LOOK_EVERY_S)))
        else:
            if batch.records:
                self._begin_write(self._gathering)
            self._gathering = self._gathering.next(self._now)
            self._actions.append(actions.Wait(0.0))

    def _begin_write(self, gathered: Gathering) -> None:
        batch = gathered.batch
        self._version += 1
        self._record_bytes = batch.record_bytes
        self._pace = self._pace.after(batch.bytes, self._now)
        fetch_s = self._now - gathered.began
        self._cycle = jobs.Cycle(self._now, fetch_s, whole=True, saturated=gathered.is_full and not gathered.starved)
        for topic, of_topic in batch.split().items():
            self._writes[topic] = jobs.Write(
                limit_s=self._settings.write_limit_s,
                topic=topic,
                version=self._version,
                batch=of_topic,
                part=Part.whole(of_topic.records, self._in_vain[topic]),
                reads=of_topic.reads(self._holding.stints),
                positions=of_topic.positions,
            )
            self._try(self._writes[topic])

    def _has_written(self, write: jobs.Write, positions: Mapping[TopicPartition, Reached]) -> None:
        self._wrote_at = self._now
        write.refused_since = None
        write.settled |= positions
        if write.part.is_dead:
            self._has_set_aside(write)
        if (rest := write.part.settled()) is not None:
            self._go_on_with(write, rest)
            return
        del self._writes[write.topic]
        self._in_vain[write.topic] = write.part.in_vain
        self._claim(write.positions)
        if write.failures:
            self._due.cycles.append(jobs.Cycle(write.began, written=[write]))
            self._due.resumed.append(write.topic)
        elif self._cycle is not None:
            self._cycle.written.append(write)

    def _has_set_aside(self, write: jobs.Write) -> None:
        self._dead_letters += 1
        self._told = f"a record of {write.topic} is in the dead letters: {write.refusal}", self._now + TOLD_FOR_S

    def _was_refused(self, write: jobs.Write, refusal: str, place: int | None) -> None:
        """Looks for the record that the table refuses, to set it aside; or tries all of it again, where there are too
        many."""
        part = write.part.refused(self._settings.most_dead_letters, place)
        if part is None:
            self._name(write)
            self._has_failed(write, refusal, of_lake=True, of_table=True)
            return
        is_first = not write.failures
        write.fault = write.refusal = refusal
        self._go_on_with(write, part)
        if is_first:
            self._hold_back(write)

    def _go_on_with(self, write: jobs.Write, part: Part) -> None:
        write.part = part
        self._name(write)
        write.failures, write.try_again_at = 1, self._now

    def _name(self, write: jobs.Write) -> None:
        """What follows on what was taken or refused has a name of its own: the lake would pass over it under the one
        before."""
        self._version += 1
        write.version, write.uncertain = self._version, False

    def _hold_back(self, write: jobs.Write) -> None:
        """Reads no more of a topic whose table does not take its rows: they would only pile up behind them."""
        if write.failures == 1 and self._cycle is not None:
            self._actions.append(actions.HoldBack(write.topic, self._gathering.batch.drop_topic(write.topic)))
            self._cycle.whole = False

    def _end(self, cycle: jobs.Cycle) -> None:
        """Takes note of how long the batch took, and reports it."""
        size_bytes = sum(write.batch.bytes for write in cycle.written)
        self._rate = self._rate.ended(size_bytes, self._now, whole=cycle.whole, saturated=cycle.saturated)
        if cycle.written:
            records = sum(write.batch.records for write in cycle.written)
            reads = tuple(sorted((read for each in cycle.written for read in each.reads), key=lambda read: read.key))
            fetch_s, write_s = cycle.fetch_s, self._now - cycle.began
            self._report(Cycle(bytes=size_bytes, records=records, fetch_s=fetch_s, write_s=write_s, reads=reads))

    # Reports

    @property
    def _faults(self) -> Iterator[str]:
        """Why something is not read, not in the lake or not committed yet."""
        yield from (write.fault for _, write in sorted(self._writes.items()) if write.failures)
        if self._session is not None and self._session.failures:
            yield self._session.fault
        if self._committing is not None and self._committing.failures:
            yield f"commit: {self._committing.fault}"
        for _, job in sorted(self._taking_over.items()):
            if job.failures:
                more = f" (and {len(job.partitions) - 1} more)" if len(job.partitions) > 1 else ""
                yield f"{job.partitions[0]}: cannot be taken over: {job.fault}{more}"
        if self._look.fault is not None:
            yield self._look.fault

    @property
    def _refusing(self) -> Iterator[Refusing]:
        """The topics whose tables are at fault."""
        of_tables: list[jobs.OfTable] = [*self._writes.values(), *self._taking_over.values()]
        for topic, found in groupby(sorted(of_tables, key=lambda job: job.topic), key=lambda job: job.topic):
            since = {job.refused_since: job.fault for job in found if job.refused_since is not None}
            if since:
                first = min(since)
                yield Refusing(topic=topic, for_s=self._now - first, reason=since[first])

    @property
    def _state(self) -> tuple[ConsumerState, str | None]:
        fault = next(self._faults, None)
        if not self.ready:
            return ConsumerState.STARTING, fault
        if fault is not None:
            return ConsumerState.DEGRADED, fault
        told, until = self._told
        return ConsumerState.READY, told if self._now < until else None

    def _report(self, cycle: Cycle | None = None, *, leaving: bool = False) -> None:
        state, reason = (ConsumerState.LEAVING, None) if leaving else self._state
        if reason is not None and (state, reason) != self._reported:
            self._note("the consumer goes on with what it can", reason=reason)
        self._reports += 1
        self._reported, self._reported_at = (state, reason), self._now
        if self._lease is None:
            self._lease = Lease(self._settings.lease_s, self._now)
        holding = self._acknowledged
        held = () if leaving else holding.partitions
        report = ConsumerReport(
            group=self._group,
            consumer=holding.consumer,
            incarnation=holding.incarnation,
            sequence=self._reports,
            sent_at=0.0,
            state=state,
            reason=reason,
            applied_epoch=holding.applied.epoch,
            applied_sequence=holding.applied.sequence,
            partitions=tuple(map(PartitionRef.of, held)),
            taking_over=tuple(PartitionRef.of(each) for each in held if each not in self._claimed),
            cycle=cycle,
            lost=self._lost,
            dead_letters=self._dead_letters,
            refusing=tuple(self._refusing),
            throughput=self._rate.throughput(self._record_bytes, self._look.compression),
        )
        self._actions.append(actions.Send(report))

    def _note(self, event: str, **details: object) -> None:
        self._actions.append(Note(event, details))
