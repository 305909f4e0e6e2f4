"""What requests and answers look like; from here FastAPI makes the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

SessionId = Annotated[str, Field(min_length=1, max_length=200)]


class Input(BaseModel):
    """What a client sends: a field that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")


class NewSession(Input):
    """A session to make."""

    agent_id: str | None = Field(default=None, description="The agent; the default one without it.")
    title: str | None = Field(default=None, max_length=500)
    metadata: dict[str, Any] = Field(default_factory=dict, description="What plugins and tools find in it.")


class RunRequest(Input):
    """Something to say in a session, and how to answer it."""

    text: str = Field(
        default="", description="What the user says. Without it, the session goes on with what waits."
    )
    attachments: list[dict[str, Any]] = Field(default_factory=list, description="Content parts.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Settings for this run.")
    limits: Limits | None = None
    attached: bool = Field(default=False, description="Whether the run ends with this connection.")


class Limits(Input):
    """What a run may take."""

    timeout: float | None = Field(default=None, gt=0, description="Seconds.")
    token_budget: int | None = Field(default=None, gt=0)
    cost_budget: float | None = Field(default=None, gt=0)


class SessionInfo(BaseModel):
    """What a list shows of a session."""

    id: str
    title: str
    agent_id: str | None
    created: float = Field(description="Seconds since 1970.")
    updated: float
    messages: int
    revision: int
    parent_id: str | None
    match: str | None = Field(default=None, description="In a search: the text that was found.")
    extra: dict[str, Any] = Field(default_factory=dict, description="What plugins add, by plugin.")


class RunStarted(BaseModel):
    """A run that has begun."""

    session_id: str
    after: str = Field(description="The place among the session's events before this run.")
    events: str = Field(description="Where to follow it.")


class RunResult(BaseModel):
    """What a run came to."""

    session_id: str
    text: str
    reason: dict[str, Any]
    usage: dict[str, Any]
    approvals: list[str] = Field(description="The approvals that it waits for.")
    messages: list[dict[str, Any]]


class ProblemDetails(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str | None = None
    request_id: str
    errors: list[dict[str, Any]] = Field(default_factory=list)
