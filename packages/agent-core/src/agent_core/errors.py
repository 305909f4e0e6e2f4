"""Every exception that `agent_core` raises on purpose, in one tree.

::

    AgentError
    ├── ConfigError                    a request's configuration cannot be used
    │   └── ConfigTypeError            … because it is not a mapping (also TypeError)
    ├── ResolveError                   something the configuration names is not there
    │   ├── NoProviderError            no provider is registered (also RuntimeError)
    │   ├── ProviderNotFoundError      (also KeyError)
    │   ├── ModelNotFoundError         (also KeyError)
    │   ├── PluginNotFoundError        (also KeyError)
    │   └── ToolIdConflictError        two plugins offer one tool name
    ├── PluginError                    a plugin's hook raised or answered nonsense (also RuntimeError)
    │   ├── PluginMutationError        … or tried to change a value that it was only lent
    │   └── ProviderError              … or the provider behind it failed
    ├── RegistrationError              a plugin cannot be registered (also ValueError)
    │   └── DuplicatePluginError       its name is taken
    ├── ToolError                      a tool call cannot be run
    │   └── ToolSuspended              … before somebody has decided or answered something
    ├── ActionError                    an action cannot be run
    │   ├── UnknownActionError         (also KeyError)
    │   └── ActionInputError           (also ValueError)
    ├── SessionError                   a session cannot be read or edited
    │   ├── SessionFormatError         a dict or string is not a session (also ValueError)
    │   ├── MessageIndexError          (also IndexError)
    │   ├── MessageEditError           that message cannot be edited so (also ValueError)
    │   └── NativeHistoryError         native history cannot be used so (also RuntimeError)
    └── ArgumentError                  a call's argument is wrong (also ValueError)
        └── ArgumentTypeError          (also TypeError)

    RequestCancelled                   a signal, not a failure (BaseException)

The built-in base next to `AgentError` is there for callers who know only Python: ``except KeyError``
around a look-up works. Errors carry fields, so that each front end can say it in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import lazy
from agent_core.frozen import NotData as _NotData, freeze_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.frozen import JsonObject


class AgentError(Exception):
    """Root of everything that goes wrong here.

    Attributes:
        partial: What a request had produced before it failed, as the final event would have said
            it (`session`, `messages`), or None.
    """

    partial: JsonObject | None = None

    def __str__(self) -> str:
        # KeyError would print its message in quotes; ours are sentences.
        return str(self.args[0]) if self.args else type(self).__name__


class ConfigError(AgentError, ValueError):
    """A request's configuration cannot be used; `field` names the key."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ConfigTypeError(ConfigError, TypeError):
    """A configuration is not a mapping."""


class ResolveError(AgentError):
    """A request asks for something that is not registered."""


class NoProviderError(ResolveError, RuntimeError):
    """A request needs a provider and none is registered."""

    def __init__(self) -> None:
        super().__init__("No provider registered: call register_provider() before sending a request")


class _NotFoundError(ResolveError, KeyError):
    """A name that nobody registered, with the nearest known ones."""

    kind = "thing"

    def __init__(self, name: object, known: Iterable[str], *, where: str = "") -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"Unknown {self.kind} {name!r}{where}{_suggestion(name, self.known)}")


class ProviderNotFoundError(_NotFoundError):
    """The configuration names a provider that is not registered."""

    kind = "provider"


class ModelNotFoundError(_NotFoundError):
    """The provider lists its models and the configured one is not among them."""

    kind = "model"


class PluginNotFoundError(_NotFoundError):
    """The configuration asks for a plugin that is not registered."""

    kind = "plugin"


class ToolIdConflictError(ResolveError):
    """Two plugins offer a tool of one name; `owners` has both."""

    def __init__(self, tool: str, owners: tuple[str, str]) -> None:
        self.tool = tool
        self.owners = owners
        super().__init__(
            f"Tool {tool!r} is offered by plugin {owners[0]!r} and by plugin {owners[1]!r}: "
            "disable one of them or rename the tool"
        )


class PluginError(AgentError, RuntimeError):
    """A plugin's hook raised, or answered something that the pipeline cannot use."""

    def __init__(self, plugin: str, hook: str, problem: str) -> None:
        self.plugin = plugin
        self.hook = hook
        self.problem = problem
        super().__init__(f"Plugin {plugin!r}, hook {hook!r}: {problem}")


class PluginMutationError(PluginError):
    """A hook tried to change one of its inputs in place instead of returning a new value."""


class ProviderError(PluginError):
    """A provider could not answer the request."""


class RegistrationError(AgentError, ValueError):
    """A plugin cannot be registered; `plugin` names it."""

    def __init__(self, plugin: str, problem: str) -> None:
        self.plugin = plugin
        self.problem = problem
        super().__init__(f"Plugin {plugin!r} cannot be registered: {problem}")


class DuplicatePluginError(RegistrationError):
    """Another plugin has that name already."""


class ToolError(AgentError):
    """A tool call cannot be run; `tool` is the name that the model used."""

    def __init__(self, tool: str | None, problem: str) -> None:
        self.tool = tool
        self.problem = problem
        super().__init__(f"Tool {tool!r}: {problem}")


