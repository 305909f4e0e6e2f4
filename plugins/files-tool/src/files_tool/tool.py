"""The tool plugin: what it offers, how the platform calls it, and a line that says what a call will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from agent_plugin_kit.sandbox import is_secret_file
from files_tool.calls import CHANGES, Call, shown_beforehand, shown_refusal
from files_tool.journal import Journal
from files_tool.limits import amount
from files_tool.patches import read_patch
from files_tool.places import Refused, folder_glob, shown, subjects, within_root
from files_tool.schemas import EDIT, FIND, LIST, PATCH, READ, SCHEMAS, SEARCH, WRITE
from files_tool.settings import SCHEMA, Settings
from files_tool.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


KEYS = "secret file "
"""How the reading of a file that holds keys begins, as rules spell it."""
_LONGEST = 120
_NAMED = 3


def preview(tool_name: str, arguments: dict[str, Any]) -> str:
    """Return the line for a call; whatever the arguments are, it is one line."""
    write = _PREVIEWS.get(tool_name)
    line = shown(write(arguments) if write else tool_name)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _read(arguments: dict[str, Any]) -> str:
    start, end = arguments.get("start_line"), arguments.get("end_line")
    if start is None and end is None:
        return f"Read {_path(arguments)}"
    return f"Read {_path(arguments)}, lines {start or 1} to {'the end' if end is None else end}"


def _write(arguments: dict[str, Any]) -> str:
    size = len(str(arguments.get("content", "")).encode(errors="replace"))
    return f"Write {_path(arguments)}, {amount(size)}"


def _edit(arguments: dict[str, Any]) -> str:
    return f"Edit {_path(arguments)}{', everywhere' if arguments.get('all') else ''}"


def _patch(arguments: dict[str, Any]) -> str:
    names = patched_names(arguments)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Patch {', '.join(names[:_NAMED])}{more}" if names else "Apply a patch that cannot be read"


def _list(arguments: dict[str, Any]) -> str:
    return f"List {_path(arguments)}"


def _find(arguments: dict[str, Any]) -> str:
    return f"Find {arguments.get('glob', '')} in {_path(arguments)}"


def _search(arguments: dict[str, Any]) -> str:
    return f"Search for {arguments.get('pattern', '')!r} in {_path(arguments)}"


def patched_names(arguments: dict[str, Any]) -> list[str]:
    """Return the names that a patch is about, each once; none if it cannot be read."""
    try:
        patches = read_patch(str(arguments.get("patch", "")))
    except Refused:
        return []
    return list(dict.fromkeys(name for patch in patches for name in patch.names))


def _path(arguments: dict[str, Any]) -> str:
    return str(arguments.get("path") or ".")


_PREVIEWS = {
    READ: _read,
    WRITE: _write,
    EDIT: _edit,
    PATCH: _patch,
    LIST: _list,
    FIND: _find,
    SEARCH: _search,
}


TAG = "files_tool"
_FOLDER_TOOLS = (LIST, FIND, SEARCH)


class FilesTool:
    """Reads, finds and changes files in the workspace of a session.

    It changes what belongs to the user, so it is on only where it is listed.
    """

    name = "files_tool"
    version = "0.1.0"
    default_enabled = False
    parallel = (READ, *_FOLDER_TOOLS)
    timeout: ClassVar[dict[str, float]] = dict.fromkeys((READ, *_FOLDER_TOOLS), 120.0)

    def __init__(self) -> None:
        # Without a session nobody comes back to undo anything, but changes are recorded all the same.
        self._own_session = f"none-{uuid4().hex}"

    @staticmethod
    def own_paths(settings: Mapping[str, Any]) -> list[str]:
        """Return the journal's folder: no tool of a model may touch it."""
        return [Settings.read(settings).journal]

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def get_tags(self, config: Mapping[str, Any]) -> list[str]:
        """Return the tag by which the feature with the undo actions knows that there is something to undo."""
        return [TAG]

    def init(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that calls run with.

        Raises:
            ConfigError: If one of them cannot be used.
        """
        return {"settings": Settings.read(config)}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the seven tools."""
        return SCHEMAS

    def execute_tool(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        state: dict[str, Any],
        *,
        cancellation: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run a tool; the result says what cannot be done."""
        try:
            return self._call(tool_name, arguments, state, context, cancellation).run()
        except Refused as refused:
            return {"success": False, "error": str(refused)}
        except OSError as error:
            return {"success": False, "error": f"the system refused: {error}"}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return what the model reads, without what is shown to a person."""
        return {key: value for key, value in result.items() if key != "display"}

    def to_display_format(self, text: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return what a person is shown: the diff of a change, the text that was read, or the answer."""
        display: dict[str, Any] = result.get("display") or {"type": "text", "content": text}
        return display

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Return what the call will do, in one line."""
        return preview(tool_name, arguments)

    def format_tool_call_display(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        state: dict[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """Return the diff that the call would make; of a call that would be refused, why."""
        if tool_name not in CHANGES:
            return None
        try:
            return shown_beforehand(self._call(tool_name, arguments, state, context).plan_for_people())
        except (Refused, OSError) as error:
            return shown_refusal(error)

    permission_takes_roots = True

    def permission_subjects(
        self, tool_name: str, arguments: dict[str, Any], roots: Sequence[str] = ()
    ) -> list[str | dict[str, str]]:
        """Return the paths that a call is about, from the workspace's root down; a folder ends in a slash.

        To read a file that holds keys is something else than to read: `allow read_file` does not cover it.

        Args:
            roots: The folders of the workspace; relative names are meant from the first one down.
        """
        if tool_name == PATCH:
            names = [within_root(name, roots) for name in patched_names(arguments)]
            return [subject for name in names for subject in subjects(name)]
        is_folder = tool_name in _FOLDER_TOOLS
        path = within_root(arguments.get("path") or ".", roots)
        about: list[str | dict[str, str]] = [*subjects(path, is_folder=is_folder)]
        if (
            tool_name == READ
            and isinstance(path, str)
            and is_secret_file(path.rstrip("/").rpartition("/")[2])
        ):
            about.append({"text": f"{KEYS}{path}", "spelled": KEYS})
        return about

    def permission_watched(
        self, tool_name: str, arguments: dict[str, Any], roots: Sequence[str] = ()
    ) -> list[str]:
        """Return every end of an absolute name in the workspace: rules that ask or deny look at those too."""
        names: list[Any] = patched_names(arguments) if tool_name == PATCH else [arguments.get("path")]
        moved = [name for name in names if within_root(name, roots) != name]
        return [subject for name in moved for subject in subjects(name, is_folder=tool_name in _FOLDER_TOOLS)]

    def permission_suggestions(
        self, tool_name: str, arguments: dict[str, Any], roots: Sequence[str] = ()
    ) -> list[str]:
        """Return what could be granted for good: everything in the folder of the file."""
        path = within_root(arguments.get("path"), roots)
        if tool_name == PATCH or not isinstance(path, str) or not path:
            return []
        glob = folder_glob(f"{path}/…" if tool_name in _FOLDER_TOOLS else path)
        return [] if glob is None else [glob]

    def _call(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        state: dict[str, Any],
        context: Mapping[str, Any] | None,
        cancellation: Any = None,
    ) -> Call:
        settings: Settings = state["settings"]
        session_id = (context or {}).get("session_id") or self._own_session
        return Call(
            tool=tool_name,
            arguments=arguments,
            workspace=Workspace.of(context, settings),
            journal=Journal(settings.journal, str(session_id)),
            is_cancelled=lambda: cancellation is not None and cancellation.cancelled,
            shown=(context or {}).get("shown"),
        )
