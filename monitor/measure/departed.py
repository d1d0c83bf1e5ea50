"""Decides which partitions are gone: deleted, or of interest no more. One that is only not shown is not gone.

A monitor that has lost a right, or reaches a broker that knows no topics yet, is shown less than there is. So what was
named once stays named until the cluster, asked for its topic by name, says several times in a row that it is not there,
or shows it with fewer partitions, or shows a topic that the settings do not ask for.
"""

from collections import Counter
from collections.abc import Mapping, Set

from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from monitor.measure.interest import Topic, topics_of_interest

ROUNDS = 5
"""So many answers in a row must agree: a broker that has just begun may not know all topics."""


class Departed:
    """The partitions that were named once, and those of them that are gone.

    Args:
        wanted: names and expressions of topics.
        own: topics that no expression matches.
        before: what the monitor before this one told last, if anything.
    """

    def __init__(self, wanted: tuple[str, ...], own: frozenset[str], before: WriteSpeeds | None = None) -> None:
        self._wanted = wanted
        self._own = own
        self._named = frozenset(before.bytes_per_s) | before.unknown if before else frozenset[TopicPartition]()
        self._denied: Counter[TopicPartition] = Counter()
        """How often in a row the cluster has said that there is none, or none of interest."""
        self.gone = before.gone if before else frozenset[TopicPartition]()

    def hidden(self, shown: Set[TopicPartition]) -> frozenset[TopicPartition]:
        """The partitions that are still named and that the cluster does not show, where it shows these."""
        return self._named - shown

    def judge(self, shown: Set[TopicPartition], answers: Mapping[str, Topic | None]) -> None:
        """A round has passed.

        Args:
            shown: the partitions of interest that the cluster shows.
            answers: what it says of the topics of `hidden(shown)`: None where there is no such topic. Of one that is
                left out it says nothing: nobody answered, or the right to ask is missing.
        """
        found = {name: topic for name, topic in answers.items() if topic is not None}
        there = topics_of_interest(self._wanted, found, self._own).leaders.keys()
        denied = {p for p in self.hidden(shown) if p.topic in answers and p not in there}
        self._denied = Counter({partition: self._denied[partition] + 1 for partition in denied})
        gone = {partition for partition, times in self._denied.items() if times >= ROUNDS}
        self._named = (self._named | shown) - gone
        self.gone = (self.gone | gone) - shown
