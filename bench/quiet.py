"""A benchmark begins on a quiet machine only: `python -m bench.quiet` waits until it is one, or ends with exit code 2.

What others do on the same cores would be in its figures. So every program that writes a page calls `await_quiet` before
it begins, refuses above a load of 0.5 per core unless it is told `--busy`, and names the load on its page. The load is
the mean of a minute: that of a benchmark which has just ended is waited for until it is gone.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

MOST = 0.5
"""Of load per core."""
WAIT_S = 300.0
"""So long a load is waited for: one of 8 per core falls below `MOST` within three minutes."""
LOOK_EVERY_S = 5.0
REFUSES = 2
"""The exit code."""


@dataclass(frozen=True, slots=True)
class LoadBefore:
    """What the machine was doing when a benchmark began."""

    per_core: float
    busy: bool = False
    """Whether the benchmark was told to begin whatever the load is."""

    def __str__(self) -> str:
        return f"{self.per_core:.2f}{' (begun with `--busy`, whatever the load)' if self.busy else ''}"


def load_per_core() -> float:
    """Of the last minute, over all cores of the machine: the load is that of the whole machine, too."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def add_busy(parser: argparse.ArgumentParser) -> None:
    """The option whose value `await_quiet` takes."""
    parser.add_argument(
        "--busy", action="store_true", help=f"begin although the load per core is above {MOST:g}; the page tells"
    )


def await_quiet(
    busy: bool, *, load: Callable[[], float] = load_per_core, sleep: Callable[[float], None] = time.sleep
) -> LoadBefore:
    """Waits until the machine is quiet, and says what its load is then.

    Args:
        busy: whether any load will do.
        load: per core, now.
        sleep: for so many seconds.

    Raises:
        SystemExit: it is still not quiet after `WAIT_S`.
    """
    waited_s = 0.0
    while (per_core := load()) > MOST and not busy:
        if waited_s >= WAIT_S:
            print(
                f"the load per core is {per_core:.2f}, also after {waited_s / 60:g} minutes of waiting: a benchmark "
                f"begins at {MOST:g} or less; end what else runs here, or add --busy, of which the page will tell",
                file=sys.stderr,
            )
            raise SystemExit(REFUSES)
        if not waited_s:
            print(
                f"the load per core is {per_core:.2f}: waiting up to {WAIT_S / 60:g} minutes until it is {MOST:g} or "
                "less (--busy does not wait)",
                file=sys.stderr,
            )
        sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    return LoadBefore(per_core, busy)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quiet", description="Waits until the machine is quiet.")
    add_busy(parser)
    print(f"load per core: {await_quiet(parser.parse_args().busy)}")


if __name__ == "__main__":
    main()
