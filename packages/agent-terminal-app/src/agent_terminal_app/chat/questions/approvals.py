"""Approvals: the questions of a conversation, one after the other.

A single key answers, so a question takes no key before it could be seen: it is ready when it has been on the
screen for a moment in which nobody typed. A line that was begun before that does not answer it either, and a
question that somebody else has answered is not answered twice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from agent_app import DecisionNotAccepted
from agent_runtime import SpecError
from agent_terminal_app.chat.rendering.text import clean, one_line, styled
from agent_terminal_app.chat.rendering.wrap import rows_of
from agent_terminal_app.rows import in_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_app.store.base import GrantScope
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.questions.question import Answer, Question
    from agent_terminal_app.chat.rendering.screen import Screen


PAGE = 300
"""How many lines of a question are shown at once."""
MORE = "more"
"""What shows the next lines."""
MORE_KEYS = ("m", " ")
"""The keys for that."""
QUIET = 0.5
"""For how many seconds nobody may have typed before a question takes keys."""
_NO = ("n", "no")


class Unclear(ValueError):
    """A line does not answer the question; the message says what would."""


class Approvals:
    """The questions of a conversation: shown one after the other, and answered.

    Args:
        screen: Where they are shown.
        changed: Called when a question has become ready for keys.
    """

    def __init__(self, screen: Screen, changed: Callable[[], None] = lambda: None) -> None:
        self._screen = screen
        self._changed = changed
        self._shown: Question | None = None
        self._typed = ""
        self._begun_before = False
        self._rest: list[str] = []
        self._ready = True
        self._timer: asyncio.TimerHandle | None = None

    @property
    def shown_id(self) -> str:
        """Which question was shown last; empty if none is open."""
        return "" if self._shown is None else self._shown.id

    @property
    def is_ready(self) -> bool:
        """Whether the question that was shown takes keys by now."""
        return self._shown is not None and self._ready

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys that answer the question at once, each with the line that it stands for."""
        if self._shown is None or not self.is_ready or self._begun_before:
            return {}
        return {**self._shown.keys, **(dict.fromkeys(MORE_KEYS, MORE) if self._rest else {})}

    def typing(self, text: str) -> None:
        """Note what stands in the input now."""
        self._typed = text
        if not text:  # whatever comes now is begun with the question before one's eyes
            self._begun_before = False
        elif self._shown is not None and not self._ready:
            self._begun_before = True

    def pressed(self) -> None:
        """Note that a key was pressed: who is typing does not read."""
        if not self._ready:
            self._wait_for_quiet()

    def _wait_for_quiet(self) -> None:
        """Take keys when nobody has typed for a moment; a screen that is not drawn on takes lines alone."""
        self._ready = not self._screen.is_live
        if self._timer is not None:
            self._timer.cancel()
        if not self._ready:
            self._timer = asyncio.get_running_loop().call_later(QUIET, self._become_ready)

    def _become_ready(self) -> None:
        self._ready = True
        self._changed()

    def typed_before(self) -> None:
        """Note that the next line was typed before the question could be seen."""
        self._begun_before = True

    def waits_in(self, conversation: Conversation) -> bool:
        """Say whether a question of the session was shown that nobody has answered here."""
        return self._shown is not None and self._shown.approval.session_id == conversation.session_id

    async def ask(self, conversation: Conversation) -> bool:
        """Show the next question, if there is one; say whether there is."""
        self._shown = await conversation.next_question()
        if self._shown is not None:
            self._begun_before = bool(self._typed)
            self._wait_for_quiet()  # first of all, since the row below the lines says whether keys are taken
            self._rest = [
                row
                for line in self._shown.lines(color=self._screen.color)
                for row in rows_of(line, self._screen.width)
            ]
            self._show_page()
        return self._shown is not None

    async def was_decided(self, conversation: Conversation) -> bool:
        """Look whether what was asked needs no answer any more, and show what is asked then.

        Returns:
            True if nothing is left to be asked, so that the agent can go on.
        """
        shown, found = self._shown, await conversation.next_question()
        if shown is None or (found is not None and found.id == shown.id):
            return False
        return not await self.ask(conversation) and await _can_go_on(conversation, shown.id)

    async def take(self, conversation: Conversation, line: str, seen: str | None = None) -> bool:
        """Take a line as the answer to the question that was shown.

        Args:
            seen: Which question was shown when the line was sent; None if nobody knows.

        Returns:
            True if nothing is left to be asked, so that the agent can go on.
        """
        shown, found = self._shown, await conversation.next_question()
        before, self._begun_before, self._typed = self._begun_before, False, ""
        before = before or (seen is not None and shown is not None and seen != shown.id)
        if before or shown is None:
            conversation.add(line, "queue")
            self._note(f"Queued until you have answered: {one_line(line)}")
        elif found is not None and found.id == shown.id:
            return await self._answer(conversation, shown, line)
        if shown is None:
            return not await self.ask(conversation)
        if found is None or found.id != shown.id:
            return await self._answered_elsewhere(conversation, shown)
        self._show(iter(()) if self._rest else shown.choice_lines(color=self._screen.color))
        return False

    def _show_page(self) -> None:
        """Show as much of a question as can be read at once; nobody says yes to what was not shown."""
        page, self._rest = self._rest[:PAGE], self._rest[PAGE:]
        self._show(iter(page))
        if self._rest:
            self._note(f"{len(self._rest):,} more lines: [m] shows them, [n] refuses the call.")

    async def _answer(self, conversation: Conversation, question: Question, line: str) -> bool:
        if self._rest:
            if line.strip().lower() not in _NO:
                if line.strip().lower() not in (MORE, *MORE_KEYS):
                    self._note("Read all of it first.")
                self._show_page()
                return False
            self._rest = []
        try:
            await _give(conversation, question, question.read(line))
        except Unclear as unclear:
            self._note(str(unclear))
            return False
        except (DecisionNotAccepted, SpecError) as refused:
            found = await conversation.next_question()
            if found is None or found.id != question.id:
                return await self._answered_elsewhere(conversation, question)
            self._note(str(refused))
            return False
        return not await self.ask(conversation)

    async def _answered_elsewhere(self, conversation: Conversation, question: Question) -> bool:
        self._note("Somebody else has already answered this.")
        return not await self.ask(conversation) and await _can_go_on(conversation, question.id)

    def _show(self, lines: Iterator[str]) -> None:
        for line in lines:
            for row in rows_of(line, self._screen.width):
                self._screen.line(row)

    def _note(self, text: str) -> None:
        for row in in_rows(clean(text), self._screen.width):
            self._screen.line(styled(row, "dim", color=self._screen.color))


async def _give(conversation: Conversation, question: Question, answer: Answer) -> None:
    """Decide as answered, and grant what is granted with it."""
    app, session_id = conversation.app, conversation.session_id
    if len(answer.patterns) > 1:
        scope, approved = cast("GrantScope", answer.scope), answer.decision["approved"]
        for pattern in answer.patterns:
            await app.grant_async(
                pattern, scope=scope, session_id=session_id, effect="allow" if approved else "deny"
            )
        return
    decision = dict(answer.decision)
    if answer.patterns:
        decision["grant"] = {"scope": answer.scope, "pattern": answer.patterns[0]}
    await app.decide_async(question.id, decision, session_id=session_id)


async def _can_go_on(conversation: Conversation, approval_id: str) -> bool:
    """Say whether a decision of somebody else still waits for a run that continues with it."""
    found = await conversation.app.approvals_async(conversation.session_id, decided=True)
    return any(one.id == approval_id and not one.used for one in found)
