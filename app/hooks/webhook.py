"""Posts what happens to the group to a webhook, and never holds the controller up.

Requests are signed as Standard Webhooks says. An event is tried again, with longer and longer pauses, until it is taken
or given up; they go in their order, so whoever was away is told late. While too many wait, the newest are dropped: what
they say is on the topic of decisions and on the status page, too.
"""

import base64
import hashlib
import hmac
import queue
import threading
import time
from collections.abc import Iterable
from contextvars import copy_context
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import structlog
import urllib3
from prometheus_client import CollectorRegistry, Counter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from app.hooks.events import Event, Events
from app.settings import HookSettings
from controller.kafka import Received
from controller.runner import Audience
from domain.messages import ConsumerReport, ControllerClaim, Decision
from domain.secrecy import masked

log = structlog.get_logger(__name__)

MOST_WAITING = 1000
TRIES = 12
LONGEST_PAUSE_S = 60
TOLD_WITHIN_S = 5.0
"""So long at the end for what waits."""
TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""What a receiver answers that may take it later."""
TEXT = "Events for the webhook by what became of them."


class Webhook(Audience):
    """Tells a webhook of one group, from a thread of its own, as long as its context.

    Args:
        url: of the webhook.
        settings: which events it is told, and how.
        group: its name.
        registry: counts the events.
        first_pause_s: before an event is tried for the third time; the second is at once.
    """

    def __init__(
        self, url: str, settings: HookSettings, group: str, registry: CollectorRegistry, first_pause_s: float = 1.0
    ) -> None:
        self._url = url
        self._settings = settings
        self._group = group
        self._events = Events()
        self._waiting: queue.Queue[Event | None] = queue.Queue(MOST_WAITING)
        counted = Counter("kcga_hook_events", TEXT, ["group", "outcome"], registry=registry)
        self._delivered, self._dropped = (counted.labels(group, outcome) for outcome in ("delivered", "dropped"))
        retries = Retry(
            total=TRIES - 1,
            redirect=0,
            allowed_methods=None,
            status_forcelist=TRY_AGAIN,
            backoff_factor=first_pause_s / 2,
            backoff_max=LONGEST_PAUSE_S,
            retry_after_max=LONGEST_PAUSE_S,
            raise_on_redirect=False,
            raise_on_status=False,
        )
        self._pool = urllib3.PoolManager(retries=retries, timeout=settings.timeout_s)
        self._thread = threading.Thread(target=copy_context().run, args=(self._tell,), name="webhook", daemon=True)

    def decided(self, decision: Decision) -> None:
        self._take(self._events.decided(decision))

    def heard(self, message: Received) -> None:
        if isinstance(message, ConsumerReport):
            self._take(self._events.heard(message))
        elif isinstance(message, ControllerClaim):
            self._take(self._events.claimed(message))

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind in self._settings.events:
                try:
                    self._waiting.put_nowait(event)
                except queue.Full:
                    self._drop(event, f"{MOST_WAITING} events wait already")

    def _tell(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                answer = self._post(event)
            except HTTPError as error:
                self._drop(event, masked(str(error)))
                continue
            if answer < 300:
                self._delivered.inc()
            else:
                self._drop(event, f"it answers {answer}")

    def _post(self, event: Event) -> int:
        body = event.encode(self._group)
        sent_at = int(time.time())
        headers = {
            "content-type": "application/cloudevents+json",
            "webhook-id": event.id,
            "webhook-timestamp": str(sent_at),
        }
        if self._settings.key is not None:
            headers["webhook-signature"] = signature(self._settings.key, event.id, sent_at, body)
        return self._pool.request("POST", self._url, body=body, headers=headers).status

    def _drop(self, event: Event, reason: str) -> None:
        self._dropped.inc()
        log.warning("the webhook was not told", id=event.id, host=urlsplit(self._url).hostname, reason=reason)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(TOLD_WITHIN_S)


def signature(key: bytes, message: str, sent_at: int, body: bytes) -> str:
    """What proves who sent a message, by version 1 of Standard Webhooks.

    Args:
        key: that sender and receiver share.
        message: its id.
        sent_at: seconds since the epoch.
        body: of the request.
    """
    digest = hmac.new(key, f"{message}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
