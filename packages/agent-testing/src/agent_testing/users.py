"""Simulated users: somebody who talks with an agent for several turns, in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_core.encoding import canonical

GOODBYE = "[end]"
"""What a simulated user says when the conversation is over."""

ROLE = (
    "You play a person who talks with an assistant. Say what that person would say next, in one message, "
    f"and nothing else. When your goal is reached or cannot be reached, answer {GOODBYE}.\n\n"
)
"""What an agent reads that plays a user; add who the person is and what they want."""


class Talker(Protocol):
    """What can be talked with: an `Agent` of agent_runtime."""

    @property
    def run(self) -> Callable[..., Any]:
        """Answers a message; `session` continues a conversation."""


User = Talker | Callable[[str], "str | None"] | Iterable[str]
"""A user: an agent that plays one, a function of the last answer, or the lines to say."""


@dataclass(slots=True)
class Conversation:
    """What was said.

    Attributes:
        turns: What the user said and what the agent answered, in order.
        results: The results of the agent's runs.
    """

    turns: list[tuple[str, str]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The agent's last answer."""
        return self.turns[-1][1] if self.turns else ""

    def called(self, tool: str) -> int:
        """Return how often the agent called a tool."""
        return sum(
            call["function"]["name"] == tool
            for result in self.results
            for message in result.messages
            for call in message["metadata"].get("tool_calls") or ()
            if message["role"] == "assistant" and "function" in call
        )

    def __str__(self) -> str:
        return "\n".join(f"user: {said}\nagent: {answer}" for said, answer in self.turns)


def converse(agent: Talker, user: User, *, turns: int = 8, **options: Any) -> Conversation:
    """Let a user talk with an agent until the user has nothing more to say.

    Args:
        turns: How many messages the user may send, at most.
        options: What each run of the agent gets, such as `deps`.
    """
    conversation, session = Conversation(), None
    speak = _speaker(user)
    for _ in range(turns):
        said = speak(conversation.last)
        if said is None or GOODBYE in said:
            break
        result = agent.run(said, session=session, **options)
        session = result.session
        conversation.results.append(result)
        conversation.turns.append((said, _answer(result)))
    return conversation


def _answer(result: Any) -> str:
    """Return what the user reads: the agent's words, or its output where it gave one without words."""
    if result.text or not result.has_output:
        return str(result.text)
    output = result.output
    return output if isinstance(output, str) else canonical(result.to_dict()["output"]).decode()


def _speaker(user: User) -> Callable[[str], str | None]:
    if hasattr(user, "run"):
        return _Played(user).speak
    if callable(user):
        return user
    lines: Iterator[str] = iter(user)
    return lambda _answer: next(lines, None)


class _Played:
    """A user that an agent plays: the assistant's answers are what is said to it."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._session: Any = None

    def speak(self, answer: str) -> str | None:
        result = self._agent.run(answer or "(the conversation begins)", session=self._session)
        self._session = result.session
        text: str = result.text
        return text
