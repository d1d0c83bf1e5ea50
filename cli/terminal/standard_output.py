"""Keeps standard output for the result: native libraries print there as they please."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_for_the_result() -> Iterator[None]:
    """Within the context, what is written to file descriptor 1 goes to standard error.

    Python's own `sys.stdout` is not to be used meanwhile.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    original = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        # What C's buffers still hold was written within the context, and must not come out after it.
        ctypes.CDLL(None).fflush(None)
        os.dup2(original, 1)
        os.close(original)
