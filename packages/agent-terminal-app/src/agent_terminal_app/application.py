"""From this user's settings to an application: the one place that builds an `AgentApplication`.

Most commands begin with `open_settings()` and then open the application, or only its sessions. What an
application is made of is imported when it is opened: the prompt of a chat comes first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agent_app
import agent_runtime
from agent_app.defaults import DEFAULT_AGENT, complete_config
from agent_app.store import open_store
from agent_plugin_kit.trust import TRUSTED_FOLDERS
from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit, SettingsError
from agent_terminal_app.keys import KeyLookup, KeyStore, with_keys
from agent_terminal_app.output import COMPLETION_VARIABLE, say
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import Settings, load_settings
from agent_terminal_app.settings.layers import user_file
from agent_terminal_app.settings.secrets import find_references
from agent_terminal_app.settings.trust import trust_list, trusted_folders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app import AgentApplication
    from agent_app.catalogue import Catalogue, Key
    from agent_app.context_windows import Windows
    from agent_app.model_list import ModelList
    from agent_terminal_app.remote import NoWindows


@dataclass(frozen=True, slots=True)
class Opened:
    """The places and settings of one command.

    Attributes:
        flags: The flags of the command line, which override every file.
    """

    paths: Paths
    settings: Settings
    flags: Mapping[str, Any] = field(default_factory=dict)

    def application(
        self,
        *,
        ephemeral: bool = False,
        database: str | None = None,
        replica: str | None = None,
        titles: bool = False,
    ) -> AgentApplication:
        """Return the application with its agents and sessions; see `open_application`."""
        return open_application(
            self.settings, self.paths, ephemeral=ephemeral, database=database, replica=replica, titles=titles
        )

    def sessions(self) -> AgentApplication:
        """Return an application for stored sessions: no agent is built, and none can run."""
        return open_sessions(self.settings, self.paths)

    def again(self) -> Opened:
        """Return the same with the settings as they are by now."""
        return replace(self, settings=load_settings(self.paths, project=Path.cwd(), flags=self.flags))

    def with_model(self, model: str | None) -> Opened:
        """Return the same with a model that was asked for, in place of what agents declare."""
        agents = self.settings.values.get("agents")
        if model is None or not agents:
            return self
        changed = {name: {**agent, "model": model} for name, agent in agents.items()}
        values = {**self.settings.values, "agents": changed}
        return replace(self, settings=replace(self.settings, values=values))

    def with_allowed(self, patterns: Sequence[str]) -> Opened:
        """Return the same with calls that need no approval in this process; no file and no store has them."""
        if not patterns:
            return self
        given = self.settings.values.get("permissions", {})
        allowed = {**given, "allow": [*given.get("allow", ()), *patterns]}
        values = {**self.settings.values, "permissions": allowed}
        return replace(self, settings=replace(self.settings, values=values))


def open_settings(**flags: Any) -> Opened:
    """Return the settings that hold here, and show their warnings on stderr.

    A flag that was given overrides every file.
    """
    opened = open_quietly(**flags)
    show_warnings(opened.settings)
    return opened


def open_readable() -> Opened:
    """Return the settings that hold here, or none if a file cannot be read, which is said on stderr.

    For what needs no settings: no setting says where sessions and keys are kept.
    """
    try:
        return open_settings()
    except SettingsError as error:
        if COMPLETION_VARIABLE not in os.environ:
            say(f"agent: {error}; continuing without settings")
        return Opened(Paths.of_this_user(), Settings())


def open_quietly(**flags: Any) -> Opened:
    """Return the settings that hold here; showing their warnings is left to the caller."""
    paths = Paths.of_this_user()
    given = {name: value for name, value in flags.items() if value is not None}
    return Opened(paths, load_settings(paths, project=Path.cwd(), flags=given), given)


def show_warnings(settings: Settings) -> None:
    """Show the warnings of the settings on stderr."""
    if COMPLETION_VARIABLE in os.environ:  # the shell would take them for completions
        return
    for warning in settings.warnings:
        say(f"agent: {warning}")


def application_config(settings: Settings, *, titles: bool = False) -> dict[str, Any]:
    """Return the configuration of the application: what is declared, and an assistant if no agent is.

    Args:
        titles: Whether a model is asked for the titles of sessions, unless a setting says otherwise.

    Raises:
        ConfigError: If a setting names a plugin that is not installed.
    """
    return complete_config(settings.values, titles=titles)


def configuration(
    settings: Settings, paths: Paths, *, database: str | None = None, titles: bool = False
) -> dict[str, Any]:
    """Return the configuration of the application as it is opened: with keys, and with trusted projects.

    Args:
        database: The URL of another store than the user's own.
        titles: As for `application_config`.

    Raises:
        ConfigError: If a setting names a plugin that is not installed.
    """
    config = _with_trust(application_config(settings, titles=titles), paths, database)
    return with_stored_keys(config, paths)


def open_application(
    settings: Settings,
    paths: Paths,
    *,
    ephemeral: bool = False,
    database: str | None = None,
    replica: str | None = None,
    titles: bool = False,
) -> AgentApplication:
    """Return the application, with its sessions.

    Args:
        ephemeral: Keep nothing on disk.
        database: The URL of another store than the user's own.
        replica: The URL of a replica of that store, from which events are read.
        titles: Whether a model is asked for the titles of sessions, unless a setting says otherwise.

    Raises:
        CommandError: If an agent cannot be resolved, with everything that is wrong.
        StoreError: If the sessions cannot be opened.
    """
    store = database or ("sqlite://" if ephemeral else f"sqlite:///{paths.database}")
    try:
        return agent_app.AgentApplication(
            configuration(settings, paths, database=database, titles=titles),
            store=store if replica is None else open_store(store, replica=replica),
            # A database that machines share has the attachments as well.
            assets=paths.assets if store.startswith("sqlite") and not ephemeral else None,
            protected=own_files(settings, paths),
        )
    except agent_runtime.BuildError as error:
        from agent_terminal_app.settings.plugins import build_problems

        problem = "\n".join(build_problems(settings, error))
        hint = "see `agent agents check` and `agent config path`"
        raise CommandError(problem, code=Exit.NOT_CONFIGURED, hint=hint) from error


def _with_trust(config: dict[str, Any], paths: Paths, database: str | None) -> dict[str, Any]:
    """Say which projects may speak to the model; workers, which share a database, know no projects."""
    if database is None:
        for agent in config["agents"].values():
            own = {**agent["sections"].get("config", {}), TRUSTED_FOLDERS: trusted_folders(paths)}
            agent["sections"] = {**agent["sections"], "config": own}
    return config


def open_sessions(settings: Settings, paths: Paths) -> AgentApplication:
    """Return an application that has the sessions and no agents, whatever is wrong with those.

    Raises:
        StoreError: If the sessions cannot be opened.
    """
    plugins = {name: dict(plugin) for name, plugin in settings.values.get("plugins", {}).items()}
    return agent_app.AgentApplication(
        {"plugins": with_stored_keys({"plugins": plugins, "models": {}}, paths)["plugins"]},
        store=f"sqlite:///{paths.database}",
        assets=paths.assets,
        plugins=[one.plugin for one in lazy.find_installed(kinds=["applications"]) if one.problem is None],
        installed=False,
    )


def open_demo() -> AgentApplication:
    """Return an application that needs no model and keeps nothing."""
    from agent_terminal_app.demo import DemoCounter, DemoProvider, DemoTools

    config = {
        "agents": {DEFAULT_AGENT: {"model": "demo", "description": "Repeats what you say."}},
        "models": {"demo": {"provider": "demo"}},
        "permissions": {"allow": ["clock", "count"], "ask": ["write_note"]},
    }
    return agent_app.AgentApplication(config, plugins=[DemoProvider, DemoTools, DemoCounter], installed=False)


def catalogue_of(app: AgentApplication) -> Catalogue:
    """Return the models and agents of an application; providers are lent this user's stored keys."""
    keys = KeyStore(Paths.of_this_user())

    def key_of(provider: str) -> Key | None:
        value = keys.get(provider)
        return None if value is None else lazy.Key(value, keys.origin(provider) or "")

    return lazy.Catalogue(app, key_of)


