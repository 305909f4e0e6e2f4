"""Ways out of the sandbox, tried by real processes. A command that gets out prints ESCAPED.

Each escape says in which sandboxes it must fail. Those marked `free` are also run without any: there they
must succeed, or they would prove nothing.
"""
# ruff: noqa: E501 - a table of commands

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_plugin_kit.sandbox import Sandbox
from agent_plugin_kit.sandbox.bubblewrap import find_bubblewrap
from agent_plugin_kit.sandbox.landlock import find_landlock
from agent_plugin_kit.sandbox.limits import can_count_processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import House

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these are the ways out of a Linux sandbox")

BOTH, ONLY_BUBBLEWRAP = ("bubblewrap", "landlock"), ("bubblewrap",)


class Escape(NamedTuple):
    """A way out."""

    name: str
    command: str
    ways: tuple[str, ...] = BOTH
    free: bool = True
    config: dict[str, Any] = {}  # noqa: RUF012 - never changed


def python(code: str, *, then: str = "ESCAPED") -> str:
    """Return a command that runs Python; reaching its end is the escape."""
    return f"python3 - <<'END'\nimport ctypes, os, signal, socket, sys, time\n{code}\nprint({then!r})\nEND"


LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
DENIED = LIBC + "def check(result):\n    if result < 0: sys.exit(os.strerror(ctypes.get_errno()))\n"
SEEN = '| grep -q "$SECRET" && echo ESCAPED'

