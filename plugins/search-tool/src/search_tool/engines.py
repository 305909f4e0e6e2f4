"""Search engines: how each is asked, and how its answer is read.

An engine is asked at its own address, which must be a public one; only a SearXNG that the settings name may
be anywhere, since a person has put it there. Redirects are not followed, and answers are read up to a limit.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from agent_core.product import USER_AGENT
from agent_plugin_kit.addresses import why_not_public

_LARGEST: Final = 2_000_000
_LONGEST: Final = 500
_OK: Final = 200


class SearchError(Exception):
    """A search failed; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Result:
    """A page that was found."""

    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request to an engine.

    Attributes:
        url: The address.
        private: Whether it may be one that is not public.
        params: What stands in the address.
        headers: Its headers, the key among them.
        body: What is sent as JSON; None for a GET.
    """

    url: str
    private: bool = False
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """A search engine.

    Attributes:
        label: What people call it.
        ask: Returns the request for words, a number of results, a key and an address.
        items: Returns the results in its answer.
        text: Where in a result the words of the page are.
    """

    label: str
    ask: Callable[[str, int, str, str], Query]
    items: Callable[[Any], Any]
    text: str


def _brave(words: str, count: int, key: str, url: str) -> Query:
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return Query(url=url, params={"q": words, "count": str(count)}, headers=headers)


def _tavily(words: str, count: int, key: str, url: str) -> Query:
    headers = {"Authorization": f"Bearer {key}"}
    return Query(url=url, headers=headers, body={"query": words, "max_results": count})


def _searxng(words: str, _count: int, _key: str, url: str) -> Query:
    address = url.rstrip("/")
    address = address if address.endswith("/search") else f"{address}/search"
    return Query(url=address, private=True, params={"q": words, "format": "json"})


ENGINES: Final[Mapping[str, Engine]] = {
    "searxng": Engine("SearXNG", _searxng, lambda found: found.get("results"), "content"),
    "brave": Engine("Brave", _brave, lambda found: (found.get("web") or {}).get("results"), "description"),
    "tavily": Engine("Tavily", _tavily, lambda found: found.get("results"), "content"),
}
ADDRESSES: Final[Mapping[str, str]] = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
}


async def search(
    name: str, words: str, count: int, *, key: str, url: str, seconds: float, private: bool = False
) -> list[Result]:
    """Ask an engine.

    Args:
        name: Which one.
        key: Its key; empty for SearXNG.
        url: Its address.
        seconds: How long it has.
        private: Whether the address may be one that is not public.

    Raises:
        SearchError: If it does not answer, or not as it should.
    """
    engine = ENGINES[name]
    query = engine.ask(words, count, key, url)
    try:
        async with asyncio.timeout(seconds):
            found = await _read(engine.label, query, private=private or query.private)
    except TimeoutError:
        raise SearchError(f"{engine.label} did not answer within {seconds:g} seconds: try again") from None
    items = engine.items(found) if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise SearchError(f"{engine.label} answered something other than a list of results")
    return [one for item in items[:count] if (one := _result(item, engine.text)) is not None]


async def _read(label: str, query: Query, *, private: bool) -> Any:
    import aiohttp  # heavy, and most runs never search

    _check_literal(query.url, private=private)
    # A proxy looks up hosts itself, and is often at a private address.
    resolver = _resolver(private=private or bool(getproxies()))
    connector = aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, trust_env=True) as session,
            session.request(
                "GET" if query.body is None else "POST",
                query.url,
                params=query.params,
                headers={"User-Agent": USER_AGENT, **(query.headers or {})},
                json=query.body,
                allow_redirects=False,
            ) as response,
        ):
            if response.status != _OK:
                raise SearchError(_refused(label, response.status))
            content = await response.content.read(_LARGEST + 1)
            while len(content) <= _LARGEST and (more := await response.content.read(_LARGEST)):
                content += more
            if len(content) > _LARGEST:
                raise SearchError(f"{label} answered more than {_LARGEST:,} bytes")
            return await asyncio.to_thread(_decoded, label, content)
    except aiohttp.ClientError as error:
        raise SearchError(f"{label} cannot be reached: {error}") from error


def _decoded(label: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        hint = "; a SearXNG needs `json` among its formats (settings.yml)" if label == "SearXNG" else ""
        raise SearchError(f"{label} did not answer in JSON{hint}") from None


def _refused(label: str, status: int) -> str:
    if status in (401, 403):
        return f"{label} refuses the key (status {status}): tell the person to look at it"
    if status == 429:  # noqa: PLR2004 - HTTP's own number
        return f"{label} has had too many searches (status 429): wait, or continue without it"
    return f"{label} answered with status {status}"


def _result(item: Any, text: str) -> Result | None:
    if not isinstance(item, Mapping):
        return None
    url = str(item.get("url") or "")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return Result(_short(item.get("title")), url, _short(item.get(text)))


def _short(text: Any) -> str:
    words = " ".join(str(text or "").split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _check_literal(url: str, *, private: bool) -> None:
    """Refuse an address that is written as a number and not public; names are looked up by the resolver."""
    try:
        address = ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return
    if not private and (kind := why_not_public(address)) is not None:
        raise SearchError(f"{url} is a {kind} address, which is not asked")


def _resolver(*, private: bool) -> Any:
    """Return what looks up hosts; of an engine on the internet, only public addresses count."""
    import aiohttp

    class Public(aiohttp.abc.AbstractResolver):
        def __init__(self) -> None:
            self._inner = aiohttp.ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> Any:
            found = await self._inner.resolve(host, port, family)
            kept = [one for one in found if private or why_not_public(ip_address(one["host"])) is None]
            if not kept:
                raise OSError(errno.EACCES, f"{host} has no public address")
            return kept

        async def close(self) -> None:
            await self._inner.close()

    return Public()
