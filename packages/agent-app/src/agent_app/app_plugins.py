"""Application plugins: actions on many sessions, on request or at a lifecycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from agent_core import AgentError, PluginError, UnknownActionError
from agent_core.actions import Action, check_inputs
from agent_core.display import validate_element
from agent_core.frozen import freeze
from agent_core.log import get_logger
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper
from agent_core.plugin.hooks import HookSpec, expect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_app.application import AgentApplication
    from agent_core.plugin.base import Problems

_log = get_logger("app")


@runtime_checkable
class ApplicationPlugin(Protocol):
    """A plugin with application-level powers: it may create, change and delete sessions.

    `execute_action` returns a dict. `mutations` in it (`created`, `updated`, `deleted`) are carried out
    by the application; `ui_effects` and `display` are handed to the front end.
    """

    name: str
    version: str

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        """Return the plugin's state, made once when the application starts."""

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the actions that it offers; those with a `trigger` run at that lifecycle."""

    def execute_action(
        self,
        app: AgentApplication,
        action_id: str,
        params: dict[str, Any],
        context: dict[str, Any] | None,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        """Run an action and return its result."""


class ApplicationWrapper(PluginWrapper):
    """An application plugin as the application sees it."""

    kind = "application"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *COMMON_HOOKS,
        HookSpec("init", ("app_config",), 0),
        HookSpec("get_actions", ("state", "context"), 0),
        HookSpec("execute_action", ("app", "action_id", "params", "context", "state"), 3),
    )

    def init(self, app_config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plugin's state; keys that the configuration lacks get their declared defaults."""
        usual = {
            key: about["default"] for key, about in self.get_config_schema([]).items() if "default" in about
        }
        return self._state("init", {}, freeze({**usual, **app_config}))

    def actions(self, state: dict[str, Any], problems: Problems) -> list[Action]:
        """Return the plugin's actions, those that can be read."""
        actions: list[Action] = []
        for item in self._good_dicts(problems, "get_actions", state):
            try:
                actions.append(Action.from_dict(item, plugin=self.name, owner="application"))
            except PluginError as error:
                problems.append(error)
        return actions

    def execute(
        self, app: Any, action_id: str, params: Mapping[str, Any], context: Any, state: dict[str, Any]
    ) -> dict[str, Any]:
        """Run an action and return its result, nothing of it carried out yet."""
        answer = self._call("execute_action", {}, app, action_id, dict(params), context, state)
        result: dict[str, Any] = expect(self.name, "execute_action", answer, dict, "a dict")
        return result


class Problem(NamedTuple):
    """What is wrong with a plugin.

    Attributes:
        takes_part: Whether the plugin works all the same, without what it did wrong.
    """

    plugin: str
    reason: str
    takes_part: bool = False

    @classmethod
    def of(cls, name: str, mistake: PluginError) -> Problem:
        """Return a mistake of a plugin that takes part."""
        return cls(name, f"{mistake.hook} {mistake.problem}", takes_part=True)


@dataclass(frozen=True, slots=True)
class Member:
    """An application plugin that takes part, with its state."""

    wrapper: ApplicationWrapper
    state: dict[str, Any]


def usable_elements(elements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the elements that front ends can show; what is wrong with others is logged."""
    usable = []
    for given in elements:
        report = validate_element(given)
        for warning in report.warnings:
            _log.warning("ui_element_changed", plugin=given.get("plugin"), what=warning)
        if report.element is not None:
            usable.append(report.element)
    return usable


class ApplicationPlugins:
    """All application plugins, in the order of registration; one that fails leaves the others working.

    Attributes:
        problems: Those that could not be set up, and what others do wrong.
    """

    def __init__(self, plugins: Sequence[Any], app_config: Mapping[str, Any]) -> None:
        self.problems: list[Problem] = []
        self._members: list[Member] = []
        for plugin in plugins:
            self._add(plugin, app_config)

    def actions(self) -> Iterator[tuple[Member, Action]]:
        """Yield every action with its plugin, in order; what a plugin did wrong is a problem."""
        for member in self._members:
            problems: Problems = []
            offered = member.wrapper.actions(member.state, problems)
            self._note(member, problems)
            for action in offered:
                yield member, action

    def triggered(self, lifecycle: str) -> list[tuple[Member, Action]]:
        """Return the actions that run at a lifecycle."""
        return [(member, action) for member, action in self.actions() if action.matches(lifecycle)]

    def find(
        self, plugin: str, action_id: str, params: Mapping[str, Any]
    ) -> tuple[Member, Action, dict[str, Any]]:
        """Return an action with its plugin, and the values to run it with.

        Raises:
            UnknownActionError: If no plugin offers it.
            ActionInputError: If an input is missing, unknown or of the wrong type.
        """
        known = []
        for member, action in self.actions():
            if (member.wrapper.name, action.id) == (plugin, action_id):
                return member, action, check_inputs(action, params)
            known.append(f"{member.wrapper.name}.{action.id}")
        raise UnknownActionError(plugin, action_id, known)

    def is_runnable(self, plugin: str, action_id: str) -> bool:
        """Say whether an action can be offered to a person; plugins of agents are theirs to check."""
        known = [action for _, action in self.actions() if action.plugin == plugin]
        return not known or any(action.id == action_id and action.is_manual for action in known)

    def ui_elements(self, config: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what the plugins want shown."""
        shown: list[dict[str, Any]] = []
        for member in self._members:
            problems: Problems = []
            elements = member.wrapper.get_ui_elements(freeze(dict(config)), (), (), None, problems)
            shown += [{**element, "plugin": member.wrapper.name} for element in elements]
            self._note(member, problems)
        return usable_elements(shown)

    def _note(self, member: Member, problems: Problems) -> None:
        """Add what a plugin did wrong to the problems, once."""
        for problem in problems:
            member.wrapper.log_once(problem)
            known = Problem.of(member.wrapper.name, problem)
            if known not in self.problems:
                self.problems.append(known)

    def _add(self, plugin: Any, app_config: Mapping[str, Any]) -> None:
        name = str(getattr(plugin, "name", None) or getattr(plugin, "__name__", plugin))
        try:
            wrapper = ApplicationWrapper(plugin)
            if any(member.wrapper.name == wrapper.name for member in self._members):
                self.problems.append(Problem(wrapper.name, "its name is taken by another application plugin"))
                return
            self._members.append(Member(wrapper, wrapper.init(app_config)))
        except AgentError as error:
            _log.warning("application_plugin_left_out", plugin=name, error=str(error))
            self.problems.append(Problem(name, str(error)))
