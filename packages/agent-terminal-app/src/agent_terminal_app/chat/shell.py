"""`!command`: a line for the user's own shell. The model is not asked, and none of its permissions is used.

The command gets no terminal and nothing to read. It runs in a process group of its own, so that it can be
ended with everything that it started. Its output goes with the next message.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_terminal_app.chat.attachments import Attachment, text_attachment
from agent_terminal_app.chat.rendering.folds import Excerpt
from agent_terminal_app.chat.rendering.text import one_line, printed

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable
    from pathlib import Path

    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.rendering.renderer import Remarks
    from agent_terminal_app.chat.rendering.screen import Screen

_PIECE = 65_536
_SHOWN = 200
_BRIEFLY = 0.02
_PATIENCE = 1.0
"""For how many seconds a command may tidy up; also how long the output of one that ended is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """A command that has run.

    Attributes:
        code: Its exit code; negative if a signal ended it.
        output: What it printed.
        stopped: Whether the user stopped it.
    """

    command: str
    folder: Path
    code: int
    output: Excerpt
    seconds: float
    stopped: bool

    def line(self, take_back: str = "Alt+Up") -> str:
        """Return how it ended, and the key that keeps its output from the agent, if there is one."""
        how = "stopped" if self.stopped else f"exit code {self.code}"
        unless = f"; {take_back} removes its output from your next message" if take_back else ""
        return f"{how}, {self.seconds:.1f} s{unless}"

    def attachment(self) -> Attachment:
        """Return it as the attachment that the agent reads."""
        how = "I stopped it" if self.stopped else f"Its exit code was {self.code}"
        text = (
            f"I ran this command in {self.folder}:\n\n{self.command}\n\n{how}. It printed:\n\n{self.output}"
        )
        return text_attachment(f"the output of `{one_line(self.command)}`", text)


class ShellProcess:
    """Runs one command at a time.

    Args:
        show: Shows a line of output.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._running = False
        self._process: Process | None = None
        self._stopped = False
        self._lines = 0

    @property
    def running(self) -> bool:
        """Whether a command runs, or is about to."""
        return self._running

    async def run(self, command: str, folder: Path) -> ShellResult:
        """Run a command to its end, and show what it prints.

        Raises:
            OSError: If it cannot be started.
        """
        began, output = time.monotonic(), Excerpt()
        self._running, self._stopped, self._lines = True, False, 0
        try:
            code = await self._run(command, folder, output)
        finally:
            self._running, self._process = False, None
        if self._lines > _SHOWN:
            self._show(f"… {self._lines - _SHOWN:,} more lines; the last: {output.last_line()}")
        seconds = time.monotonic() - began
        return ShellResult(
            command=command, folder=folder, code=code, output=output, seconds=seconds, stopped=self._stopped
        )

    def stop(self) -> bool:
        """End the command and everything that it started; False if none runs."""
        if not self._running:
            return False
        self._stopped = True
        if self._process is not None:
            self._end_soon(self._process)
        return True

    async def _run(self, command: str, folder: Path, output: Excerpt) -> int:
        # A pipe of our own: asyncio's would be waited for as long as anybody has it open.
        reading_end, writing_end = os.pipe()
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                os.environ.get("SHELL") or "/bin/sh",
                "-c",
                command,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing_end,
                stderr=writing_end,
                start_new_session=True,
                env={**os.environ, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"},
            )
        except BaseException:
            os.close(reading_end)
            raise
        finally:
            os.close(writing_end)
        if self._stopped:
            self._end_soon(process)
        return await self._watch(process, os.fdopen(reading_end, "rb", buffering=0), output)

    def _end_soon(self, process: Process) -> None:
        """Tell a command to end, and make it end a little later."""
        self._end_group(process, signal.SIGTERM)
        asyncio.get_running_loop().call_later(_PATIENCE, self._end_group, process, signal.SIGKILL)

    async def _watch(self, process: Process, pipe: Any, output: Excerpt) -> int:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_PIECE)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        reading = asyncio.create_task(self._read(reader, output))
        try:
            code = await process.wait()
            if self._stopped:
                await self._end_rest(process)
            await asyncio.wait(
                [reading], timeout=_PATIENCE
            )  # what goes on in the background is not waited for
        except asyncio.CancelledError:
            self._end_group(process, signal.SIGKILL)
            raise
        finally:
            reading.cancel()
            transport.close()
        return code

    async def _end_rest(self, process: Process) -> None:
        """End the processes that a stopped command has left behind."""
        until = time.monotonic() + _PATIENCE
        while _is_alive(process.pid) and time.monotonic() < until:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_BRIEFLY)
        self._end_group(process, signal.SIGKILL)

    async def _read(self, reader: asyncio.StreamReader, output: Excerpt) -> None:
        rest = b""
        while piece := await reader.read(_PIECE):
            lines, end, rest = (rest + piece).rpartition(b"\n")
            self._take(lines + end, output)
            if len(rest) > _PIECE:  # a line without an end
                self._take(rest + b"\n", output)
                rest = b""
            await asyncio.sleep(0)  # keys come first, however much is printed
        if rest:
            self._take(rest + b"\n", output)

    def _take(self, printed_lines: bytes, output: Excerpt) -> None:
        """Take whole lines, all at once: a command may print faster than they can be looked at."""
        text = printed_lines.decode(errors="replace")
        if "\r" in text:
            text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        text = printed(text)
        output.add(text)
        room = max(_SHOWN - self._lines, 0)
        self._lines += text.count("\n")
        for line in text.removesuffix("\n").split("\n")[:room]:
            self._show(line)

    def _end_group(self, process: Process, how: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Shell:
    """Runs one line at a time; what it prints goes with the next message.

    Args:
        screen: Where its output is shown.
        remarks: Says how it ended.
        changed: Called when it has.
        take_back: The key that keeps the output from the agent.
    """

    def __init__(
        self, screen: Screen, remarks: Remarks, changed: Callable[[], None], take_back: str = "Alt+Up"
    ) -> None:
        self._shell = ShellProcess(screen.line)
        self._remarks = remarks
        self._changed = changed
        self._take_back = take_back
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, conversation: Conversation, command: str) -> None:
        """Run a line in the folder of the session."""
        if self.running:
            self._remarks.note("another command is running; Esc stops it")
        else:
            self._task = asyncio.create_task(self._run(conversation, command))

    def stop(self) -> bool:
        """End the line and everything that it started; False if none runs."""
        if self._task is None or self._task.done():
            return False
        if not self._shell.stop():
            self._task.cancel()
            self._task = None
            self._remarks.note("stopped before it ran")
        return True

    async def settle(self) -> None:
        """Wait until it has ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, conversation: Conversation, command: str) -> None:
        try:
            ran = await self._shell.run(command, await asyncio.to_thread(conversation.folder))
        except OSError as error:
            self._remarks.fail(error)
            return
        conversation.attached.append(ran.attachment())
        self._remarks.note(ran.line(self._take_back), failed=ran.code != 0 and not ran.stopped)
        self._changed()
