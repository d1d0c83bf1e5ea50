"""What comes of a benchmark's runs, each of which a process of its own can be asked for."""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TypeVar

from cli.terminal.progress import progress

Job = TypeVar("Job")
Outcome = TypeVar("Outcome")


def performed(
    perform: Callable[[Job], Outcome], jobs: Sequence[Job], processes: int, words: Callable[[Outcome], str]
) -> list[Outcome]:
    """The outcome of each job, in their order.

    Args:
        perform: does a job.
        jobs: what there is to do.
        processes: so many jobs are done at a time.
        words: what is shown of an outcome: beside a bar, and where standard error is no terminal on a line there.
    """
    outcomes = []
    # Not forked: the solver's threads would be copied in any state.
    spawning = get_context("spawn")
    with (
        ProcessPoolExecutor(processes, mp_context=spawning, initializer=_end_with_the_parent) as pool,
        progress("", len(jobs)) as advance,
    ):
        for outcome in pool.map(perform, jobs):
            outcomes.append(outcome)
            advance(words(outcome))
            if not sys.stderr.isatty():
                print(f"{len(outcomes)} of {len(jobs)}: {words(outcome)}", file=sys.stderr, flush=True)
    return outcomes


def _end_with_the_parent() -> None:
    """A process whose parent was killed would wait for jobs for ever, or go on with one for an hour."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
