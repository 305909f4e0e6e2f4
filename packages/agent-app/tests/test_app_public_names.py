"""What the package promises by name: its own names, the methods, their twins, and the pages about them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import agent_app
from agent_app import AgentApplication, errors
from agent_app.agents import check_config
from agent_app.lifecycle import REQUEST_ENDS
from agent_core import AgentError
from agent_core.events import ChangeEvent

DOCS = Path(__file__).parents[3] / "docs" / "reference"
PAGE = (DOCS / "application.md").read_text(encoding="utf-8")
PROMISED = {
    "create_session", "create_session_ephemeral", "load_session", "list_sessions", "rename_session",
    "save_session", "delete_session", "fork_session", "edit_message", "regenerate", "update_agent",
    "switch_agent", "send_request", "chat", "enqueue", "cancel", "decide", "get_actions",
    "execute_session_action", "execute_application_action", "run_session_lifecycle", "subscribe",
}  # fmt: skip


def methods() -> set[str]:
    found = inspect.getmembers(AgentApplication, inspect.isfunction)
    return {name for name, _ in found if not name.startswith("_")}


def table(name: str) -> list[str]:
    """Return the first cells of a table of the page."""
    part = PAGE.split(f"<!-- table: {name} -->")[1].split("<!-- end -->")[0]
    return re.findall(r"^\| `(\w+)", part, re.MULTILINE)


def test_every_public_name_can_be_had_and_no_other() -> None:
    for name in agent_app.__all__:
        assert getattr(agent_app, name).__name__ == name
    assert not hasattr(agent_app, "SomethingElse")
    assert sorted(agent_app.__all__) == agent_app.__all__


def test_every_promised_method_is_there_with_a_twin() -> None:
    alone = {"close", "of_tenant", "use_agents"}  # they do not wait
    plain = {name for name in methods() if not name.endswith("_async")} - alone

    assert plain >= PROMISED
    assert {f"{name}_async" for name in plain} == methods() - plain - alone


def test_a_twin_takes_what_the_method_takes() -> None:
    for name in methods():
        if name.endswith("_async"):
            plain = getattr(AgentApplication, name.removesuffix("_async"))
            twin = getattr(AgentApplication, name)
            assert str(inspect.signature(plain).parameters) == str(inspect.signature(twin).parameters), name
            assert twin.__doc__


def test_the_page_lists_every_method() -> None:
    assert set(table("methods")) == {name for name in methods() if not name.endswith("_async")}


def test_the_page_lists_every_error() -> None:
    raised = {
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, AgentError) and item.__module__ == errors.__name__
    }

    assert set(table("errors")) == raised
    assert raised <= set(agent_app.__all__)


def test_the_page_lists_every_change_with_its_fields() -> None:
    part = PAGE.split("<!-- table: changes -->")[1].split("<!-- end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in part.strip().splitlines()[2:]]
    listed = [(kind.strip("`"), fields.replace("`", "").split(", "), text) for kind, fields, text in rows]

    assert listed == [
        (
            get_args(hints["type"])[0],
            [name for name in one.__annotations__ if name not in ("type", "seq", "cursor", "at")],
            one.__doc__,
        )
        for one in get_args(ChangeEvent)
        if (hints := get_type_hints(one))
    ]


def test_the_page_on_actions_names_the_lifecycle_of_every_end() -> None:
    page = (DOCS / "actions.md").read_text(encoding="utf-8")
    part = page.split("<!-- table: request ends -->")[1].split("<!-- end -->")[0]
    listed = {
        code: lifecycle
        for lifecycle, codes in re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", part, re.MULTILINE)
        for code in re.findall(r"\w+", codes)
    }

    assert listed == REQUEST_ENDS


def test_the_page_lists_every_configuration_key() -> None:
    keys = table("config")

    assert set(check_config({key: None if key == "default_agent" else {} for key in keys})) == set(keys)
    assert len(keys) == 5


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"asyncio", "yaml", "a2a", "httpx", "pydantic", "psycopg"}
    code = f"import sys, agent_app; agent_app.AgentApplication; print(sorted({heavy!r} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
