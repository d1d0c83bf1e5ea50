"""A mirror of some objects of the cluster: listed once, then kept up by a watch.

It shows what the server said last. While the server is away or hangs, that is what was before; `SharedInformer` of the
client has neither a limit for a server that hangs nor a pause before it tries one again that is away.
"""

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

import structlog
from kubernetes.client.exceptions import ApiException
from kubernetes.watch import Watch

from controller.kubernetes.api import GONE, REQUEST_TIMEOUT_S, Failure, reason_of

log = structlog.get_logger(__name__)

WATCH_S = 30
"""The server ends a watch after so long, and it is begun again where it ended."""
SILENCE_S = 5.0
"""A watch that the server has not ended so much later is given up: the server hangs, or the way to it is cut."""
PAUSE_S = 1.0
"""Before a server is asked again that did not answer."""
BREATH_S = 0.05
"""Between two watches: one that ends watches as soon as they begin is not asked without a pause."""


class Mirror:
    """The objects that `list_objects` lists, by name.

    Args:
        what: what messages call them.
        kind: the client's class of them, such as `V1Pod`.
        list_objects: the client's function that lists and watches them, with all arguments but those for that.
    """

    def __init__(self, what: str, kind: str, list_objects: Callable[..., Any]) -> None:
        self._what = what
        self._kind = kind
        self._list = list_objects
        self._objects: dict[str, Any] = {}
        self._version: str | None = None
        """What the objects are the state of; None where they have to be listed."""
        self._guard = threading.Lock()
        self._complete = threading.Event()
        self._stop = threading.Event()
        self._watch: Watch | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name=f"mirror of {what}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def wait_complete(self, timeout_s: float) -> bool:
        """Whether all objects were listed once, which is waited for at most so long."""
        return self._complete.wait(timeout_s)

    def objects(self) -> Mapping[str, Any]:
        """The objects as the server last showed them."""
        if self._failure is not None:
            raise self._failure
        with self._guard:
            return dict(self._objects)

    def close(self) -> None:
        self._stop.set()
        if (watch := self._watch) is not None:
            watch.stop()

    def _run(self) -> None:
        try:
            self._mirror()
        except Exception as error:
            self._failure = error

    def _mirror(self) -> None:
        complaint: str | None = None
        while not self._stop.is_set():
            try:
                if self._version is None:
                    self._list_all()
                self._follow()
                complaint = None
                self._stop.wait(BREATH_S)
            except Failure as error:
                if self._stop.is_set():
                    return
                if isinstance(error, ApiException):
                    # What the watch would go on from is too old by now (410), or who knows: all is listed anew.
                    self._version = None
                    if error.status == GONE:
                        continue
                if (reason := reason_of(error)) != complaint:
                    complaint = reason
                    log.warning("kubernetes cannot be watched just now", what=self._what, reason=reason)
                self._stop.wait(PAUSE_S)

    def _list_all(self) -> None:
        """Takes all objects as they are now."""
        listed = self._list(_request_timeout=REQUEST_TIMEOUT_S)
        with self._guard:
            self._objects = {each.metadata.name: each for each in listed.items}
        self._version = listed.metadata.resource_version
        self._complete.set()

    def _follow(self) -> None:
        """Takes in what has changed since that version, until the server ends the watch."""
        self._watch = Watch(self._kind)
        connect_s, _ = REQUEST_TIMEOUT_S
        for event in self._watch.stream(
            self._list,
            resource_version=self._version,
            timeout_seconds=WATCH_S,
            allow_watch_bookmarks=True,
            _request_timeout=(connect_s, WATCH_S + SILENCE_S),
        ):
            changed = event["object"]
            with self._guard:
                match event["type"]:
                    case "ADDED" | "MODIFIED":
                        self._objects[changed.metadata.name] = changed
                    case "DELETED":
                        self._objects.pop(changed.metadata.name, None)
            self._version = self._watch.resource_version
