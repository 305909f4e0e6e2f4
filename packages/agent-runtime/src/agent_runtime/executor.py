"""Asking a model: one question through the core, whoever asks it how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent_core.frozen import EMPTY

if TYPE_CHECKING:
    from agent_core import AgentCore, Cancellation, Message, Session
    from agent_core.pipeline.finish import TurnResult
    from agent_core.steps import Flow
    from agent_runtime.clock import Clock
    from agent_runtime.specs import ModelSpec

Transform = Callable[["Sequence[Message]"], "Sequence[Message]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """One question to a model.

    Attributes:
        session: The conversation.
        config: Settings over those of the model and its provider.
        transform: Chooses what of the conversation is sent; the session keeps all.
        stream: Whether the answer is wanted piece by piece.
        cancellation: Cancelled when nobody waits for the answer any more.
        context: What plugins receive.
        clock: By which pauses are made.
    """

    session: Session
    clock: Clock
    config: Mapping[str, Any] = field(default_factory=lambda: EMPTY, repr=False)  # may have a key in it
    transform: Transform | None = None
    stream: bool = True
    cancellation: Cancellation | None = None
    context: dict[str, Any] | None = None


class Answer(NamedTuple):
    """What the model answered, and which model that was."""

    turn: TurnResult
    model: ModelSpec


class Executor(Protocol):
    """Something that answers questions; `ResolvedAgent.provider` is one."""

    @property
    def id(self) -> str:
        """The id under which the provider is registered."""

    @property
    def model(self) -> ModelSpec:
        """The model that is asked first."""

    def ask(self, inference: Inference) -> Flow[Answer]:
        """Ask, and emit the core's partial events on the way."""


@dataclass(frozen=True, slots=True)
class ProviderExecutor:
    """Asks one model once.

    Attributes:
        core: Has the provider, and every plugin and tool of the agent.
        model: Which model.
        config: Everything that a request to it needs: provider, model name, settings.
    """

    core: AgentCore
    model: ModelSpec
    config: dict[str, Any] = field(repr=False)  # may have a key in it

    @property
    def id(self) -> str:
        """The id under which the provider is registered."""
        return self.model.provider

    def ask(self, inference: Inference) -> Flow[Answer]:
        """Ask the model once."""
        turn = yield from self.core.request_flow(
            inference.session,
            {**self.config, **inference.config} if inference.config else self.config,
            stream=inference.stream,
            cancellation=inference.cancellation,
            context=inference.context,
            transform=inference.transform,
        )
        return Answer(turn, self.model)
