"""MCP servers that other programs have set up: found, read, and written as our settings declare them.

Claude Code, VS Code and Cursor keep servers as JSON under `mcpServers` or `servers`. What has a counterpart
here is taken over; what has none is named, and left for a person. Reading starts nothing: a server that was
imported needs the same approval as any other.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PROGRAMS: Final = ("claude", "vscode", "cursor")
"""The programs whose settings can be read."""
_LARGEST: Final = 20_000_000  # Claude Code keeps its history in the same file
_NAME: Final = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST_NAME: Final = 32
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
_INPUT: Final = re.compile(r"\$\{input:([^}]+)\}")
_LOCAL, _REMOTE = ("", "stdio"), ("", "http", "streamable-http", "streamableHttp")
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server that another program knows.

    Attributes:
        name: What it is called here; another spelling of what it is called there, if that is none for us.
        declared: Its declaration, as `[plugins.mcp_tools.servers.NAME]` has it.
        source: The file that it is from.
        problem: Why it cannot be used here; empty if it can.
        asked_for: The variables or headers whose value the other program asks a person for.
    """

    name: str
    declared: Mapping[str, Any]
    source: Path
    problem: str = ""
    asked_for: tuple[str, ...] = field(default=())


def known_files(program: str, home: Path, project: Path) -> list[Path]:
    """Return the files in which a program keeps its servers, those of the user before those of a project."""
    editors = [home / ".config", home / "Library" / "Application Support", home / "AppData" / "Roaming"]
    files = {
        "claude": [home / ".claude.json", project / ".mcp.json"],
        "vscode": [
            *(one / "Code" / "User" / "mcp.json" for one in editors),
            project / ".vscode" / "mcp.json",
        ],
        "cursor": [home / ".cursor" / "mcp.json", project / ".cursor" / "mcp.json"],
    }
    return files[program]


