"""From a URL to a page: every hop approved anew, every limit kept.

A redirect within a server is followed. One to another server is not: whoever allowed this URL has not seen
that one. It is returned, and the model may ask for it in a call of its own, which is gated like any other.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from web_tool.connection import Reply, open_reply
from web_tool.errors import FetchError
from web_tool.media import media_type
from web_tool.proxies import proxy_for
from web_tool.settings import IMAGE_TYPES
from web_tool.urls import join_url

if TYPE_CHECKING:
    from web_tool.reach import Reach
    from web_tool.settings import Settings
    from web_tool.urls import Url

_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a server answered.

    Attributes:
        url: Where it was found in the end.
        content_type: As the server said it.
        body: Unpacked; None if it is of a type that is not read.
        is_whole: False if there was more of the body than is read.
        length: How large the server says that it is.
        retry_after: How long the server asks to be left alone, in its own words.
    """

    url: Url
    status: int
    content_type: str
    body: bytes | None
    is_whole: bool
    length: str
    retry_after: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A redirect to another server, which was not followed."""

    source: Url
    url: Url
    status: int


async def fetch(url: Url, reach: Reach) -> Page | Moved:
    """Return the page at *url*, or where it is now.

    Raises:
        FetchError: If it cannot be read; the message says why.
    """
    seconds = reach.settings.timeout
    try:
        async with asyncio.timeout(seconds):
            return await _follow(url, reach)
    except TimeoutError:
        raise FetchError(f"{url} was not read within {seconds:g} seconds and was given up") from None


async def _follow(url: Url, reach: Reach) -> Page | Moved:
    seen = {url}
    while True:
        answer = await _ask(url, reach)
        if isinstance(answer, Page):
            return answer
        if not url.is_same_place(answer.url):
            await _check_move(answer, reach)
            return answer
        url = answer.url
        if url in seen:
            raise FetchError(f"{url} redirects in a circle: it may want cookies, which are not kept")
        if len(seen) > reach.settings.max_redirects:
            raise FetchError(f"{url.host} redirects more than {reach.settings.max_redirects} times")
        seen.add(url)


async def _ask(url: Url, reach: Reach) -> Page | Moved:
    proxy = _proxy(url, reach.settings)
    addresses = await reach.approve(url, proxied=proxy is not None)
    async with open_reply(url, addresses, reach.settings, proxy) as reply:
        if reply.status in _REDIRECTS and "Location" in reply.headers:
            return Moved(url, _target(url, reply.headers["Location"]), reply.status)
        return await _read(url, reply, reach.settings)


def _proxy(url: Url, settings: Settings) -> str | None:
    return proxy_for(url) if settings.use_proxy else None


def _target(url: Url, location: str) -> Url:
    try:
        return join_url(url, location)
    except FetchError as error:
        raise FetchError(f"{url} redirects to something that cannot be followed: {error}") from error


async def _check_move(moved: Moved, reach: Reach) -> None:
    """Refuse at once what would be refused in the next call, so that nobody is asked about it in vain."""
    try:
        await reach.approve(moved.url, proxied=_proxy(moved.url, reach.settings) is not None)
    except FetchError as error:
        raise FetchError(f"{moved.source} redirects to {moved.url}: {error}") from error


async def _read(url: Url, reply: Reply, settings: Settings) -> Page:
    content_type = reply.headers.get("Content-Type", "")
    said = media_type(content_type)
    body: bytes | None = None
    is_whole = True
    if not said or settings.reads(said):
        limit = settings.max_image_bytes if said in IMAGE_TYPES else settings.max_bytes
        body, is_whole = await reply.read(limit)
    return Page(
        url=url,
        status=reply.status,
        content_type=content_type,
        body=body,
        is_whole=is_whole,
        length=reply.headers.get("Content-Length", ""),
        retry_after=reply.headers.get("Retry-After", ""),
    )
