"""A coding agent: it reads, writes and runs programs in one folder; a person approves what has an effect.

python coding_agent.py "Make the tests pass." path/to/project
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from agent_runtime import Agent, Decision, ModelRetry, RunContext

RULES = {"default": "allow", "ask": ["write_file", "run"]}


def inside(ctx: RunContext[Path], name: str) -> Path:
    """Return a path inside the project, or tell the model that it is not."""
    path = (ctx.deps / name).resolve()
    if not path.is_relative_to(ctx.deps):
        raise ModelRetry(f"{name} is outside the project")
    return path


def read_file(ctx: RunContext[Path], name: str) -> str:
    """Return the content of a file."""
    path = inside(ctx, name)
    if not path.is_file():
        raise ModelRetry(f"there is no file {name}; there is {sorted(p.name for p in ctx.deps.iterdir())}")
    return path.read_text()


def write_file(ctx: RunContext[Path], name: str, content: str) -> str:
    """Replace the content of a file, or make a new one."""
    inside(ctx, name).write_text(content)
    return "written"


def run(ctx: RunContext[Path], command: list[str]) -> str:
    """Run a program in the project and return what it prints."""
    done = subprocess.run(command, cwd=ctx.deps, capture_output=True, text=True, timeout=300, check=False)
    return f"exit code {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def work(model: object, task: str, folder: Path, approve: Callable[[str], bool]) -> str:
    """Let the agent work until it is done, and return its last words."""
    agent = Agent(
        model,
        deps_type=Path,
        tools=[read_file, write_file, run],
        sections={"permissions": RULES},
        instructions="You are a careful programmer. Read before you write, and run the tests at the end.",
    )
    result = agent.run(task, deps=folder.resolve())
    while result.suspended:
        decisions = [
            Decision(question.id, approved=approve(question.message)) for question in result.suspended
        ]
        result = agent.run((), session=result.session, decisions=decisions, deps=folder.resolve())
    return result.output


if __name__ == "__main__":
    project = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    print(
        work(
            os.environ.get("MODEL", "local"),
            sys.argv[1],
            project,
            lambda text: input(f"{text} [y/N] ") == "y",
        )
    )
