"""The tables of the reference pages; ``python test_reference_pages.py`` writes them anew."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from agent_core import AgentError
from agent_core.events import RunEvent
from agent_runtime import (
    defaults as loop_actions,
    env as registrar,
    errors,
    phases,
    results,
    runs,
    specs,
)
from agent_runtime.agent import AgentSettings
from agent_runtime.assembly import Handoff
from agent_runtime.env import ExecutionEnv, Prompt, ResolvedAgent
from agent_runtime.limits import UsageLimits
from agent_runtime.options import AgentOptions, RunOptions
from agent_runtime.policies import CONDITIONS, RunStats
from agent_runtime.registries import DuplicateId
from agent_runtime.remote import RemoteAgentError
from agent_runtime.run_context import RunContext
from agent_runtime.run_stream import RunStep
from agent_runtime.suspension import Decision, Suspension

PAGES = Path(__file__).parents[3] / "docs" / "reference"
_REGION = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def attributes(cls: type) -> dict[str, str]:
    """Return what a docstring says of each attribute."""
    text = inspect.cleandoc(cls.__doc__ or "")
    block = text.partition("Attributes:\n")[2]
    found: dict[str, list[str]] = {}
    for line in block.splitlines():
        if match := re.match(r"    (\w+): (.*)", line):
            found[match[1]] = [match[2]]
        elif found and line.startswith("        "):
            found[list(found)[-1]].append(line.strip())
    return {name: " ".join(words) for name, words in found.items()}


def summary(thing: Any) -> str:
    return " ".join(inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(*rows: tuple[str, ...]) -> str:
    lines = ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def default_of(field: Any) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not MISSING:
        return f"`{dict(field.default_factory()) or '{}'}`"
    return "required"


def spec_table(cls: Any) -> str:
    told = attributes(cls)
    rows = [(f"`{field.name}`", default_of(field), told[field.name]) for field in fields(cls) if field.init]
    return table(("field", "default", "meaning"), *rows)


def value_table(cls: Any) -> str:
    told = attributes(cls)
    return table(("field", "meaning"), *((f"`{name}`", text) for name, text in told.items()))


def options_table(*kinds: Any) -> str:
    told = {name: text for kind in reversed(kinds) for name, text in attributes(kind).items()}
    return table(("option", "meaning"), *((f"`{name}`", text) for name, text in told.items()))


def condition_table() -> str:
    rows = []
    for name, kind in CONDITIONS.items():
        own = ", ".join(f"`{field.name}`" for field in fields(kind) if field.init)
        rows.append((f"`{name}`", f"`{kind.__name__}`", own, summary(kind)))
    return table(("type and reason code", "class", "fields", "meaning"), *rows)


def error_table() -> str:
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, AgentError) and value.__module__ == errors.__name__
    ]
    rows = []
    for error in (*found, DuplicateId, RemoteAgentError):
        code = error.__dict__.get("code")
        above = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        rows.append((f"`{error.__name__}`", f"`{code}`" if code else "", above, summary(error)))
    return table(("error", "code", "below", "meaning"), *rows)


def event_table() -> str:
    rows = []
    for kind in typing.get_args(RunEvent):
        hints = typing.get_type_hints(kind, localns={"Session": object})
        (name,) = typing.get_args(hints["type"])
        own = ", ".join(f"`{field}`" for field in hints if field not in ("type", "seq", "cursor", "at"))
        rows.append((f"`{name}`", own, summary(kind)))
    return table(("type", "fields", "meaning"), *rows)


def phase_table() -> str:
    when = {
        phases.Phase.RUN_START: "once, when the request's messages are stored",
        phases.Phase.STEP_START: "before each step",
        phases.Phase.BEFORE_INFERENCE: "before the model is asked; last chance to change what it is asked",
        phases.Phase.AFTER_INFERENCE: "when the model has answered, before its calls run",
        phases.Phase.TOOL_GATE: "for each call, before the gates are asked",
        phases.Phase.BEFORE_TOOL_EXECUTE: "for each call that the gates let pass",
        phases.Phase.AFTER_TOOL_EXECUTE: "for each call, when its answer is in the session",
        phases.Phase.STEP_END: "after each step",
        phases.Phase.RUN_END: "once, always, whatever happened, with the reason",
    }
    rows = [(f"`Phase.{phase.name}`", f"`{phase.value}`", when[phase]) for phase in phases.Phase]
    return table(("phase", "value", "when"), *rows)


def registrar_table() -> str:
    rows = []
    for name, method in vars(registrar.PluginRegistrar).items():
        if name.startswith("_") or name in ("env", "tools") or not callable(method):
            continue
        arguments = ", ".join(list(inspect.signature(method).parameters)[1:])
        rows.append((f"`{name}({arguments})`", summary(method)))
    return table(("method", "meaning"), *rows)


def action_table() -> str:
    listed = inspect.cleandoc(loop_actions.__doc__ or "").partition("| action")[2].partition("\n\n")[0]
    return f"| action{listed}\n"


TABLES = {
    "agent_spec": lambda: spec_table(specs.AgentSpec),
    "model_spec": lambda: spec_table(specs.ModelSpec),
    "retry_policy": lambda: spec_table(specs.RetryPolicy),
    "context_policy": lambda: spec_table(specs.ContextPolicy),
    "remote_endpoint": lambda: spec_table(specs.RemoteEndpoint),
    "tool_settings": lambda: spec_table(specs.ToolSettings),
    "stop_conditions": condition_table,
    "agent_settings": lambda: options_table(AgentOptions, AgentSettings),
    "run_options": lambda: options_table(RunOptions),
    "run_context": lambda: value_table(RunContext),
    "usage_limits": lambda: spec_table(UsageLimits),
    "usage": lambda: value_table(results.Usage),
    "run_step": lambda: value_table(RunStep),
    "handoff": lambda: spec_table(Handoff),
    "handoff_spec": lambda: spec_table(specs.HandoffSpec),
    "run_request": lambda: spec_table(runs.RunRequest),
    "run_result": lambda: value_table(results.RunResult),
    "reason": lambda: value_table(results.Reason),
    "suspension": lambda: value_table(Suspension),
    "decision": lambda: spec_table(Decision),
    "checkpoint": lambda: value_table(runs.Checkpoint),
    "resolved_agent": lambda: value_table(ResolvedAgent),
    "execution_env": lambda: value_table(ExecutionEnv),
    "phase_view": lambda: value_table(phases.PhaseView),
    "call_view": lambda: value_table(phases.CallView),
    "run_info": lambda: value_table(runs.RunInfo),
    "run_stats": lambda: value_table(RunStats),
    "prompt": lambda: value_table(Prompt),
    "registrar": registrar_table,
    "loop_actions": action_table,
    "phases": phase_table,
    "errors": error_table,
    "events": event_table,
}


def written(page: str) -> str:
    return _REGION.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", page)


def pages() -> list[Path]:
    names = ("agents", "run-events", "runtime-errors", "runtime-plugins")
    return [PAGES / f"{name}.md" for name in names]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_tables_of_the_page_are_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert written(text) == text, f"run python {Path(__file__).name} to write the tables anew"


def test_every_table_is_on_some_page() -> None:
    used = {name for page in pages() for _, name, _ in _REGION.findall(page.read_text(encoding="utf-8"))}

    assert used == set(TABLES)


@pytest.mark.parametrize(
    "cls",
    [
        specs.AgentSpec,
        specs.ModelSpec,
        specs.RetryPolicy,
        specs.ContextPolicy,
        runs.RunRequest,
        specs.ToolSettings,
    ],
)
def test_every_field_is_described_and_nothing_else_is(cls: Any) -> None:
    assert list(attributes(cls)) == [field.name for field in fields(cls) if field.init]


def test_every_error_is_importable_from_the_package() -> None:
    import agent_runtime

    tree = ast.parse(inspect.getsource(errors))
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]

    assert [name for name in names if not hasattr(agent_runtime, name)] == []


if __name__ == "__main__":
    for path in pages():
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
