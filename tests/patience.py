"""Waiting for what is sure to happen: for minutes, as machines are slow and busy; no test asserts how long it took."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = float(os.environ.get("KCGA_TESTS_PATIENCE_S", "600"))
"""So long at most anything is waited for; a quiet machine takes a fraction of it."""


def wait_until(
    condition: Callable[[], T], otherwise: Callable[[], object] = lambda: "it did not come about", every_s: float = 0.05
) -> T:
    """What the condition gives once that is true.

    Args:
        condition: is looked at again and again.
        otherwise: what the test says that fails because patience has ended.
        every_s: how long there is between two looks, in seconds.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (given := condition()):
        assert time.monotonic() < deadline, otherwise()
        time.sleep(every_s)
    return given
