"""How much of the processors a run of tests took: it cannot be shorter than that takes."""

import os
import sys

from bench.figures import processors

_TOLD_FROM_S = 60.0
"""Of a shorter run nobody asks."""


class ProcessorTime:
    """Of this process and all that it begins, from now on."""

    def __init__(self) -> None:
        self._began = os.times()

    def tell(self) -> None:
        """Says it in a line on standard error, once all processes have ended; of a short run nothing."""
        now = os.times()
        took_s = now.elapsed - self._began.elapsed
        busy_s = sum(now[:4]) - sum(self._began[:4])
        if took_s >= _TOLD_FROM_S:
            print(  # noqa: T201
                f"{busy_s / 60:.0f} min of processor time in {took_s / 60:.0f} min: "
                f"{busy_s / (took_s * processors()):.0%} of {processors()} processors",
                file=sys.stderr,
            )
