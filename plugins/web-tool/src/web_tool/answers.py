"""What the model reads, and what a person sees, of a page."""

from __future__ import annotations

import json
from base64 import b64encode
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from web_tool.charsets import decode
from web_tool.frames import clean_text, frame
from web_tool.html_text import read_html
from web_tool.media import charset, media_type, recognise

if TYPE_CHECKING:
    from web_tool.fetching import Moved, Page
    from web_tool.settings import Settings

Answer = dict[str, Any]

_BAD = 400
_ERROR_TEXT = 2_000
"""So much of an error's page is quoted; it often says what is wrong."""

_HINTS = {
    401: "it wants a login, which this tool has none of",
    403: "it does not let programs in, or wants a login",
    404: "look for the right address",
    407: "a proxy wants a login",
    410: "the page is gone for good",
    429: "too many requests; wait before you try again",
    451: "it is not available for legal reasons",
    503: "try again later",
    511: "the network wants a login first, in a browser",
}


class Content(NamedTuple):
    """A page as text: as far as it was read, or at least as far as it is wanted."""

    title: str
    text: str
    media_type: str
    is_whole: bool


def failed(problem: str) -> Answer:
    """Return the answer for a page that could not be read."""
    return {"success": False, "error": problem, "shown": problem}


def moved(answer: Moved) -> Answer:
    """Return the answer for a redirect to another server."""
    place = f"{answer.source} has moved to {answer.url}"
    told = f"{place} (status {answer.status}), which is another server. Nothing was read there."
    return {
        "success": True,
        "result": f"{told} Call fetch_url again with that URL if you want to read it.",
        "shown": place,
    }


def of_page(page: Page, settings: Settings, start: int) -> Answer:
    """Return the answer for a page, from character *start* on. Takes a moment for a large one."""
    if page.status >= _BAD:
        return _of_refusal(page)
    if page.body is None:
        return _named(page, media_type(page.content_type), page.length)
    kind, name = recognise(media_type(page.content_type), page.body)
    if kind == "image" and settings.reads(name):
        return _of_picture(page, name, settings)
    if kind in ("image", "binary"):
        return _named(page, name, page.length or (str(len(page.body)) if page.is_whole else ""))
    content = _content(page, kind, name, start + settings.max_characters)
    return _of_text(page, content, settings, start)


def _content(page: Page, kind: str, name: str, enough: int) -> Content:
    assert page.body is not None
    text = decode(page.body, charset(page.content_type))
    if kind != "html":
        return Content("", clean_text(text), name, page.is_whole)
    read = read_html(text, page.url, enough)
    return Content(read.title, read.text, name, page.is_whole and read.is_whole)


def _of_text(page: Page, content: Content, settings: Settings, start: int) -> Answer:
    length = len(content.text)
    if start and start >= length:
        return failed(f"{page.url} has only {length} characters: there is nothing from {start} on")
    end = min(length, start + settings.max_characters)
    title = f"Title: {content.title}\n\n" if content.title else ""
    body = content.text[start:end] or "(There is no text. A page like this may need a browser.)"
    told = [frame(title + body, page.url), *_notes(page, content, start, end)]
    what = f"{content.media_type}, characters {start} to {end}"
    return {
        "success": True,
        "result": "\n".join(told),
        "shown": "\n".join(filter(None, [content.title, str(page.url), what])),
    }


def _notes(page: Page, content: Content, start: int, end: int) -> list[str]:
    """Return what is to be said about the part of a page that is not there."""
    if end < len(content.text):
        more = "at least " if not content.is_whole else ""
        count = f"characters {start} to {end} of {more}{len(content.text)}"
        return [f"These are {count}. Call fetch_url again with start={end} for more."]
    if not content.is_whole:
        return [f"{page.url} is too large to be read to its end; what is above is all that was read."]
    return []


def _of_picture(page: Page, name: str, settings: Settings) -> Answer:
    assert page.body is not None
    size = len(page.body)
    if not page.is_whole or size > settings.max_image_bytes:
        return _named(page, name, page.length, "a picture too large to be shown")
    told = f"The picture at {page.url} ({name}, {size} bytes)."
    picture = {"mime_type": name, "data": b64encode(page.body).decode("ascii")}
    return {"success": True, "result": told, "picture": picture, "shown": told}


def _named(page: Page, name: str, length: str, why: str = "no text, and cannot be shown") -> Answer:
    """Return the answer for something that is no text, or no picture that is shown."""
    size = f", {length} bytes" if length.isascii() and length.isdecimal() else ""
    told = f"{page.url} is {name or 'of an unknown type'}{size}: {why}."
    return {"success": True, "result": told, "shown": told}


def _of_refusal(page: Page) -> Answer:
    phrase = next((status.phrase for status in HTTPStatus if status == page.status), "an unknown status")
    problem = f"{page.url} answered {page.status} ({phrase})"
    if page.status in _HINTS:
        problem += f": {_HINTS[page.status]}"
    if page.retry_after:
        problem += f". It asks to wait: {json.dumps(page.retry_after[:60])}"
    quoted = _quoted(page)
    return {"success": False, "error": f"{problem}.\n{quoted}".strip(), "shown": problem}


def _quoted(page: Page) -> str:
    kind, name = recognise(media_type(page.content_type), page.body or b"")
    if not page.body or kind not in ("html", "text"):
        return ""
    text = _content(page, kind, name, _ERROR_TEXT).text[:_ERROR_TEXT]
    return frame(text, page.url) if text.strip() else ""
