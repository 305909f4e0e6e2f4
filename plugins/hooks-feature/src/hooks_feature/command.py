"""A hook's command: started in the sandbox, with the event as JSON on its standard input.

It is a line for `sh`, in the first folder of the workspace. Of our environment it gets the few variables
that every program needs. When its time is up, it ends with everything that it started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Final

from agent_plugin_kit.orphans import MARK, new_mark
from agent_plugin_kit.sandbox import NoSandbox, Sandbox, SandboxSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TIMEOUT: Final = 60.0
_MOST: Final = 8_000
_PIECE: Final = 64 * 1024
_LINGER: Final = 1.0
_USUAL: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCommand:
    """A command for an event.

    Attributes:
        event: When it runs.
        command: A line for the shell.
        tools: Patterns of the tools that it is for.
        timeout: How many seconds it has.
        hosts: What it may reach out of its sandbox.
    """

    event: str
    command: str
    tools: tuple[str, ...] = ("*",)
    timeout: float = TIMEOUT
    hosts: tuple[str, ...] = ()

    @classmethod
    def read(cls, event: str, given: Mapping[str, Any], tools: Sequence[str]) -> HookCommand:
        """Return a command from its declaration, which fits the schema.

        Args:
            tools: The tools that it is for unless it names some.
        """
        return cls(
            event=event,
            command=given["command"],
            tools=tuple(given.get("tools", tools)),
            timeout=float(given.get("timeout", TIMEOUT)),
            hosts=tuple(given.get("hosts", ())),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        code: Its exit code; None if it did not end in time, or could not be started.
        text: What it printed: on standard error, else on standard output; or what kept it from running.
    """

    code: int | None
    text: str

    @property
    def objects(self) -> bool:
        """Whether it wants the model to read what it printed: exit code 2."""
        return self.code == 2  # noqa: PLR2004 - the convention of such hooks


def run_command(
    hook: HookCommand,
    about: Mapping[str, Any],
    *,
    sandbox: Sandbox,
    settings: SandboxSettings,
    roots: Sequence[Path],
    owner: str,
) -> Outcome:
    """Run a command to its end; this waits for it.

    Args:
        about: The event, for its standard input.
        owner: The session, whose hooks share a temporary folder.
    """
    arguments, folder = ["sh", "-c", hook.command], roots[0]
    env = {name: os.environ[name] for name in _USUAL if name in os.environ}
    confined = None
    try:
        if sandbox.confines(settings):
            confined = sandbox.confine(
                arguments, settings, roots=roots, folder=folder, env=env, owner=owner, hosts=hook.hosts
            )
            arguments, env = confined.command, confined.env
        with TemporaryFile() as event:
            event.write(json.dumps(about, default=str).encode())
            event.seek(0)
            process = subprocess.Popen(  # noqa: S603 - what the settings say, in the sandbox
                arguments,
                stdin=event,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**env, MARK: new_mark()},
                pass_fds=() if confined is None else confined.descriptors,
                start_new_session=True,
            )
    except (OSError, NoSandbox, ValueError) as error:
        return Outcome(None, f"cannot be started: {error}")
    finally:
        if confined is not None:
            confined.started()
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Tail(process.stdout), _Tail(process.stderr)
    try:
        process.wait(hook.timeout)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Outcome(None, f"did not end within {hook.timeout:g} seconds")
    finally:
        if confined is not None:
            confined.ended()
    return Outcome(process.returncode, err.read() or out.read())


class _Tail:
    """The end of what a command prints, read by a thread while it runs.

    What the command leaves in the background may keep the pipe open for ever, so the end of the command
    counts and not that of the pipe.
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = Thread(target=self._follow, name="hook-output", daemon=True)
        self._thread.start()

    def read(self) -> str:
        """Return the end of what was printed; the command has ended."""
        self._thread.join(_LINGER)
        return self._kept.strip()[-_MOST:].decode("utf-8", "replace")

    def _follow(self) -> None:
        with self._pipe:
            while piece := os.read(self._pipe.fileno(), _PIECE):
                self._kept = (self._kept + piece)[-2 * _MOST :]
