"""From settings to an application: the one place that builds an `AgentApplication`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app import AgentApplication
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.settings import Settings

DEFAULT_AGENT = "assistant"
DEFAULT_MODEL = "local"
SHORT_NAMES = {"local": "local_llama", "openai": "openai_responses"}
"""What people may write in place of a provider's id."""

TOOLS = ("files_tool", "files_undo", "shell_tool", "web_tool", "todo_tool", "skills")
"""What an agent has to work with unless the setting `tools` says otherwise, as far as it is installed."""
TITLES = "session_title"
"""The plugin that gives sessions titles: in a chat a model is asked for one, elsewhere the first words do."""
READING = (
    "read_file", "list_files", "find_files", "search_files", "read_result", "read_todos", "write_todos",
    "load_skill", "read_skill_file", "shell_jobs", "shell_output",
)  # fmt: skip
"""Calls that change nothing and go nowhere, and so need no question."""
_PROMPT = "You are a helpful assistant. Answer briefly and plainly. Use Markdown where it helps."


def application_config(settings: Settings, *, titles: bool = False) -> dict[str, Any]:
    """Return the configuration of the application: what is declared, and an assistant if nothing is.

    Args:
        titles: Whether a model is asked for the titles of sessions, unless a setting says otherwise.
    """
    values = settings.values
    models = {name: dict(model) for name, model in values.get("models", {}).items()}
    agents = {name: dict(agent) for name, agent in values.get("agents", {}).items()}
    if not agents:
        agents = {DEFAULT_AGENT: {"system_prompt": _PROMPT, "description": "Answers questions."}}
    wanted = values.get("model") or DEFAULT_MODEL
    for agent in agents.values():
        agent.setdefault("model", wanted)
        agent["sections"] = {"retry": {}, "results": {}, **agent.get("sections", {})}
        if "plugin_ids" not in agent:
            agent["more_plugins"] = [*_tools(values, agent["model"]), *_titles(values, agent, ask=titles)]
        if agent["model"] not in models:
            models[agent["model"]] = read_model(agent["model"])
    return {
        "agents": agents,
        "models": models,
        "default_agent": values.get("default_agent") or next(iter(agents)),
        "plugins": {name: dict(plugin) for name, plugin in values.get("plugins", {}).items()},
        "permissions": _permissions(values.get("permissions", {})),
    }


