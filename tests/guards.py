"""Breaks each guard of the protocol on purpose, and makes sure that tests notice: `python -m tests.guards`.

A guard is broken by one small change of the product's code, in a copy of the working tree. There the tests that are
named for it must fail, and fail by what they assert; unbroken, all of them must pass. Without a guard that is tested in
this way a test could pass for ever and prove nothing. Prints a page in Markdown; docs/guards.md is one. It has all
guards, and the day on which each was broken last: those that are not broken this time keep theirs.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bench.figures import markdown_table

ROOT = Path(__file__).parents[1]
WITHOUT_SERVICES = "not integration and not slow"
"""The tests of the unit column; those that start a service, and those that take long, count in the other one."""
TESTS_FAILED = 1
"""What pytest exits with where a test has failed, and nothing else is amiss."""
SUMMARY = re.compile(r"^\d+ .* in [\d.]+s\b.*$", re.MULTILINE)
"""What pytest prints last, though clients may say something after it: 1 failed, 2 passed in 3.4s."""
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|deselected)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
LONGEST_S = 1800.0
PATIENCE_S = 120.0
"""What a broken guard keeps from happening is waited for so long."""
SIDE_BY_SIDE = 2 * (os.cpu_count() or 1)
"""How many guards are broken at once, each in a copy of its own: tests on services wait most of their time."""

MODEL = "tests/controller/test_handover_model.py"
MESSAGES = "tests/controller/test_controller_by_messages.py"
RUNNER = "tests/consumer/test_runner_order.py"
ONCE = "tests/consumer/test_exactly_once.py"
CONSUMER = "tests/consumer/test_consumer_runner.py"
TAKEOVER = "tests/consumer/test_takeover.py"
TAKEOVER_ON_SERVICES = (
    "tests/consumer/test_takeover_on_services.py::"
    "test_what_the_former_reader_does_counts_until_it_is_sealed_and_nothing_after"
)
EXPLORED = (
    "tests/consumer/test_exactly_once_model.py::test_nothing_is_lost_or_doubled_whatever_dies_or_wakes_up_when[2]"
)
ONE_READER = f"{MODEL}::test_no_partition_has_two_readers_and_the_group_can_always_converge"
WITHOUT_REACH = f"{MODEL}::test_so_it_is_where_claims_do_not_say_what_each_may_read"
BEGINNING = f"{MODEL}::test_so_it_is_while_a_group_begins"
STOPPED_FIRST = f"{MESSAGES}::test_a_partition_is_started_elsewhere_only_when_its_reader_has_said_that_it_stopped"
NAMED = f"{MESSAGES}::test_a_start_names_who_read_and_is_gone"
CLAIMED = f"{MESSAGES}::test_a_claim_that_says_so_goes_with_every_start"
OBEYED_FIRST = f"{MESSAGES}::test_a_controller_that_begins_starts_nothing_before_all_that_there_are_obey_it"
ZOMBIE = f"{RUNNER}::test_one_that_was_given_up_and_wakes_up_ends_and_has_written_nothing_more"
KILLED = f"{ONCE}::test_a_kill_while_it_reads_costs_no_record_and_doubles_none"
WOKEN = f"{ONCE}::test_one_that_was_frozen_and_wakes_up_ends_and_has_written_nothing_more"
SLOW = (
    "tests/controller/test_controller_faults.py"
    "::test_however_slow_it_all_is_nobody_is_sealed_and_every_record_is_read_once"
)
PARKED = f"{MESSAGES}::test_a_topic_whose_table_takes_nothing_is_read_by_nobody_until_it_is_asked_for"
AT_FAULT = (
    "tests/consumer/test_exactly_once_model.py"
    "::test_a_table_that_takes_nothing_is_let_go_and_has_each_record_once_when_it_is_mended"
)
MAY_HAVE_COME = "test_what_may_have_come_though_its_table_is_at_fault_now_stays_claimed"
STOP_WAITS = "test_a_stop_waits_for_the_answer_of_a_table_that_was_at_fault"
NEVER_COMES = "test_what_was_refused_never_comes_though_it_was_asked_for_before_and_the_table_takes_it_now"
SLEPT = f"{ONCE}::test_one_that_sleeps_for_longer_than_its_lease_ends_also_where_nobody_took_over"


def faults(**given: int) -> str:
    """The id of a case of the handover's model."""
    return f"[{', '.join(f'{name}={count}' for name, count in given.items())}]"


