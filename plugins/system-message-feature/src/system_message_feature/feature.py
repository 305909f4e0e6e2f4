"""The plugin: puts its texts behind the agent's own system prompt. They are sent, and never stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from system_message_feature.instructions import Instructions, find_instructions

if TYPE_CHECKING:
    from agent_runtime.env import Prompt
    from agent_runtime.phases import PhaseView
    from agent_runtime.registrar import PluginRegistrar

SECTION = "system_message"
DEFAULT_BYTES = 32_768
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "description": "What is said to the model in every request."},
        "files": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^[^/\\]+$"},
            "default": ["AGENTS.md"],
            "description": "Names of instruction files; an empty list reads none.",
        },
        "file_bytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "default": DEFAULT_BYTES,
            "description": "How much of one file is read.",
        },
    },
}
_FRAME = (
    "The project has instructions for you, the nearest file first. Where two contradict each other, the "
    "earlier one counts; what the user says counts more than any of them."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent's section says."""

    text: str = ""
    files: tuple[str, ...] = ("AGENTS.md",)
    file_bytes: int = DEFAULT_BYTES


class SystemMessageFeature:
    """Adds a system message, and the instruction files of the session's folders, to every request."""

    name = "system_message"
    version = "0.1.0"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, _SCHEMA)]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place what changes the requests."""
        given = dict(registrar.spec.section(SECTION))
        if "files" in given:
            given["files"] = tuple(given["files"])
        registrar.request_transform(_Adding(Settings(**given)))


class _Adding:
    """Adds the texts; asked once for each request."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, prompt: Prompt, view: PhaseView) -> Prompt:
        text = self._text(view)
        return prompt.with_system(text) if text else prompt

    def _text(self, view: PhaseView) -> str:
        settings = self._settings
        roots = view.session.metadata.get("workspace_roots")
        found = (
            find_instructions(_texts(roots), settings.files, settings.file_bytes) if settings.files else ()
        )
        parts = [settings.text.strip(), _framed(found)]
        return "\n\n".join(part for part in parts if part)


def _texts(roots: Any) -> list[str]:
    return [root for root in roots if isinstance(root, str)] if isinstance(roots, (list, tuple)) else []


def _framed(found: tuple[Instructions, ...]) -> str:
    if not found:
        return ""
    return "\n\n".join([_FRAME, *(_shown(one) for one in found)])


def _shown(one: Instructions) -> str:
    end = "\n[the file goes on]" if one.cut else ""
    return f"Instructions from {one.path}:\n{one.text}{end}"
