"""The proxy that the environment names, for settings that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib import request

from web_tool.errors import FetchError

if TYPE_CHECKING:
    from web_tool.urls import Url

_urllib: Any = request  # the functions are documented, and their types are not there


def proxy_for(url: Url) -> str | None:
    """Return the proxy for *url*, or None to go there directly.

    Raises:
        FetchError: If the environment names one that is no HTTP proxy.
    """
    proxies: dict[str, str] = _urllib.getproxies_environment()
    chosen = proxies.get(url.scheme) or proxies.get("all")
    if not chosen or _urllib.proxy_bypass_environment(f"{url.host}:{url.port}", proxies):
        return None
    proxy = chosen if "://" in chosen else f"http://{chosen}"
    if not proxy.startswith(("http://", "https://")):
        raise FetchError("the proxy of the environment is no HTTP proxy: name one in HTTPS_PROXY")
    return proxy