@dataclass(frozen=True, slots=True)
class Guard:
    """What is broken, how, and what notices."""

    name: str
    broken_by: str
    file: str
    text: str
    """What of the file is replaced: it must be there once."""
    replacement: str
    unit: Sequence[str]
    """Tests, each of which must fail."""
    services: Sequence[str]
    """Tests on real services, each of which must fail."""


GUARDS = (
    # Who may read
    Guard(
        "A partition is stopped, the stop acknowledged, and only then the partition started elsewhere",
        "it is started though another consumer may read it",
        "controller/decide/handover.py",
        "        and readers.get(partition, 0) == (partition in member.known_to_read)\n",
        "",
        [ONE_READER + faults(plans=2), f"{STOPPED_FIRST}[in memory]"],
        [f"{STOPPED_FIRST}[on a broker]"],
    ),
    Guard(
        "Who was sent a start may read, whether it has said so or not",
        "a start that is sent is not kept",
        "controller/decide/group.py",
        "            member.pending[partition] = Pending(command.action, command.order, at, since)\n",
        "",
        [ONE_READER + faults(plans=2), f"{NAMED}[in memory-may read, as it was told to]"],
        [f"{NAMED}[on a broker-may read, as it was told to]"],
    ),
    Guard(
        "A report acknowledges only what was sent before it",
        "any report acknowledges everything",
        "controller/decide/group.py",
        "for partition, pending in member.pending.items() if pending.order > report.applied",
        "for partition, pending in member.pending.items() if False",
        [ONE_READER + faults(plans=2), f"{STOPPED_FIRST}[in memory]"],
        [f"{STOPPED_FIRST}[on a broker]"],
    ),
    Guard(
        "A controller that begins has everybody obey it first (`Guards.has_barriers`)",
        "it goes by what consumers report",
        "controller/decide/machine.py",
        "self.group.add(consumer, self._now, barrier=self._next_order())",
        "self.group.add(consumer, self._now)",
        [BEGINNING + faults(replacements=1), f"{OBEYED_FIRST}[in memory]"],
        [f"{OBEYED_FIRST}[on a broker]"],
    ),
    Guard(
        "Who has not obeyed it may read anything",
        "any report is taken for obedience",
        "controller/decide/group.py",
        "        if member.barrier and report.applied >= member.barrier:\n",
        "        if member.barrier:\n",
        [WITHOUT_REACH + faults(plans=1, replacements=1, losses=1), f"{OBEYED_FIRST}[in memory]"],
        [f"{OBEYED_FIRST}[on a broker]"],
    ),
    Guard(
        "A claim goes with every start (`Guards.claims_with_starts`)",
        "claims come every two seconds",
        "controller/decide/machine.py",
        "        if starts or self._now - self._claimed_at >= CLAIM_EVERY_S:\n",
        "        if self._now - self._claimed_at >= CLAIM_EVERY_S:\n",
        [
            "tests/controller/test_controller_machine.py::test_what_was_started_last_is_known_to_the_next_controller",
            f"{CLAIMED}[in memory]",
        ],
        [f"{CLAIMED}[on a broker]"],
    ),
    Guard(
        "A controller's epoch is higher than that of every one before it",
        "it is the highest that there was",
        "controller/decide/history.py",
        "            self._epoch + 1,",
        "            self._epoch,",
        [
            "tests/controller/test_former_writers.py"
            "::test_a_controller_begins_with_all_who_were_heard_of_and_are_not_accounted_for",
            f"{OBEYED_FIRST}[in memory]",
        ],
        ["tests/controller/test_controller_kafka.py::test_each_controller_has_a_higher_epoch_than_all_before"],
    ),
    Guard(
        "One controller can send, by one transactional id",
        "each has an id of its own",
        "controller/kafka.py",
        '"transactional.id": f"{group}.controller", "linger.ms": 0',
        '"transactional.id": f"{group}.controller.{self._incarnation}", "linger.ms": 0',
        ["tests/controller/test_one_controller.py::test_a_controller_that_begins_keeps_the_one_before_from_sending"],
        ["tests/controller/test_controller_kafka.py::test_a_deposed_controller_can_send_nothing"],
    ),
    Guard(
        "A command counts only if it is newer than all before",
        "any counts",
        "consumer/decide/commands.py",
        "(self.consumer, self.incarnation) or command.order <= applied:",
        "(self.consumer, self.incarnation):",
        [
            "tests/consumer/test_consumer_commands.py::test_a_late_command_changes_nothing",
            "tests/consumer/test_consumer_commands.py::test_a_deposed_controllers_command_changes_nothing",
        ],
        [f"{CONSUMER}::test_stale_doubled_and_foreign_commands_change_nothing"],
    ),
    Guard(
        "A command is for one process",
        "one for another process counts, too",
        "consumer/decide/commands.py",
        "if (command.consumer, command.incarnation) != (self.consumer, self.incarnation) or command.order <= applied:",
        "if command.order <= applied:",
        ["tests/consumer/test_consumer_commands.py::test_a_command_for_another_process_changes_nothing"],
        [f"{CONSUMER}::test_stale_doubled_and_foreign_commands_change_nothing"],
    ),
    # Who is sealed
    Guard(
        "A start names who may still write (`Guards.seals`)",
        "it names nobody",
        "controller/decide/group.py",
        "seal=self.former.to_seal(wanted) if action is Action.START else (),",
        "seal=(),",
        [
            BEGINNING + faults(escapes=1),
            "tests/controller/test_former_writers.py::test_who_is_gone_is_named_for_what_it_had_and_nothing_else",
            f"{NAMED}[in memory-reads and says so]",
        ],
        [f"{NAMED}[on a broker-reads and says so]"],
    ),
    Guard(
        "A consumer seals whom the start names",
        "it looks for claims only",
        "consumer/decide/machine.py",
        "told = {writer for partition in partitions for writer in self._seal.get(partition, ())}",
        "told = set[str]()",
        [
            EXPLORED,
            f"{RUNNER}::test_one_that_was_given_up_before_it_claimed_never_reads_where_the_start_of_another_named_it",
        ],
        [f"{WOKEN}[SIGSTOP-before-commit-1-0]"],
    ),
    Guard(
        "A consumer tells what it only holds yet (`Guards.tells_what_it_takes_over`)",
        "it tells nothing",
        "consumer/decide/machine.py",
        "taking_over=tuple(PartitionRef.of(each) for each in held if each not in self._claimed),",
        "taking_over=(),",
        [f"{RUNNER}::test_a_report_tells_what_is_held_and_not_read_yet"],
        [f"{CONSUMER}::test_a_consumer_begins_reads_what_it_is_told_to_and_leaves"],
    ),
    Guard(
        "Only who reads has sealed whom its start named",
        "who holds is taken for one who reads",
        "controller/decide/group.py",
        "if partition in member.held - taking_over:",
        "if partition in member.held:",
        [
            "tests/controller/test_former_writers.py"
            "::test_it_is_forgotten_when_its_successor_reads_and_not_when_it_only_holds",
            f"{MESSAGES}::test_who_only_holds_what_it_takes_over_has_sealed_nobody[in memory]",
        ],
        [f"{MESSAGES}::test_who_only_holds_what_it_takes_over_has_sealed_nobody[on a broker]"],
    ),
    Guard(
        "A controller says for the next one who may still write",
        "its claims name nobody",
        "controller/decide/machine.py",
        "return Claim(self._claims, self.paused, former.unsealed, former.settled, members, limit, standing, made)",
        "return Claim(self._claims, self.paused, {}, former.settled, members, limit, standing, made)",
        [f"{MESSAGES}::test_a_controller_says_for_the_next_one_who_may_still_write[in memory]"],
        [f"{MESSAGES}::test_a_controller_says_for_the_next_one_who_may_still_write[on a broker]"],
    ),
    Guard(
        "A controller says for the next one whom it counts on (`Guards.claims_name_members`)",
        "its claims do not say what they may read",
        "controller/decide/history.py",
        "for writer, reach in {**claim.unsealed, **claim.members}.items()",
        "for writer, reach in claim.unsealed.items()",
        [
            "tests/controller/test_beginning.py::test_a_claim_says_all_that_the_next_controller_knows",
            "tests/controller/test_controller_machine.py::test_what_was_started_last_is_known_to_the_next_controller",
        ],
        ["tests/controller/test_controller_kafka.py::test_a_controller_begins_with_what_the_newest_claim_says"],
    ),
    # The take-over
    Guard(
        "Who takes over fences the former writers",
        "it does not",
        "consumer/decide/takeover.py",
        "            offsets.fence(writer)\n",
        "",
        [EXPLORED, f"{ZOMBIE}[write-named by the start]", f"{ZOMBIE}[commit-found by its claim]"],
        [f"{TAKEOVER_ON_SERVICES}[found by its claim]", f"{WOKEN}[SIGSTOP-before-write-2-0]"],
    ),
    Guard(
        "A fence is the same transactional id once more",
        "the id is not initialised",
        "consumer/offsets.py",
        "self._producer_of(writer).init_transactions(REQUEST_LIMIT_S)",
        "self._producer_of(writer)",
        ["tests/consumer/test_fence.py::test_who_is_fenced_by_its_name_commits_nothing_more"],
        ["tests/consumer/test_group_offsets.py::test_a_fenced_writer_commits_nothing_more_and_learns_it"],
    ),
    Guard(
        "Who takes over seals the former writers",
        "it does not",
        "consumer/decide/takeover.py",
        '            lake.seal(topic, f"{group}/{writer}")\n',
        "",
        [EXPLORED, f"{ZOMBIE}[write-named by the start]"],
        [f"{TAKEOVER_ON_SERVICES}[found by its claim]", f"{WOKEN}[SIGSTOP-before-write-2-0]"],
    ),
    Guard(
        "A seal has the highest version that there is",
        "it has the lowest",
        "consumer/lake.py",
        "self._columns.get(topic, ()), writer, LAST_VERSION)",
        "self._columns.get(topic, ()), writer, 0)",
        ["tests/consumer/test_lake_names.py::test_nothing_of_a_writer_that_is_sealed_takes_effect"],
        ["tests/consumer/test_lake.py::test_a_writer_that_is_sealed_writes_no_more_and_others_do"],
    ),
    Guard(
        "Positions are looked up after the seal",
        "commits are not looked up",
        "consumer/decide/takeover.py",
        "        committed = offsets.committed(wanted)\n",
        "        committed = dict.fromkeys(wanted)\n",
        [EXPLORED, f"{TAKEOVER}::test_former_writers_are_fenced_then_sealed_and_only_then_positions_are_looked_up"],
        [f"{ONCE}::test_one_that_was_frozen_is_found_by_its_claim_where_nobody_names_it"],
    ),
    Guard(
        "Reading goes on after the last row in the lake",
        "it goes on at the commit",
        "consumer/decide/takeover.py",
        "position = next_position(last.get(partition.partition), committed[partition])",
        "position = next_position(None, committed[partition])",
        [
            EXPLORED,
            f"{TAKEOVER}::test_the_log_is_asked_only_about_what_may_be_behind",
            f"{ZOMBIE}[answer-named by the start]",
        ],
        [f"{KILLED}[SIGKILL-after-write-2-0]"],
    ),
    Guard(
        "Of a later leader is what was read later, whichever offset is higher",
        "the higher offset counts",
        "consumer/decide/reached.py",
        "return max(first, second, key=lambda reached: reached.epoch or 0)",
        "return max(first, second, key=lambda reached: reached.offset)",
        [
            "tests/consumer/test_claims.py::test_what_was_read_of_a_later_leader_counts_though_its_offsets_are_lower",
            "tests/consumer/test_cut_off.py::test_nothing_that_a_log_has_is_lost_or_doubled_whenever_it_is_cut_off",
        ],
        [
            "tests/consumer/test_takeover_on_services.py"
            "::test_what_was_appended_of_a_later_leader_counts_though_its_offsets_are_lower"
        ],
    ),
    Guard(
        "The first leader is asked too whether its log was cut off",
        "the client alone asks, of later ones",
        "consumer/fetcher.py",
        "                    self._seek(position)\n",
        "                    pass\n",
        [
            "tests/consumer/test_out_of_range.py"
            "::test_where_reading_begins_the_leader_is_asked_whether_its_log_was_cut_off"
        ],
        [
            "tests/consumer/test_out_of_range.py"
            "::test_a_leader_tells_where_its_log_was_cut_off_though_it_has_been_the_leader_for_long"
        ],
    ),
    Guard(
        "A batch does not have records from before and after a cut of the log",
        "it grows on",
        "consumer/decide/cycle.py",
        "        if self.closed:\n            return None\n",
        "",
        [
            "tests/consumer/test_consumer_machine.py::test_a_log_that_was_cut_off_ends_the_batch"
            "_and_what_is_committed_tells_which_leaders_records_it_counts"
        ],
        [f"{CONSUMER}::test_a_batch_has_no_records_from_before_and_after_a_log_was_made_anew"],
    ),
    Guard(
        "The last row is `max(offset)`, by the table's log",
        "appends note `min(offset)`",
        "consumer/table.py",
        '.aggregate([("offset", "max")])\n    offsets = zip(last["partition"].to_pylist(), last["offset_max"]',
        '.aggregate([("offset", "min")])\n    offsets = zip(last["partition"].to_pylist(), last["offset_min"]',
        ["tests/consumer/test_lake_names.py::test_the_highest_offset_is_the_last_one_by_the_log_and_by_the_rows"],
        ["tests/consumer/test_lake.py::test_the_log_tells_what_writers_appended_last"],
    ),
    Guard(
        "The last row is `max(offset)`, by the rows",
        "it is `min(offset)`",
        "consumer/lake.py",
        'agg({"offset": "max"})',
        'agg({"offset": "min"})',
        ["tests/consumer/test_lake_names.py::test_the_highest_offset_is_the_last_one_by_the_log_and_by_the_rows"],
        ["tests/consumer/test_lake.py::test_last_offsets_are_found_within_spans"],
    ),
    Guard(
        "What was looked up for an earlier start is not used for a later one",
        "it is, as long as the partition is held",
        "consumer/decide/machine.py",
        "        self._give_up_taking_over(stopped)\n",
        "",
        [
            f"{RUNNER}::test_what_was_looked_up_for_an_earlier_start_is_not_used_for_a_later_one",
            f"{SLOW}[slow take-overs]",
        ],
        [f"{CONSUMER}::test_what_was_looked_up_for_an_earlier_start_is_not_used_for_a_later_one"],
    ),
    Guard(
        "A take-over whose start holds no more fences and seals nobody",
        "it goes on",
        "consumer/runner.py",
        "            if not self.machine.is_asked(action.ask, time.monotonic()):\n",
        "            if False:\n",
        [f"{RUNNER}::test_a_take_over_that_was_given_up_puts_the_rightful_reader_out_of_action_no_more"],
        [f"{CONSUMER}::test_a_take_over_that_is_not_wanted_any_more_puts_the_rightful_reader_out_of_action_no_more"],
    ),
    # Dead letters
    Guard(
        "What was refused is tried again under another name",
        "it keeps its name, which the lake passes over",
        "consumer/decide/machine.py",
        "        if part is None:\n            self._name(write)\n",
        "        if part is None:\n",
        [
            "tests/consumer/test_consumer_machine.py"
            "::test_what_was_refused_is_tried_under_another_name_for_the_lake_would_pass_over_it_under_the_same"
        ],
        [
            "tests/consumer/test_dead_letters.py"
            "::test_a_table_that_refuses_everything_has_its_topic_wait_until_it_is_mended"
        ],
    ),
    Guard(
        "A record that was set aside behind the last row is not tried again by who takes over",
        "the dead letters are not asked",
        "consumer/decide/takeover.py",
        "    aside = lake.last_set_aside(topic, claimed) if claimed else {}\n",
        "    aside: dict[int, Reached] = {}\n",
        [f"{RUNNER}::test_a_record_that_is_refused_is_set_aside_once_wherever_its_reader_freezes[is set aside-True]"],
        [
            "tests/consumer/test_takeover_on_services.py"
            "::test_a_record_that_was_set_aside_behind_the_last_row_is_not_read_again"
        ],
    ),
    Guard(
        "A topic whose table takes nothing is to be read by nobody",
        "who reads it reads on",
        "controller/decide/decider.py",
        "        if parked := self.parking.parked:\n",
        "        if parked := frozenset[str]():\n",
        [
            "tests/controller/test_parking.py::test_a_parked_topic_is_read_by_nobody_and_all_others_go_on",
            f"{PARKED}[in memory]",
        ],
        [f"{PARKED}[on a broker]"],
    ),
    Guard(
        "What a table does not take is released only where nothing more of it can come",
        "a refusal is taken for the end of all attempts",
        "consumer/decide/jobs.py",
        "return not self.progresses and not self.uncertain",
        "return not self.progresses",
        [f"{AT_FAULT}[of two]", f"{RUNNER}::{MAY_HAVE_COME}"],
        [f"{CONSUMER}::{MAY_HAVE_COME}"],
    ),
    Guard(
        "A stop waits for the answer of a table that was at fault",
        "it is obeyed meanwhile",
        "consumer/decide/machine.py",
        " or (write.can_be_given_up and write.ask is not None)",
        "",
        [f"{AT_FAULT}[of two]", f"{RUNNER}::{STOP_WAITS}"],
        [f"{CONSUMER}::{STOP_WAITS}"],
    ),
    Guard(
        "What a table does not take is released behind what is there",
        "it is released where the batch began",
        "consumer/decide/machine.py",
        "{p: reached for p, reached in write.settled.items() if p in write.positions}",
        "{}",
        [f"{RUNNER}::test_so_it_is_behind_what_is_settled_of_a_batch"],
        [
            "tests/consumer/test_dead_letters.py"
            "::test_what_a_table_does_not_take_is_released_behind_what_is_there_and_its_reader_reads_on"
        ],
    ),
    Guard(
        "A refusal is told once nothing under its name can come any more",
        "the name is left to a request that may still be under way",
        "consumer/lake.py",
        "                if is_first or not self._has_settled(session, table, columns, version, note):\n",
        "                if True:\n",
        [f"tests/consumer/test_lake_names.py::{NEVER_COMES}"],
        [f"tests/consumer/test_dead_letters.py::{NEVER_COMES}"],
    ),
    Guard(
        "A dead letter is named by its record, whoever writes it",
        "by its writer",
        "consumer/lake.py",
        'name, note = f"{DEAD_LETTERS}/{_digest(row)}"',
        'name, note = f"{self._writer}/{_digest(row)}"',
        ["tests/consumer/test_lake_names.py::test_a_dead_letter_is_there_once_whoever_appends_it"],
        ["tests/consumer/test_dead_letters.py::test_a_record_is_set_aside_once_with_all_that_it_is_and_why"],
    ),
    # The claim
    Guard(
        "Commits claim the partition",
        "they name nobody",
        "consumer/decide/machine.py",
        "Committed(reached.offset, claim(self._writer), reached.epoch)",
        "Committed(reached.offset, RELEASED, reached.epoch)",
        [
            EXPLORED,
            f"{RUNNER}::test_a_partition_is_claimed_before_it_is_read_and_with_every_commit_until_it_is_released",
            f"{ZOMBIE}[answer-found by its claim]",
        ],
        [f"{KILLED}[SIGKILL-after-write-2-0]"],
    ),
    Guard(
        "Who claims a partition is sealed though nobody names it",
        "claims are not looked at",
        "consumer/decide/claims.py",
        "return tuple(sorted((claimants | set(told)) - {own}))",
        "return tuple(sorted(set(told) - {own}))",
        [
            "tests/consumer/test_claims.py"
            "::test_whoever_claims_a_partition_is_sealed_and_so_is_whom_the_controller_names",
            "tests/consumer/test_exactly_once_model.py::test_where_processes_are_dead_the_claims_alone_are_enough",
            f"{ZOMBIE}[write-found by its claim]",
        ],
        [
            f"{TAKEOVER_ON_SERVICES}[found by its claim]",
            f"{ONCE}::test_one_that_was_frozen_is_found_by_its_claim_where_nobody_names_it",
        ],
    ),
    Guard(
        "A partition is released before its stop is acknowledged",
        "it stays claimed",
        "consumer/decide/machine.py",
        "        self._release(stopped)\n",
        "",
        [f"{RUNNER}::test_a_partition_is_claimed_before_it_is_read_and_with_every_commit_until_it_is_released"],
        [f"{CONSUMER}::test_a_partition_that_comes_back_is_read_on_from_where_the_other_left_it"],
    ),
    Guard(
        "What the lake has not settled is let go without a commit",
        "it is released",
        "consumer/decide/machine.py",
        "                self._claimed.pop(partition, None)\n",
        "",
        [
            EXPLORED,
            f"{RUNNER}::test_a_stop_is_obeyed_while_a_write_fails_and_who_reads_next_finds_out_what_is_there"
            "[not answered]",
        ],
        [f"{CONSUMER}::test_what_the_lake_has_not_taken_stays_claimed_when_it_is_let_go"],
    ),
    Guard(
        "No two processes have one name",
        "all have the same",
        "consumer/runner.py",
        "incarnation=uuid.uuid4().hex)",
        'incarnation="a")',
        [f"{RUNNER}::test_no_two_processes_have_one_name"],
        [f"{CONSUMER}::test_commands_that_were_sent_before_a_process_began_are_not_its_own"],
    ),
    # The order of a cycle
    Guard(
        "What is committed is in the lake",
        "it is committed before it is written",
        "consumer/decide/machine.py",
        "        batch = gathered.batch\n        self._version += 1\n",
        "        batch = gathered.batch\n        self._version += 1\n"
        "        self._claim(batch.positions)\n        self._commit()\n",
        [EXPLORED, f"{RUNNER}::test_what_is_committed_is_in_the_lake"],
        [f"{KILLED}[SIGKILL-before-write-2-3]"],
    ),
    Guard(
        "A stop is acknowledged once what was being written is committed",
        "it is obeyed while a batch is written",
        "consumer/decide/machine.py",
        "            is_settled_soon = write.progresses or ",
        "            is_settled_soon = False and ",
        [
            f"{RUNNER}::test_a_stop_is_acknowledged_once_what_was_being_written_is_committed",
            f"{SLOW}[slow take-overs]",
        ],
        [f"{CONSUMER}::test_a_stop_is_acknowledged_once_what_was_being_written_is_committed"],
    ),
    Guard(
        "A stop is acknowledged once what it releases is committed",
        "it is acknowledged before",
        "consumer/decide/machine.py",
        '        self._due.obeyed = holding, Note("a command was obeyed", obeyed)\n',
        '        self._due.obeyed = holding, Note("a command was obeyed", obeyed)\n'
        "        self._acknowledged = holding\n        self._report()\n",
        [f"{SLOW}[slow commits]"],
        [f"{CONSUMER}::test_a_stop_is_acknowledged_once_what_it_releases_is_committed"],
    ),
    Guard(
        "The lake takes each append once",
        "appends have no name",
        "consumer/lake.py",
        '{"txnAppId": writer, "txnVersion": version}',
        "{}",
        ["tests/consumer/test_lake_names.py::test_an_append_that_is_repeated_is_there_once"],
        ["tests/consumer/test_lake.py::test_a_batch_that_is_written_again_is_there_once"],
    ),
    # The lease
    Guard(
        "A lease runs out",
        "it never does",
        "consumer/decide/lease.py",
        "return now >= self.runs_from + self.length_s",
        "return False",
        [
            "tests/consumer/test_lease.py::test_a_lease_runs_out_after_its_length",
            f"{RUNNER}::test_one_that_sleeps_for_longer_than_its_lease_writes_and_commits_nothing_more",
        ],
        [f"{SLEPT}[SIGSTOP-before-write-2-0]"],
    ),
    Guard(
        "It runs from when the newest report was sent that has arrived",
        "from the newest that was sent",
        "consumer/runner.py",
        "arrived = self.reporter.newest_arrived()",
        "arrived = time.monotonic()",
        [f"{RUNNER}::test_one_of_which_no_report_arrives_any_more_ends"],
        [
            "tests/consumer/test_consumer_faults.py::test_brokers_that_are_away_for_a_moment_cost_no_record"
            "_and_for_longer_than_the_lease_end_the_consumer"
        ],
    ),
    Guard(
        "A lease that has run out is never renewed",
        "a report that arrives renews it",
        "consumer/decide/lease.py",
        "if self.over(now) or sent_at <= self.runs_from:",
        "if sent_at <= self.runs_from:",
        ["tests/consumer/test_lease.py::test_a_lease_that_has_run_out_stays_so_whatever_is_acknowledged"],
        [f"{CONSUMER}::test_a_report_that_arrives_once_the_lease_has_run_out_does_not_renew_it"],
    ),
)


