"""The tool plugin: what it offers, and how the platform calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from files_tool.calls import CHANGES, Call, shown_beforehand, shown_refusal
from files_tool.errors import Refused
from files_tool.journal import Journal
from files_tool.names import folder_glob, subjects
from files_tool.previews import patched_names, preview
from files_tool.schemas import FIND, LIST, PATCH, READ, SCHEMAS, SEARCH
from files_tool.settings import SCHEMA, Settings
from files_tool.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """Return the journal's folder: no tool of a model shall touch it."""
        return [Settings.read(settings).journal]

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def get_tags(self, config: Mapping[str, Any]) -> list[str]:  # noqa: ARG002 - always the same
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
        """Run a tool; what cannot be done is told in the result."""
        try:
            return self._call(tool_name, arguments, state, context, cancellation).run()
        except Refused as refused:
            return {"success": False, "error": str(refused)}
        except OSError as error:
            return {"success": False, "error": f"the system refused: {error}"}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return what the model reads, which is not what a person is shown beside it."""
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

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        """Return the paths that a call is about, from the workspace's root down; a folder ends in a slash."""
        if tool_name == PATCH:
            return [subject for name in patched_names(arguments) for subject in subjects(name)]
        is_folder = tool_name in _FOLDER_TOOLS
        return subjects(arguments.get("path") or ".", is_folder=is_folder)

    def permission_suggestions(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        """Return what could be granted for good: everything in the folder of the file."""
        path = arguments.get("path")
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
