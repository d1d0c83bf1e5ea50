"""The least rights that each component's user needs on the cluster.

Kafka gives rights on whole topics. So whoever may write to the metadata topic at all could write commands to any
consumer: what keeps forged ones out is that nobody but the components has that right.

Kafka takes some rights for others: who may read or write a topic may describe it, and who may write under a
transactional id may describe that. Such rights are not named again.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.settings import Settings
from app.tail import READERS
from domain.speeds import Source
from monitor.measure.interest import is_expression


class Component(StrEnum):
    MONITOR = "monitor"
    CONTROLLER = "controller"
    CONSUMER = "consumer"
    OPERATOR = "operator"
    """Whoever calls `kcga pause`, `resume`, `replan`, `explain`, `status`, `plan` or `lake verify`."""
    WATCHER = "watcher"
    """Whoever calls `kcga watch`: nothing of what it may do changes anything."""


CLUSTER = "kafka-cluster"
"""What Kafka calls the only resource of its kind."""


class Resource(StrEnum):
    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What one component needs on one resource, or on all whose names begin alike."""

    component: Component
    resource: Resource
    name: str
    operations: tuple[str, ...]
    """By the names that Kafka's own tool has for them, in ascending order."""
    prefixed: bool = False
    """`name` is what the names begin with."""
    why: str = ""


def rights(settings: Settings) -> tuple[Right, ...]:
    """All rights that the components need under these settings, component by component."""
    return (
        *_of_monitor(settings),
        *_of_controller(settings),
        *_of_consumer(settings),
        *_of_operator(settings),
        *_of_watcher(settings),
    )


def operations_on(granted: Iterable[Right], resource: Resource, name: str) -> frozenset[str]:
    """What these rights, all together, are for on the resource of that name."""
    of_kind = [right for right in granted if right.resource is resource]
    named = [right for right in of_kind if right.name == name and not right.prefixed]
    # The expressions for topics with data may match kcga's own topics too, and are not meant for those.
    meant = named or [right for right in of_kind if right.prefixed and name.startswith(right.name)]
    return frozenset(operation for right in meant for operation in right.operations)


def _of_monitor(settings: Settings) -> Iterator[Right]:
    component, topics = Component.MONITOR, settings.topics
    yield from _to_measure(settings, component)
    yield Right(component, Resource.GROUP, settings.kafka.group, ("Describe",), why="asks for the group's commits")
    why = "publishes write speeds; reads what the monitor before it told"
    yield Right(component, Resource.TOPIC, topics.write_speed, ("Read", "Write"), why=why)
    for name in (topics.metadata, topics.decisions):
        yield Right(component, Resource.TOPIC, name, ("Describe",), why="sees that it exists")


def _of_controller(settings: Settings) -> Iterator[Right]:
    component, topics, group = Component.CONTROLLER, settings.topics, settings.kafka.group
    if settings.controller.observes:
        yield from _to_watch(settings, component)
        return
    operations: tuple[str, ...] = ("AlterConfigs", "Create", "DescribeConfigs", "Read")
    yield Right(component, Resource.TOPIC, topics.write_speed, operations, why="creates and bounds it; reads speeds")
    operations = ("Alter", "AlterConfigs", "Create", "DescribeConfigs", "Read", "Write")
    why = "creates and bounds it, and adds partitions; reads reports, sends commands"
    yield Right(component, Resource.TOPIC, topics.metadata, operations, why=why)
    operations = ("AlterConfigs", "Create", "DescribeConfigs", "Write")
    why = "creates and bounds it; publishes decisions"
    yield Right(component, Resource.TOPIC, topics.decisions, operations, why=why)
    why = "sends in transactions, so that one controller acts"
    yield Right(component, Resource.TRANSACTIONAL_ID, f"{group}.controller", ("Write",), why=why)
    yield Right(component, Resource.GROUP, f"{group}.controller", ("Read",), why="its client asks for it")


def _of_consumer(settings: Settings) -> Iterator[Right]:
    component, topics, group = Component.CONSUMER, settings.topics, settings.kafka.group
    for name, prefixed in _data_topics(settings):
        yield Right(component, Resource.TOPIC, name, ("Read",), prefixed, "reads records")
    yield Right(component, Resource.TOPIC, topics.metadata, ("Read", "Write"), why="reads commands, sends reports")
    yield Right(component, Resource.GROUP, group, ("Read",), why="commits positions")
    why = "commits in transactions, so that a successor can fence it"
    yield Right(component, Resource.TRANSACTIONAL_ID, f"{group}/", ("Write",), prefixed=True, why=why)


def _of_operator(settings: Settings) -> Iterator[Right]:
    component, topics = Component.OPERATOR, settings.topics
    why = "kcga pause, resume, replan; kcga status, plan"
    yield Right(component, Resource.TOPIC, topics.metadata, ("Read", "Write"), why=why)
    yield Right(component, Resource.TOPIC, topics.write_speed, ("Read",), why="kcga status")
    yield Right(component, Resource.TOPIC, topics.decisions, ("Read",), why="kcga explain, status, plan")
    yield Right(component, Resource.GROUP, READERS, ("Read",), prefixed=True, why="kcga explain, status, plan")
    for name, prefixed in _data_topics(settings):
        yield Right(component, Resource.TOPIC, name, ("Describe",), prefixed, "kcga lake verify")


def _of_watcher(settings: Settings) -> Iterator[Right]:
    yield from _to_watch(settings, Component.WATCHER)


def _to_watch(settings: Settings, component: Component) -> Iterator[Right]:
    yield from _to_measure(settings, component)
    why = "asks for the group's members and commits"
    yield Right(component, Resource.GROUP, settings.kafka.group, ("Describe",), why=why)


def _to_measure(settings: Settings, component: Component) -> Iterator[Right]:
    if settings.monitor.source is Source.OFFSETS:
        operation, why = "Read", "asks for offsets and the cleanup policy, and looks at samples of records"
    else:
        operation, why = "Describe", "asks for offsets and the cleanup policy"
        if settings.monitor.source is not Source.PROMETHEUS:
            yield Right(component, Resource.CLUSTER, CLUSTER, ("Describe",), why="asks for the sizes of logs")
    for name, prefixed in _data_topics(settings):
        yield Right(component, Resource.TOPIC, name, tuple(sorted([operation, "DescribeConfigs"])), prefixed, why)


def _data_topics(settings: Settings) -> Iterator[tuple[str, bool]]:
    """What names the topics that are read, and whether it is only their beginning; each once, in ascending order."""
    named = {(_beginning(topic), True) if is_expression(topic) else (topic, False) for topic in settings.monitor.topics}
    yield from sorted(named)


_LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\[.-])(?![*?+{])")
"""A character of a topic's name that an expression demands as it is."""


def _beginning(expression: str) -> str:
    """What the names of all topics that match an expression begin with; nothing where that cannot be told."""
    if "|" in expression:
        return ""
    beginning, at = "", 1
    while (literal := _LITERAL.match(expression, at)) is not None:
        beginning += literal[0].removeprefix("\\")
        at = literal.end()
    return beginning
