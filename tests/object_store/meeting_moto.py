"""moto, in which two that put the same entry of a Delta table's log at about the same time do so at once.

Run by moto's own Python: `python meeting_moto.py HOST PORT`.
"""

import sys
import threading
from collections.abc import Iterable
from typing import Any

MEETS_WITHIN_S = 1.0


class Meeting:
    """Holds each put of an entry until another of the same comes, or for a moment; then lets one after the other in.

    Whoever looks before it puts has looked by then, and found nothing.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._waiting: dict[str, threading.Event] = {}
        self._looks = threading.Lock()
        self._puts = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] != "PUT" or "/_delta_log/" not in path or not path.endswith(".json"):
            found: Iterable[bytes] = self._application(environ, start_response)
            return found
        self._meet(path)
        with self._puts:
            return list(self._application(environ, start_response))

    def _meet(self, path: str) -> None:
        with self._looks:
            other = self._waiting.pop(path, None)
            if other is None:
                own = self._waiting[path] = threading.Event()
        if other is not None:
            other.set()
        elif not own.wait(MEETS_WITHIN_S):
            with self._looks:
                self._waiting.pop(path, None)


if __name__ == "__main__":
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    serves = Meeting(DomainDispatcherApplication(create_backend_app))
    run_simple(sys.argv[1], int(sys.argv[2]), serves, threaded=True)
