"""Consumers as Deployments of one pod each.

A consumer may be alive from the moment its Deployment is asked for until its Deployment and all its pods are gone: a
Deployment that is deleted in the background is gone while its process goes on for the whole grace period. So they are
deleted in the foreground, and before a consumer is said to have ended, the server is asked once more for its pods.

Whatever is asked of the server is asked in a thread, one request of a consumer at a time, and asked again where that
helps; `consumers` collects what came of it. All else happens in the thread that calls, which must be one.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any

import structlog
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from controller.fleet import Began, FleetError, Revisions
from controller.kubernetes.api import (
    CONFLICT,
    NOT_FOUND,
    REQUEST_TIMEOUT_S,
    Failure,
    KubernetesError,
    helps_to_repeat,
    reason_of,
)
from controller.kubernetes.decide.deployment import Owner, Template, TemplateError, deployment, revision_of
from controller.kubernetes.decide.names import (
    CLASS,
    COMPONENT,
    CONSUMER,
    FIELD_MANAGER,
    GROUP,
    MANAGED_BY,
    REVISION,
    consumer_of,
    deployment_name,
    group_labels,
    pod_labels,
    selector,
)
from controller.kubernetes.decide.troubles import trouble_of_deployment, trouble_of_pod
from controller.kubernetes.mirror import Mirror
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY

log = structlog.get_logger(__name__)

AT_ONCE = 20
"""So many requests are on their way at the same time."""
COMPLETE_WITHIN_S = 60.0
"""How long the beginning waits for the consumers that exist."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
"""Before a request is repeated; twice as long each time."""
ASK_AGAIN_S = 5.0
"""A deletion that was accepted and of which nothing is seen is asked for again."""
LOOK_AGAIN_S = 0.2
MOST_FAULTS = 5
"""A creation is given up after so many faults of a server that does answer: some of them are the template's."""


class Phase(Enum):
    CREATED = auto()
    """It is asked for, until the server has accepted it."""
    EXISTS = auto()
    DELETED = auto()
    """Its end is asked for, until its Deployment is gone."""
    GONE = auto()
    """Its Deployment is gone; its pods may not be."""


@dataclass(slots=True)
class _Consumer:
    phase: Phase
    class_name: str = ORDINARY
    uid: str | None = None
    """Of its Deployment; None where that is not known to exist."""
    seen: bool = False
    """The mirror has shown this Deployment."""
    due: float = 0.0
    """When the next request may be sent, on the monotonic clock."""
    failures: int = 0
    """Of one request in a row."""
    request: "Future[Any] | None" = None
    trouble: str | None = None

    def enter(self, phase: Phase) -> None:
        self.phase, self.due, self.failures = phase, 0.0, 0


