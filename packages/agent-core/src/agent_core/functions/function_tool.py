"""`@tool`: a plain function becomes a tool plugin and stays a function.

Decorating only stores the function. Its signature, annotations and docstring are read when the
schema is first asked for, so that a module full of tools costs nothing until one of them is used,
and an annotation may name what is defined further down.
"""

from __future__ import annotations

import re
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from agent_core.errors import RegistrationError
from agent_core.functions.values import finish, stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from agent_core.frozen import Dicts, JsonObject
    from agent_core.functions.signature import Plan


# What can be called, and which function stands behind it.
#
# A tool may be made of a function, a bound method, a `functools.partial`, an object with ``__call__``,
# or anything that says with ``__wrapped__`` what it stands for.

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # the CO_* flags of `inspect`


def underlying(target: object) -> Any:
    """Return the function whose body runs when *target* is called, as far as Python can tell."""
    while not isinstance(target, (FunctionType, BuiltinFunctionType)):
        if isinstance(target, partial):
            target = target.func
        elif isinstance(target, MethodType):
            target = target.__func__
        elif hasattr(target, "__wrapped__"):  # a tool, a staticmethod, a function behind lru_cache
            target = target.__wrapped__
        else:
            return getattr(type(target), "__call__", target)  # noqa: B004 - looked up, not asked about
    return target


def name_of(target: object) -> str:
    """Return the function's own name, or for an object its class's name in snake_case."""
    if isinstance(target, partial):
        return name_of(target.func)
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else _snake_case(type(target).__name__)


def doc_of(target: object) -> str | None:
    """Return the docstring that describes a call of *target*."""
    if isinstance(target, partial):
        return doc_of(target.func)
    doc = underlying(target).__doc__
    return doc if doc or hasattr(target, "__name__") else type(target).__doc__


def is_generator(target: object) -> bool:
    """Whether calling *target* gives a generator or an async generator."""
    code = getattr(underlying(target), "__code__", None)
    return code is not None and bool(code.co_flags & (_GENERATOR | _ASYNC_GENERATOR))


def is_async(target: object) -> bool:
    """Whether calling *target* gives something to await or to iterate on an event loop."""
    code = getattr(underlying(target), "__code__", None)
    return code is not None and bool(code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))


def bound_names(target: Any) -> frozenset[str]:
    """Return the parameters that a `functools.partial` has settled by keyword."""
    if isinstance(target, partial):
        return bound_names(target.func) | target.keywords.keys()
    return bound_names(target.__wrapped__) if _stands_for_another(target) else frozenset()


def _stands_for_another(target: object) -> bool:
    return hasattr(target, "__wrapped__") and not isinstance(target, FunctionType)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


P = ParamSpec("P")
R = TypeVar("R")

_LONGEST_NAME = 64


def _plan_of(name: str, function: object, description: str | None) -> Plan:
    """Read a function's signature; a plain function is read once, however many agents have it as a tool."""
    from agent_core.functions.signature import read_plan

    if not isinstance(function, FunctionType):
        return read_plan(name, function, description)
    # Kept by the function itself, so that it goes when the function does.
    plans: dict[tuple[str, str | None], Plan] = function.__dict__.setdefault("_tool_plans", {})
    if (name, description) not in plans:
        plans[name, description] = read_plan(name, function, description)
    return plans[name, description]


