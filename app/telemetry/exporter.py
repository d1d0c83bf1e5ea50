"""Serves health, readiness and metrics of one component."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.errors import KcgaError
from app.settings import HttpSettings, Port
from app.status.health import Health
from app.status.server import PortError, StatusServer
from domain.secrecy import masked

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Probes:
    """What is asked of a component."""

    alive: Callable[[], Health]
    """Whether the process does anything; one that does not should be started anew."""
    ready: Callable[[], Health]
    """Whether it does what it is for."""
    registry: CollectorRegistry | None = None
    """Of the figures, where they are served."""


@contextmanager
def served(http: HttpSettings, port: Port | None, probes: Probes) -> Iterator[None]:
    """Serves all that is asked of a component at `port`, and its health alone at `http.probe_port`, where they are set.

    Raises:
        KcgaError: one of them cannot be had.
    """
    with ExitStack() as serving:
        for at, asked in ((port, probes), (http.probe_port, Probes(probes.alive, probes.ready))):
            if at is not None:
                server = listening(http, at, "health and metrics" if asked.registry else "health")
                serving.enter_context(server.serve(probes_app(asked)))
        yield


def listening(http: HttpSettings, port: Port, what: str) -> StatusServer:
    """The server at that port, which serves nothing yet.

    Raises:
        KcgaError: the address or the port cannot be had.
    """
    try:
        return StatusServer(http.host, port, allowed_hosts=http.allowed_hosts, what=what)
    except PortError as error:
        raise KcgaError(f"{error}: set another port in [http]") from error


def probes_app(probes: Probes) -> Starlette:
    """Answers `/healthz`, `/readyz` and, where there is a registry, `/metrics`."""

    def alive(_request: Request) -> Response:
        return _answer(probes.alive())

    def ready(_request: Request) -> Response:
        return _answer(probes.ready())

    routes = [Route("/healthz", alive), Route("/readyz", ready)]
    if (registry := probes.registry) is not None:

        def metrics(request: Request) -> Response:
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
            return Response(encode(registry), headers={**HEADERS, "Content-Type": content_type})

        routes.append(Route("/metrics", metrics))
    paths = ", ".join(route.path for route in routes)

    def refused(_request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return JSONResponse({"reason": f"there is only GET of {paths}"}, status, headers=HEADERS)

    return Starlette(routes=routes, exception_handlers={HTTPException: refused})


def _answer(health: Health) -> Response:
    return JSONResponse({"ok": health.ok, "reason": masked(health.reason)}, 200 if health.ok else 503, headers=HEADERS)
