"""The checks for application plugins: a good one passes, and each bad one fails the check about it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app.testing import ApplicationConformance


class Good:
    name = "good"
    version = "1"

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        return {"limit": app_config.get("limit", 3)}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        given = {"session_id": {"type": "string", "required": True}}
        return [
            {"id": "tell", "label": "Tell", "inputs": given},
            {"id": "note", "label": "Note", "inputs": {}, "trigger": "request_complete"},
        ]

    def execute_action(
        self, app: Any, action_id: str, params: dict[str, Any], context: Any, state: dict[str, Any]
    ) -> dict[str, Any]:
        if action_id == "note":
            return {}
        if action_id != "tell":
            raise ValueError(f"there is no action {action_id!r}")
        title = app.load_session(params["session_id"]).session_id
        return {"display": {"format": "text", "body": title}}


class TestGood(ApplicationConformance):
    plugin = Good
    action_params = {"tell": {"session_id": "conformance"}}  # noqa: RUF012


class Nameless(Good):
    version = ""


class FailsToStart(Good):
    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no idea")


class TwiceTheSame(Good):
    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        return [*super().get_actions(state), *super().get_actions(state)]


class UnsafeDisplay(Good):
    def execute_action(self, app: Any, action_id: str, *rest: Any) -> dict[str, Any]:
        super().execute_action(app, action_id, *rest)
        return {"display": {"format": "text", "body": "see \x1b[31mred"}}


class AnswersAnything(Good):
    def execute_action(self, *given: Any) -> dict[str, Any]:
        return {}


class FailsAtTheEnd(Good):
    def execute_action(self, app: Any, action_id: str, *rest: Any) -> dict[str, Any]:
        if action_id == "note":
            raise LookupError("no idea")
        return super().execute_action(app, action_id, *rest)


@pytest.mark.parametrize(
    ("bad", "check"),
    [
        (Nameless, "test_it_has_a_name_and_a_version"),
        (FailsToStart, "test_it_takes_part"),
        (TwiceTheSame, "test_actions_have_ids_of_their_own"),
        (UnsafeDisplay, "test_actions_run_and_their_results_can_be_sent_and_shown"),
        (AnswersAnything, "test_unknown_actions_are_refused"),
        (FailsAtTheEnd, "test_no_lifecycle_fails"),
    ],
)
def test_a_bad_plugin_fails_the_check_that_is_about_it(bad: type, check: str) -> None:
    case = TestGood()
    case.plugin = bad  # type: ignore[assignment, misc]  # one case for many plugins

    with pytest.raises(AssertionError):
        getattr(case, check)()


def test_an_action_without_inputs_that_fit_is_named() -> None:
    case = TestGood()
    case.action_params = {}  # type: ignore[misc]

    with pytest.raises(AssertionError, match=r"give inputs in action_params.*tell"):
        case.test_actions_run_and_their_results_can_be_sent_and_shown()
