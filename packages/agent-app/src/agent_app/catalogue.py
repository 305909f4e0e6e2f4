"""The models, agents and plugins of an application, for a front end that lists them and lets users choose.

Besides the models that the configuration declares, a user may ask for any by PROVIDER:MODEL; it is declared
then for as long as the application is open, and its provider gets the key that is stored for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.agents import MORE_PLUGINS, choose_agent
from agent_app.defaults import (
    DEFAULT_MODEL,
    SHORT_NAMES,
    SURROUNDINGS,
    TITLES,
    TOOLS,
    default_prompt,
    is_embedded,
    title_settings,
)
from agent_app.services import AGENT, own_overrides, served_model
from agent_core import AgentError
from agent_core.errors import nearest
from agent_core.frozen import freeze
from agent_runtime import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from agent_app.app_plugins import Problem
    from agent_app.application import AgentApplication
    from agent_app.context_windows import WindowCache
    from agent_core import AgentCore
    from agent_runtime import AgentSpec, ResolvedAgent

PATIENCE = 10.0
"""How many seconds a provider has for its list of models."""
_DISCOVERY: Mapping[str, Any] = {
    "discover_models": True,
    **dict.fromkeys(("connect_timeout", "first_byte_timeout", "idle_timeout", "content_timeout"), PATIENCE),
}


class Key(NamedTuple):
    """A key of a provider, and where it came from in a few words."""

    value: str
    origin: str


def _no_key(_provider: str) -> Key | None:
    return None


class Catalogue:
    """What an application can run: models, declared or not, and agents that fit them.

    Args:
        app: The application.
        key_of: Finds the key that is stored for a provider; None if there is none.

    Attributes:
        asked_for: The models that are declared only because somebody has named them.
    """

    def __init__(self, app: AgentApplication, key_of: Callable[[str], Key | None] = _no_key) -> None:
        self._app = app
        self._key_of = key_of
        self.asked_for: set[str] = set()

    # Models

    def declared_models(self) -> list[dict[str, Any]]:
        """Return the models of the configuration, each with the agents that use it."""
        agents = self._app.config["agents"]
        return [
            {
                "id": name,
                "provider": model["provider"],
                "model": model.get("model", ""),
                "agents": [agent for agent, spec in agents.items() if spec.get("model") == name],
            }
            for name, model in self._app.config.get("models", {}).items()
        ]

    def find_provider(self, name: str) -> str | None:
        """Return the provider that a name stands for, unless it is the name of a model."""
        registries = self._app.runtime.registries
        full = SHORT_NAMES.get(name, name)
        is_model = name in registries.models or name == DEFAULT_MODEL
        return full if full in registries.providers and not is_model else None

    def declare(self, name: str) -> ModelSpec:
        """Return the model that a name stands for, declared from now on.

        Raises:
            AgentError: If there is no such model, and no such provider.
        """
        models = self._app.runtime.registries.models
        spec = models.get(name) or self._read(name)
        short, _, model = name.partition(":")
        if short in SHORT_NAMES and short not in models:  # a session must be able to name it after a restart
            spec = replace(spec, id=f"{SHORT_NAMES[short]}:{model}")
        if spec.id not in models:
            self.asked_for.add(spec.id)
        self.set_model(spec)
        self.lend_key(spec.provider)
        return spec

    def set_model(self, spec: ModelSpec) -> None:
        """Declare a model, in place of one of the same id if there is one."""
        self._app.runtime.registries.models.replace(spec.id, spec)

    def check(self, agent_id: str, model: ModelSpec) -> None:
        """Refuse a model that an agent could not use; this may ask its provider.

        Raises:
            AgentError: If its provider does not offer it, or cannot say.
        """
        resolved = self._app.runtime.resolve(agent_id)
        resolved.core.resolve(dict(resolved.models[model.id].config))

    def offered_by_model(self, agent_id: str, model: ModelSpec) -> set[str]:
        """Return the names of the models that the server of a model offers.

        Raises:
            AgentError: If it cannot be asked.
        """
        entry = self._app.runtime.registries.providers.get(model.provider)
        settings = {**({} if entry is None else entry.config), **model.config, "provider": model.provider}
        core = self._app.runtime.resolve(agent_id).core
        return {str(one.get("id") or one.get("name") or "") for one in offered_models(core, settings)}

    def offered_by(
        self, provider: str, agent_id: str, windows: WindowCache | None = None
    ) -> list[dict[str, Any]]:
        """Return the models that a provider offers.

        Args:
            agent_id: An agent whose plugins may have a say in how the provider is asked.
            windows: Where the context windows among them are remembered.

        Raises:
            AgentError: If it cannot be asked.
        """
        self.lend_key(provider)
        entry = self._app.runtime.registries.providers.get(provider)
        settings = {} if entry is None else entry.config
        core = self._app.runtime.resolve(agent_id).core
        offered = offered_models(core, {**settings, "provider": provider})
        if windows is not None:
            windows.keep(provider, str(settings.get("base_url") or ""), offered)
        return offered

    def providers_in_use(self) -> Iterator[tuple[str, ResolvedAgent]]:
        """Yield each provider that an agent uses, once for each of its addresses, with the agent."""
        seen = set()
        for name in self._app.config["agents"]:
            agent = self._app.runtime.resolve(name)
            address = (agent.model.provider, agent.config.get("base_url"))
            if address not in seen:
                seen.add(address)
                yield agent.model.provider, agent

    def _read(self, name: str) -> ModelSpec:
        registries = self._app.runtime.registries
        short, colon, model = name.partition(":")
        provider = SHORT_NAMES.get(short, short)
        if (served := served_model(registries.models, name)) is not None:
            return served
        if provider not in registries.providers:
            models = [one for one in registries.models if one not in self.asked_for]
            known = nearest(short, dict.fromkeys([*models, *registries.providers]))
            raise AgentError(f"{name!r}: there is no such {'provider' if colon else 'model'}: {known}")
        return ModelSpec(f"{provider}:{model}", provider, model)

    # Keys

    def lend_key(self, provider: str, *, again: bool = False) -> None:
        """Give a provider that was not in use when the application opened the key that is stored for it.

        Args:
            again: Whether it replaces the key that the provider has: another one was stored.
        """
        providers = self._app.runtime.registries.providers
        entry = providers.get(provider)
        if entry is None or ("api_key" in entry.config and not again):
            return
        key = self._key_of(provider)
        if key is not None:
            config = {**entry.config, "api_key": key.value, "api_key_origin": key.origin}
            providers.replace(provider, replace(entry, config=freeze(config)))

    def try_key(self, provider: str, key: str, agent_id: str) -> None:
        """Ask a provider for its models with a key that is not stored yet.

        Args:
            agent_id: An agent whose plugins may have a say in how the provider is asked.

        Raises:
            AgentError: If it does not take the key, or cannot be asked.
        """
        entry = self._app.runtime.registries.providers.get(provider)
        settings = {} if entry is None else entry.config
        core = self._app.runtime.resolve(agent_id).core
        offered_models(core, {**settings, "provider": provider, "api_key": key})

    def provider_of(self, session_id: str) -> str:
        """Return the provider that a session's next request asks.

        Raises:
            SessionNotFound: If there is no such session.
            AgentError: If its agent cannot be resolved.
        """
        session = self._app.load_session(session_id)
        model = own_overrides(session).get("model")
        registries = self._app.runtime.registries
        if isinstance(model, str):
            spec = registries.models.get(model)
            provider = model.partition(":")[0] if spec is None else spec.provider
            if provider in registries.providers:
                return provider
        agent_id = choose_agent(self._app.config, session.metadata.get(AGENT))
        if agent_id is None:
            raise AgentError("no agent is meant: set default_agent")
        return self._app.runtime.resolve(agent_id).model.provider

    def lend_key_of_session(self, session_id: str) -> None:
        """Do the same for the provider of the model that a session asks for."""
        model = own_overrides(self._app.load_session(session_id)).get("model")
        if isinstance(model, str):
            spec = self._app.runtime.registries.models.get(model)
            self.lend_key(model.partition(":")[0] if spec is None else spec.provider)

    # Agents

    def use_agents(self, config: Mapping[str, Any]) -> None:
        """Have the agents of another configuration from now on; their providers get the keys that are stored.

        Raises:
            ConfigError: If a declaration cannot be used; all agents are as they were then.
            ResolveError: If an agent could not run; the same.
        """
        self._app.use_agents(config)
        for model in self._app.models.values():
            self.lend_key(model.provider)

    def agent_choices(self) -> dict[str, list[str]]:
        """Return what the fields of an agent can name: models, plugins, agents, tools."""
        registries = self._app.runtime.registries
        plugins, agents = list(registries.plugins), list(registries.agents)
        local = [name for name, spec in registries.agents.items() if spec.endpoint is None]
        named = (one.name for name in local for one in self._app.runtime.resolve(name).descriptors)
        tools = list(dict.fromkeys(named))
        return {
            "model": list(registries.models),
            "plugin_ids": plugins,
            MORE_PLUGINS: plugins,
            "delegates": agents,
            "handoffs": agents,
            "allowed_tools": tools,
            "excluded_tools": tools,
        }

    def fit_agent(self, agent_id: str, model: str, values: Mapping[str, Any]) -> ToolChange:
        """Give an agent the tools that it would have if it had been opened with another model.

        An agent whose tools somebody has chosen keeps them.

        Args:
            values: The settings as they are now.

        Raises:
            AgentError: If the agent cannot run with them; it is as it was then.
        """
        agents = self._app.runtime.registries.agents
        before = agents.get(agent_id)
        chosen = "plugin_ids" in values or "plugin_ids" in self._app.config["agents"].get(agent_id, {})
        if before is None or chosen:
            return ToolChange()
        now = self._fitted(before, model, values)
        if now == before:
            return ToolChange()
        agents.replace(agent_id, now)
        try:
            self._app.runtime.resolve(agent_id)
        except AgentError:
            agents.replace(agent_id, before)
            raise
        return ToolChange.between(before, now)

    def _fitted(self, spec: AgentSpec, model: str, values: Mapping[str, Any]) -> AgentSpec:
        tools = {*values.get("more_plugins", ()), *(() if is_embedded(model) else TOOLS)}
        ids = []
        for name, entry in self._app.runtime.registries.plugins.items():
            on_by_itself = bool(getattr(entry.plugin, "default_enabled", True))
            if name in spec.plugin_ids if name not in TOOLS else name in tools or on_by_itself:
                ids.append(name)
        settings = {name: value for name, value in self._app.config.get("plugins", {}).items() if name in ids}
        kept = {name: value for name, value in spec.sections.items() if name not in TOOLS or name in ids}
        sections = {**settings, **kept}
        if TITLES in sections and "title_model" not in title_settings(values, spec.id):
            sections[TITLES] = {**sections[TITLES], "title_model": not is_embedded(model)}
        if SURROUNDINGS in ids:
            known = {**sections.get(SURROUNDINGS, {}), "surroundings": not is_embedded(model)}
            sections[SURROUNDINGS] = {**known, **values.get("plugins", {}).get(SURROUNDINGS, {})}
        is_own = spec.system_prompt not in (default_prompt(DEFAULT_MODEL), default_prompt(""))
        prompt = spec.system_prompt if is_own else default_prompt(model)
        return replace(spec, plugin_ids=tuple(ids), sections=sections, system_prompt=prompt)

    def use_model(self, agent_id: str, declared: Mapping[str, Any], values: Mapping[str, Any]) -> ToolChange:
        """Have an agent answer with a model from now on, with the tools that fit it.

        Args:
            declared: The model as the settings have it, with its id.
            values: The settings as they are now.

        Raises:
            AgentError: If the agent cannot run with it; it is as it was then.
        """
        model = ModelSpec.from_dict(dict(declared))
        self.set_model(model)
        agents = self._app.runtime.registries.agents
        before = agents.get(agent_id)
        if before is None:
            raise AgentError(f"there is no agent {agent_id!r}")
        agents.replace(agent_id, replace(before, model=model.id))
        try:
            change = self.fit_agent(agent_id, model.id, values)
            self._app.runtime.resolve(agent_id)
        except AgentError:
            agents.replace(agent_id, before)
            raise
        return change

    # Plugins

    def set_plugin_settings(
        self, plugin: str, settings: Mapping[str, Any], agent_ids: Collection[str]
    ) -> None:
        """Give a plugin other settings. The named agents have it from now on, as do those that have all.

        Raises:
            AgentError: If an agent cannot run with them; all are as they were then.
        """
        registries = self._app.runtime.registries
        agents, entry = registries.agents, registries.plugins.get(plugin)
        on_by_itself = entry is not None and bool(getattr(entry.plugin, "default_enabled", True))
        before = dict(agents.items())
        try:
            for name, spec in before.items():
                has_it = name in agent_ids or (on_by_itself and plugin in spec.plugin_ids)
                ids = [one for one in spec.plugin_ids if one != plugin or has_it]
                if has_it and plugin not in ids:
                    ids.append(plugin)
                sections = {key: value for key, value in spec.sections.items() if key != plugin}
                if plugin in ids:
                    sections[plugin] = dict(settings)
                agents.replace(name, replace(spec, plugin_ids=tuple(ids), sections=sections))
                self._app.runtime.resolve(name)
        except AgentError:
            for name, spec in before.items():
                agents.replace(name, spec)
            raise

    def explain_plugins(self, agent_id: str | None = None) -> list[dict[str, Any]]:
        """Return why each plugin is on or off for an agent, and which could not be loaded.

        Args:
            agent_id: The agent; the default one without it.

        Raises:
            AgentError: If there is no such agent, or it cannot be resolved.
        """
        chosen = choose_agent(self._app.config, agent_id)
        decisions = [] if chosen is None else self._app.runtime.resolve(chosen).decisions
        problems = self._app.problems
        rows = [_decided(one.to_dict(), problems) for one in decisions]
        decided = {row["plugin"] for row in rows}
        broken = [
            {"plugin": one.plugin, "enabled": one.takes_part, "reason": "problem", "detail": one.reason}
            for one in problems
            if not (one.takes_part and one.plugin in decided)
        ]
        known = {row["plugin"] for row in (*rows, *broken)}
        skipped = [] if chosen is None else self.skipped_plugins(chosen, known)
        return [*rows, *skipped, *broken]

    def skipped_plugins(
        self, agent_id: str, decided: Collection[str], *, model: str | None = None
    ) -> list[dict[str, Any]]:
        """Return decisions about plugins that an agent is not even offered, in the form of all decisions.

        Args:
            decided: The plugins that the agent itself has decided about.
            model: The model that answers, if that is not the one which the agent declares.
        """
        agent: Mapping[str, Any] = self._app.config["agents"].get(agent_id, {})
        if model is not None:
            agent = {**agent, "model": model}
        return [
            {
                "plugin": name,
                "kind": entry.wrapper.kind,
                "enabled": False,
                "reason": "not_named",
                "detail": _why_skipped(name, agent),
                "round": 0,
            }
            for name, entry in self._app.runtime.registries.plugins.items()
            if name not in decided
        ]


def _decided(row: dict[str, Any], problems: Sequence[Problem]) -> dict[str, Any]:
    """Return a decision with what its plugin did wrong all the same."""
    wrong = [one.reason for one in problems if one.takes_part and one.plugin == row["plugin"]]
    return {**row, "problems": wrong} if wrong else row


def _why_skipped(name: str, agent: Mapping[str, Any]) -> str:
    if "plugin_ids" in agent:
        return "plugin_ids of the agent do not name it"
    if name not in TOOLS:
        return "it is off unless plugin_ids or more_plugins name it, of the agent or of all"
    if agent.get("model") == DEFAULT_MODEL:
        return "the embedded model has no tools, unless plugin_ids or more_plugins name some"
    return "the setting plugin_ids does not name it"


@dataclass(frozen=True, slots=True)
class ToolChange:
    """Which tool plugins an agent has now and had not before, and the other way round."""

    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: AgentSpec, now: AgentSpec) -> ToolChange:
        """Compare two declarations of an agent."""
        gained = tuple(name for name in now.plugin_ids if name not in before.plugin_ids)
        return cls(gained, tuple(name for name in before.plugin_ids if name not in now.plugin_ids))


# What a provider offers


def offered_models(core: AgentCore, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ask the provider of a configuration for its models.

    Requests do without that list, so a provider that is slow is not waited for.

    Raises:
        AgentError: If it cannot be asked, or does not answer.
    """
    return [dict(model) for model in core.resolve({**config, **_DISCOVERY}).models]


