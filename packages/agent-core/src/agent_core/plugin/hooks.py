"""Calling the hooks of plugins: every documented form of a signature, every error with the plugin's name.

A plugin writes only the hooks that it needs, and of each only the arguments that it cares for. The
signature is looked at once, when the plugin is registered; afterwards a hook is called with all the
documented arguments and an adapter leaves out what this one does not take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from agent_core.errors import AgentError, PluginError, PluginMutationError, RegistrationError
from agent_core.frozen import Dicts, FrozenDict, FrozenValueError, freeze

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
Adapter = Callable[..., Any]


class HookSpec(NamedTuple):
    """A hook as it is documented.

    Attributes:
        name: The method's name.
        arguments: The names of all arguments that it may take, in order.
        least: How many of the first ones it must take.
        aliases: Other names under which an argument is accepted.
    """

    name: str
    arguments: tuple[str, ...] = ()
    least: int = 0
    aliases: tuple[tuple[str, str], ...] = ()


class Plan(NamedTuple):
    """Which of the documented arguments one plugin's hook takes, and how."""

    positions: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]
    documented: int

    def takes(self, index: int) -> bool:
        """Say whether the hook takes that documented argument."""
        return index in self.positions or any(index == place for _, place in self.keywords)


_known: WeakKeyDictionary[FunctionType, dict[HookSpec, Plan]] = WeakKeyDictionary()


def read_hooks(plugin: str, target: object, specs: tuple[HookSpec, ...]) -> dict[str, Plan]:
    """Return how to call each hook that the plugin wrote.

    Raises:
        RegistrationError: If a signature is none of the documented forms.
    """
    plans = {}
    for spec in specs:
        function = getattr(target, spec.name, None)
        if function is None or _is_inherited_contract(function):
            continue
        if not callable(function):
            raise RegistrationError(plugin, f"{spec.name} must be a method, not {type(function).__name__}")
        plans[spec.name] = _plan_once(plugin, function, spec)
    return plans


def _is_inherited_contract(function: object) -> bool:
    """Say whether this is a protocol's empty method: its plugin inherits from it and wrote none."""
    return getattr(function, "__module__", None) == "agent_core.types"


def _plan_once(plugin: str, function: Callable[..., object], spec: HookSpec) -> Plan:
    """Read a method's signature once for all objects of its class: every core makes one of its own."""
    behind = getattr(function, "__func__", None)
    if not isinstance(function, MethodType) or not isinstance(behind, FunctionType):
        return _plan(plugin, function, spec)
    plans = _known.setdefault(behind, {})
    if spec not in plans:
        plans[spec] = _plan(plugin, function, spec)
    return plans[spec]


def adapt(function: Callable[..., object], plan: Plan) -> Adapter:
    """Return the hook as a function of all documented arguments."""
    positions, keywords, documented = plan
    leading = positions == tuple(range(len(positions)))
    if leading and not keywords and len(positions) == documented:
        return function  # takes everything, so nothing stands between: this is the hot path
    if leading and not keywords:
        taken = len(positions)
        return lambda *values: function(*values[:taken])
    return lambda *values: function(
        *[values[index] for index in positions], **{name: values[index] for name, index in keywords}
    )


def _plan(plugin: str, function: Callable[..., object], spec: HookSpec) -> Plan:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise _bad_signature(plugin, spec, f"has a signature that Python cannot tell: {error}") from error
    reader = _SignatureReader(plugin, spec, parameters)
    for parameter in parameters:
        reader.take(parameter)
    missing = [name for index, name in enumerate(spec.arguments[: spec.least]) if index not in reader.taken]
    if missing:
        raise _bad_signature(plugin, spec, f"must take {', '.join(map(repr, missing))}")
    return Plan(tuple(reader.positions), tuple(reader.keywords), len(spec.arguments))


