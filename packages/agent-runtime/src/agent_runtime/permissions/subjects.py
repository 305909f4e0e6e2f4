"""What a call is about, in texts that a rule's glob can be held against.

A tool plugin knows best: its `permission_subjects(tool_name, arguments)` returns a list of texts, a shell
the commands of a line, say; its `permission_watched` may name more that only asking and denying rules look
at. Not all of a text need be known before the call runs. Then, in place of the text, there is a dictionary:
`text` names this very thing, and the globs of `may_be` fit everything that it may turn out to be.

So there are two questions about a thing and a rule. An allow must fit *surely*, whatever comes out. Rules
that ask or deny count if they fit *possibly*. About tools that say nothing little is known, and the same
care is taken. *What may be allowed* is the whole call: the one argument if it is a text and alone, else all
arguments as canonical JSON. *What must be watched for* is also every text anywhere in the arguments: a call
does not slip past `deny shell(rm *)` by having one argument more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core.encoding import canonical
from agent_core.frozen import thaw
from agent_runtime.errors import SpecError
from agent_runtime.patterns import Glob

if TYPE_CHECKING:
    from agent_runtime.phases import CallView


class Subject(NamedTuple):
    """One thing that a call is about.

    Attributes:
        text: What it is; if that is not known, a text that names this very thing and no other.
        may_be: If it is not known, what it may turn out to be; one with another glob stands for the rest.
    """

    text: str
    may_be: Glob | None = None

    @property
    def is_blank(self) -> bool:
        """True if it may be anything."""
        return self.may_be is not None and self.may_be.literal_length == 0

    def surely(self, glob: Glob) -> bool:
        """Say whether it fits a glob in any case."""
        if self.may_be is None:
            return glob.matches(self.text)
        return self.is_named_by(glob) or glob.covers(self.may_be)

    def possibly(self, glob: Glob) -> bool:
        """Say whether it may fit a glob."""
        return glob.matches(self.text) or (self.may_be is not None and glob.meets(self.may_be))

    def is_named_by(self, glob: Glob) -> bool:
        """Say whether a glob fits this very thing alone."""
        return glob.is_literal and glob.matches(self.text)


class Subjects(NamedTuple):
    """What a call is about.

    Attributes:
        each: The things that must all be allowed.
        within: Things inside of those, which ask and deny look at as well.
        problem: Why the tool could not say; empty if it could.
        told: Whether the tool says itself what its calls are about.
    """

    each: tuple[Subject, ...]
    within: tuple[Subject, ...] = ()
    problem: str = ""
    told: bool = False


def read_subjects(call: CallView) -> Subjects:
    """Return what *call* is about."""
    tells = getattr(call.tool, "permission_subjects", None)
    if callable(tells):
        return _ask_the_tool(tells, call)
    arguments = call.arguments
    if isinstance(arguments, Mapping) and len(arguments) == 1:
        (arguments,) = arguments.values()
    if isinstance(arguments, str):
        return Subjects((Subject(arguments),))
    whole = Subject(canonical(call.arguments).decode())
    return Subjects((whole,), tuple(map(Subject, _texts_in(call.arguments))))


def _ask_the_tool(permission_subjects: Any, call: CallView) -> Subjects:
    watched = getattr(call.tool, "permission_watched", None)
    try:  # with copies of its own: what the tool does to them does not reach the call
        told = permission_subjects(call.name, thaw(call.arguments))
        within = watched(call.name, thaw(call.arguments)) if callable(watched) else ()
    except Exception as error:  # noqa: BLE001 - a plugin's code
        return _unsaid(f"{call.name} failed to say what the call is about: {error!r}")
    try:
        return Subjects(_read_all(told), _read_all(within), told=True)
    except (SpecError, TypeError) as error:
        return _unsaid(f"{call.name} does not say in texts what the call is about: {error}")


def _unsaid(problem: str) -> Subjects:
    return Subjects((), (), problem, told=True)


def _read_all(things: Any) -> tuple[Subject, ...]:
    if not isinstance(things, (list, tuple)):
        raise TypeError(f"it returned a {type(things).__name__}, not a list")
    return tuple(subject for thing in things for subject in _read(thing))


def _read(thing: Any) -> list[Subject]:
    if isinstance(thing, str):
        return [Subject(thing)]
    if not isinstance(thing, Mapping) or set(thing) != {"text", "may_be"} or not thing["may_be"]:
        raise TypeError("what is no text must have text and may_be, and nothing else")
    if not isinstance(thing["text"], str) or not isinstance(thing["may_be"], (list, tuple)):
        raise TypeError("text must be a text, and may_be a list of globs")
    return [Subject(thing["text"], Glob.parse(glob)) for glob in thing["may_be"]]


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
