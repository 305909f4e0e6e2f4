"""A conversation with an agent in a terminal, for trying it out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core import Session
    from agent_runtime.run_stream import RunStream


def talk(ask: Callable[[str, Session | None], RunStream[Any]]) -> None:
    """Read lines and show the answers until an empty line, Ctrl-D or Ctrl-C."""
    session: Session | None = None
    while (text := _line()) is not None:
        session = _answer(ask(text, session))


def _line() -> str | None:
    try:
        text = input("> ").strip()
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None
    return text or None


def _answer(stream: RunStream[Any]) -> Session | None:
    out = sys.stdout
    for event in stream:
        if event["type"] == "text":
            out.write(event["text"])
        elif event["type"] == "tool_call_start":
            out.write(f"\n[{event['preview']}]\n")
        elif event["type"] == "handoff":
            out.write(f"\n[{event['to_agent']} takes over]\n")
        elif event["type"] == "error":
            out.write(f"\n{event['error']['message']}\n")
        out.flush()
    result = stream.result
    if result is None:
        return None
    if result.has_output and not isinstance(result.output, str):
        out.write(f"\n{result.output!r}")
    elif not result.has_output and result.error is None:
        out.write(f"\n({result.reason.detail or result.reason.code})")
    out.write("\n")
    return result.session