class GuardError(Exception):
    """A guard cannot be broken as it is written here."""


class Outcome(NamedTuple):
    """What became of some tests."""

    code: int
    passed: int
    failed: int
    left_out: int
    """Skipped, or not of this kind."""
    output: str


def main() -> None:
    options = parse_options()
    kinds = [kind for kind in ("unit", "services") if getattr(options, kind)] or ["unit", "services"]
    asked = [guard for guard in GUARDS if any(text in f"{guard.name} {guard.file}" for text in options.only)]
    guards = asked if options.only else GUARDS
    if not guards:
        sys.exit(f"no guard has {' or '.join(map(repr, options.only))} in its name or its file")
    wrong = check(guards, kinds)
    if wrong:
        sys.exit("\n".join(wrong))
    seen = seen_on(options.page.read_text(encoding="utf-8")) if options.page and options.page.exists() else {}
    if set(kinds) == {"unit", "services"}:
        seen |= dict.fromkeys((guard.name for guard in guards), f"{datetime.now(tz=UTC):%Y-%m-%d}")
    if options.page is None:
        print(page(seen), end="")
    else:
        options.page.write_text(page(seen), encoding="utf-8")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--unit", action="store_true", help="only tests without services")
    parser.add_argument("--services", action="store_true", help="only tests on real services")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", default=[], help="only guards with this in their name or file"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="where the page goes, if all is as it must be")
    return parser.parse_args()