class _SignatureReader:
    """Decides, parameter by parameter, which documented argument each one gets.

    A documented name gets its argument wherever it stands. Any other name gets the argument of the
    place where it stands, if it must have one; a parameter with a default is left at it.
    """

    def __init__(self, plugin: str, spec: HookSpec, parameters: list[inspect.Parameter]) -> None:
        self.positions: list[int] = []
        self.keywords: list[tuple[str, int]] = []
        self._plugin = plugin
        self._spec = spec
        self._indices = {name: index for index, name in enumerate(spec.arguments)}
        self._indices |= {alias: self._indices[name] for alias, name in spec.aliases}
        self._named = {
            self._indices[parameter.name]
            for parameter in parameters
            if parameter.name in self._indices
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        self._by_keyword = False  # once a parameter was left at its default, the rest go by name

    @property
    def taken(self) -> set[int]:
        return {*self.positions, *(index for _, index in self.keywords)}

    def take(self, parameter: inspect.Parameter) -> None:
        if parameter.kind is parameter.VAR_POSITIONAL:
            self._take_positional_rest()
        elif parameter.kind is parameter.VAR_KEYWORD:
            self._take_keyword_rest()
        elif parameter.kind is parameter.KEYWORD_ONLY:
            self._take_keyword(parameter)
        elif not self._by_keyword:
            self._take_positional(parameter)
        elif parameter.kind is not parameter.POSITIONAL_ONLY:  # that one keeps its default as well
            self._take_keyword(parameter)

    def _take_positional(self, parameter: inspect.Parameter) -> None:
        index = self._indices.get(parameter.name)
        if index is None:
            index = self._index_by_place(parameter)
        if index is not None:
            self.positions.append(index)
        elif parameter.default is not parameter.empty:
            self._by_keyword = True
        else:
            raise self._unknown(parameter)

    def _index_by_place(self, parameter: inspect.Parameter) -> int | None:
        place = len(self.positions)
        if place >= len(self._spec.arguments) or place in self._named:
            return None
        must = place < self._spec.least or parameter.default is parameter.empty
        return place if must else None

    def _take_keyword(self, parameter: inspect.Parameter) -> None:
        index = self._indices.get(parameter.name)
        if index is not None:
            self.keywords.append((parameter.name, index))
        elif parameter.default is parameter.empty:
            raise self._unknown(parameter)

    def _take_positional_rest(self) -> None:
        if not self._by_keyword:
            known = {*self.positions, *self._named}
            self.positions += [index for index in range(len(self._spec.arguments)) if index not in known]

    def _take_keyword_rest(self) -> None:
        taken = self.taken
        self.keywords += [
            (name, index) for index, name in enumerate(self._spec.arguments) if index not in taken
        ]

    def _unknown(self, parameter: inspect.Parameter) -> RegistrationError:
        return _bad_signature(self._plugin, self._spec, f"has no argument {parameter.name!r}")


def _bad_signature(plugin: str, spec: HookSpec, problem: str) -> RegistrationError:
    documented = ", ".join(spec.arguments)
    return RegistrationError(plugin, f"the hook {spec.name}({documented}) {problem}")


class calling:  # noqa: N801  # reads as a statement: `with calling(plugin, hook):`
    """Give whatever is raised inside the plugin's and the hook's name."""

    __slots__ = ("_error", "_hook", "_plugin")

    def __init__(self, plugin: str, hook: str, error: type[PluginError] = PluginError) -> None:
        self._plugin = plugin
        self._hook = hook
        self._error = error

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, AgentError):
            return
        raise name_error(self._plugin, self._hook, error, self._error) from error


def name_error(
    plugin: str, hook: str, error: Exception, kind: type[PluginError] = PluginError
) -> PluginError:
    """Return the error to raise for what *plugin* raised in *hook*."""
    if isinstance(error, FrozenValueError):
        return PluginMutationError(plugin, hook, f"changed its input in place ({error})")
    return kind(plugin, hook, f"raised {type(error).__name__}: {_message(error)}")


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # its class may need what nobody gave it
        return "(its message cannot be read)"


def wrong_answer(plugin: str, hook: str, expected: str, answer: object) -> PluginError:
    """Return the error for a hook that answered something of the wrong kind."""
    got = "None" if answer is None else f"{type(answer).__name__}"
    return PluginError(plugin, hook, f"must return {expected}, returned {got}")


def expect(plugin: str, hook: str, answer: object, kind: type[T] | tuple[type[T], ...], expected: str) -> T:
    """Return *answer* if it is of that kind, otherwise raise with names."""
    if not isinstance(answer, kind):
        raise wrong_answer(plugin, hook, expected, answer)
    return answer


def expect_tuple(plugin: str, hook: str, answer: object, kinds: tuple[type, ...], expected: str) -> Any:
    """Return *answer* if it is a tuple of those kinds, otherwise raise with names."""
    if not isinstance(answer, tuple) or len(answer) != len(kinds):
        raise wrong_answer(plugin, hook, expected, answer)
    for part, kind in zip(answer, kinds, strict=True):
        if not isinstance(part, kind):
            raise wrong_answer(plugin, hook, expected, part)
    return answer


def expect_dicts(plugin: str, hook: str, answer: object) -> Dicts:
    """Return *answer* if it is a list of dicts, otherwise raise with names."""
    if not isinstance(answer, (list, tuple)):
        raise wrong_answer(plugin, hook, "a list of dicts", answer)
    for item in answer:
        if not isinstance(item, dict):
            raise wrong_answer(plugin, hook, "a list of dicts", item)
    return list(answer)


def frozen_dicts(plugin: str, hook: str, answer: object) -> list[FrozenDict]:
    """Return *answer* frozen if it is a list of dicts, otherwise raise with names."""
    try:
        return [
            item if item.__class__ is FrozenDict else freeze(item)
            for item in expect_dicts(plugin, hook, answer)
        ]
    except RecursionError:
        raise PluginError(plugin, hook, "returned something that is nested too deeply") from None


def expect_strings(plugin: str, hook: str, answer: object) -> list[str]:
    """Return *answer* if it is a collection of strings, otherwise raise with names."""
    if isinstance(answer, str) or not isinstance(answer, (list, tuple, set, frozenset)):
        raise wrong_answer(plugin, hook, "a list of strings", answer)
    for item in answer:
        if not isinstance(item, str):
            raise wrong_answer(plugin, hook, "a list of strings", item)
    return list(answer)