class ToolSuspended(ToolError):
    """Raised by a tool that cannot go on before somebody decided or answered something.

    A runtime above the core ends the run and resumes it when the decision is there. The core alone
    has nobody to ask: it answers the model that the call waits for a decision that cannot be had.

    Args:
        message: What is asked, for the person who decides.
        action: A word for programs, such as "approve" or "answer".
        parameters: What a front end needs to ask well.
        response_schema: A JSON Schema that the answer must fit.
        mode: What becomes of the decision: "pass_decision" runs the call again with the decision in
            the tool's context under "decision", "use_decision" takes its value as the call's result,
            "replay" simply runs the call again.
        data: What the tool wants to find again, in its context under "suspended"; JSON data.
        id: What a decision about it refers to; by default the runtime gives it one.
        more: Other questions that the same call waits for. When some are decided, the call is run again with
            those decisions, in its context under "decisions" by id, and asks the others once more.

    Raises:
        ArgumentError: If parameters, schema or data are not JSON data.
    """

    def __init__(
        self,
        message: str,
        *,
        action: str = "answer",
        parameters: JsonObject | None = None,
        response_schema: JsonObject | None = None,
        mode: str = "pass_decision",
        data: JsonObject | None = None,
        id: str | None = None,  # noqa: A002 - what everybody calls it
        more: Iterable[ToolSuspended] = (),
    ) -> None:
        asked: JsonObject = {
            "message": message,
            "action": action,
            "parameters": parameters or {},
            "response_schema": response_schema,
            "mode": mode,
            "data": data or {},
        }
        for part in ("parameters", "response_schema", "data"):
            try:
                freeze_data(asked[part], part)
            except _NotData as error:  # it is stored until somebody decides, in another process perhaps
                raise ArgumentError(f"{error.path}: {error}") from None
        if id is not None:
            asked["id"] = id
        if others := [other.suspension for other in more]:
            asked["more"] = others
        self.suspension: JsonObject = asked
        super().__init__(None, f"it waits for a decision: {message}")

    def __str__(self) -> str:
        return f"the call waits for a decision: {self.suspension['message']}"


class ActionError(AgentError):
    """A session or lifecycle action cannot be run."""


class UnknownActionError(ActionError, KeyError):
    """No enabled plugin offers that action."""

    def __init__(self, plugin: str, action: str, known: Iterable[str]) -> None:
        self.plugin = plugin
        self.action = action
        self.known = tuple(known)
        wanted = f"{plugin}.{action}"
        super().__init__(f"Unknown session action {wanted!r}{_suggestion(wanted, self.known)}")


class ActionInputError(ActionError, ValueError):
    """An action's input is missing, unknown or of the wrong type; `field` names it."""

    def __init__(self, action: str, field: str, problem: str) -> None:
        self.action = action
        self.field = field
        self.problem = problem
        super().__init__(f"Action {action!r}, input {field!r}: {problem}")


class ActionNotConfirmedError(ActionError):
    """The action asks for a confirmation first; `question` is what to ask."""

    def __init__(self, plugin: str, action: str, question: str) -> None:
        self.plugin = plugin
        self.action = action
        self.question = question
        super().__init__(
            f"Action {plugin}.{action} was not run, since it asks first: {question} Run it as confirmed once "
            "somebody said yes"
        )


class ActionTimeoutError(ActionError, TimeoutError):
    """The action took longer than it may; what it returns later is not used."""

    def __init__(self, plugin: str, action: str, seconds: float) -> None:
        self.plugin = plugin
        self.action = action
        self.seconds = seconds
        super().__init__(
            f"Action {plugin}.{action} took longer than its {seconds:g} seconds: nothing that it does from "
            "now on counts"
        )


class ActionCancelledError(ActionError):
    """Somebody cancelled the action; what it returns later is not used."""

    def __init__(self, plugin: str, action: str) -> None:
        self.plugin = plugin
        self.action = action
        super().__init__(f"Action {plugin}.{action} was cancelled: nothing that it does from now on counts")


class SessionError(AgentError):
    """A session cannot be read or edited in the way that was asked."""


class SessionFormatError(SessionError, ValueError):
    """A dict or a string does not hold a session; `field` names the first wrong part."""

    def __init__(self, problem: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(problem if field is None else f"Session field {field!r}: {problem}")


class MessageIndexError(SessionError, IndexError):
    """A message index is outside the session."""

    def __init__(self, name: str, index: int, count: int) -> None:
        self.index = index
        self.count = count
        super().__init__(f"{name} {index} out of range: the session has {count} messages")


class MessageEditError(SessionError, ValueError):
    """That message, or that role, cannot be edited in this way."""


class NativeHistoryError(SessionError, RuntimeError):
    """Provider-native history is missing or does not fit what was asked of it."""


class ArgumentError(AgentError, ValueError):
    """An argument of a public method has a value that it cannot have."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a public method has the wrong type."""


class RequestCancelled(BaseException):
    """Thrown into a running flow when its caller lost interest.

    A `BaseException`, since cancelling is not failing: no ``except Exception`` on the way may take
    it for an error and carry on.
    """


def closest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that looks most like *name*; None if none looks like it."""
    return next(iter(lazy.difflib.get_close_matches(str(name), [*known], n=1, cutoff=cutoff)), None)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return a hint: the known name that looks most like *name*, or all that there are."""
    there = [str(one) for one in known]
    if (close := closest(name, there)) is not None:
        return f"did you mean {close!r}?"
    return f"known are {', '.join(map(repr, there))}" if there else "none is known"


def _suggestion(name: object, known: tuple[str, ...]) -> str:

    if not known:
        return ": none is registered"
    if (close := closest(name, known)) is not None:
        return f": did you mean {close!r}?"
    return f": known are {', '.join(map(repr, known))}"
