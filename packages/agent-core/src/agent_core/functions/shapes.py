"""What an annotation becomes: a JSON Schema for the model, and a reader for what the model sends.

Both are made together, so that they cannot disagree. A reader is given JSON that the platform has
checked against the schema. It refuses what it cannot use all the same: a union finds its member by
asking each one in turn, and a date that is no date passes every schema, since ``format`` is a hint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.functions.values import NotJsonError, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class UnsupportedAnnotationError(TypeError):
    """An annotation has no JSON Schema; the message says which, and what to write instead."""


class MismatchError(ValueError):
    """A JSON value is not what the annotation asks for; `path` leads to it from the argument."""

    def __init__(self, problem: str, path: tuple[str | int, ...] = ()) -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{_place(path)}: {problem}" if path else problem)

    def within(self, key: str | int) -> MismatchError:
        """Return the same complaint as seen from one container further out."""
        return MismatchError(self.problem, (key, *self.path))


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotation: `schema` describes its JSON form, `load` makes the Python value from it."""

    schema: dict[str, Any]
    load: Callable[[Any], Any]

    def extended(self, keywords: Mapping[str, Any]) -> Shape:
        """Return the shape with *keywords* added to its schema."""
        return Shape({**self.schema, **keywords}, self.load)

    def defaulting_to(self, value: Any) -> Shape:
        """Return the shape with its default written down, if JSON can say it and the reader takes it."""
        try:
            default = encode(value)
            self.load(default)
        except (NotJsonError, MismatchError):
            return self
        return self.extended({"default": default})


ANYTHING = Shape({}, lambda value: value)


def resolving_hint(error: Exception) -> str:
    """Return what to do about an annotation that *error* keeps from being evaluated."""
    if isinstance(error, NameError):
        return "import or define the name at the top of the module, not only for type checkers"
    if "unhashable" in str(error):  # typing cannot compare the members of such a union
        return "put Annotated around the whole union, Annotated[int | None, {...}]"
    return "write it as a type"


def load_at(key: str | int, load: Callable[[Any], Any], value: Any) -> Any:
    """Read one item of a container; what goes wrong is told with the way to it."""
    try:
        return load(value)
    except MismatchError as error:
        raise error.within(key) from error.__cause__


def refused(value: Any, wanted: str) -> MismatchError:
    """Return the complaint that *value* is not *wanted*."""
    from reprlib import repr as short

    return MismatchError(f"{short(value)} is not {wanted}")


def _place(path: tuple[str | int, ...]) -> str:
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return "".join(steps).removeprefix(".")
