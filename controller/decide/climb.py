"""What partitions grow by that are on a climb right now, or lose together, if it goes on until a plan is carried out.

A climb is seen within seconds, long before a line through a minute is proven (`controller.decide.forecast`), and may
end at once. So it is no reason for a plan; but one that is made anyway is for where the climb leads: otherwise each
plan of a climb is too small by the time it is carried out, and partitions move again and again. A plan with fewer
consumers that is made while all fall would be too large by then, so it waits.
"""

import math
from collections import deque
from collections.abc import Mapping
from itertools import pairwise, starmap
from operator import sub

from domain.partitions import TopicPartition

STEPS = 4
"""In each of so many steps, one after the other, a partition that climbs has become faster."""
GOES_ON_BY = 2
"""The smallest of so many newest steps is how it goes on."""
SUDDEN = 5
"""A newest step of more than so many times the one before is a jump, or the first that was seen of a climb: where it
leads is not known until there is another."""
STEP_S = 1.0
"""The least time that a step takes."""
LONGEST_STEP_S = 5.0
LEAST_SHARE = 0.1
"""What is to grow, or to lose, less of its speed neither climbs nor falls."""
MOST_SHARE = 1.5
"""It is foreseen to grow by no more than this of its speed: a climb that began a moment ago is not known further, and
where acting takes a minute it has ended before."""


class Climb:
    """Remembers the speeds of `STEPS` steps."""

    def __init__(self) -> None:
        self._speeds: deque[tuple[float, Mapping[TopicPartition, float]]] = deque(maxlen=STEPS + 1)

    def measured(self, at: float, speeds: Mapping[TopicPartition, float]) -> None:
        """Speeds came, in bytes/s, that were measured at `at`, by the clock of who measured them."""
        if self._speeds:
            step_s = at - self._speeds[-1][0]
            if not 0 <= step_s <= LONGEST_STEP_S:
                self._speeds.clear()
            elif step_s < 0.9 * STEP_S:
                return
        self._speeds.append((at, speeds))

    def most(self, acting_s: float) -> dict[TopicPartition, float]:
        """The speed of each partition that climbs once a plan that is made now is carried out, in bytes/s.

        It goes on by the smaller of the two newest steps: a jump, which is one large step, is no climb, and the older
        steps of one that just began are too small, for speeds are means over a while. For the same reason a jump has
        small steps before it, which lead nowhere. How late speeds are is left out: a climb is short, and more of it
        than was seen is not foreseen.

        Args:
            acting_s: what that takes.
        """
        if len(self._speeds) <= STEPS:
            return {}
        rows = [speeds for _, speeds in self._speeds]
        steps_ahead = self._steps_in(acting_s)
        climbing = {}
        for partition, speed in rows[-1].items():
            course = [row[partition] for row in rows if partition in row]
            if len(course) == len(rows):
                steps = tuple(starmap(sub, pairwise(reversed(course))))  # the newest first
                growth = min(MOST_SHARE * speed, steps_ahead * min(steps[:GOES_ON_BY]))
                climbs = min(steps) > 0 and steps[0] <= SUDDEN * steps[1]
                if climbs and growth >= LEAST_SHARE * speed:
                    climbing[partition] = speed + growth
        return climbing

    def fall(self, acting_s: float) -> float:
        """The share of their speed that all partitions together lose until a plan that is made now is carried out.

        It goes on by the smallest of the steps that were seen, and is 0 where they did not fall in each of them, or
        hardly.

        Args:
            acting_s: what that takes.
        """
        if len(self._speeds) <= STEPS:
            return 0.0
        rows = [speeds for _, speeds in self._speeds]
        always = [partition for partition in rows[-1] if all(partition in row for row in rows)]
        sums = [math.fsum(row[partition] for partition in always) for row in rows]
        lost = self._steps_in(acting_s) * min(starmap(sub, pairwise(sums)))
        return min(1.0, lost / sums[-1]) if 0 < LEAST_SHARE * sums[-1] <= lost else 0.0

    def _steps_in(self, acting_s: float) -> float:
        return acting_s * STEPS / (self._speeds[-1][0] - self._speeds[0][0])
