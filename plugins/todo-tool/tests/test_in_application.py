"""The plan in an application: kept, shown, cleared; there after a restart, a fork, a change of agents."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from todo_tool import TodoTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TEA = [{"text": "Boil water", "state": "in_progress"}, {"text": "Steep", "state": "pending"}]
LATER = [{"text": "Boil water", "state": "done"}, {"text": "Steep", "state": "in_progress"}]
CHECKLIST = "[>] Boil water\n[ ] Steep"


def write(items: Any) -> ToolCall:
    return ToolCall("write_todos", {"items": items})


READ = ToolCall("read_todos", {})


def saying(*calls: ToolCall) -> Reply:
    return Reply(tool_calls=list(calls))


@contextmanager
def application(
    script: Sequence[Any], store: str = "sqlite://", plain_script: Sequence[Any] = (), **config: Any
) -> Iterator[AgentApplication]:
    """Hold an application with two agents that plan and one that does not."""
    planner = {"model": "scripted", "plugin_ids": ["todo_tool"]}
    settings = {
        "default_agent": "planner",
        "agents": {
            "planner": planner,
            "other_planner": planner,
            "plain": {"model": "plain", "plugin_ids": []},
        },
        "models": {"scripted": {"provider": "scripted"}, "plain": {"provider": "plain"}},
        **config,
    }
    plugins = [ScriptedProvider(list(script)), ScriptedProvider(list(plain_script), name="plain"), TodoTool]
    with AgentApplication(settings, store=store, plugins=plugins, installed=False) as app:
        yield app


def talk(app: AgentApplication, session_id: str, text: str = "Make tea.") -> list[dict[str, Any]]:
    """Say something and return the tool messages of the answer."""
    *_, last = app.chat(session_id, text, stream=False)
    assert last["type"] == "final", last
    return [message for message in last["messages"] if message["role"] == "tool"]


def plan_of(app: AgentApplication, session_id: str) -> list[dict[str, str]]:
    """Return the plan as the action shows it."""
    _, result = app.execute_session_action(session_id, "todo_tool", "show", {})
    items: list[dict[str, str]] = result["items"]
    return items


def test_a_plan_is_written_and_seen_by_the_person() -> None:
    with application([saying(write(TEA)), "I begin."]) as app:
        session_id = app.create_session().session_id
        [message] = talk(app, session_id)

        assert message["content"] == "The plan is kept. 2 items: 1 pending, 1 in progress"
        shown = f"2 items: 1 pending, 1 in progress\n{CHECKLIST}"
        assert message["metadata"]["display"] == {"type": "text", "title": "Plan", "content": shown}
        assert plan_of(app, session_id) == TEA
        assert app.load_session(session_id).metadata["agent_state"] == {"todo_tool.items": TEA}


def test_the_action_shows_the_plan_with_a_way_to_clear_it() -> None:
    with application([saying(write(TEA)), "I begin."]) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)

        _, result = app.execute_session_action(session_id, "todo_tool", "show", {})

        assert result["display"] == {
            "format": "markdown",
            "title": "Plan",
            "body": "- [ ] **Boil water** (in progress)\n- [ ] Steep\n\n2 items: 1 pending, 1 in progress",
            "variant": "info",
            "presentation": "inline",
            "dismissible": True,
            "display_id": "todo-plan",
            "actions": [
                {
                    "kind": "run_action",
                    "id": "clear",
                    "label": "Clear plan",
                    "plugin": "todo_tool",
                    "action_id": "clear",
                }
            ],
        }


def test_both_actions_are_offered_as_buttons() -> None:
    with application([]) as app:
        session_id = app.create_session().session_id

        offered = {action["id"]: action["label"] for action in app.get_actions(session_id)}

        assert offered == {"show": "Show plan", "clear": "Clear plan"}
        assert [element["action_id"] for element in TodoTool().get_ui_elements({})] == ["show", "clear"]


def test_the_plan_is_cleared_and_the_model_finds_none() -> None:
    with application([saying(write(TEA)), "I begin.", saying(READ), "Nothing."]) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)

        _, cleared = app.execute_session_action(session_id, "todo_tool", "clear", {})
        _, again = app.execute_session_action(session_id, "todo_tool", "clear", {})
        _, shown = app.execute_session_action(session_id, "todo_tool", "show", {})
        [message] = talk(app, session_id, "What now?")

        assert (cleared["status"], again["status"]) == ("ok", "noop")
        assert shown["display"]["body"] == "There is no plan."
        assert "actions" not in shown["display"]
        assert message["content"] == "There is no plan."


def test_an_empty_list_clears_the_plan_too() -> None:
    with application([saying(write(TEA)), saying(write([])), "Done."]) as app:
        session_id = app.create_session().session_id

        assert talk(app, session_id)[-1]["content"] == "The plan is cleared."
        assert plan_of(app, session_id) == []


def test_the_model_reads_what_it_wrote_in_the_same_step_and_in_later_ones() -> None:
    script = [saying(write(TEA), READ, write(LATER), READ), saying(READ), "Well.", saying(READ), "Still."]
    with application(script) as app:
        session_id = app.create_session().session_id
        first = [message["content"] for message in talk(app, session_id)]
        [later] = talk(app, session_id, "And now?")

        assert first[1] == "in_progress: Boil water\npending: Steep"
        assert first[3] == first[4] == later["content"] == "done: Boil water\nin_progress: Steep"
        assert later["metadata"]["display"]["content"] == (
            "2 items: 1 in progress, 1 done\n[x] Boil water\n[>] Steep"
        )


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (
            [{"text": "a", "state": "in_progress"}, {"text": "b", "state": "in_progress"}],
            "only one item can be",
        ),
        ([{"text": " \n "}], "must have 1 to 300 characters"),
        ([{"text": "x"}] * 51, "items"),
        ([{"text": "x", "state": "begun"}], "begun"),
        ("a, b", "a, b"),
    ],
)
def test_a_plan_that_does_not_fit_leaves_the_old_one(items: Any, problem: str) -> None:
    with application([saying(write(TEA)), saying(write(items)), "Oh."]) as app:
        session_id = app.create_session().session_id
        refused = talk(app, session_id)[-1]

        assert problem in refused["content"]
        assert "error" in refused["metadata"]
        assert plan_of(app, session_id) == TEA


def test_a_call_that_is_not_allowed_changes_nothing() -> None:
    rules: dict[str, Any] = {"permissions": {"deny": ["write_todos"], "default": "allow"}}
    with application([saying(write(TEA)), "Oh."], **rules) as app:
        session_id = app.create_session().session_id

        assert "not allowed" in talk(app, session_id)[0]["content"]
        assert plan_of(app, session_id) == []


def test_one_rule_allows_all_plans() -> None:
    rules: dict[str, Any] = {
        "permissions": {"allow": ["write_todos(plan)", "read_todos(plan)"], "default": "deny"}
    }
    with application([saying(write(TEA), READ), "Good."], **rules) as app:
        session_id = app.create_session().session_id

        assert talk(app, session_id)[1]["content"] == "in_progress: Boil water\npending: Steep"


# Lasting


def test_the_plan_is_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    with application([saying(write(TEA)), "I begin."], store) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)

    with application([saying(READ), "I know."], store) as app:
        assert plan_of(app, session_id) == TEA
        assert talk(app, session_id, "Go on.")[0]["content"] == "in_progress: Boil water\npending: Steep"


CRASH = """
import os, sys
from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from todo_tool import TodoTool

