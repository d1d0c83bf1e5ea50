"""A webhook on loopback."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sandbox.ports import LOOPBACK
from tests.patience import PATIENCE_S


class Receiver:
    """A webhook: answers with these states, then with the last of them."""

    def __init__(self, *answers: int) -> None:
        self._answers = list(answers)
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.came = threading.Condition()
        self.answers = threading.Event()
        self.answers.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.answers.wait(PATIENCE_S)
                with receiver.came:
                    answer = receiver._answers.pop(0) if len(receiver._answers) > 1 else receiver._answers[0]
                    receiver.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
                    receiver.came.notify_all()
                self.send_response(answer)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self.server.server_port}/kcga"

    @property
    def ids(self) -> list[str]:
        return [json.loads(body)["id"] for _, body in self.heard]

    def wait(self, requests: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: len(self.heard) >= requests, PATIENCE_S), self.heard


Receive = Callable[..., Receiver]
"""`receive(503, 200)` is a webhook that answers so, at last 200 for ever."""