def model_list_of(app: AgentApplication) -> ModelList:
    """Return every model that an application can use, with what is known of each."""
    return lazy.ModelList(app, catalogue_of(app), lazy.WindowCache(Paths.of_this_user().windows))


def windows_of(app: AgentApplication) -> Windows | NoWindows:
    """Return the context windows of an application's models, with those that this user's providers named."""
    from agent_terminal_app.remote import server_of

    if (server := server_of(app)) is not None:
        return server.windows

    return lazy.Windows(app, lazy.WindowCache(Paths.of_this_user().windows))


def with_stored_keys(config: Mapping[str, Any], paths: Paths) -> dict[str, Any]:
    """Return the configuration with the keys that it refers to, and stored ones for providers in use."""
    keys = KeyStore(paths)
    known: dict[str, Any] = with_keys(config, KeyLookup(keys))
    plugins = known["plugins"]
    for provider in {model["provider"] for model in known["models"].values()}:
        key = keys.get(provider)
        if key is not None and "api_key" not in plugins.get(provider, {}):
            about = {"api_key": key, "api_key_origin": keys.origin(provider)}
            plugins[provider] = {**plugins.get(provider, {}), **about}
    return known


def own_files(settings: Settings, paths: Paths) -> list[Path]:
    """Return the folders and files of this program, which no tool of a model may touch.

    The most precious files are listed as well, so that they are recognised under any other name.
    """
    folders = [paths.config, paths.data, paths.state, paths.cache]
    files = [user_file(paths), paths.config_file, paths.database, paths.secrets, trust_list(paths)]
    references = (reference for _, reference in find_references(settings.values))
    key_files = [Path(reference.name) for reference in references if reference.form == "file"]
    return [*folders, *files, *key_files]