def check(guards: Sequence[Guard], kinds: Sequence[str]) -> list[str]:
    """What is not as it must be, a sentence each."""
    with copied() as copy:
        for guard in guards:
            break_guard(copy, guard, write=False)
        wrong = [fault for kind in kinds for fault in unbroken(copy, guards, kind)]
    if wrong:
        return wrong
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(chain.from_iterable(pool.map(lambda guard: missed_by(guard, kinds), guards)))


def missed_by(guard: Guard, kinds: Sequence[str]) -> list[str]:
    """By which tests it is not noticed that the guard is broken, a sentence each."""
    wrong = []
    with copied() as copy:
        break_guard(copy, guard)
        for kind in kinds:
            for test in tests_of(guard, kind):
                began = time.monotonic()
                fault = unnoticed(run_tests(copy, [test], kind))
                say(f"{guard.name}: {fault or 'noticed'} by {test} ({time.monotonic() - began:.0f} s)")
                if fault is not None:
                    wrong.append(f"{guard.name} ({guard.file}): {fault} by {test}")
    return wrong


def tests_of(guard: Guard, kind: str) -> Sequence[str]:
    return guard.unit if kind == "unit" else guard.services


def unbroken(copy: Path, guards: Iterable[Guard], kind: str) -> Iterator[str]:
    """What is wrong with the tests where no guard is broken."""
    tests = sorted({test for guard in guards for test in tests_of(guard, kind)})
    yield from (f"{guard.name}: no test is named ({kind})" for guard in guards if not tests_of(guard, kind))
    outcome = run_tests(copy, tests, kind)
    say(f"with all guards: {outcome.passed} passed, {outcome.failed} failed ({kind})")
    if outcome.code != 0 or outcome.left_out or outcome.passed < len(tests):
        yield f"with all guards not all of these tests pass ({kind}):\n{outcome.output}"