_VERSION = re.compile(r"\d+(?:[.-]\d{1,2}(?!\d))*")
_SPECIAL = re.compile(
    r"preview|exp|latest|mini|nano|lite|fast|turbo|search|codex|chat|thinking|\d{6,}|\d{4}-\d\d-\d\d"
)
_NOT_FOR_CHAT = re.compile(
    r"embed|whisper|tts|speech|audio|realtime|transcribe|dall-e|image|imagen|veo|sora|moderation|rerank|ocr|guard"
)


def ranked(
    models: Sequence[Mapping[str, Any]], families: Sequence[str]
) -> tuple[list[Mapping[str, Any]], int]:
    """Return models in the order to offer them, and how many of them, from the first, are recommended.

    Of each good family the newest ordinary model is recommended. Then come the others that can chat, then the
    rest.

    Args:
        families: Patterns of names, the best family first.
    """
    best = [one for one in (_best(models, family) for family in families) if one is not None]
    rest = [model for model in models if model not in best]
    chat = [model for model in rest if not _NOT_FOR_CHAT.search(_id(model))]
    others = [model for model in rest if _NOT_FOR_CHAT.search(_id(model))]
    return [*best, *chat, *others], len(best)


def _best(models: Sequence[Mapping[str, Any]], family: str) -> Mapping[str, Any] | None:
    of_it = [one for one in models if fnmatchcase(_id(one), family) and not _NOT_FOR_CHAT.search(_id(one))]
    return min(of_it, key=_order, default=None)


def _order(model: Mapping[str, Any]) -> tuple[int, tuple[int, ...], int]:
    """Put ordinary models first, of these the newest, of these the shortest name."""
    name = _id(model)
    version = _VERSION.search(name)
    numbers = [int(part) for part in re.split(r"[.-]", version[0])] if version else []
    newest_first = tuple(-number for number in [*numbers, 0, 0, 0, 0][:4])
    return len(_SPECIAL.findall(name)), newest_first, len(name)


def _id(model: Mapping[str, Any]) -> str:
    return str(model["id"])
