"""Files and directories, and the declarations in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_runtime.errors import SpecFileError
from agent_runtime.files import limits
from agent_runtime.files.declarations import entries
from agent_runtime.files.json_text import parse_json
from agent_runtime.files.problems import Wrong, line_of
from agent_runtime.files.toml_text import parse_toml
from agent_runtime.files.yaml_text import parse_yaml
from agent_runtime.specs import AgentSpec, ModelSpec

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from agent_runtime.files.documents import Document

PARSERS: dict[str, Callable[[str], Document]] = {
    ".toml": parse_toml,
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".json": parse_json,
}
"""What reads a text, by the suffix of its file."""


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
    """Return what a file declares, or what all files of a directory do, by name one after the other.

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
    """A declaration and where it stands."""

    kind: str
    spec: AgentSpec | ModelSpec
    path: Path
    text: str
    at: int | None

    @property
    def line(
        self,
    ) -> int | None:  # counted only for an error: for each of many it takes the square of the time
        return line_of(self.text, self.at)


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        inside = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    except (OSError, ValueError) as error:
        raise SpecFileError(str(path), None, f"cannot be read: {_reason(error)}") from error
    chosen = [file for file in inside if file.suffix.lower() in PARSERS and not file.is_dir()]
    if not chosen:
        raise SpecFileError(str(path), None, f"has no file of declarations: name one with {_suffixes()}")
    return chosen


def _read_file(path: Path) -> list[_Entry]:
    parse = PARSERS.get(path.suffix.lower())
    if parse is None:
        raise SpecFileError(
            str(path), None, f"{path.suffix!r} is no format of declarations: use {_suffixes()}"
        )
    text = _text(path)
    try:
        found = entries(parse(text))
    except Wrong as wrong:
        line = line_of(text, wrong.at)
        raise SpecFileError(str(path), line, wrong.problem, field=wrong.field) from wrong.__cause__
    return [_Entry(kind, spec, path, text, at) for kind, spec, at in found]


def _text(path: Path) -> str:
    """Return what a file holds, without the byte order mark that some editors write."""
    content = _content(path)
    if len(content) > limits.MAX_BYTES:
        raise SpecFileError(
            str(path), None, f"is larger than {limits.MAX_BYTES:,} bytes: split it into several files"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecFileError(str(path), line, "is not UTF-8: save it in that encoding") from error


def _content(path: Path) -> bytes:
    try:
        is_special = path.exists() and not path.is_file()  # reading a pipe may never come to an end
        content = b"" if is_special else _beginning(path)
    except (OSError, ValueError) as error:
        raise SpecFileError(str(path), None, f"cannot be read: {_reason(error)}") from error
    if is_special:
        raise SpecFileError(str(path), None, "is no regular file: give the path of one")
    return content


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(limits.MAX_BYTES + 1)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _suffixes() -> str:
    *others, last = PARSERS
    return f"{', '.join(others)} or {last}"


def _declared_twice(first: _Entry, second: _Entry) -> SpecFileError:
    kind = second.kind.removesuffix("s")
    where = f"{first.path}:{first.line}"
    problem = f"{kind} {second.spec.id!r} is declared at {where} already: rename or remove one of them"
    return SpecFileError(str(second.path), second.line, problem, field=f"{second.kind}.{second.spec.id}")
