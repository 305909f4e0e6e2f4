"""What the configuration says about compaction, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_core import ConfigError

TRIGGER = "compaction_trigger"
THRESHOLD = "compaction_threshold"
KEEP = "compaction_keep"
AGENT = "compaction_agent"
DEFAULT_KEEP = 4
DEFAULT_MESSAGES = 40

_UNITS = ("messages", "characters")

SCHEMA: dict[str, Any] = {
    TRIGGER: {
        "type": "string",
        "description": "The lifecycle at which a long session is compacted, such as request_complete.",
    },
    THRESHOLD: {
        "type": "object",
        "default": {"messages": DEFAULT_MESSAGES},
        "description": "A session is long if it has more `messages` or more `characters` than this.",
    },
    KEEP: {
        "type": "integer",
        "default": DEFAULT_KEEP,
        "description": "How many of the last messages stay as they are if no end is given.",
    },
    AGENT: {
        "type": "string",
        "description": "The application's agent that writes summaries; by default the session's own.",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration.

    Attributes:
        trigger: The lifecycle at which long sessions are compacted; None for never.
        messages: More messages than this make a session long; None if they do not count.
        characters: The same for the length of its text.
        keep: How many of the last messages stay by default.
        agent: Who writes the summaries; None for the session's own agent.
    """

    trigger: str | None = None
    messages: int | None = DEFAULT_MESSAGES
    characters: int | None = None
    keep: int = DEFAULT_KEEP
    agent: str | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one has the wrong type; `field` names it.
        """
        threshold = _threshold(config.get(THRESHOLD))
        return cls(
            trigger=_name(config, TRIGGER),
            messages=threshold["messages"],
            characters=threshold["characters"],
            keep=_count(KEEP, config.get(KEEP, DEFAULT_KEEP)),
            agent=_name(config, AGENT),
        )

    def exceeded_by(self, messages: int, characters: int) -> bool:
        """Say whether a session of this size is long."""
        limits = ((messages, self.messages), (characters, self.characters))
        return any(limit is not None and size > limit for size, limit in limits)


def _name(config: Mapping[str, object], key: str) -> str | None:
    value = config.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"config[{key!r}] must be a name, not {type(value).__name__}", field=key)
    return value or None


def _count(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"config[{key!r}] must be a whole number from 0 on, not {value!r:.40}", field=key)
    return value


def _threshold(value: object) -> dict[str, int | None]:
    """Return both limits; a mere number is one of messages."""
    if value is None:
        return {"messages": DEFAULT_MESSAGES, "characters": None}
    given = value if isinstance(value, Mapping) else {"messages": value}
    if not given or not set(given) <= set(_UNITS):
        raise ConfigError(
            f"config[{THRESHOLD!r}] must be a number of messages, or have messages or characters,"
            f" not {value!r:.80}",
            field=THRESHOLD,
        )
    return {unit: _count(THRESHOLD, given[unit]) if unit in given else None for unit in _UNITS}
