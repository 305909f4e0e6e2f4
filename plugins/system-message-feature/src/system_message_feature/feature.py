"""The plugin: puts its texts behind the agent's own system prompt. They are sent, and never stored.

Who opens a session sees which files were loaded. Files that were found and not read are named: to the model
with the rest, and to the person in a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError
from agent_plugin_kit.settings import read_settings, section_schema, setting
from agent_plugin_kit.trust import NOT_TRUSTED, is_trusted, trusted_folders
from system_message_feature.instructions import Instructions, LeftOut, find_instructions
from system_message_feature.surroundings import Surroundings

if TYPE_CHECKING:
    from agent_core import Session
    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView

SECTION = "system_message"
DEFAULT_BYTES = 32_768
LOADED = "loaded_instructions"
_FIELDS = ("text", "files", "file_bytes", "surroundings")
_FRAME = (
    "The project has instructions for you, the nearest file first. Where two contradict each other, the "
    "earlier one counts; what the user says counts more than any of them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent's section says."""

    text: str = setting("", "A text that the model reads in every request.", empty=True, shown_default=None)
    files: tuple[str, ...] = setting(
        ("AGENTS.md", "CLAUDE.md"),
        "Names of instruction files; an empty list reads none.",
        pattern=r"^[^/\\]+$",
    )
    file_bytes: int = setting(DEFAULT_BYTES, "How much of one file is read.", at_least=1, at_most=1_000_000)
    surroundings: bool = setting(
        default=False,
        description="Whether the model reads the folder, the system, the date and the state of git.",
    )


class SystemMessageFeature:
    """Adds a system message, and the instruction files of the session's folders, to every request."""

    name = "system_message"
    version = "0.1.0"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, section_schema(Settings))]

    def __init__(self) -> None:
        self._surroundings = Surroundings()

    def register(self, registrar: PluginRegistrar) -> None:
        """Place what changes the requests."""
        trusted = trusted_folders(registrar.spec.section("config"))
        settings = read_settings(Settings, registrar.spec.section(SECTION))
        adding = _Adding(settings, trusted, self._surroundings)
        registrar.request_transform(adding)
        registrar.phase_hook("run_start", adding.warn)

    def get_actions(self) -> list[dict[str, Any]]:
        """Offer to say what was loaded, to a person who opens a session."""
        return [
            {
                "id": LOADED,
                "description": "Say which instruction files of the project the model reads.",
                "inputs": {},
                "trigger": "session_open",
                "idempotent": True,
            }
        ]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a notice about the files that were loaded."""
        if action_id != LOADED:
            return {"status": "error", "error": {"type": "unknown_action", "message": f"no {action_id!r}"}}
        config = (context or {}).get("config")
        config = config if isinstance(config, Mapping) else {}
        try:
            settings = read_settings(Settings, {name: config[name] for name in _FIELDS if name in config})
        except ConfigError:
            settings = Settings()
        adding = _Adding(settings, trusted_folders(config), self._surroundings)
        found = [one for one in adding.found(session) if isinstance(one, Instructions)]
        if not found:
            return {"status": "ok", "notices": []}
        loaded = ", ".join(f"{one.path.name} ({one.size:,} bytes)" for one in found)
        return {"status": "ok", "notices": [{"text": f"loaded: {loaded}", "is_problem": False}]}


class _Adding:
    """Adds the texts; asked once for each request."""

    def __init__(
        self, settings: Settings, trusted: tuple[str, ...] | None, surroundings: Surroundings
    ) -> None:
        self._settings = settings
        self._trusted = trusted
        self._surroundings = surroundings

    def __call__(self, prompt: Prompt, view: PhaseView) -> Prompt:
        place = self._place(view.session) if self._settings.surroundings else ""
        parts = [self._settings.text.strip(), place, _framed(self.found(view.session))]
        text = "\n\n".join(part for part in parts if part)
        return prompt.with_system(text) if text else prompt

    def warn(self, view: PhaseView) -> Flow[None]:
        """Tell the person of what is not read, once in each run."""
        from agent_runtime.engine import warn

        for one in self.found(view.session):
            if isinstance(one, LeftOut):
                yield from warn(_not_read(one), SystemMessageFeature.name)

    def _place(self, session: Session) -> str:
        roots = _texts(session.metadata.get("workspace_roots"))
        if not roots:
            return ""
        trusted = is_trusted(roots[0], self._trusted)
        return self._surroundings.of(session.session_id, roots[0], trusted=trusted)

    def found(self, session: Session) -> tuple[Instructions | LeftOut, ...]:
        """Return the instruction files of a session's folders."""
        if not self._settings.files:
            return ()
        roots = _texts(session.metadata.get("workspace_roots"))
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
    end = "\n[the file continues]" if one.cut else ""
    return f"Instructions from {one.path}:\n{one.text}{end}"


def _not_read(one: LeftOut) -> str:
    return f"{one.path} was not read: {one.why}"
