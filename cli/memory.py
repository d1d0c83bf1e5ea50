"""How the process of a consumer treats its memory."""

import ctypes

_ARENA_MAX = -8
"""As in glibc's malloc.h."""


def share_one_arena() -> None:
    """Has all threads allocate from the same memory, Arrow too.

    A batch is blocks of many megabytes, which are made in one thread and let go in another. With an arena for each
    thread, and a pool of Arrow's own, each would keep for later what the others could use. A libc that has no arenas is
    left as it is.
    """
    import pyarrow

    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
