"""A command while it runs: its output is taken, its time watched, and in the end nothing of it is left.

A thread of its own looks after each command, whoever waits for it. Both streams of output go into one pipe,
so they come in the order in which they were written. The pipe may stay open when the command has exited,
since what it left in the background holds it: that is waited for only a moment.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

from agent_plugin_kit.orphans import MARK, new_mark
from shell_tool.environment import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_plugin_kit.sandbox import Confined
    from shell_tool.output import Output


_PROC = Path("/proc")
_ROUNDS = 10
_DEAD = ("Z", "X")


class ProcessGroup:
    """The processes of a command.

    Args:
        leader: The process that was started, which leads the group.
        mark: The value of the variable `MARK` in its environment.
        is_tree: Whether all of them end with the leader, which is then the sandbox and not the command.
    """

    def __init__(self, leader: int, mark: str, *, is_tree: bool = False) -> None:
        self._leader = leader
        self._mark = mark
        self.is_tree = is_tree

    @property
    def is_alive(self) -> bool:
        """Whether a process of the group runs; ask only when the leader was waited for."""
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _has_members(self._leader)

    def signal(self, number: int) -> None:
        """Send a signal to the group; processes of other users are not reached."""
        if self.is_tree and number == signal.SIGTERM:
            return  # it would end the sandbox at once; `ask_escaped` has asked what runs in it
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)

    def ask_escaped(self) -> None:
        """Ask processes that left the group to end; in a sandbox all that run in it."""
        for pid in _pids():
            if not self.is_tree or _is_inside_sandbox(pid):
                self._signal_marked(pid, signal.SIGTERM)

    def end_escaped(self) -> None:
        """End processes that left the group, and those that they start in the meantime."""
        for _ in range(_ROUNDS):
            ended = [self._signal_marked(pid, signal.SIGKILL) for pid in _pids()]
            if not any(ended):
                return

    def _signal_marked(self, pid: int, number: int) -> bool:
        """Signal a process if it has the mark.

        Its descriptor stays open, so that its number stays its own.
        """
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not _has_mark(pid, self._mark):
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)


def _pids() -> Iterator[int]:
    """Yield the processes that there are, where the system tells."""
    if hasattr(os, "pidfd_open") and _PROC.is_dir():
        yield from (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _is_inside_sandbox(pid: int) -> bool:
    """Say whether a process has process numbers of its own, unlike those that started the sandbox."""
    try:
        return (_PROC / str(pid) / "ns" / "pid").readlink() != (_PROC / "self" / "ns" / "pid").readlink()
    except OSError:
        return False


def _has_mark(pid: int, mark: str) -> bool:
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in variables


def _has_members(group: int) -> bool:
    """Say whether a group has a process that is not a mere entry: nobody may be there to remove that."""
    pids = list(_pids())
    return not pids or any(_state(pid, group) not in _DEAD for pid in pids)


def _state(pid: int, group: int) -> str:
    """Return the letter for the state of a process, that of a dead one if it is not of the group."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return _DEAD[0]
    return fields[0] if fields[2] == str(group) else _DEAD[0]


# Waiting for whatever happens to a process first: output, its exit, or somebody's word.


_PIECE = 64 * 1024
_WATCH_TICK = 0.02


class Watch:
    """Watches a process and the pipe into which it writes.

    Attributes:
        at_end: Whether nobody can write into the pipe any more.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.at_end = False
        self._process = process
        self._output = process.stdout.fileno()
        self._lock = threading.Lock()
        self._woken, self._waker = os.pipe()
        self._exit = _exit_descriptor(process.pid)
        self._poll = select.poll()
        for descriptor in (self._output, self._woken, self._exit):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)

    @property
    def has_exited(self) -> bool:
        """Whether the process itself has ended; it is not waited for, so its number stays its own."""
        if not hasattr(os, "waitid"):  # not on every system; there the process is waited for
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it was waited for
            return True

    def look(self, seconds: float | None) -> bytes:
        """Wait until something happens, at most so many seconds, and return output that is there."""
        if self._exit is None:
            seconds = _WATCH_TICK if seconds is None else min(seconds, _WATCH_TICK)
        ready = {descriptor for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        if self._woken in ready:
            os.read(self._woken, _PIECE)
        if self._exit in ready:
            self._poll.unregister(self._exit)
        return self._read() if self._output in ready else b""

    def wake(self) -> None:
        """Have `look` return, in whatever thread it waits."""
        with self._lock:
            if self._waker >= 0:
                os.write(self._waker, b"!")

    def close(self) -> None:
        """Let go of everything but the process."""
        with self._lock:
            for descriptor in (self._woken, self._waker, self._exit):
                if descriptor is not None:
                    os.close(descriptor)
            self._waker = -1
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> bytes:
        piece = os.read(self._output, _PIECE)
        if not piece:
            self.at_end = True
            self._poll.unregister(self._output)
        return piece


def _exit_descriptor(pid: int) -> int | None:
    """Return something to wait for a process with, where the system has it."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


Cause = Literal["exit", "timeout", "stop"]
"""Why a command ended: by itself, since its time was over, or since somebody stopped it."""

_PART = 64 * 1024
_PAUSE = 0.05
_LINGER = 0.2
_TICK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to run, and how.

    Attributes:
        command: The text for bash.
        bash: The program.
        folder: Where it runs.
        env: All variables that it has.
        timeout: Seconds until it is ended; None for never.
        grace: Seconds between asking it to end and ending it by force.
        confined: The command in its sandbox; None to run it without one.
    """

    command: str
    bash: str
    folder: Path
    env: Mapping[str, str]
    timeout: float | None
    grace: float
    confined: Confined | None = None

    @property
    def arguments(self) -> list[str]:
        """The program that bash is, and its arguments."""
        return [self.bash, "--noprofile", "--norc", "-c", os.fsdecode(self.command.encode())]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a command ended.

    Attributes:
        cause: Why.
        code: Its exit code, negative for a signal; None if it could not be ended.
        left_running: Whether it had left processes in the background, which were ended.
        seconds: How long it ran.
    """

    cause: Cause
    code: int | None
    left_running: bool
    seconds: float


