"""Conversations in forms for reading: Markdown, HTML, JSON; without secrets, unless they are asked for.

What users and models said may hold anything. In HTML it is shown and never run: there is no HTML in it but
ours, links go to http and https only, pictures are links, and the page allows itself no script.
"""

from __future__ import annotations

import html
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent_app.redaction import Redactor
from agent_app.transfer.export import redacted
from agent_core.clean_text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_app.store.base import SessionInfo
    from agent_core import Message, Session

_WHO = {"user": "You", "assistant": "Agent", "tool": "Tool", "system": "System"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
section {{ border-left: 3px solid #8884; margin: 1.5rem 0; padding-left: 1rem; }}
section.user {{ border-color: #47c; }}
h2 {{ font-size: 0.9rem; margin: 0; opacity: 0.7; }}
pre {{ overflow-x: auto; background: #8882; padding: 0.5rem; white-space: pre-wrap; }}
:root {{ color-scheme: light dark; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{about}</p>
{messages}
</body>
</html>
"""


def readable(info: SessionInfo, session: Session, form: str, *, redact: bool = True) -> str:
    """Return a session in one of `FORMS`.

    Args:
        redact: Whether what looks like a secret is left out.
    """
    if redact:
        redactor = Redactor.from_environment()
        info, session = replace(info, title=redactor.text(info.title)), redacted(session, redactor)
    return FORMS[form](info, session)


def as_json(_info: SessionInfo, session: Session) -> str:
    """Return the session as the core writes it, which can be imported again."""
    text = json.dumps(session.to_dict(), indent=2, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode() + "\n"


def as_markdown(info: SessionInfo, session: Session) -> str:
    """Return the conversation as Markdown: a heading for each message, its text as it was written."""
    blocks = [f"# {_title(info)}", _about(info)]
    for message in session.messages:
        blocks += [f"## {who(message)}", *markdown_parts(message)]
    return "\n\n".join(blocks) + "\n"


def as_html(info: SessionInfo, session: Session) -> str:
    """Return the conversation as one page that loads nothing and runs nothing."""
    render = _renderer()
    messages = "\n".join(_section(message, render) for message in session.messages)
    return _PAGE.format(title=html.escape(_title(info)), about=html.escape(_about(info)), messages=messages)


FORMS: Mapping[str, Callable[[SessionInfo, Session], str]] = {
    "md": as_markdown,
    "html": as_html,
    "json": as_json,
}
"""How a session is written for reading."""


def _title(info: SessionInfo) -> str:
    return " ".join(clean(info.title).split()) or f"Session {info.id[:8]}"


def _about(info: SessionInfo) -> str:
    return f"{info.id}, {clean(info.agent_id or 'no agent')}, {_moment(info.updated)}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def who(message: Message) -> str:
    """Return who said a message, as a heading."""
    name = _WHO.get(message.role, message.role)
    tool = message.metadata.get("tool_name")
    speaker = f"{name} {clean(str(tool))}" if message.role == "tool" and tool else name
    return f"{speaker} (interrupted)" if message.is_interrupted else speaker


def _text(message: Message) -> str:
    content = message.content if isinstance(message.content, str) else json.dumps(message.content)
    return clean(content).strip("\n")


def _extras(message: Message) -> Iterator[str]:
    """Yield a line for each attachment and each tool call of a message."""
    for part in message.multipart_content or ():
        if part.get("type") != "text":
            yield f"attached {part.get('type')} {part.get('name') or part.get('mime_type') or ''}".rstrip()
    for call in message.tool_calls:
        inner: Mapping[str, Any] = call.get("function") or call.get("custom") or {}
        yield f"calls {inner.get('name', '')} {inner.get('arguments') or inner.get('input') or ''}".rstrip()


def markdown_parts(message: Message) -> Iterator[str]:
    """Yield the text of a message as Markdown, then a block for each attachment and tool call."""
    text = _text(message)
    if text:
        yield _fenced(text) if message.role == "tool" else text
    for line in _extras(message):
        yield _fenced(clean(line))


def _fenced(text: str) -> str:
    """Return text in a code block that nothing in it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _section(message: Message, render: Callable[[str], str]) -> str:
    text = _text(message)
    body = f"<pre>{html.escape(text)}</pre>" if message.role == "tool" else render(text)
    extras = "".join(f"<pre>{html.escape(clean(line))}</pre>" for line in _extras(message))
    role = message.role if message.role in _WHO else "other"
    heading = f"<h2>{html.escape(who(message))}</h2>"
    return f'<section class="{role}">{heading}{body if text else ""}{extras}</section>'


def _renderer() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    markdown.validateLink = _is_link  # type: ignore[method-assign]  # it is meant to be replaced
    render: Callable[[str], str] = markdown.render
    return render


def _is_link(url: str) -> bool:
    return url.lower().startswith(("https://", "http://"))
