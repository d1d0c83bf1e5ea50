"""Requests to servers of this machine by HTTP alone.

`httpx` reads the certificates of all authorities for each client, a call of `httpx.get` included: 40 ms of a processor.
"""

import ssl
from functools import partial

import httpx

_NO_AUTHORITY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

client = partial(httpx.Client, verify=_NO_AUTHORITY)
get = partial(httpx.get, verify=_NO_AUTHORITY)
stream = partial(httpx.stream, verify=_NO_AUTHORITY)
