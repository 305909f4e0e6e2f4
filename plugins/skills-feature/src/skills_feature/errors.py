"""What can be wrong with a skill."""

from __future__ import annotations

from agent_core import AgentError


class SkillError(AgentError):
    """A folder is no skill; the message says why, and what a skill needs."""


class SkillFileError(AgentError):
    """A file of a skill cannot be read; the message says why."""
