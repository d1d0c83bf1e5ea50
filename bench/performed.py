"""What comes of a benchmark's runs, each of which a process of its own can be asked for."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
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
        words: what is shown of an outcome.
    """
    outcomes = []
    with (
        # Not forked: the solver's threads would be copied in any state.
        ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool,
        progress("", len(jobs)) as advance,
    ):
        for outcome in pool.map(perform, jobs):
            outcomes.append(outcome)
            advance(words(outcome))
    return outcomes