class FunctionTool(Generic[P, R]):
    """A function that is also a tool plugin; `tool` makes them.

    Attributes:
        name: What the model calls it.
        timeout: Seconds after which the platform gives up on a call, or None.
        parallel: Whether calls may run at the same time as other calls of the same answer.
        blocking: False for a function that takes no time to speak of: an event loop calls it itself, without
            a thread, so that a call can be neither timed out nor cancelled.
        idempotent: Whether a call that may have run already can safely be run again.
        retries: How often in a row its calls may fail in one run before that ends the run; None: as often
            as the agent's stop conditions allow.
        requires_approval: Whether a run asks before each call, unless a person granted it or a narrower
            rule allows it.
        tags: Free labels.
    """

    version = "1"
    stateless = True

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        parallel: bool = True,
        blocking: bool = True,
        idempotent: bool = False,
        retries: int | None = None,
        requires_approval: bool = False,
        tags: Sequence[str] = (),
    ) -> None:
        own_name = name_of(function)
        self.name = own_name if name is None else name
        _check(self.name, function, timeout, retries)
        if not blocking:
            _check_instant(self.name, function, timeout)
        self.timeout = timeout
        self.parallel = parallel
        self.blocking = blocking
        self.idempotent = idempotent
        self.retries = retries
        self.requires_approval = requires_approval
        self.tags = tuple(tags)
        self._description = description
        self._plans: dict[str, Plan] = {}
        self._bound_plans: dict[str, Plan] = {}
        self.__wrapped__ = function
        self.__name__ = own_name
        self.__qualname__ = getattr(function, "__qualname__", own_name)
        self.__module__ = underlying(function).__module__
        self.__doc__ = doc_of(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, as if it had never been decorated."""
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., R]:
        """Bind to *instance* as a function in a class body does, so that methods can be tools."""
        kind = type(self.__wrapped__)
        if instance is None or kind is MethodType or not hasattr(kind, "__get__"):
            return self
        return self._bound(self.__wrapped__.__get__(instance, owner))

    def __eq__(self, other: object) -> bool:
        """Say whether both are one function with the same options, as two looks at one method are."""
        if not isinstance(other, FunctionTool):
            return NotImplemented
        return self is other or (
            _is_same(self.__wrapped__, other.__wrapped__) and self._options() == other._options()
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<tool {self.name!r} of {self.__module__}.{self.__qualname__}>"

    @property
    def description(self) -> str:
        """What the tool does, in words for the model."""
        return self._plan.description

    @property
    def streams(self) -> bool:
        """Whether the function is a generator, so that `stream_tool` shows its work as it goes."""
        return is_generator(self.__wrapped__)

    @property
    def is_async(self) -> bool:
        """Whether the function runs on an event loop; the platform chooses its way to call it by this."""
        return is_async(self.__wrapped__)

    def init(self, config: Mapping[str, object]) -> JsonObject:
        """Return the request's state, of which a function has none."""
        return {}

    def get_tool_schemas(
        self,
        state: Mapping[str, object] | None = None,
    ) -> Dicts:
        """Return the one schema, the same frozen object each time.

        Raises:
            RegistrationError: If a parameter cannot be described in JSON Schema.
        """
        return self._plan.schemas

    def execute_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        state: Mapping[str, object] | None = None,
        *,
        context: Mapping[str, object] | None = None,
        cancellation: object = None,
        tool_call: Mapping[str, object] | None = None,
    ) -> JsonObject | Awaitable[JsonObject]:
        """Run the function on JSON *arguments* and return ``{"success": True, "result": ...}``.

        An async function gives an awaitable of that dict. A generator is run to its end. What the
        function raises is not caught.

        Raises:
            ToolError: If the arguments cannot be turned into what the annotations ask for.
        """
        return finish(self._run(arguments, context, cancellation, tool_call))

    def stream_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        state: Mapping[str, object] | None = None,
        *,
        context: Mapping[str, object] | None = None,
        cancellation: object = None,
        tool_call: Mapping[str, object] | None = None,
    ) -> Iterator[JsonObject] | AsyncIterator[JsonObject]:
        """Run the function and yield ``{"part": ...}`` as it speaks and, last, its result.

        The iterator is async when the function is. A function that is not a generator has no parts.
        """
        return stream(self._run(arguments, context, cancellation, tool_call))

    @property
    def _plan(self) -> Plan:
        plan = self._plans.get("plan")
        if plan is None:
            # Two threads may both read; setdefault lets the first answer stand for both.
            plan = self._plans.setdefault("plan", _plan_of(self.name, self.__wrapped__, self._description))
        return plan

    def bind(
        self, arguments: Mapping[str, object], lent: Mapping[str, object]
    ) -> tuple[list[Any], JsonObject]:
        """Return positional and keyword arguments for the function, from JSON and from what is *lent* to it.

        Raises:
            ToolError: If an argument is missing, unknown, or not what its annotation asks for.
        """
        return self._plan.bind(arguments, {"cancellation": None, "tool_call": None, **lent})

    def _run(
        self, arguments: Mapping[str, object], context: object, cancellation: object, tool_call: object
    ) -> object:
        lent = {"context": context, "cancellation": cancellation, "tool_call": tool_call}
        positional, named = self._plan.bind(arguments, lent)
        return self.__wrapped__(*positional, **named)

    def renamed(self, name: str) -> FunctionTool[P, R]:
        """Return the same tool under another name.

        Raises:
            RegistrationError: If the name is not one that every provider accepts.
        """
        return self._again(self.__wrapped__, name)

    def _bound(self, function: Callable[..., R]) -> FunctionTool[..., R]:
        bound: FunctionTool[..., R] = self._again(function, self.name)
        bound._plans = self._bound_plans  # one schema for all instances of the class
        return bound

    def _again(self, function: Callable[..., R], name: str) -> FunctionTool[Any, R]:
        return FunctionTool(function, **{**self._options(), "name": name})

    def _options(self) -> JsonObject:
        return {
            "name": self.name,
            "description": self._description,
            "timeout": self.timeout,
            "parallel": self.parallel,
            "blocking": self.blocking,
            "idempotent": self.idempotent,
            "retries": self.retries,
            "requires_approval": self.requires_approval,
            "tags": self.tags,
        }


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    parallel: bool = True,
    blocking: bool = True,
    idempotent: bool = False,
    retries: int | None = None,
    requires_approval: bool = False,
    tags: Sequence[str] = (),
) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    parallel: bool = True,
    blocking: bool = True,
    idempotent: bool = False,
    retries: int | None = None,
    requires_approval: bool = False,
    tags: Sequence[str] = (),
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Callable[..., object] | None = None, /, **options: Any) -> object:
    """Make a tool of *function*: as ``@tool``, as ``@tool(...)`` or as ``tool(function, ...)``.

    Args:
        function: A function (async and generators too), a bound method, a `functools.partial` or
            an object that can be called. What is a tool already is returned as it is.
        options: What `FunctionTool` takes: ``name`` (the function's own unless given),
            ``description`` (else the docstring's), ``timeout``, ``parallel``, ``blocking``,
            ``idempotent``, ``retries``, ``requires_approval``, ``tags``.

    Raises:
        RegistrationError: If the name is not one that every provider accepts.
    """
    if function is None:
        return lambda function: tool(function, **options)
    if not isinstance(function, FunctionTool):
        return FunctionTool(function, **options)
    if options:
        raise RegistrationError(
            function.name, "it is a tool already: make another with tool(it.__wrapped__, ...)"
        )
    return function


