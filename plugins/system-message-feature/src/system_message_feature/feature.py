"""The plugin: puts its texts behind the agent's own system prompt. They are sent, and never stored.

Files that were found and not read are named: to the model with the rest, and to the person in a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.settings import read_settings, section_schema, setting
from agent_plugin_kit.trust import NOT_TRUSTED, is_trusted, trusted_folders
from system_message_feature.instructions import Instructions, LeftOut, find_instructions

if TYPE_CHECKING:
    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView

SECTION = "system_message"
DEFAULT_BYTES = 32_768
_FRAME = (
    "The project has instructions for you, the nearest file first. Where two contradict each other, the "
    "earlier one counts; what the user says counts more than any of them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent's section says."""

    text: str = setting("", "What is said to the model in every request.", empty=True, shown_default=None)
    files: tuple[str, ...] = setting(
        ("AGENTS.md",),
        "Names of instruction files; an empty list reads none.",
        pattern=r"^[^/\\]+$",
    )
    file_bytes: int = setting(DEFAULT_BYTES, "How much of one file is read.", at_least=1, at_most=1_000_000)


class SystemMessageFeature:
    """Adds a system message, and the instruction files of the session's folders, to every request."""

    name = "system_message"
    version = "0.1.0"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, section_schema(Settings))]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place what changes the requests."""
        trusted = trusted_folders(registrar.spec.section("config"))
        adding = _Adding(read_settings(Settings, registrar.spec.section(SECTION)), trusted)
        registrar.request_transform(adding)
        registrar.phase_hook("run_start", adding.warn)


class _Adding:
    """Adds the texts; asked once for each request."""

    def __init__(self, settings: Settings, trusted: tuple[str, ...] | None) -> None:
        self._settings = settings
        self._trusted = trusted

    def __call__(self, prompt: Prompt, view: PhaseView) -> Prompt:
        parts = [self._settings.text.strip(), _framed(self._found(view))]
        text = "\n\n".join(part for part in parts if part)
        return prompt.with_system(text) if text else prompt

    def warn(self, view: PhaseView) -> Flow[None]:
        """Tell the person of what is not read, once in each run."""
        from agent_runtime.engine import warn

        for one in self._found(view):
            if isinstance(one, LeftOut):
                yield from warn(_not_read(one), SystemMessageFeature.name)

    def _found(self, view: PhaseView) -> tuple[Instructions | LeftOut, ...]:
        if not self._settings.files:
            return ()
        roots = _texts(view.session.metadata.get("workspace_roots"))
        found = find_instructions(roots, self._settings.files, self._settings.file_bytes)
        return tuple(map(self._believed, found))

    def _believed(self, one: Instructions | LeftOut) -> Instructions | LeftOut:
        """Return instructions as they are, or that they are not read if their project is not trusted."""
        if isinstance(one, LeftOut) or is_trusted(one.path.parent, self._trusted):
            return one
        return LeftOut(one.path, NOT_TRUSTED)


def _texts(roots: Any) -> list[str]:
    return [root for root in roots if isinstance(root, str)] if isinstance(roots, (list, tuple)) else []


def _framed(found: tuple[Instructions | LeftOut, ...]) -> str:
    said = [_shown(one) for one in found if isinstance(one, Instructions)]
    left_out = [f"[{_not_read(one)}]" for one in found if isinstance(one, LeftOut)]
    return "\n\n".join([*([_FRAME] if said else []), *said, *left_out])


def _shown(one: Instructions) -> str:
    end = "\n[the file goes on]" if one.cut else ""
    return f"Instructions from {one.path}:\n{one.text}{end}"


def _not_read(one: LeftOut) -> str:
    return f"{one.path} was not read: {one.why}"
