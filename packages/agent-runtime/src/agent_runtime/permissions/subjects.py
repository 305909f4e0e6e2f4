"""What a call is about, in texts that a rule's glob can be held against.

A tool plugin knows best: its `permission_subjects(tool_name, arguments)` returns a list of texts, a shell
the commands of a line, say; its `permission_watched` may name more that only asking and denying rules look
at. About other tools little is known, so the two questions are answered with
care in opposite directions. *What may be allowed* is the whole call: the one argument if it is a text and
alone, else all arguments as canonical JSON. *What must be watched for* is also every text anywhere in the
arguments: a call does not slip past `deny shell(rm *)` by having one argument more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core.encoding import canonical
from agent_core.frozen import thaw

if TYPE_CHECKING:
    from agent_runtime.phases import CallView


class Subjects(NamedTuple):
    """What a call is about.

    Attributes:
        each: The texts that must all be allowed.
        within: Texts inside of those, which ask and deny look at as well.
        problem: Why the tool could not say; empty if it could.
    """

    each: tuple[str, ...]
    within: tuple[str, ...] = ()
    problem: str = ""


def read_subjects(call: CallView) -> Subjects:
    """Return what *call* is about."""
    told = getattr(call.tool, "permission_subjects", None)
    if callable(told):
        return _ask_the_tool(told, call)
    arguments = call.arguments
    if isinstance(arguments, Mapping) and len(arguments) == 1:
        (arguments,) = arguments.values()
    if isinstance(arguments, str):
        return Subjects((arguments,))
    return Subjects((canonical(call.arguments).decode(),), tuple(_texts_in(call.arguments)))


def _ask_the_tool(permission_subjects: Any, call: CallView) -> Subjects:
    watched = getattr(call.tool, "permission_watched", None)
    try:  # with copies of its own: what the tool does to them does not reach the call
        told = permission_subjects(call.name, thaw(call.arguments))
        within = watched(call.name, thaw(call.arguments)) if callable(watched) else ()
    except Exception as error:  # noqa: BLE001 - a plugin's code
        return Subjects((), (), f"{call.name} failed to say what the call is about: {error!r}")
    for texts in (told, within):
        if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
            return Subjects(
                (), (), f"{call.name} says what the call is about in a {type(texts).__name__}, not in texts"
            )
    return Subjects(tuple(told), tuple(within))


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in nested data; not recursive, since a model decides how deep it is."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, Mapping):
            waiting += here.values()
        elif isinstance(here, (list, tuple)):
            waiting += here