class KubernetesFleet:
    """A fleet of Deployments. Those that exist are adopted; objects without the group's labels are never touched.

    Args:
        api: the client.
        namespace: of all objects.
        group: what they are named after.
        template: the template of a class as it is now; may raise `TemplateError`.
        settings: what consumers of each class are set up with now, or a digest of it; None where that cannot be said
            just now.
        owner: what the Deployments belong to, where they belong to anything.
        may_act: whether this controller is the one; where it is not, nothing is asked of the server.

    Raises:
        KubernetesError: the server does not show what exists.
    """

    def __init__(
        self,
        api: client.ApiClient,
        *,
        namespace: str,
        group: str,
        template: Callable[[str], Template],
        settings: Callable[[], Mapping[str, str] | None],
        owner: Owner | None,
        may_act: Callable[[], bool],
    ) -> None:
        self._apps, self._core = client.AppsV1Api(api), client.CoreV1Api(api)
        self._namespace = namespace
        self._group = group
        self._template = template
        self._settings = settings
        self._owner = owner
        self._may_act = may_act
        self._consumers: dict[ConsumerId, _Consumer] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kubernetes")
        labels = group_labels(group)
        selecting = {"namespace": namespace, "label_selector": selector({k: labels[k] for k in (GROUP, COMPONENT)})}
        self._deployments = Mirror(
            "deployments", "V1Deployment", partial(self._apps.list_namespaced_deployment, **selecting)
        )
        self._pods = Mirror("pods", "V1Pod", partial(self._core.list_namespaced_pod, **selecting))
        mirrors = (self._deployments, self._pods)
        for mirror in mirrors:
            mirror.start()
        if not all(mirror.wait_complete(COMPLETE_WITHIN_S) for mirror in mirrors):
            self.close()
            raise KubernetesError(
                f"the Kubernetes API has not shown the deployments and pods in {namespace} within "
                f"{COMPLETE_WITHIN_S:g} s: what it said is in the log above"
            )
        for consumer, found in self._shown_deployments().items():
            phase = Phase.DELETED if found.metadata.deletion_timestamp else Phase.EXISTS
            self._consumers[consumer] = _Consumer(phase, _class_of(found), found.metadata.uid, seen=True)
        for consumer in self._shown_pods().keys() - self._consumers.keys():
            self._consumers[consumer] = _Consumer(Phase.GONE)

    def consumers(self) -> frozenset[ConsumerId]:
        for consumer, entry in list(self._consumers.items()):
            if entry.request is not None and entry.request.done():
                request, entry.request = entry.request, None
                self._answered(consumer, entry, request)
        self._look()
        if self._may_act():
            now = time.monotonic()
            for consumer, entry in self._consumers.items():
                if entry.request is None and entry.due <= now:
                    self._ask(consumer, entry)
        return frozenset(self._consumers)

    def revisions(self) -> Revisions:
        shown = self._shown_deployments().items()
        return Revisions.of(self._wanted(), {consumer: _began(found) for consumer, found in shown})

    def _wanted(self) -> dict[str, str] | None:
        """By class."""
        settings = self._settings()
        try:
            return None if settings is None else {name: self._revision(name, settings) for name in settings}
        except TemplateError:  # it is told where a consumer is to be made from it
            return None

    def _revision(self, class_name: str, settings: Mapping[str, str]) -> str:
        return revision_of(self._template(class_name), self._owner, settings.get(class_name, ""))

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:
        if consumer in self._consumers:
            raise FleetError(f"consumer {consumer} exists already")
        entry = self._consumers[consumer] = _Consumer(Phase.CREATED, class_name)
        if self._may_act():
            self._ask(consumer, entry)

    def delete(self, consumer: ConsumerId) -> None:
        entry = self._consumers.get(consumer)
        if entry is not None and entry.phase in (Phase.CREATED, Phase.EXISTS):
            entry.enter(Phase.DELETED)
            if entry.request is None and self._may_act():
                self._ask(consumer, entry)

    def close(self) -> None:
        """Watches and asks no more; the consumers go on."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._deployments.close()
        self._pods.close()

    # What is asked

    def _ask(self, consumer: ConsumerId, entry: _Consumer) -> None:
        request: Callable[[], Any]
        match entry.phase:
            case Phase.CREATED:
                request = partial(self._apply, consumer, entry.class_name)
            case Phase.DELETED:
                request = partial(self._delete, consumer, entry.uid)
            case Phase.GONE if consumer not in self._shown_pods():
                request = partial(self._pods_of, consumer)
            case _:
                return
        entry.request = self._pool.submit(request)

    def _apply(self, consumer: ConsumerId, class_name: str) -> str:
        """Applies the consumer's Deployment; its uid."""
        name = deployment_name(self._group, consumer)
        revision = self._revision(class_name, self._settings() or {})
        template = self._template(class_name)
        body = deployment(template, self._group, consumer, self._owner, revision, class_name)
        applied = self._apps.patch_namespaced_deployment(
            name,
            self._namespace,
            body,
            field_manager=FIELD_MANAGER,
            field_validation="Strict",
            # Not forced: a Deployment of this name that somebody else made stays as it is, and is reported.
            _content_type="application/apply-patch+yaml",
            _request_timeout=REQUEST_TIMEOUT_S,
        )
        uid: str = applied.metadata.uid
        return uid

    def _delete(self, consumer: ConsumerId, uid: str | None) -> None:
        """Asks for the end of this very Deployment; the one that is there now, if it is ours, where it is not known."""
        name = deployment_name(self._group, consumer)
        if uid is None:
            there = self._apps.read_namespaced_deployment(name, self._namespace, _request_timeout=REQUEST_TIMEOUT_S)
            if not self._is_ours(there):
                raise ApiException(status=NOT_FOUND)
            uid = there.metadata.uid
        self._apps.delete_namespaced_deployment(
            name,
            self._namespace,
            body=client.V1DeleteOptions(
                propagation_policy="Foreground",
                # A request that arrives late must not end the consumer that another controller has made since.
                preconditions=client.V1Preconditions(uid=uid),
            ),
            _request_timeout=REQUEST_TIMEOUT_S,
        )

    def _pods_of(self, consumer: ConsumerId) -> bool:
        """Whether the server, asked now, knows of a pod of the consumer that may be alive."""
        listed = self._core.list_namespaced_pod(
            self._namespace,
            label_selector=selector(pod_labels(self._group, consumer)),
            _request_timeout=REQUEST_TIMEOUT_S,
        )
        return any(map(_may_be_alive, listed.items))

    # What came of it

    def _answered(self, consumer: ConsumerId, entry: _Consumer, request: "Future[Any]") -> None:
        error = request.exception()
        if error is None:
            self._carried_out(consumer, entry, request.result())
        elif isinstance(error, Failure):
            self._failed(consumer, entry, error)
        elif isinstance(error, TemplateError):
            self._given_up(consumer, entry, str(error))
        else:
            raise error

    def _carried_out(self, consumer: ConsumerId, entry: _Consumer, result: Any) -> None:
        entry.failures = 0
        match entry.phase:
            case Phase.CREATED:
                entry.uid = result
                entry.enter(Phase.EXISTS)
            case Phase.DELETED if isinstance(result, str):
                # It was created when its end was asked for.
                entry.uid = result
            case Phase.DELETED:
                entry.due = time.monotonic() + ASK_AGAIN_S
            case Phase.GONE if result is False:
                del self._consumers[consumer]
            case Phase.GONE:
                entry.due = time.monotonic() + LOOK_AGAIN_S
            case Phase.EXISTS:
                pass

    def _failed(self, consumer: ConsumerId, entry: _Consumer, error: Exception) -> None:
        status = error.status if isinstance(error, ApiException) else None
        if entry.phase is Phase.DELETED and status in (NOT_FOUND, CONFLICT):
            # It is gone, or (by its uid) another one is in its place.
            entry.uid = None
            entry.enter(Phase.GONE)
            return
        answered_often = status is not None and entry.failures + 1 >= MOST_FAULTS
        if entry.phase is Phase.CREATED and (answered_often or not helps_to_repeat(error)):
            self._given_up(consumer, entry, reason_of(error))
            return
        if entry.failures == 0:
            log.warning(
                "kubernetes is asked again", consumer=consumer, wanted=entry.phase.name.lower(), reason=reason_of(error)
            )
        entry.due = time.monotonic() + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**entry.failures)
        entry.failures += 1

    def _given_up(self, consumer: ConsumerId, entry: _Consumer, reason: str) -> None:
        log.error("a consumer could not be created", consumer=consumer, reason=reason)
        # A request before this one may not have been answered, and yet carried out.
        entry.enter(Phase.GONE)

    # What the cluster shows

    def _look(self) -> None:
        deployments, pods = self._shown_deployments(), self._shown_pods()
        for consumer, found in deployments.items():
            entry = self._consumers.get(consumer)
            if entry is None or (entry.phase is Phase.GONE and not found.metadata.deletion_timestamp):
                # A request of this controller or of the one before that was carried out late, or somebody's own doing.
                log.warning("a consumer that nobody asked for is ended", consumer=consumer)
                entry = self._consumers[consumer] = _Consumer(Phase.DELETED, _class_of(found))
            if entry.phase is not Phase.CREATED:
                entry.uid, entry.seen = found.metadata.uid, True
        for consumer, entry in self._consumers.items():
            if entry.seen and consumer not in deployments and entry.phase in (Phase.EXISTS, Phase.DELETED):
                entry.uid = None
                entry.enter(Phase.GONE)
            self._tell_trouble(consumer, entry, deployments.get(consumer), pods.get(consumer, []))

    def _tell_trouble(self, consumer: ConsumerId, entry: _Consumer, found: Any, pods: Iterable[Any]) -> None:
        trouble = None
        if entry.phase is Phase.EXISTS:
            trouble = next((each for each in map(trouble_of_pod, pods) if each), None)
            trouble = trouble or (trouble_of_deployment(found) if found is not None else None)
        if trouble is not None and trouble != entry.trouble:
            log.error("a consumer cannot start", consumer=consumer, reason=trouble)
        entry.trouble = trouble

    def _shown_deployments(self) -> dict[ConsumerId, Any]:
        return {
            consumer: found
            for name, found in self._deployments.objects().items()
            if self._is_ours(found) and (consumer := consumer_of(name)) is not None
        }

    def _shown_pods(self) -> dict[ConsumerId, list[Any]]:
        """The pods that may be alive."""
        pods: dict[ConsumerId, list[Any]] = {}
        for pod in self._pods.objects().values():
            number = (pod.metadata.labels or {}).get(CONSUMER, "")
            if number.isdecimal() and _may_be_alive(pod):
                pods.setdefault(int(number), []).append(pod)
        return pods

    def _is_ours(self, found: Any) -> bool:
        labels = found.metadata.labels or {}
        return labels.get(GROUP) == self._group and labels.get(MANAGED_BY) == FIELD_MANAGER


def _class_of(found: Any) -> str:
    """Of a Deployment."""
    name: str = (found.metadata.labels or {}).get(CLASS, ORDINARY)
    return name


def _began(found: Any) -> Began:
    return Began(_class_of(found), (found.metadata.annotations or {}).get(REVISION, ""))


def _may_be_alive(pod: Any) -> bool:
    """A pod in one of the other phases has ended all its containers for good."""
    return pod.status.phase not in ("Succeeded", "Failed")
