"""Messages that wait to be delivered: after the current step, after the answer, or when the user sends them.

The store keeps them, so that they survive whatever happens to this program. Here is what the user sees of
them: one line each, from the moment they are stored until they are answered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from agent_terminal_app.chat.rendering.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_app.store.base import Waiting

State = Literal["waiting", "held", "delivered"]
_MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A message on its way.

    Attributes:
        seq: Its place in the queue of the session.
        text: What it says.
        mode: When it is delivered: after a step, or after the answer.
        state: Whether it waits, is held until the user wants it sent, or has been delivered.
        step: With which step it was delivered.
    """

    seq: int
    text: str
    mode: str
    state: State = "waiting"
    step: int = 0

    def line(self) -> str:
        """Return it as people see it."""
        if self.state == "delivered":
            how = f"delivered, step {self.step}" if self.step else "delivered"
        elif self.state == "held":
            how = "held"
        else:
            how = "queued" if self.mode == "queue" else "after this step"
        return f"⧗ {how}: {one_line(self.text)}"


class MessageQueue:
    """The messages of one session that wait, in order."""

    def __init__(self) -> None:
        self._all: tuple[QueuedMessage, ...] = ()

    def __len__(self) -> int:
        """Return how many are not delivered."""
        return sum(one.state != "delivered" for one in self._all)

    @property
    def held(self) -> bool:
        """Whether any are held back."""
        return any(one.state == "held" for one in self._all)

    def refresh(self, stored: Iterable[Waiting], *, held: bool, step: int = 0) -> list[QueuedMessage]:
        """Take over what the store has now, and return those that were delivered since.

        Args:
            held: Whether they go nowhere by themselves: no run goes on that will take them.
            step: Which step it is.
        """
        known = {one.seq: one for one in self._all}
        now = {one.seq: _read(one) for one in stored}
        gone = [one for one in self._all if one.seq not in now]
        fresh = [replace(one, state="delivered", step=step) for one in gone if one.state != "delivered"]
        old = [one for one in gone if one.state == "delivered"]
        state: State = "held" if held else "waiting"
        kept = [replace(known.get(seq, one), state=state) for seq, one in now.items()]
        self._all = (*old, *fresh, *kept)
        return fresh

    def answered(self) -> None:
        """Forget those that were delivered: the answer is there."""
        self._all = tuple(one for one in self._all if one.state != "delivered")

    def forget(self, seq: int | None = None) -> None:
        """Forget one that was taken back, or all of them, since this is another session."""
        self._all = () if seq is None else tuple(one for one in self._all if one.seq != seq)

    def last(self) -> QueuedMessage | None:
        """Return the one that came last and can still be taken back."""
        return next((one for one in reversed(self._all) if one.state != "delivered"), None)

    def lines(self, *, send: str = "Enter", take_back: str = "Alt+Up") -> list[str]:
        """Return what is shown of them; of many the last ones.

        Args:
            send: The key that sends what is held.
            take_back: The key that takes it back; empty if there is none.
        """
        lines = [one.line() for one in self._all]
        more = len(lines) - _MOST
        lines = [f"⧗ {more} more", *lines[-_MOST:]] if more > 0 else lines
        if self.held:
            taken_back = f"; {take_back} takes it back" if take_back else ""
            lines.append(f"  held until you press {send}{taken_back}")
        return lines


def _read(waiting: Waiting) -> QueuedMessage:
    return QueuedMessage(seq=waiting.seq, text=str(waiting.message.get("content") or ""), mode=waiting.mode)
