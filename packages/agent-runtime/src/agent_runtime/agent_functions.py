"""The functions of an agent (instructions, validators, guardrails, outputs), and how they are called."""

from __future__ import annotations

from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from agent_core import PluginError
from agent_runtime.engine import finish_slowly
from agent_runtime.run_context import ModelRetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.steps import Flow
    from agent_runtime.run_context import RunContext

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def ask_function(
    kind: str, function: Callable[..., Any], context: RunContext[Any], *given: object
) -> Flow[Any]:
    """Call a function, with the context before what is given if it takes that; it may be async.

    Args:
        kind: What the function is for the agent, such as "output_validator".

    Raises:
        ModelRetry: If the function did.
        PluginError: If it raised anything else, with its kind and name.
    """
    if _required(function) > len(given):
        given = (context, *given)
    return (yield from call_named(kind, function, partial(function, *given)))


def call_named(kind: str, function: Callable[..., Any], work: Callable[[], Any]) -> Flow[Any]:
    """Do some work of a function; what goes wrong in it is said with the function's name."""
    try:
        return (yield from finish_slowly(work))
    except ModelRetry:
        raise
    except Exception as error:
        raise misused(kind, function, f"{type(error).__name__}: {error}") from error


def misused(kind: str, function: Callable[..., Any], problem: str) -> PluginError:
    """Return what is said of a function that failed, or that returned what nobody can use."""
    name = getattr(function, "__name__", type(function).__name__)
    return PluginError("agent", f"{kind} {name!r}", problem)


def _required(function: Callable[..., Any]) -> int:
    """Return how many arguments a function needs."""
    parameters = signature(function).parameters.values()
    return sum(one.kind in _POSITIONAL and one.default is Parameter.empty for one in parameters)