def _permissions(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what holds for all agents: what has an effect is asked for, unless a setting says otherwise.

    Reading needs no question, except for who denies all that is not allowed.
    """
    reading = () if given.get("default") == "deny" else READING
    return {"default": "ask", **given, "allow": [*reading, *given.get("allow", ())]}


def _tools(values: Mapping[str, Any], model: str) -> list[str]:
    """Return the tools of an agent that names no plugins; the embedded model is too small to use any well."""
    if "tools" in values:
        return _checked_tools(values["tools"])
    return [] if model == DEFAULT_MODEL else [name for name in TOOLS if name in _installed()]


def _titles(values: Mapping[str, Any], agent: dict[str, Any], *, ask: bool) -> list[str]:
    """Let the sessions of an agent have titles; the embedded model is too small to find a good one."""
    if TITLES not in _installed():
        return []
    said = {**values.get("plugins", {}).get(TITLES, {}), **agent["sections"].get(TITLES, {})}
    agent["sections"][TITLES] = {"title_model": ask and agent["model"] != DEFAULT_MODEL, **said}
    return [TITLES]


def _checked_tools(names: Sequence[str]) -> list[str]:
    from agent_runtime.errors import nearest

    for name in names:
        if name not in _installed():
            raise CommandError(
                f"there is no plugin {name!r}, which the setting tools names",
                code=Exit.NOT_CONFIGURED,
                hint=nearest(name, sorted(_installed())),
            )
    return list(names)


def _installed() -> set[str]:
    """Return the names of plugins that are installed and may take part, without loading any."""
    import os
    from importlib.metadata import entry_points

    from agent_core.plugin.discovery import LOAD_PLUGINS

    groups = ("agent_platform.tools", "agent_platform.features")
    names = {entry.name for group in groups for entry in entry_points(group=group)}
    chosen = os.environ.get(LOAD_PLUGINS)
    return names if chosen is None else names & {name.strip() for name in chosen.split(",")}


def read_model(name: str) -> dict[str, Any]:
    """Return the declaration that "provider:model", or "local", stands for."""
    provider, _, model = name.partition(":")
    return {"provider": SHORT_NAMES.get(provider, provider), "model": model}


def open_application(
    settings: Settings,
    paths: Paths,
    *,
    ephemeral: bool = False,
    database: str | None = None,
    titles: bool = False,
) -> AgentApplication:
    """Return the application, with its sessions.

    Args:
        ephemeral: Keep nothing on disk.
        database: The URL of another store than the person's own.
        titles: Whether a model is asked for the titles of sessions, unless a setting says otherwise.

    Raises:
        CommandError: If an agent cannot be resolved, with everything that is wrong.
        StoreError: If the sessions cannot be opened.
    """
    from agent_app import AgentApplication
    from agent_runtime import BuildError
    from agent_terminal_app.own_files import own_files

    store = database or ("sqlite://" if ephemeral else f"sqlite:///{paths.database}")
    try:
        return AgentApplication(
            with_stored_keys(application_config(settings, titles=titles), paths),
            store=store,
            # A database that machines share has the attachments as well.
            assets=paths.assets if store.startswith("sqlite") and not ephemeral else None,
            protected=own_files(settings, paths),
        )
    except BuildError as error:
        from agent_terminal_app.plugin_settings import build_problems

        problem = "\n".join(build_problems(settings, error))
        hint = "see `agent agents check` and `agent config path`"
        raise CommandError(problem, code=Exit.NOT_CONFIGURED, hint=hint) from error


def open_sessions(settings: Settings, paths: Paths) -> AgentApplication:
    """Return an application that has the sessions and no agents, whatever is wrong with those.

    Raises:
        StoreError: If the sessions cannot be opened.
    """
    from agent_app import AgentApplication
    from agent_core.plugin.discovery import find_installed

    plugins = {name: dict(plugin) for name, plugin in settings.values.get("plugins", {}).items()}
    return AgentApplication(
        {"plugins": with_stored_keys({"plugins": plugins, "models": {}}, paths)["plugins"]},
        store=f"sqlite:///{paths.database}",
        assets=paths.assets,
        plugins=[one.plugin for one in find_installed(kinds=["applications"]) if one.problem is None],
        installed=False,
    )


def with_stored_keys(config: Mapping[str, Any], paths: Paths) -> dict[str, Any]:
    """Return the configuration with the keys that it refers to, and stored ones for providers in use."""
    from agent_terminal_app.key_lookup import KeyLookup, with_keys
    from agent_terminal_app.keys import KeyStore

    keys = KeyStore(paths)
    known: dict[str, Any] = with_keys(config, KeyLookup(keys))
    plugins = known["plugins"]
    for provider in {model["provider"] for model in known["models"].values()}:
        key = keys.get(provider)
        if key is not None and "api_key" not in plugins.get(provider, {}):
            about = {"api_key": key, "api_key_origin": keys.origin(provider)}
            plugins[provider] = {**plugins.get(provider, {}), **about}
    return known


def open_demo() -> AgentApplication:
    """Return an application that needs no model and keeps nothing."""
    from agent_app import AgentApplication
    from agent_terminal_app.demo import DemoCounter, DemoProvider, DemoTools

    config = {
        "agents": {DEFAULT_AGENT: {"model": "demo", "description": "Repeats what you say."}},
        "models": {"demo": {"provider": "demo"}},
        "permissions": {"allow": ["clock", "count"], "ask": ["write_note"]},
    }
    return AgentApplication(config, plugins=[DemoProvider, DemoTools, DemoCounter], installed=False)
