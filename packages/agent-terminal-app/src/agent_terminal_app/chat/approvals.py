"""What the agent asks, and what a line means as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_terminal_app.chat.markdown import clean, styled

if TYPE_CHECKING:
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.screen import Screen

_YES = ("y", "yes")


def show_question(screen: Screen, approval: Any) -> None:
    """Show what is asked, and how it can be answered."""
    question = f"? {clean(approval.suspension['message'])}"
    screen.line(styled(question, "bold", color=screen.color))
    how = "y runs it; anything else refuses, and is told to the agent as the reason"
    screen.line(styled(how, "dim", color=screen.color))


def answer(conversation: Conversation, approval: Any, line: str) -> None:
    """Take a line as the answer to a question: yes, or why not."""
    approved = line.strip().lower() in _YES
    conversation.decide(approval.id, approved=approved, reason="" if approved else line)
