"""Checks that an application plugin keeps its side of the contract, for its author to run with pytest.

::

    class TestHousekeeping(ApplicationConformance):
        plugin = Housekeeping
        action_params = {"copy": {"session_id": "conformance"}}

Every check runs the plugin in a real application that keeps its sessions in memory.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar

from agent_app.app_plugins import ApplicationWrapper
from agent_app.application import AgentApplication
from agent_core import ActionInputError, AgentError, build_context
from agent_core.display import validate_display
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SESSION = "conformance"
"""The id of the session that is there when an action runs."""
_UNKNOWN = "conformance-no-such-action"
_CONFIG = {"agents": {"helper": {"model": "small"}}, "models": {"small": {"provider": "scripted"}}}


class ApplicationConformance:
    """Checks of an application plugin; every method is a test.

    Attributes:
        plugin: The plugin: a class, or an object.
        config: What the application's configuration has for it.
        action_params: Inputs by action, for actions that need some; None for one not to be run.
    """

    plugin: ClassVar[Any] = None
    config: ClassVar[Mapping[str, Any]] = {}
    action_params: ClassVar[Mapping[str, Mapping[str, Any] | None]] = {}

    @contextmanager
    def application(self) -> Iterator[AgentApplication]:
        """Open an application with the plugin and one session, `SESSION`."""
        provider = ScriptedProvider(repeat("A drink."))
        plugins = {"providers": [provider], "applications": [self.plugin]}
        with AgentApplication({**_CONFIG, **self.config}, plugins=plugins, installed=False) as app:
            app.create_session(session_id=SESSION)
            yield app

    def name(self) -> str:
        """Return the plugin's name."""
        return str(self.plugin.name)

    def test_it_has_a_name_and_a_version(self) -> None:
        for attribute in ("name", "version"):
            value = getattr(self.plugin, attribute, None)
            assert isinstance(value, str), f"{attribute} must be a text, is {value!r}"
            assert value, f"{attribute} must not be empty"

    def test_it_takes_part(self) -> None:
        with self.application() as app:
            self._offered(app)
            assert not app.problems, "\n".join(f"{one.plugin}: {one.reason}" for one in app.problems)

    def test_actions_have_ids_of_their_own(self) -> None:
        with self.application() as app:
            ids = [action["id"] for action in self._offered(app)]
        assert len(ids) == len(set(ids)), f"get_actions offers an id twice: {ids}"

    def test_actions_run_and_their_results_can_be_sent_and_shown(self) -> None:
        missing = []
        with self.application() as app:
            ids = [action["id"] for action in self._offered(app) if not action.get("trigger")]
        for action_id in ids:
            params = self.action_params.get(action_id, {})
            if params is None:
                continue
            with self.application() as app:
                try:
                    result = app.execute_application_action(self.name(), action_id, params, confirmed=True)
                except ActionInputError as error:
                    missing.append(f"{action_id}: {error}")
                    continue
            json.dumps(result, allow_nan=False)
            warnings = self._display_warnings(action_id, params)
            assert not warnings, f"{action_id!r} returns a display that has to be changed: {warnings}"
        assert not missing, f"give inputs in action_params, or None for an action not to be run: {missing}"

    def test_unknown_actions_are_refused(self) -> None:
        problem = ""
        with self.application() as app:
            try:
                problem = f"returned {self._execute(app, _UNKNOWN, {})!r}"
            except Exception as error:  # a stranger's code may raise anything
                if _UNKNOWN not in str(error):
                    problem = f"raised {error!r}"
        assert not problem, f"an unknown action must raise an error that names it, and {problem}"

    def test_no_lifecycle_fails(self) -> None:
        with self.application() as app:
            session = app.create_session().session_id
            events = list(app.chat(session, "What is tea?"))
            app.list_sessions()
            app.delete_session(session)
        failed = [event for event in events if event["type"] == "lifecycle_error"]
        assert not failed, failed
        assert events[-1]["type"] == "final", events[-1]

    def _display_warnings(self, action_id: str, params: Mapping[str, Any]) -> list[str]:
        """Run an action by hand, since an application shows only what is left of a display."""
        with self.application() as app:
            result = self._execute(app, action_id, params)
        return list(validate_display(result["display"]).warnings) if "display" in result else []

    def _execute(self, app: AgentApplication, action_id: str, params: Mapping[str, Any]) -> Any:
        wrapper = ApplicationWrapper(self.plugin)
        context = build_context({"app": app, "trigger_source": "application"})
        return wrapper.execute(app, action_id, params, context, wrapper.init(app.config))

    def _offered(self, app: AgentApplication) -> list[dict[str, Any]]:
        try:
            return [action for action in app.get_actions() if action["plugin"] == self.name()]
        except AgentError as error:
            raise AssertionError(str(error)) from error
