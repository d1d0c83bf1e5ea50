"""How the process of a consumer treats its memory."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As in glibc's malloc.h."""
_OPTIONS = {
    _ARENA_MAX: 1,  # an arena for each thread would keep what the others could use
    _MMAP_THRESHOLD: 16 * 2**20,  # a large batch's blocks go back to the system at once: few are as large
    _TRIM_THRESHOLD: 8 * 2**20,  # nor does the end of the heap stay
}


def keep_little() -> None:
    """Has the process keep little of the memory that a batch no longer needs.

    Batches are blocks of many megabytes, which are made in one thread and let go in another; glibc, and Arrow's own
    pool, would keep several batches' worth. A libc that has no such options is left as it is.
    """
    import pyarrow

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in _OPTIONS.items():
            mallopt(option, value)