def unnoticed(outcome: Outcome) -> str | None:
    """How a broken guard was not noticed; none if a test has failed."""
    if outcome.code == 0:
        return "not noticed"
    if outcome.code != TESTS_FAILED or not outcome.failed:
        return f"pytest ended with {outcome.code} and no failed test:\n{outcome.output}\nnot noticed"
    return None


def run_tests(copy: Path, tests: Sequence[str], kind: str) -> Outcome:
    """Runs the tests in the copy, whose code they and all that they start import; up to the first that fails."""
    asked = ["-m", WITHOUT_SERVICES] if kind == "unit" else []
    options = ["-x", "-q", "-p", "no:cacheprovider", "--color=no", "--show-capture=no", "--tb=short"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *asked, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "KCGA_TESTS_PATIENCE_S": str(PATIENCE_S)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    summaries = SUMMARY.findall(ended.stdout)
    counts = Counter({what: int(count) for count, what in COUNTED.findall(summaries[-1] if summaries else "")})
    left_out = counts["skipped"] + counts["deselected"]
    return Outcome(ended.returncode, counts["passed"], counts["failed"], left_out, ended.stdout[-4000:])


def break_guard(copy: Path, guard: Guard, *, write: bool = True) -> None:
    """Breaks it in the copy; or only makes sure that it could be.

    Raises:
        GuardError: what is to be replaced is not there, or more than once.
    """
    file = copy / guard.file
    text = file.read_text(encoding="utf-8")
    if (found := text.count(guard.text)) != 1:
        raise GuardError(f"{guard.name}: {guard.file} has {found} times, not once:\n{guard.text}")
    if write:
        file.write_text(text.replace(guard.text, guard.replacement), encoding="utf-8")


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the working tree, as it is, without what git ignores."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="kcga-guard-") as folder:
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, Path(folder) / name)
        yield Path(folder)