WRITES = [
    Escape("a new file outside", 'echo x > "$OUT/new" && echo ESCAPED'),
    Escape("appending to a file outside", 'echo x >> "$OUT/file" && echo ESCAPED'),
    Escape("through a link in the workspace", 'ln -sf "$OUT/file" link; echo x > link && echo ESCAPED'),
    Escape("through a hard link", 'ln -f "$OUT/file" hard && echo x >> hard && echo ESCAPED'),
    Escape("moving a file out", 'echo x > a; mv a "$OUT/moved" && echo ESCAPED'),
    Escape("removing a file outside", 'rm "$OUT/file" && echo ESCAPED'),
    Escape("changing a mode outside", 'chmod 777 "$OUT/file" && echo ESCAPED', ONLY_BUBBLEWRAP),
    Escape("changing times outside", 'touch -d 2001-01-01 "$OUT/file" && echo ESCAPED', ONLY_BUBBLEWRAP),
    Escape("truncating a file outside", 'truncate -s 0 "$OUT/file" && echo ESCAPED'),
    Escape("a folder outside", 'mkdir "$OUT/folder" && echo ESCAPED'),
    Escape("a FIFO outside", 'mkfifo "$OUT/fifo" && echo ESCAPED'),
    Escape("the parent folder", "echo x > ../parent && echo ESCAPED"),
    Escape("the root by /proc/self", 'echo x > "/proc/self/root$OUT/by-root" && echo ESCAPED'),
    Escape("the folder by /proc/self", "echo x > /proc/self/cwd/../by-cwd && echo ESCAPED"),
    Escape("the root of process 1", 'echo x > "/proc/1/root$OUT/by-one" && echo ESCAPED', free=False),
    Escape("what the shell reads at its start", 'echo x >> "$HOME/.bashrc" && echo ESCAPED'),
    Escape("the system's settings", "touch /etc/sandbox-escape && echo ESCAPED", free=False),
    Escape("a program of the system", "touch /usr/local/bin/sandbox-escape && echo ESCAPED", free=False),
    Escape(
        "the machine's /tmp",
        'echo x > "$HOST_TMP" && grep -q x "$HOST_TMP" && [ "$TMPDIR" != /tmp ] && echo ESCAPED',
        ("landlock",),
    ),
    Escape(
        "renaming across by a descriptor",
        python(
            "out = os.open(os.environ['OUT'], os.O_RDONLY)\nopen('mine', 'w').close()\n"
            "os.rename('mine', 'theirs', dst_dir_fd=out)"
        ),
    ),
]
PLANTED = [
    Escape("a git hook", "echo x > .git/hooks/pre-commit && echo ESCAPED", ONLY_BUBBLEWRAP),
    Escape("a program in git's settings", "git config core.fsmonitor x && echo ESCAPED", ONLY_BUBBLEWRAP),
    Escape("other settings in the place of git's", "cp .git/config c; mv c .git/config && echo ESCAPED",
           ONLY_BUBBLEWRAP),
    Escape("another repository in its place", "mv .git g && mv g .git && echo ESCAPED", ONLY_BUBBLEWRAP),
    Escape("a link in the place of the hooks", "mv .git/hooks h && mv h .git/hooks && echo ESCAPED",
           ONLY_BUBBLEWRAP),
    Escape("the project's own settings of the agent", "echo x >> .agent/config.toml && echo ESCAPED",
           ONLY_BUBBLEWRAP),
    Escape("tasks of an editor", "echo x >> .vscode/tasks.json && echo ESCAPED", ONLY_BUBBLEWRAP),
]  # fmt: skip
READS = [
    Escape("a key", f'cat "$HOME/.ssh/id_ed25519" {SEEN}'),
    Escape("a key by a link", f'ln -sf "$HOME/.ssh/id_ed25519" key; cat key {SEEN}'),
    Escape("a key by /proc", f'cat "/proc/self/root$HOME/.ssh/id_ed25519" {SEEN}'),
    Escape("the names of keys", 'ls "$HOME/.ssh" | grep -q id_ && echo ESCAPED'),
    Escape("the program's own files", f'cat "$HOME/.config/agent/secrets.json" {SEEN}'),
    Escape("variables of the project", f"cat .env {SEEN}", ONLY_BUBBLEWRAP),
    Escape("variables deeper down", f"cat sub/.env.local {SEEN}", ONLY_BUBBLEWRAP),
    Escape("variables under another name", f"mv .env e && cat e {SEEN}; mv e .env", ONLY_BUBBLEWRAP),
    Escape("variables by a hard link", f"ln .env e && cat e {SEEN}; rm -f e", ONLY_BUBBLEWRAP),
    Escape("variables in an archive", f"tar c .env 2>/dev/null {SEEN.replace('-q', '-qa')}", ONLY_BUBBLEWRAP),
    Escape("variables with their folder moved", f"mv sub s && cat s/.env.local {SEEN}; mv s sub", ONLY_BUBBLEWRAP),
    Escape("what covers a key taken off", f'umount "$HOME/.ssh"; cat "$HOME/.ssh/id_ed25519" {SEEN}'),
    Escape("a key in namespaces of its own",
           f'unshare -Urm sh -c \'umount "$HOME/.ssh"; cat "$HOME/.ssh/id_ed25519"\' {SEEN}', free=False),
    Escape("the machine's /tmp read", f'cat "$HOST_TMP" {SEEN}'),
    Escape("shared memory of others", f"cat /dev/shm/house-$MARK {SEEN}"),
    Escape("passwords of the system", "[ -s /etc/shadow ] && cat /etc/shadow | grep -q root && echo ESCAPED",
           free=False),
]  # fmt: skip
PROCESSES = [
    Escape("variables of the parent", f'cat "/proc/$PPID/environ" | tr "\\0" "\\n" | grep -q HELD {SEEN}', free=False),
    Escape("variables of another process", f'cat "/proc/$VICTIM/environ" {SEEN.replace("-q", "-qa")}'),
    Escape("variables of all processes", f'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" | grep ^HELD {SEEN}'),
    Escape("the command line of another", 'tr "\\0" " " < /proc/$VICTIM/cmdline | grep -q "sleep 600" && echo ESCAPED',
           ONLY_BUBBLEWRAP),
    Escape("the folder of another process", f'cat "/proc/$VICTIM/cwd/.ssh/id_ed25519" {SEEN}'),
    Escape("memory of another process", 'head -c 1 "/proc/$VICTIM/maps" | grep -q . && echo ESCAPED'),
    Escape("tracing another process", python(
        DENIED + "pid = int(os.environ['VICTIM'])\ncheck(libc.ptrace(16, pid, 0, 0))\nos.waitpid(pid, 0)\n"
        "libc.ptrace(17, pid, 0, 0)")),
    Escape("a signal to another process", 'kill -CONT "$VICTIM" && echo ESCAPED'),
    Escape("a signal by a descriptor", python(
        "signal.pidfd_send_signal(os.pidfd_open(int(os.environ['VICTIM'])), signal.SIGCONT)")),
    Escape("a descriptor of another process", python(
        DENIED + "found = os.pidfd_open(int(os.environ['VICTIM']))\ncheck(libc.syscall(438, found, 0, 0))")),
    Escape("the priority of another process", 'renice -n 1 -p "$VICTIM" >/dev/null && echo ESCAPED', ONLY_BUBBLEWRAP,
           free=False),
]  # fmt: skip
NETWORK = [
    Escape("a TCP connection to this machine", "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED"),
    Escape("a datagram", python(
        "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "one.connect(('127.0.0.1', int(os.environ['UDP'])))\none.send(b'out')\n", then="sent")),
    Escape("a socket file", python("socket.socket(socket.AF_UNIX).connect(os.environ['SOCKET'])")),
    Escape("an abstract socket", python(
        "socket.socket(socket.AF_UNIX).connect('\\0house-' + os.environ['MARK'])")),
    Escape("a raw socket", python("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"), free=False),
    Escape("packets of the machine", python("socket.socket(17, socket.SOCK_RAW, 3)"), free=False),
    Escape("a way to another network", python(
        "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\none.connect(('192.0.2.1', 9))"), free=False),
    Escape("variables that lead to an agent for keys", '[ -n "$SSH_AUTH_SOCK$DBUS_SESSION_BUS_ADDRESS" ] && echo ESCAPED',
           free=False),
]  # fmt: skip
PRIVILEGES = [
    Escape("mounting", "mkdir -p m; mount -t tmpfs none m && echo ESCAPED", free=False),
    Escape("mounting what is outside", 'mkdir -p m; mount --bind "$OUT" m && echo ESCAPED', free=False),
    Escape("making the system writable", "mount -o remount,rw / && echo ESCAPED", free=False),
    Escape("a disk as a device file", "mknod disk b 8 0 && echo ESCAPED", free=False),
    Escape("memory as a device file", "mknod memory c 1 1 && echo ESCAPED", free=False),
    Escape("disks of the machine", "ls /dev | grep -qE '^(sd|vd|nvme|mem$|kmsg$)' && echo ESCAPED", ONLY_BUBBLEWRAP,
           free=False),
    Escape("disks read", "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem; do head -c 1 $d 2>/dev/null | grep -qa . && "
           "echo ESCAPED; done", free=False),
    Escape("a program that runs as its owner", "grep -q 'NoNewPrivs:.*1' /proc/self/status || echo ESCAPED"),
    Escape("capabilities", "grep -qE 'Cap(Eff|Prm|Bnd):.*[1-9a-f]' /proc/self/status && echo ESCAPED", free=False),
    Escape("capabilities by namespaces", "unshare -Ur true && echo ESCAPED", ONLY_BUBBLEWRAP, free=False),
    Escape("another root", "mkdir -p m; chroot m / 2>&1 | grep -q 'failed to run' && echo ESCAPED", free=False),
    Escape("a program that the kernel runs",
           'p=$(cat /proc/sys/kernel/core_pattern) && echo "$p" > /proc/sys/kernel/core_pattern && echo ESCAPED',
           free=False),
    Escape("control groups", "for d in /sys/fs/cgroup /sys/fs/cgroup/pids; do mkdir $d/escape-$MARK && rmdir "
           "$d/escape-$MARK && echo ESCAPED; done", free=False),
    Escape("a kernel module", python(
        LIBC + "libc.syscall(313, -1, b'', 0)\nif ctypes.get_errno() != 9: sys.exit('refused')"), free=False),
]  # fmt: skip
BOMBS = [
    Escape("too much memory", python("kept = bytearray(400 << 20)"), config={"sandbox_memory": 256}),
    Escape("too many files", python("kept = [open('/dev/null') for _ in range(300)]"),
           config={"sandbox_open_files": 128}),
    Escape("a file that is too long", "head -c 3000000 /dev/zero > long && echo ESCAPED; rm -f long",
           config={"sandbox_file_size": 1}),
    Escape("a dump of memory", "ulimit -c unlimited 2>/dev/null && [ $(ulimit -c) != 0 ] && echo ESCAPED", free=False),
    Escape("its limits raised", "ulimit -n 1000000 2>/dev/null && echo ESCAPED", free=False),
]  # fmt: skip
FORKS = Escape(
    "too many processes",
    python(
        "for _ in range(200):\n"
        "    if os.fork() == 0:\n        time.sleep(20)\n        os._exit(0)\n"
    ) + " 2>/dev/null; true",
    config={"sandbox_processes": 64},
)  # fmt: skip
ESCAPES = [*WRITES, *PLANTED, *READS, *PROCESSES, *NETWORK, *PRIVILEGES, *BOMBS]


@pytest.fixture(scope="module")
def ways(house: House) -> Iterator[dict[str, Sandbox | str]]:
    found: dict[str, Any] = {"bubblewrap": find_bubblewrap(), "landlock": find_landlock()}
    made = {name: way if isinstance(way, str) else Sandbox(way) for name, way in found.items()}
    yield made
    for one in made.values():
        if isinstance(one, Sandbox):
            one.close()


def sandbox(ways: dict[str, Sandbox | str], name: str) -> Sandbox:
    found = ways[name]
    if isinstance(found, str):
        pytest.skip(found)
    return found


def as_it_was(house: House) -> None:
    """Check that nothing outside the workspace has changed."""
    assert (house.outside / "file").read_text() == "as it was"
    assert [one.name for one in house.outside.iterdir()] == ["file"]
    assert {one.name for one in house.home.iterdir()} == {
        ".ssh", ".config", ".bashrc", "outside", "work", "service.sock"
    }  # fmt: skip
    assert (house.home / ".bashrc").read_text() == ""
    assert not Path("/etc/sandbox-escape").exists()
    assert house.host_tmp.read_text() == house.secret
    assert house.victim.poll() is None
    assert house.datagrams == []


CASES = [(escape, way) for escape in ESCAPES for way in escape.ways]


def test_there_are_at_least_sixty_ways_out() -> None:
    assert len({escape.command for escape in ESCAPES}) >= 60


@pytest.mark.parametrize(("escape", "way"), CASES, ids=[f"{way}: {one.name}" for one, way in CASES])
def test_no_way_out(house: House, ways: dict[str, Sandbox | str], escape: Escape, way: str) -> None:
    printed = house.run(escape.command, dict(escape.config), sandbox=sandbox(ways, way))

    assert "ESCAPED" not in printed, printed
    assert house.secret not in printed
    assert "bwrap:" not in printed, printed  # it was the sandbox that refused, not its start
    as_it_was(house)


@pytest.mark.parametrize("escape", [one for one in ESCAPES if one.free], ids=lambda one: one.name)
def test_the_way_out_is_one_without_a_sandbox(open_house: House, escape: Escape) -> None:
    open_house.furnish()

    printed = open_house.run_freely(escape.command)

    assert "ESCAPED" in printed or "sent" in printed, printed


def test_a_sandbox_holds_so_many_processes_and_no_more(house: House, ways: dict[str, Sandbox | str]) -> None:
    if not can_count_processes():
        pytest.skip("root without a control group of its own: the kernel counts no processes")

    printed = house.run(FORKS.command, dict(FORKS.config), sandbox=sandbox(ways, "bubblewrap"))

    assert "ESCAPED" not in printed


@pytest.mark.parametrize(
    "command",
    [
        "setsid nohup sleep 4321.$N >/dev/null 2>&1 & disown",
        "(env -i setsid sleep 4321.$N >/dev/null 2>&1 &)",
        python("if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
               "        os.closerange(0, 9)\n        os.execve('/bin/sleep', ['sleep', '4321.' + os.environ['N']], {})\n"
               "    os._exit(0)"),
    ],
    ids=["in a session of its own", "without its variables", "as a daemon"],
)  # fmt: skip
def test_nothing_outlives_the_command(house: House, ways: dict[str, Sandbox | str], command: str) -> None:
    number = str(int(house.mark, 16))

    house.run(f"N={number}; export N; {command}; sleep 0.05", sandbox=sandbox(ways, "bubblewrap"))

    # The system ends a namespace in its own time, which is short; what got out of it would sleep for an hour.
    deadline = time.monotonic() + 60
    while any(f"4321.{number}" in line for line in _command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_link_that_one_command_leaves_opens_nothing_to_the_next(
    house: House, ways: dict[str, Sandbox | str]
) -> None:
    box = sandbox(ways, "bubblewrap")
    house.run(
        'ln -sfn "$HOME/.ssh" .idea; ln -sfn "$HOME/.ssh" .husky; ln -sf "$HOME/.ssh/id_ed25519" .mcp.json',
        sandbox=box,
    )

    printed = house.run("cat .idea/id_ed25519 .husky/id_ed25519 .mcp.json; ls .idea/", sandbox=box)

    assert house.secret not in printed
    assert "id_ed25519\n" not in printed.replace("/id_ed25519", "")
    for name in (".idea", ".husky", ".mcp.json"):
        (house.work / name).unlink()


def test_work_gets_done(house: House, ways: dict[str, Sandbox | str]) -> None:
    """What a sandbox is for: builds, scripts, git and temporary files work in it."""
    for name in ("bubblewrap", "landlock"):
        if isinstance(ways[name], str):
            continue
        printed = house.run(
            "set -e; echo text > file; grep -q text file; mkdir -p deep/er; mv file deep/er/; rm -r deep; "
            "git add -A . 2>/dev/null || true; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; "
            'f=$(mktemp); echo t > "$f"; cat "$f"; python3 -c "import socket, ssl, asyncio; print(1)"; '
            "sleep 0.01 & wait; echo data | sort | cat > /dev/null; ls /usr/bin > /dev/null; echo DONE",
            sandbox=sandbox(ways, name),
        )
        assert printed.endswith("t\n1\nDONE\n"), printed


def test_in_strict_mode_the_home_is_empty_but_for_the_workspace(
    house: House, ways: dict[str, Sandbox | str]
) -> None:
    printed = house.run(
        'ls -A "$HOME"; cat "$OUT/file"; echo x > new && cat new',
        {"sandbox": "strict"},
        sandbox=sandbox(ways, "bubblewrap"),
    )

    assert printed.startswith("work\n")
    assert "as it was" not in printed
    assert printed.endswith("x\n")


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found