class RunningCommand:
    """A command that was started.

    Args:
        launch: What is run.
        output: Takes what it writes.
        at_end: Called with the output when all of it is there, before anybody learns of the end.

    Attributes:
        launch: What is run.
        output: What it has written so far.
        end: How it ended; None while it runs.

    Raises:
        Refused: If it cannot be started.
    """

    def __init__(
        self, launch: Launch, output: Output, at_end: Callable[[Output], None] = lambda _output: None
    ) -> None:
        self.output = output
        self.end: End | None = None
        self._at_end = at_end
        self._grace = launch.grace
        self._began = monotonic()
        self._deadline = None if launch.timeout is None else self._began + launch.timeout
        self._stopped = False
        self._over = threading.Event()
        self._changed = threading.Condition()
        self.launch = launch
        self._mark = new_mark()
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        threading.Thread(target=self._look_after, name="shell-command", daemon=True).start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return monotonic() - self._began if self.end is None else self.end.seconds

    def stop(self) -> None:
        """Have it ended, with all that it started; returns at once."""
        self._stopped = True
        self._watch.wake()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, and say whether it has come."""
        return self._over.wait(seconds)

    def wait_beyond(
        self, size: int, seconds: float | None = None, given_up: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until it has written more than *size* bytes, or ended, or whoever waits has given up."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.output.total > size or self._over.is_set() or given_up(), seconds
            )

    def wake(self) -> None:
        """Have those who wait look whether they still want to."""
        with self._changed:
            self._changed.notify_all()

    def follow(self, limit: int) -> Iterator[bytes]:
        """Yield the first *limit* bytes of the output as they come, and return when the command has ended."""
        place = 0
        while True:
            over = self._over.is_set()  # asked first: what is read afterwards is then all that there is
            piece = self.output.read(place, min(_PART, limit - place))
            place += len(piece)
            if piece:
                yield piece
            elif over:
                return
            elif place >= limit or self.output.is_full:
                self._over.wait()
            else:
                self.wait_beyond(place)
                self._over.wait(_PAUSE)  # what comes in drops is shown in sips

    def _look_after(self) -> None:
        # A sandbox ends with the thread that started it, so that is the one that stays until its end.
        try:
            self._process = _spawn(self.launch, self._mark)
            is_tree = self.launch.confined is not None and self.launch.confined.is_tree
            self._group = ProcessGroup(self._process.pid, self._mark, is_tree=is_tree)
            self._watch = Watch(self._process)
        except BaseException as problem:  # for whoever asked for the command
            self._problem = problem
            return
        finally:
            self._ready.set()
        end = None
        try:
            end = self._until_the_end()
            self._at_end(self.output)
        finally:
            self._watch.close()
            if self.launch.confined is not None:
                self.launch.confined.ended()
            self.end = end
            self._over.set()
            self.wake()

    def _until_the_end(self) -> End:
        cause = self._until_exit()
        if cause == "exit":
            self._read(_LINGER, lambda: self._watch.at_end)
        else:
            self._end_leader()
        left_running = self._end_the_rest()
        if cause != "exit":
            self._group.end_escaped()
        self._read(_LINGER, lambda: not self._take(0))
        seconds = monotonic() - self._began
        return End(cause=cause, code=self._process.returncode, left_running=left_running, seconds=seconds)

    def _until_exit(self) -> Cause:
        while not self._watch.has_exited:
            left = None if self._deadline is None else self._deadline - monotonic()
            if self._stopped:
                return "stop"
            if left is not None and left <= 0:
                return "timeout"
            self._take(left)
        return "exit"

    def _end_leader(self) -> None:
        self._group.ask_escaped()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._group.signal(number)
            self._read(self._grace, lambda: self._watch.has_exited)

    def _end_the_rest(self) -> bool:
        """End what the leader of the group left behind, and say whether there was anything."""
        if not self._watch.has_exited:
            return False  # a process of another user, or one that the system holds
        self._process.wait()
        if self._group.is_tree:  # the system ends whatever the command left, in a moment
            self._group.signal(signal.SIGKILL)
            self._read(self._grace, lambda: not self._group.is_alive)
            return False
        left_running = self._group.is_alive
        if left_running:
            self._group.signal(signal.SIGTERM)
            self._read(self._grace, lambda: not self._group.is_alive)
            self._group.signal(signal.SIGKILL)
        return left_running

    def _read(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Take output until it is enough, at most so long."""
        deadline = monotonic() + seconds
        while not enough() and (left := deadline - monotonic()) > 0:
            self._take(min(left, _TICK))

    def _take(self, seconds: float | None) -> bool:
        """Wait for output, at most so long, take it, and say whether there was some."""
        piece = self._watch.look(seconds)
        if piece:
            self.output.write(piece)
            self.wake()
        return bool(piece)


def _spawn(launch: Launch, mark: str) -> subprocess.Popen[bytes]:
    confined = launch.confined
    env = launch.env if confined is None else confined.env
    try:
        return subprocess.Popen(  # noqa: S603 - to run what the model asks for is the purpose
            launch.arguments if confined is None else confined.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=launch.folder,
            env={**env, MARK: mark},
            start_new_session=True,
            pass_fds=() if confined is None else confined.descriptors,
        )
    except OSError as error:
        if confined is not None:
            confined.ended()
        raise Refused(f"the command cannot be started: {error}") from error
    finally:
        if confined is not None:
            confined.started()
