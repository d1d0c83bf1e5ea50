"""A clock that a test sets ahead, where it would else have to sleep for as long as a consumer's limits are."""

import time
from collections.abc import Callable
from multiprocessing.sharedctypes import RawValue

from consumer import channel, fetcher, runner


class Clock:
    """In place of the module `time`. It can be handed to another process, and is set ahead there, too."""

    def __init__(self) -> None:
        self._ahead_s = RawValue("d", 0.0)

    def set_ahead(self, seconds: float) -> None:
        """So much more time has passed, for all that go by it."""
        self._ahead_s.value += seconds

    def serve(self, put: Callable[[object, str, object], None] = setattr) -> None:
        """The consumers of this process go by it from now on."""
        for module in (channel, fetcher, runner):
            put(module, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + float(self._ahead_s.value)

    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
