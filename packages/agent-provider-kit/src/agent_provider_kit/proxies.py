"""Which proxy the environment names for an address.

The client could look this up itself, but it goes to another thread for it, at every request.
"""

from __future__ import annotations

import os
from functools import lru_cache
from urllib.parse import urlsplit

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def proxy_for(url: str) -> str | None:
    """Return the proxy for *url*, or None to go there directly.

    Raises:
        ConnectionError: If the environment names one that is no HTTP proxy.
    """
    environment = tuple(os.environ.get(name) or os.environ.get(name.upper()) for name in _VARIABLES)
    if not any(environment):
        return None
    parts = urlsplit(url)
    return _lookup(parts.scheme, parts.netloc.rpartition("@")[2], environment)


@lru_cache(maxsize=256)
def _lookup(scheme: str, host: str, environment: tuple[str | None, ...]) -> str | None:
    # The variables are in the key, so that changing one counts.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    http, https, everything, bypass = environment
    if bypass and proxy_bypass_environment(host, {"no": bypass}):
        return None
    chosen = {"http": http, "https": https}.get(scheme) or everything
    return None if chosen is None else _check(chosen if "://" in chosen else f"http://{chosen}")


def _check(proxy: str) -> str:
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https"):
        raise ConnectionError(
            f"the proxy {parts.scheme}://{parts.netloc.rpartition('@')[2]} is no HTTP proxy: "
            "name one in HTTPS_PROXY, or list the host in NO_PROXY"
        )
    return proxy
