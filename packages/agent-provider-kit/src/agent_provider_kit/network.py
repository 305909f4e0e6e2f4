"""What every transport needs to know of the network: proxies, one TLS context, errors in plain words."""

from __future__ import annotations

import errno
import os
import re
import ssl
from functools import cache, lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

CUT_SHORT = "the connection was closed before the reply was complete"
READ_BUFFER = 256 * 1024
KEPT_ALIVE = 60.0  # seconds for which a connection waits for its next request

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SPELLED = (*_VARIABLES, *map(str.upper, _VARIABLES))
_KEYS: frozenset[object] = frozenset(
    (*_SPELLED, *map(os.fsencode, _SPELLED))
)  # Windows has texts, others bytes
_CODE = re.compile(r"\[Errno (\d+)\]")


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for *url*, or None to go there directly.

    Raises:
        ConnectionError: If the environment names one that is not an HTTP proxy.
    """
    # Asked for each request, and reading eight variables costs as much as writing its head. So what is below
    # the environment is looked at first, where there is such a thing.
    raw = getattr(os.environ, "_data", None)
    if type(raw) is dict and raw.keys().isdisjoint(_KEYS):
        return None
    environment = tuple(os.environ.get(name) or os.environ.get(name.upper()) for name in _VARIABLES)
    if not any(environment):
        return None
    parts = urlsplit(url)
    return _lookup(parts.scheme, parts.netloc.rpartition("@")[2], environment)


@lru_cache(maxsize=256)
def _lookup(scheme: str, host: str, environment: tuple[str | None, ...]) -> str | None:
    # The variables are in the key, so that changing one counts.
    http, https, everything, bypass = environment
    if bypass and proxy_bypass_environment(host, {"no": bypass}):
        return None
    chosen = {"http": http, "https": https}.get(scheme) or everything
    return None if chosen is None else _check(chosen if "://" in chosen else f"http://{chosen}")


def _check(proxy: str) -> str:
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https"):
        raise ConnectionError(
            f"the proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]} is not an HTTP proxy: "
            "name one in HTTPS_PROXY, or list the host in NO_PROXY"
        )
    return proxy


@cache
def shared_tls() -> ssl.SSLContext:
    """Return the one context of this process: making one costs more than a request."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def plain_words(error: BaseException) -> str:
    """Return what happened in words for people; those of a client are for its developers."""
    code: Any = None if isinstance(error, ssl.SSLError) else getattr(error, "errno", None)
    if code in errno.errorcode:
        return os.strerror(code)
    # A host with several addresses fails with one line about each, and only their text is kept.
    if isinstance(error, OSError) and (codes := dict.fromkeys(map(int, _CODE.findall(str(error))))):
        return "; ".join(map(os.strerror, codes))
    return str(error) or type(error).__name__
