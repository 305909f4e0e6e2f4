"""What came of an action: an error, a card, sessions that were made or deleted, and where to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_terminal_app.chat.cards import Card
from agent_terminal_app.chat.commands.sessions import open_session
from agent_terminal_app.chat.words import count, one_line

if TYPE_CHECKING:
    from agent_terminal_app.chat.commands.registry import Talk

_OPENING = ("open_session", "switch_session")
_NEEDLESS = ("reload", "refresh")
"""Effects that a terminal has anyway: it reads a session anew with every request."""


async def show_outcome(talk: Talk, label: str, result: Mapping[str, Any]) -> None:
    """Show what an action came to."""
    card = Card.read(result["display"]) if "display" in result else None
    if error := result.get("error"):
        talk.fail(error.get("message") or error if isinstance(error, Mapping) else error)
    elif card is None:
        talk.note(f"{label}: {one_line(result.get('message') or 'done')}")
    if card is not None:
        show_card(talk, card)
    await _show_mutations(talk, result.get("mutations") or {})
    for effect in result.get("ui_effects") or ():
        await _follow_effect(talk, effect)


def show_card(talk: Talk, card: Card) -> None:
    """Show a card; its follow-ups can be chosen from now on, those of an earlier card no longer."""
    updated = bool(card.display_id) and card.display_id in talk.notes.shown
    for line in card.lines(color=talk.screen.color, width=talk.screen.width, updated=updated):
        talk.screen.line(line)
    talk.notes.shown.add(card.display_id)
    talk.notes.card = card


async def _show_mutations(talk: Talk, mutations: Mapping[str, Any]) -> None:
    made, changed, deleted = (list(mutations.get(key, ())) for key in ("created", "updated", "deleted"))
    here = talk.conversation.session_id
    if made:
        talk.notes.sessions = tuple(made)
        for number, session_id in enumerate(made, 1):
            talk.note(f"Made session {one_line(session_id)}; /resume {number} goes there.")
    if here in changed:
        talk.note("This session was changed.")
    if others := [one for one in changed if one != here]:
        talk.note(f"Changed {count(len(others), 'other session')}.")
    if deleted:
        talk.note(f"Deleted {count(len(deleted), 'session')}.")
    if here in deleted:
        await talk.go_to(None)
        talk.note("This one was among them; your next words begin another.")


async def _follow_effect(talk: Talk, effect: Mapping[str, Any]) -> None:
    """Do what an action wants of a front end, as far as a terminal can."""
    kind, session_id = str(effect.get("type", "")), effect.get("session_id")
    if kind in _NEEDLESS:
        return
    if kind not in _OPENING or not isinstance(session_id, str):
        talk.note(f"(The effect {one_line(kind, 40)!r} means nothing in a terminal.)")
    elif talk.conversation.running:
        talk.note(f"The agent is at work; /resume {one_line(session_id)} goes where the action wants you.")
    else:
        await open_session(talk, session_id)
        talk.note(f"This is {one_line(session_id)[:8]} now.")