class Crash:
    name = "crash"
    def get_tool_schemas(self):
        return [{"name": "crash", "input_schema": {}}]
    def execute_tool(self, tool_name, arguments):
        os._exit(9)

script = [Reply(tool_calls=[ToolCall("write_todos", {"items": [{"text": "Boil water"}]})]),
          Reply(tool_calls=[ToolCall("crash", {})])]
config = {"agents": {"a": {"model": "m", "plugin_ids": ["todo_tool", "crash"]}},
          "models": {"m": {"provider": "scripted"}}}
plugins = [ScriptedProvider(script), TodoTool, Crash]
app = AgentApplication(config, store=sys.argv[1], plugins=plugins, installed=False)
session = app.create_session(session_id="s")
list(app.chat("s", "Make tea.", stream=False))
"""


def test_the_plan_is_there_after_a_crash(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH, store], capture_output=True, text=True, check=False
    )
    assert crashed.returncode == 9, crashed.stderr

    with application([], store) as app:
        metadata = app.load_session("s").metadata

        assert metadata["agent_state"] == {"todo_tool.items": [{"text": "Boil water", "state": "pending"}]}


def test_a_fork_has_a_copy_that_goes_its_own_way() -> None:
    script = [saying(write(TEA)), "I begin.", saying(write(LATER)), "In the fork."]
    with application(script) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)
        fork = app.fork_session(session_id, upto_index=-1).session_id

        assert plan_of(app, fork) == TEA
        talk(app, fork, "Go on.")
        app.execute_session_action(session_id, "todo_tool", "clear", {})

        assert plan_of(app, fork) == LATER
        assert plan_of(app, session_id) == []


def test_another_agent_goes_on_with_the_plan() -> None:
    with application([saying(write(TEA)), "I begin.", saying(READ, write(LATER)), "I go on."]) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)
        app.switch_agent(session_id, "other_planner")

        assert talk(app, session_id)[0]["content"] == "in_progress: Boil water\npending: Steep"
        assert plan_of(app, session_id) == LATER


def test_an_agent_that_does_not_plan_leaves_the_plan_alone() -> None:
    script = [saying(write(TEA)), "I begin.", saying(READ), "Where was I?"]
    with application(script, plain_script=["Hello.", "Hello again."]) as app:
        session_id = app.create_session().session_id
        talk(app, session_id)
        app.switch_agent(session_id, "plain")

        assert talk(app, session_id, "Hi") == []
        assert app.get_actions(session_id) == []

        app.switch_agent(session_id, "planner")

        assert plan_of(app, session_id) == TEA
        assert talk(app, session_id)[0]["content"] == "in_progress: Boil water\npending: Steep"


def test_sessions_do_not_see_each_others_plans() -> None:
    with application([saying(write(TEA)), "I begin.", saying(READ), "Nothing."]) as app:
        one, other = (app.create_session().session_id for _ in range(2))
        talk(app, one)

        assert talk(app, other)[0]["content"] == "There is no plan."
        assert plan_of(app, other) == []


@pytest.mark.parametrize(
    "spoilt", ["x", {"todo_tool.items": 5}, {"todo_tool.items": [{"text": "\x1b"}]}, None]
)
def test_a_plan_that_somebody_has_spoilt_counts_as_none(spoilt: Any) -> None:
    with application([saying(READ), "Nothing."]) as app:
        session_id = app.create_session(metadata={"agent_state": spoilt}).session_id

        assert plan_of(app, session_id) == []
        assert talk(app, session_id)[0]["content"] == "There is no plan."


def test_it_is_off_unless_listed() -> None:
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    plugins = [ScriptedProvider(["Hi."]), TodoTool]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        session_id = app.create_session().session_id

        assert app.get_actions(session_id) == []
        assert app.runtime.resolve("a").descriptors == ()


def test_other_state_of_the_session_stays_when_the_plan_is_cleared() -> None:
    state = {"todo_tool.items": TEA, "other.key": {"deep": [1]}}
    with application([]) as app:
        session_id = app.create_session(metadata={"agent_state": state}).session_id
        app.execute_session_action(session_id, "todo_tool", "clear", {})

        assert app.load_session(session_id).metadata["agent_state"] == {"other.key": {"deep": [1]}}
