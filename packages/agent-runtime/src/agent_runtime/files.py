"""Declarations from TOML, YAML and JSON files; errors name the file and the line.

`agent_runtime.documents` reads a text into data with places. The specs read the data and know nothing of
files. When a spec refuses a field, the field is followed into the data and its place looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent_core.errors import nearest
from agent_runtime import fields
from agent_runtime.documents import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    KeyPath,
    Wrong,
    follow,
    inside,
    join,
    line_of,
    parse_json,
    parse_toml,
    parse_yaml,
    spell,
    unusable,
)
from agent_runtime.errors import SpecError, SpecFileError
from agent_runtime.policies import read_condition
from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec, RetryPolicy

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_VALUES", "Declarations", "entries", "load_specs"]

T = TypeVar("T")
Spec = AgentSpec | ModelSpec

_PARSERS: dict[str, Callable[[str], Document]] = {
    ".toml": parse_toml,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".json": parse_json,
}


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a file, or a directory of files, declares.

    Attributes:
        agents: The agents, in the order of the files.
        models: The models, in the order of the files.
    """

    agents: tuple[AgentSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()


def load_specs(path: str | os.PathLike[str]) -> Declarations:
    """Return what a file declares, or what all files of a directory declare, in the order of their names.

    Raises:
        SpecFileError: If a file cannot be read, or something in it cannot be used.
    """
    found: dict[tuple[str, str], _Entry] = {}
    for file in _files(Path(path)):
        for entry in _read_file(file):
            first = found.setdefault((entry.kind, entry.spec.id), entry)
            if first is not entry:
                raise _declared_twice(first, entry)
    specs = [entry.spec for entry in found.values()]
    return Declarations(
        agents=tuple(spec for spec in specs if isinstance(spec, AgentSpec)),
        models=tuple(spec for spec in specs if isinstance(spec, ModelSpec)),
    )


class _Entry(NamedTuple):
    kind: str
    spec: Spec
    path: Path
    text: str
    at: int | None

    @property
    def line(self) -> int | None:
        # Counted only for an error: for each of many entries it would take quadratic time.
        return line_of(self.text, self.at)


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        inside = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    except (OSError, ValueError) as error:
        raise SpecFileError(str(path), None, f"cannot be read: {_reason(error)}") from error
    chosen = [file for file in inside if file.suffix.lower() in _PARSERS and not file.is_dir()]
    if not chosen:
        raise SpecFileError(str(path), None, f"has no file of declarations: name one with {_suffixes()}")
    return chosen


def _read_file(path: Path) -> list[_Entry]:
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        raise SpecFileError(
            str(path), None, f"{path.suffix!r} is not a format of declarations: use {_suffixes()}"
        )
    text = _text(path)
    try:
        found = entries(parse(text))
    except Wrong as wrong:
        line = line_of(text, wrong.at)
        raise SpecFileError(str(path), line, wrong.problem, field=wrong.field) from wrong.__cause__
    return [_Entry(kind, spec, path, text, at) for kind, spec, at in found]


def _text(path: Path) -> str:
    """Return the content of a file, without the byte order mark that some editors write."""
    try:
        is_special = path.exists() and not path.is_file()  # reading a pipe may never come to an end
        content = b"" if is_special else _beginning(path)
    except (OSError, ValueError) as error:
        raise SpecFileError(str(path), None, f"cannot be read: {_reason(error)}") from error
    if is_special:
        raise SpecFileError(str(path), None, "is no regular file: give the path of one")
    if len(content) > MAX_BYTES:
        problem = f"is larger than {MAX_BYTES:,} bytes: split it into several files"
        raise SpecFileError(str(path), None, problem)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecFileError(str(path), line, "is not UTF-8: save it in that encoding") from error


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _suffixes() -> str:
    *others, last = _PARSERS
    return f"{', '.join(others)} or {last}"


def _declared_twice(first: _Entry, second: _Entry) -> SpecFileError:
    kind = second.kind.removesuffix("s")
    where = f"{first.path}:{first.line}"
    problem = f"{kind} {second.spec.id!r} is declared at {where} already: rename or remove one of them"
    return SpecFileError(str(second.path), second.line, problem, field=f"{second.kind}.{second.spec.id}")


def entries(document: Document) -> list[tuple[str, Spec, int | None]]:
    """Return every declaration of a document with its section and place.

    Raises:
        Wrong: The topmost of the problems, if there are any.
    """
    for path, problem in unusable(document.data):
        raise Wrong(document.locate(path), f"{spell(path)} {problem}".lstrip(), spell(path) or None)
    found: list[tuple[str, Spec, int | None]] = []
    problems: list[Wrong] = []
    for kind, path, item in _items(document, problems):
        try:
            spec = _READERS[kind](_Reader(document, path, item))
        except Wrong as wrong:
            problems.append(wrong)
        else:
            found.append((kind, spec, document.locate(path)))
    if problems:
        raise min(problems, key=lambda wrong: wrong.at or 0)
    return found


def _items(document: Document, problems: list[Wrong]) -> Iterator[tuple[str, KeyPath, Any]]:
    """Find what is declared; a section that cannot be read is added to the problems."""
    if document.data is None:  # YAML with nothing but comments
        return
    if not isinstance(document.data, dict):
        raise Wrong(document.locate(()), "must hold a mapping with agents and models")
    for kind, section in document.data.items():
        if kind not in _READERS:
            problem = f"there is no section {kind!r}: {nearest(kind, _READERS)}"
            problems.append(Wrong(document.locate((kind,)), problem, kind))
        elif not isinstance(section, (dict, list)):
            problem = f"{kind} must be a mapping by id, or a list, not {type(section).__name__}"
            problems.append(Wrong(document.locate((kind,)), problem, kind))
        else:
            for key, item in section.items() if isinstance(section, dict) else enumerate(section):
                yield kind, (kind, key), item


@dataclass(frozen=True, slots=True)
class _Reader:
    """One declaration being read; finds the place of what is wrong with it."""

    document: Document
    path: KeyPath
    item: Any

    @property
    def kind(self) -> str:
        """Either "agent" or "model"."""
        return str(self.path[0]).removesuffix("s")

    @property
    def name(self) -> str:
        """What errors call it: by its id, or by its path if it has none."""
        given = self.item.get("id") if isinstance(self.item, dict) else None
        name = self.path[-1] if isinstance(self.path[-1], str) else given
        return f"{self.kind} {name!r}" if isinstance(name, str) else spell(self.path)

    def fields(self) -> Any:
        """Return the declared fields; a declaration in a mapping gets its id from its key."""
        if not isinstance(self.item, dict):
            return self.item
        if isinstance(self.path[-1], int):
            return dict(self.item)
        if "id" in self.item:
            raise self.wrong(
                SpecError(f"{self.name} has its id from its key: remove the field", field="id"), ()
            )
        return {"id": self.path[-1], **self.item}

    def read(self, read: Callable[[str, Any], T], *inner: str | int) -> T:
        """Read a part of the declaration, or all of it; a refused field is reported with its place."""
        try:
            return read(spell(inner) or self.kind, inside(self.item, inner))
        except SpecError as error:
            raise self.wrong(error, inner) from error

    def wrong(self, error: SpecError, inner: KeyPath) -> Wrong:
        """Return *error* with its place; fields are named from the part that was read or from the whole."""
        where, value = spell(inner) or self.kind, inside(self.item, inner)
        field = (error.field or "").removeprefix(f"{where}.")
        if field == where and (inner or not isinstance(value, dict)):
            field = ""
        at = self.document.locate((*self.path, *inner, *follow(value, field)))
        return Wrong(at, self._problem(error, inner), join(spell((*self.path, *inner)), field))

    def _problem(self, error: SpecError, inner: KeyPath) -> str:
        message, where = str(error), spell(inner)
        if message.startswith(self.name):
            return message
        if not inner and (error.field or "").startswith(f"{self.kind}."):
            return self.name + message.removeprefix(self.kind)
        return f"{self.name}: {message}" if message.startswith(where) else f"{self.name}: {where}: {message}"


def _read_agent(reader: _Reader) -> AgentSpec:
    # Its parts are read one by one before the whole, so that the place of each is known.
    data = reader.fields()
    if isinstance(data, dict):
        if data.get("context_policy") is not None:
            data["context_policy"] = reader.read(partial(_read_policy, ContextPolicy), "context_policy")
        if isinstance(data.get("stop_conditions"), list):
            places = range(len(data["stop_conditions"]))
            data["stop_conditions"] = [
                reader.read(read_condition, "stop_conditions", place) for place in places
            ]
    agent = reader.read(lambda _where, _item: AgentSpec.from_dict(data))
    if "retry" in agent.sections:  # kept as it is; whoever resolves the agent reads it again
        reader.read(partial(_read_policy, RetryPolicy), "sections", "retry")
    return agent


def _read_model(reader: _Reader) -> ModelSpec:
    data = reader.fields()
    return reader.read(lambda _where, _item: ModelSpec.from_dict(data))


def _read_policy(cls: type[T], where: str, data: object) -> T:
    return fields.read(cls, data, where=where)


_READERS: dict[str, Callable[[_Reader], Spec]] = {"agents": _read_agent, "models": _read_model}
