"""Agents, the models they use and the plugins they are made of, as rows for tables and JSON."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from agent_app.catalogue import Catalogue, offered_models
from agent_core import AgentError, ConfigError
from agent_core.plugin.discovery import find_installed
from agent_runtime import BuildError
from agent_terminal_app.errors import CommandError, Exit, code_of, error_text
from agent_terminal_app.output import one_line, say
from agent_terminal_app.settings.plugins import build_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_terminal_app.application import Opened


def agent_rows(app: AgentApplication) -> list[dict[str, Any]]:
    """Return the agents of the configuration."""
    return [
        {
            "id": name,
            "model": agent["model"],
            "default": name == app.config.get("default_agent"),
            "description": agent.get("description", ""),
        }
        for name, agent in app.config["agents"].items()
    ]


def find_problems(opened: Opened) -> list[str]:
    """Return why agents cannot run, a line for each cause; empty if all of them can."""
    try:
        opened.application(ephemeral=True).close()
    except ConfigError as error:
        return [one_line(error)]
    except CommandError as error:
        if isinstance(error.__cause__, BuildError):
            return build_problems(opened.settings, error.__cause__)
        raise
    return []


def find_warnings(app: AgentApplication) -> list[str]:
    """Return what stops no agent from running and should be known all the same."""
    plugins = [f"plugin {one.plugin}: {one_line(one.reason)}" for one in app.problems]
    agents = [
        f"{name}: {one_line(warning)}"
        for name in app.config["agents"]
        for warning in app.runtime.resolve(name).warnings
    ]
    return [*plugins, *agents]


def offers(app: AgentApplication) -> tuple[list[dict[str, Any]], int]:
    """Return what the providers of all agents offer, and the exit code.

    A provider that does not answer is reported on stderr; the code is that of the last of them.
    """
    rows, code = [], int(Exit.OK)
    for provider, agent in Catalogue(app).providers_in_use():
        try:
            offered = offered_models(agent.core, agent.config)
        except AgentError as error:
            say(f"agent: {provider} does not say what it offers: {one_line(error_text(error))}")
            code = code_of(error)
            continue
        rows += [_offer(provider, model) for model in offered]
    return rows, code


def _offer(provider: str, model: Mapping[str, Any]) -> dict[str, Any]:
    identity = model.get("id") or model.get("name")
    return {"provider": provider, "model": identity, "name": model.get("name") or identity}


def installed_plugins() -> list[dict[str, Any]]:
    """Return what is installed, each with its distribution and the reason why it cannot be loaded, if any."""
    return [
        {
            "name": one.name,
            "kind": one.kind.removesuffix("s"),
            "distribution": one.distribution,
            "version": _version(one.distribution),
            "problem": one.problem,
        }
        for one in find_installed()
    ]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def plugin_decisions(app: AgentApplication, agent_id: str) -> list[dict[str, Any]]:
    """Return why each plugin is on or off for an agent, and what it does wrong.

    Those that the agent is not even offered are among them.
    """
    agent = app.runtime.resolve(agent_id)
    found = agent.core.get_plugin_problems(dict(agent.config))
    wrong: dict[str, list[str]] = {}
    for problem in found:
        wrong.setdefault(problem["plugin"], []).append(f"{problem['hook']} {problem['problem']}")
    decisions = [{**one.to_dict(), "problems": wrong.get(one.plugin, [])} for one in agent.decisions]
    skipped = Catalogue(app).skipped_plugins(agent_id, {one["plugin"] for one in decisions})
    return [*decisions, *skipped, *_application_plugins(app)]


def _application_plugins(app: AgentApplication) -> list[dict[str, Any]]:
    """Return the installed plugins of applications, which no agent chooses: all that can be loaded are on."""
    problems = {one.plugin: one.reason for one in app.problems}
    return [
        {
            "plugin": found.name,
            "kind": "application",
            "enabled": found.problem is None and found.name not in problems,
            "reason": "installed",
            "detail": found.problem
            or problems.get(found.name)
            or "it serves the application, whichever agent runs",
            "round": 0,
            "problems": [],
        }
        for found in find_installed(kinds=["applications"])
    ]
