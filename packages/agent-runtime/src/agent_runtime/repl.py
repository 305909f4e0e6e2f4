"""A conversation with an agent in a terminal, for trying it out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_runtime.suspension import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core import Session
    from agent_runtime.results import RunResult
    from agent_runtime.run_stream import RunStream
    from agent_runtime.suspension import Suspension


def talk(ask: Callable[..., RunStream[Any]]) -> None:
    """Read lines and show the answers until an empty line or Ctrl-D; Ctrl-C stops an answer.

    Args:
        ask: Begins a run of what was said, with the session so far and what was decided.
    """
    session: Session | None = None
    while text := _line("> "):
        result = _shown(ask(text, session=session))
        while result is not None and result.suspended:
            decisions = [_decided(question) for question in result.suspended]
            result = _shown(ask(session=result.session, decisions=decisions))
        session = session if result is None else result.session


def _line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return ""


def _decided(question: Suspension) -> Decision:
    """Ask whether a call may run; anything else than yes refuses it, and is the reason."""
    sys.stdout.write(f"{question.message}\n")
    answer = _line("y/n> ")
    if question.response_schema is not None and answer:
        return Decision(question.id, value=answer)
    if answer.lower() in ("y", "yes"):
        return Decision(question.id)
    return Decision(question.id, approved=False, reason="" if answer.lower() in ("n", "no") else answer)


def _shown(stream: RunStream[Any]) -> RunResult[Any] | None:
    """Show a run as it goes, and return what it came to."""
    out = sys.stdout
    try:
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
    except KeyboardInterrupt:
        stream.close()
        out.write("\n(stopped)\n")
        return stream.result
    result = stream.result
    if result is None:
        return None
    if result.has_output and not isinstance(result.output, str):
        out.write(f"\n{result.output!r}")
    elif not result.has_output and result.error is None and not result.suspended:
        out.write(f"\n({result.reason.detail or result.reason.code})")
    out.write("\n")
    return result
