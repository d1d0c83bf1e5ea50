"""One controller at a time: the Lease is waited for, renewed, and given back.

The Lease decides who begins, and who may lay hands on Deployments. Who may command consumers is decided by Kafka, which
fences the controller before (`docs/decisions/0003-one-controller-by-transactions.md`): so a controller that cannot
renew its Lease, because the API server is away or hangs, goes on with what it can do without it.
"""

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime

import structlog
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from controller.kubernetes.api import CONFLICT, NOT_FOUND, Failure, reason_of
from controller.kubernetes.decide.lease import Record, Watched, holds_until

log = structlog.get_logger(__name__)

LOOKS_IN_LEASE = 9
"""A candidate looks so often within the time of a Lease."""
RENEWALS_IN_LEASE = 4
REQUEST_SHARE = 1 / 4
"""The part of a Lease's time after which a request is given up."""


class Election:
    """A candidate for one Lease.

    Args:
        api: the client.
        namespace: of the Lease.
        name: of the Lease, which is made where it does not exist.
        identity: of this process, different from that of every other there ever was.
        lease_s: a candidate takes over so long after the last sign of the holder.
        on_lost: called once, from another thread, when another one has taken the Lease.
    """

    def __init__(
        self,
        api: client.ApiClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_s: int,
        on_lost: Callable[[], None],
    ) -> None:
        self._api = client.CoordinationV1Api(api)
        self._namespace, self._name = namespace, name
        self._identity = identity
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._timeout_s = (lease_s * REQUEST_SHARE, lease_s * REQUEST_SHARE)
        self._version = ""
        self._may_act_until = -float("inf")
        self._end = threading.Event()
        self._renewal = threading.Thread(
            target=copy_context().run, args=(self._renew_until_the_end,), name="lease", daemon=True
        )
        self.lost = False

    @property
    def may_act(self) -> bool:
        """Whether no other one can have begun yet; False while the Lease cannot be renewed for long."""
        return time.monotonic() < self._may_act_until

    def win(self, stop: threading.Event, stands_by: Callable[[], None] = lambda: None) -> bool:
        """Returns True as soon as this one holds the Lease, which it then renews; False where `stop` is set first.

        `stands_by` is called again and again while it is another one's.
        """
        watched, complaint, holder = Watched(), "", ""
        while not stop.is_set():
            try:
                watched = watched.saw(self._read(), time.monotonic())
                if watched.may_take(self._identity, time.monotonic()) and self._write(watched.record):
                    log.info("the lease was acquired", lease=self._name, identity=self._identity)
                    self._renewal.start()
                    return True
                complaint = ""
            except Failure as error:
                watched = watched.could_not_look()
                if (reason := reason_of(error)) != complaint:
                    complaint = reason
                    log.warning("the lease cannot be had just now", lease=self._name, reason=reason)
            if watched.record is not None:
                stands_by()
                if watched.record.holder != holder:
                    holder = watched.record.holder
                    log.info("the controller stands by", lease=self._name, holder=holder)
            stop.wait(self._lease_s / LOOKS_IN_LEASE)
        return False

    def give_back(self) -> None:
        """Renews it no more; where it is still held, the next one need not wait."""
        self._end.set()
        if self._renewal.is_alive():
            self._renewal.join()
        if not self.may_act:
            return
        self._may_act_until = -float("inf")
        try:
            self._replace(self._version, holder="")
        except Failure as error:
            log.warning("the lease could not be given back", lease=self._name, reason=reason_of(error))

    def _renew_until_the_end(self) -> None:
        lapsed = False
        while not self._end.wait(self._lease_s / RENEWALS_IN_LEASE):
            try:
                self._renew()
            except Failure as error:
                if not self.may_act and not lapsed:
                    lapsed = True
                    log.error(
                        "the lease has lapsed: no consumer is created or deleted",
                        lease=self._name,
                        reason=reason_of(error),
                    )
                continue
            if self.lost:
                log.error("another controller has taken the lease", lease=self._name)
                self._on_lost()
                return
            if lapsed:
                lapsed = False
                log.info("the lease is held again", lease=self._name)

    def _renew(self) -> None:
        """Renews it, or learns that it is another one's by now."""
        sent_at = time.monotonic()
        try:
            self._version = self._replace(self._version, holder=self._identity)
        except ApiException as error:
            if error.status not in (CONFLICT, NOT_FOUND):
                raise
            # Written by somebody, perhaps by a request of ours that was given up; or deleted by hand.
            record = self._read()
            if record is not None and record.holder != self._identity:
                self.lost, self._may_act_until = True, -float("inf")
            elif not self._write(record):
                raise
        else:
            self._may_act_until = holds_until(sent_at, self._lease_s)

    def _write(self, record: Record | None) -> bool:
        """Makes it ours on the condition that it is as it was seen; False where it is not any more."""
        sent_at = time.monotonic()
        try:
            if record is None:
                self._version = self._create()
            else:
                self._version = self._replace(record.version, holder=self._identity)
        except ApiException as error:
            if error.status in (CONFLICT, NOT_FOUND):
                return False
            raise
        self._may_act_until = holds_until(sent_at, self._lease_s)
        return True

    def _read(self) -> Record | None:
        try:
            lease = self._api.read_namespaced_lease(self._name, self._namespace, _request_timeout=self._timeout_s)
        except ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return Record(
            holder=lease.spec.holder_identity or "",
            version=lease.metadata.resource_version,
            lease_s=float(lease.spec.lease_duration_seconds or self._lease_s),
        )

    def _create(self) -> str:
        body = self._body(self._identity)
        made = self._api.create_namespaced_lease(self._namespace, body, _request_timeout=self._timeout_s)
        version: str = made.metadata.resource_version
        return version

    def _replace(self, version: str, holder: str) -> str:
        """Writes it on the condition that it is still this version; the version that it has then."""
        body = self._body(holder)
        body.metadata.resource_version = version
        written = self._api.replace_namespaced_lease(
            self._name, self._namespace, body, _request_timeout=self._timeout_s
        )
        after: str = written.metadata.resource_version
        return after

    def _body(self, holder: str) -> client.V1Lease:
        now = datetime.now(UTC)
        return client.V1Lease(
            metadata=client.V1ObjectMeta(name=self._name, namespace=self._namespace),
            spec=client.V1LeaseSpec(
                holder_identity=holder,
                lease_duration_seconds=self._lease_s,
                renew_time=now,
            ),
        )
