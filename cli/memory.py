"""How the process of a consumer treats its memory."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As in glibc's malloc.h."""
_OPTIONS = {_ARENA_MAX: 2, _MMAP_THRESHOLD: 256 * 1024, _TRIM_THRESHOLD: 1024 * 1024}


def give_back() -> None:
    """Has what a batch no longer needs go back to the system, where glibc and Arrow would keep it for later.

    Batches are blocks of many megabytes, which come and go in several threads, each with an arena that keeps its own. A
    libc that has no such options is left as it is.
    """
    import pyarrow

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _OPTIONS.items():
            mallopt(option, value)
