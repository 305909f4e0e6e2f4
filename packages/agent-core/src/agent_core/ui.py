"""What front ends ask plugins for: settings, elements to show, completions, templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.context import build_context
from agent_core.errors import PluginError
from agent_core.frozen import Dicts, JsonObject, freeze, thaw
from agent_core.log import get_logger
from agent_core.pipeline.request import plugin_context
from agent_core.resolve.tools import gather_tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.frozen import FrozenDict
    from agent_core.plugin.base import PluginWrapper, Problems
    from agent_core.plugin.feature import FeatureWrapper
    from agent_core.plugin.registry import Registry
    from agent_core.resolve import Resolution

_log = get_logger("ui")
_ACTION_ELEMENTS = ("session_action", "message_action")
_ACTION_OWNERS = {"extension": "provider_extension", "feature": "feature"}


def config_schema(registry: Registry) -> Dicts:
    """Return one entry per configuration key and plugin; a plugin's mistakes cost only its own entries."""
    entries = []
    for plugin in registry:
        problems: Problems = []
        for key, value in plugin.get_config_schema(problems).items():
            entries.append({"key": key, "plugin": plugin.name, **thaw(value)})
        for problem in problems:
            plugin.log_once(problem)
    return entries


def ui_schema(core: object, resolution: Resolution, problems: Problems | None = None) -> Dicts:
    """Return what the enabled plugins want shown; of settings with one key, the last one counts.

    Args:
        problems: Takes what plugins did wrong; it costs only their own elements.
    """
    problems = [] if problems is None else problems
    tools = gather_tools(resolution)
    context = build_context(plugin_context(core, resolution, tools))
    elements: Dicts = []
    settings: dict[str, JsonObject] = {}
    for plugin in _participants(resolution):
        mistakes: Problems = []
        tags, models = resolution.tags, resolution.models
        for raw in plugin.get_ui_elements(resolution.config, tags, models, context, mistakes):
            element = _annotate(plugin, raw)
            key = element.get("key")
            if element["ui_type"] == "config" and isinstance(key, str) and key:
                settings[key] = element
            else:
                elements.append(element)
        for mistake in mistakes:
            plugin.log_once(mistake)
        problems += mistakes
    return [*elements, *settings.values()]


def completions(features: Iterable[FeatureWrapper], config: FrozenDict, text: str) -> Dicts:
    """Return the suggestions of all features; one that fails is passed over."""
    found: Dicts = []
    for feature in features:
        try:
            found += thaw(feature.get_completions(config, text))
        except PluginError as error:
            # Somebody is typing: a broken helper must not get in their way.
            _log.warning("completions_failed", plugin=feature.name, error=str(error))
    return found


def apply_completion(
    features: Iterable[FeatureWrapper], config: FrozenDict, text: str, completion: JsonObject
) -> str:
    """Return what the first feature that cares makes of an accepted completion."""
    lent = freeze(completion)
    return next((snippet for f in features if (snippet := f.apply_completion(config, text, lent))), "")


def template(features: Iterable[FeatureWrapper], config: FrozenDict) -> str:
    return next((found for feature in features if (found := feature.get_template(config))), "")


def _participants(resolution: Resolution) -> list[PluginWrapper]:
    provider = resolution.provider
    return [provider.provider, *provider.extensions, *resolution.features, *resolution.tools]


def _annotate(plugin: PluginWrapper, raw: JsonObject) -> JsonObject:
    element = {"plugin": plugin.name, **thaw(raw)}
    if not isinstance(element.get("ui_type"), str) or not element["ui_type"]:
        element["ui_type"] = "config"
    owner = _ACTION_OWNERS.get(plugin.kind)
    if owner and element["ui_type"] in _ACTION_ELEMENTS and isinstance(element.get("action_id"), str):
        element.setdefault("action_owner", owner)
    return element
