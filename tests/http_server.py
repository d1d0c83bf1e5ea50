"""What servers of the tests on this machine have in common."""

import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from sandbox.ports import LOOPBACK

Answer = Callable[[BaseHTTPRequestHandler], tuple[int, bytes]]
"""To what was asked: a status, and JSON."""


def serve(answer: Answer, port: int = 0, tls: ssl.SSLContext | None = None) -> ThreadingHTTPServer:
    """A server on this port, or a free one, until `close`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def close(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


def form_of(asked: BaseHTTPRequestHandler) -> dict[str, list[str]]:
    """What was sent with it."""
    return parse_qs(asked.rfile.read(int(asked.headers["content-length"])).decode())