def read_servers(
    path: Path, *, home: Path, project: Path, environment: Mapping[str, str]
) -> list[FoundServer]:
    """Return the servers of a file.

    Args:
        home: The user's folder, which a declaration may mean by a variable.
        project: The folder for which servers of a project count.
        environment: The variables that command lines and addresses may refer to.

    Raises:
        AgentError: If the file cannot be read.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise AgentError(f"{path} is too large to be settings: {path.stat().st_size:,} bytes")
        data = _read_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise AgentError(f"{path} is not JSON: {error}") from error
    known = {
        "workspaceFolder": str(project),
        "workspaceFolderBasename": project.name,
        "userHome": str(home),
        "pathSeparator": "/",
    }
    texts = _Texts({**environment, **known})
    return [_in_project(_read(name, given, path, texts), project) for name, given in _tables(data, project)]


def _in_project(found: FoundServer, project: Path) -> FoundServer:
    """Have a server run in the project if its command line means something there, as other programs do."""
    words = [found.declared.get("command", ""), *found.declared.get("args", ())]
    if "cwd" in found.declared or found_in(project, words) is None:
        return found
    return replace(found, declared={**found.declared, "cwd": str(project)})


def found_in(folder: Path, words: Sequence[str]) -> str | None:
    """Return the first word of a command line that names something in a folder by a relative path.

    A server with such a word has to run in that folder. A command without a slash is looked for on the PATH.
    """
    for place, word in enumerate(words):
        if word.startswith(("-", "/", "~")) or (place == 0 and "/" not in word):
            continue
        with suppress(OSError, ValueError):
            if word and (folder / word).exists():
                return word
    return None


def _read_json(text: str) -> Any:
    """Read JSON, also with comments and commas at ends, as editors write it."""
    try:
        return json.loads(text)
    except ValueError:
        plain = _COMMENT.sub(lambda found: found[1] or "", text)
        return json.loads(_LAST_COMMA.sub(lambda found: found[1] or "", plain))


def _tables(data: Any, project: Path) -> Iterator[tuple[str, Any]]:
    """Yield the servers of a file by name: those for everything, and those for a project."""
    if not isinstance(data, dict):
        return
    projects = data.get("projects")
    own = projects.get(str(project)) if isinstance(projects, dict) else None
    inner = data.get("mcp")
    for table in (data, inner, own):
        for key in ("mcpServers", "servers"):
            servers = table.get(key) if isinstance(table, dict) else None
            if isinstance(servers, dict):
                yield from servers.items()


def _read(name: str, given: Any, source: Path, texts: _Texts) -> FoundServer:
    called = _NAME.sub("_", name).strip("_")[:_LONGEST_NAME].strip("_") or "server"
    if not isinstance(given, dict):
        return FoundServer(name=called, declared={}, source=source, problem="its declaration is not a table")
    kind = given.get("type") or given.get("transport") or ""
    try:
        if isinstance(given.get("command"), str) and kind in _LOCAL:
            declared = _local(given, texts)
        elif isinstance(given.get("url"), str) and kind in _REMOTE:
            declared = {"url": texts.expanded(given["url"])}
        else:
            return FoundServer(name=called, declared={}, source=source, problem=_unusable(kind))
    except _AskedFor as missing:
        problem = f"its command or address asks for {missing}; add it with `agent mcp add {called}`"
        return FoundServer(name=called, declared={}, source=source, problem=problem)
    except LookupError as missing:
        problem = f"it needs the variable {missing.args[0]}, which is not set"
        return FoundServer(name=called, declared={}, source=source, problem=problem)
    values, asked_for = texts.values(given.get("env" if "command" in declared else "headers"))
    if values:
        declared["env" if "command" in declared else "headers"] = values
    if given.get("disabled") is True:
        declared["enabled"] = False
    return FoundServer(name=called, declared=declared, source=source, asked_for=tuple(asked_for))


def _local(given: Mapping[str, Any], texts: _Texts) -> dict[str, Any]:
    declared: dict[str, Any] = {"command": texts.expanded(given["command"])}
    arguments = given.get("args")
    if isinstance(arguments, list) and arguments:
        declared["args"] = [texts.expanded(str(one)) for one in arguments]
    if isinstance(given.get("cwd"), str):
        declared["cwd"] = texts.expanded(given["cwd"])
    return declared


def _unusable(kind: str) -> str:
    if kind == "sse":
        return "it speaks HTTP+SSE, which MCP has given up; use its address for streamable HTTP"
    return f"a server of the type {kind!r} is not known" if kind else "it has neither a command nor a URL"


class _AskedFor(Exception):
    """A value that the other program asks a person for is where only a text can be."""


class _Texts:
    """Replaces what other programs write in place of a value.

    Args:
        known: The variables by name.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known

    def expanded(self, text: str) -> str:
        """Return a text with its variables filled in.

        Raises:
            LookupError: If one is not there.
            _AskedFor: If a person would have to say it.
        """

        def fill(found: re.Match[str]) -> str:
            value = self._known.get(found[1], found[2])
            if value is None:
                raise LookupError(found[1])
            return value

        if asked := _INPUT.search(text):
            raise _AskedFor(repr(asked[1]))
        return _VARIABLE.sub(fill, text)

    def values(self, given: Any) -> tuple[dict[str, str], list[str]]:
        """Return variables or headers as we declare them, and the names of those that must be asked for.

        What is a variable as a whole stays a reference, so that its value is in no file.
        """
        made: dict[str, str] = {}
        asked: list[str] = []
        for name, value in given.items() if isinstance(given, dict) else ():
            text = "" if value is None else str(value)
            whole = _VARIABLE.fullmatch(text)
            if _INPUT.search(text):
                asked.append(name)
            elif whole is not None and (whole[1] in self._known or whole[2] is None):
                made[name] = f"env:{whole[1]}"
            else:
                made[name] = _VARIABLE.sub(lambda found: self._known.get(found[1], found[2] or ""), text)
        return made, asked
