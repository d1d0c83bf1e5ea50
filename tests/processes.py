"""Processes that are none of a test's own children."""

import psutil


def is_alive(pid: int) -> bool:
    """Whether it is there, and more than what its parent has not yet taken note of."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