def _is_same(one: object, other: object) -> bool:
    """Say whether two functions are one; a bound method is another object each time that it is looked up."""
    return one is other or (isinstance(one, MethodType) and bool(one == other))


def _check(name: object, function: object, timeout: float | None, retries: int | None) -> None:
    if isinstance(function, type) or not callable(function):
        raise RegistrationError(
            str(name), f"{function!r} is not a function: give a function, a method or an object with __call__"
        )
    if not _is_tool_name(name):
        raise RegistrationError(
            str(name), "a tool's name has 1 to 64 letters a-z, digits, '_' or '-': choose one with name=..."
        )
    if retries is not None and (not isinstance(retries, int) or retries < 0):
        raise RegistrationError(str(name), f"retries is {retries!r}: give a number from 0 on, or None")
    if timeout is not None and not timeout > 0:
        raise RegistrationError(str(name), f"timeout is {timeout!r}: give seconds above 0, or None")


def _check_instant(name: str, function: object, timeout: float | None) -> None:
    """Refuse `blocking=False` where it could not keep what it promises."""
    if is_async(function):
        raise RegistrationError(name, "blocking=False is for functions that are not async: leave it out")
    if timeout is not None:
        raise RegistrationError(
            name, "with blocking=False no call can be timed out: leave out timeout, or blocking"
        )


def _is_tool_name(name: object) -> bool:
    # Said without `re`: compiling the pattern would cost more than decorating a hundred functions.
    if not isinstance(name, str) or not name.isascii() or len(name) > _LONGEST_NAME:
        return False
    return name.replace("_", "0").replace("-", "0").isalnum()
