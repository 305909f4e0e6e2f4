"""The plugin: the list of memories in the prompt, the tools of the model, and the actions of people.

It is off unless an agent names it. What it keeps is sent with every later request, also in other projects, so
that is for a person to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from agent_core import plugin_config
from agent_plugin_kit.settings import read_settings, section_schema
from agent_plugin_kit.trust import trusted_folders
from agent_runtime import Block
from memory_feature.actions import ACTIONS, ELEMENTS, PLUGIN, run_action
from memory_feature.shelf import Settings, Shelf, own_folder
from memory_feature.tools import MemoryTools

if TYPE_CHECKING:
    from agent_core import Session
    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView

SECTION = "memory"
_MOST_WARNINGS = 10


class MemoryFeature:
    """Lets agents remember facts across sessions."""

    name = PLUGIN
    version = "0.1.0"
    default_enabled = False

    def __init__(self) -> None:
        self._warned: set[tuple[str, str]] = set()

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, section_schema(Settings))]

    @staticmethod
    def own_paths(settings: Mapping[str, Any]) -> list[str]:
        """Return the person's own memories: other tools of a model may not touch them unasked."""
        return [str(own_folder(read_settings(Settings, settings).folder))]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the list and the tools."""
        settings = read_settings(Settings, registrar.spec.section(SECTION))
        tools = _tools(settings, trusted_folders(registrar.spec.section("config")))
        registrar.request_transform(partial(_with_memories, tools, settings))
        registrar.phase_hook("run_start", partial(_warn, tools, self._warned))
        registrar.tool_gate(partial(_refuse, tools))
        registrar.tool("memory_tools", tools)

    def get_actions(self) -> list[dict[str, Any]]:
        """Offer to see the memories, and to change them."""
        return ACTIONS

    def get_ui_elements(self, _config: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Have them shown as a collection."""
        return ELEMENTS

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: Mapping[str, Any],
        context: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Run one of the actions for the folders of a session."""
        config = context["config"]
        settings = read_settings(Settings, plugin_config(config, SECTION))
        shelf = Shelf.of(settings, trusted_folders(config), session.metadata)
        return run_action(shelf, action_id, params)


@lru_cache(maxsize=64)  # the same object each time: of a new one everything about its agent is decided anew
def _tools(settings: Settings, trusted: tuple[str, ...] | None) -> MemoryTools:
    return MemoryTools(partial(Shelf.of, settings, trusted))


def _with_memories(tools: MemoryTools, settings: Settings, prompt: Prompt, view: PhaseView) -> Prompt:
    """Return the prompt with the list of memories behind its system message."""
    text = tools.shelf(view.session.metadata).text(settings.prompt_bytes)
    return prompt.with_system(text) if text else prompt


def _refuse(tools: MemoryTools, view: PhaseView) -> Block | None:
    """Block a call that cannot be done: small models ask to forget memories that do not exist."""
    call = view.call
    assert call is not None
    if call.tool is not tools or not isinstance(call.arguments, Mapping):
        return None
    problem = tools.refusal(call.name, call.arguments, view.session.metadata)
    return None if problem is None else Block(problem)


def _warn(tools: MemoryTools, warned: set[tuple[str, str]], view: PhaseView) -> Flow[None]:
    """Warn of memories that are left out; of each problem once in a session."""
    from agent_runtime.engine import warn

    for problem in tools.shelf(view.session.metadata).problems()[:_MOST_WARNINGS]:
        if (view.session.session_id, problem) not in warned:
            warned.add((view.session.session_id, problem))
            yield from warn(problem, MemoryFeature.name)
