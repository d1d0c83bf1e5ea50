"""Answers only who asks by a name that is known.

A page elsewhere can have its own name lead to this address, once it is loaded, and would then read what is here as if
it came from itself (DNS rebinding). The name that it asks by is its own all the same. Starlette's TrustedHostMiddleware
cannot be told that every address is fine: an address is nobody's name.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MISDIRECTED = 421


class KnownHosts:
    """Refuses requests whose `Host` is neither an address, nor localhost, nor one of `names`.

    Args:
        app: answers the others.
        names: of hosts; `*.example.com` for all that end so, `*` for all.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(_plain(name) for name in ("localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Before HTTP/1.1 a request need not name a host; every browser does.
        host = Headers(scope=scope).get("host") if scope["type"] == "http" else None
        if host is None or self._knows(host):
            await self._app(scope, receive, send)
            return
        reason = "this is not served under that name: address and localhost are fine, others go into http.allowed_hosts"
        await JSONResponse({"reason": reason}, MISDIRECTED)(scope, receive, send)

    def _knows(self, host: str) -> bool:
        try:
            name = _plain(urlsplit(f"//{host}").hostname or "")
        except ValueError:
            return False
        if "*" in self._names or name in self._names:
            return True
        _, _, parent = name.partition(".")
        while parent:
            if f"*.{parent}" in self._names:
                return True
            _, _, parent = parent.partition(".")
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")