def seen_on(page: str) -> dict[str, str]:
    """On which day each guard of a page was broken last."""
    rows = (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| "))
    return {row[0]: row[-1] for row in rows if DAY.fullmatch(row[-1])}


def page(seen: Mapping[str, str]) -> str:
    """All guards, and the days on which they were seen to be missed."""
    rows = [
        (
            guard.name,
            f"{guard.broken_by} (`{guard.file}`)",
            cell(guard.unit),
            cell(guard.services),
            seen.get(guard.name, "never"),
        )
        for guard in GUARDS
    ]
    headings = ("guard", "broken by", "tests without services that fail", "tests on real services that fail", "seen on")
    return f"""# What breaks where a guard is broken

That each record is read once rests on guards ([exactly once](decisions/0007-exactly-once.md),
[leases and seals](decisions/0009-leases-and-seals.md)). A guard that nobody would miss is none: so each is broken on
purpose, by one small change of the code, and tests must fail. The models do the same with the protocol itself
(`tests/controller/test_handover_model.py`, `tests/consumer/test_exactly_once_model.py`).

`python -m tests.guards --page docs/guards.md` breaks them all; with `--only TEXT`, those with this in their name or
file. The last column has the last day on which each test of the row was seen to fail.

{markdown_table(headings, rows, words=len(headings))}
"""


def cell(tests: Iterable[str]) -> str:
    """Each by its file and its own name; what stands between is the same for all."""
    return "<br>".join(f"{Path(file).stem}: `{test}`" for file, _, test in (each.partition("::") for each in tests))


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except GuardError as error:
        sys.exit(str(error))
