"""What a sandboxed command may do: which folders it writes, what is hidden from it, which hosts it reaches.

A profile is a value. `Profile.of` makes it from settings and from what is on the disk at that moment, and the
ways to confine a process (`bubblewrap`, `landlock`, `seatbelt`) turn it into arguments. Permissions are never
derived from what lies in a workspace, since a command can change that: the content of a workspace only adds
restrictions (its `.env` is hidden, its git hooks are read-only).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_plugin_kit.settings import read_settings, setting, settings_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Mode = Literal["strict", "workspace", "off"]
MODES: Final[tuple[Mode, ...]] = ("strict", "workspace", "off")

SECRET_PLACES: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".netrc", "_netrc", ".pgpass", ".my.cnf",
    ".npmrc", ".pypirc", ".git-credentials", ".config/gcloud", ".config/gh", ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials", ".config/rclone", ".config/op", ".config/sops", ".password-store",
    ".local/share/keyrings", ".local/share/kwalletd", ".mozilla", ".thunderbird", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".bash_history", ".zsh_history",
    ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".terraform.d",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".gradle/gradle.properties", ".config/containers/auth.json", ".vault-token", ".wine",
    "Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail", "Library/Messages",
    "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
)  # fmt: skip
"""Where keys, passwords and histories are kept, below the home folder."""
SYSTEM_SECRETS: Final = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
                         "/var/lib/docker", "/var/spool", "/var/log", "/boot", "/lost+found")  # fmt: skip
"""The same of the machine; most are closed to users anyway, but an agent may run as root."""
ENV_FILES: Final = (".env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass")
PLAIN_ENV: Final = (".example", ".sample", ".template", ".dist", ".defaults", ".schema")
KEY_FILES: Final = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json", "service-account.json")
KEY_ENDS: Final = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
STARTED_LATER: Final = (".git/hooks", ".git/config", ".git/config.worktree", ".git/info", ".vscode", ".idea",
                        ".devcontainer", ".agent", ".mcp.json", ".husky", ".githooks",
                        ".gitmodules")  # fmt: skip
"""What other programs run or obey later, outside the sandbox: it can be read, and not changed."""
_OWN_FOLDERS: Final = {"XDG_CONFIG_HOME": "/.config", "XDG_DATA_HOME": "/.local/share",
                       "XDG_STATE_HOME": "/.local/state", "XDG_CACHE_HOME": "/.cache"}  # fmt: skip
_SKIPPED: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target"})
_DEPTH, _MOST_FOLDERS = 4, 300


def is_secret_file(name: str) -> bool:
    """Say whether a file's name says that it holds keys or passwords."""
    lower = name.lower()
    if lower.startswith(".env") and (lower == ".env" or lower[4] in "._-"):
        return not lower.endswith(PLAIN_ENV)
    return lower in (*ENV_FILES, *KEY_FILES) or lower.endswith(KEY_ENDS)


def _folders(texts: tuple[str, ...]) -> tuple[Path, ...]:
    folders = tuple(Path(text).expanduser() for text in texts)
    for folder in folders:
        if not folder.is_absolute():
            raise ValueError(f"has {str(folder)!r:.80}, which is not an absolute path")
    return folders


def _mode(text: str) -> Mode:
    for mode in MODES:
        if text == mode:
            return mode
    raise ValueError(f"must be strict, workspace or off, not {text!r:.40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """The settings of the sandbox; every plugin that starts programs has them, under the same names."""

    mode: Mode = setting(
        "workspace",
        "What programs may do: `workspace` writes the workspace and reads the rest, without network; "
        "`strict` also hides the home folder and allows no exception; `off` is not a sandbox.",
        key="sandbox",
        reads=str,
        convert=_mode,
        pattern="^(strict|workspace|off)$",
    )
    write: tuple[Path, ...] = setting(
        (),
        "Folders besides the workspace that programs in the sandbox may write.",
        key="sandbox_write",
        reads=tuple[str, ...],
        convert=_folders,
        shown_default=None,
    )
    show: tuple[str, ...] = setting(
        (),
        "Hidden files and folders to show after all: a name such as `.env`, or a path.",
        key="sandbox_show",
        shown_default=None,
    )
    hosts: tuple[str, ...] = setting(
        (),
        "Hosts that programs in the sandbox may reach: `api.example.com`, `*.example.com`, `localhost:5432`.",
        key="sandbox_hosts",
        shown_default=None,
    )
    requests: bool = setting(
        False,  # noqa: FBT003 - a default
        "Whether a call may ask for a host, or to run outside the sandbox. Only for agents whose permissions "
        "ask a person.",
        key="sandbox_requests",
    )
    memory_mb: int = setting(
        8192, "Megabytes of memory that a process in the sandbox may use.", key="sandbox_memory", at_least=16
    )
    processes: int = setting(
        1024, "Processes that may run in one sandbox at once.", key="sandbox_processes", at_least=8
    )
    open_files: int = setting(
        4096, "Files that a process in the sandbox may have open.", key="sandbox_open_files", at_least=16
    )
    file_mb: int = setting(
        16384, "Megabytes that a file written in the sandbox may have.", key="sandbox_file_size", at_least=1
    )
    protected: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> SandboxSettings:
        """Return the settings of a configuration, with the paths that belong to the program.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        own = config.get("protected_paths") or ()
        return read_settings(cls, config, protected=tuple(str(path) for path in own))


SANDBOX_SCHEMA: Final = settings_schema(SandboxSettings)


def is_on_everywhere(sections: Mapping[str, Any]) -> bool:
    """Say whether no section of an agent switches the sandbox off; settings of sections go into one list."""
    said = [one.get("sandbox") for one in sections.values() if hasattr(one, "get")]
    return all(mode in (None, "workspace", "strict") for mode in said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one command may do.

    Attributes:
        strict: Whether the home folder is hidden.
        roots: The folders that it may write.
        temporary: Its private temporary folder, which is `/tmp` inside.
        hidden: What it can neither read nor write.
        kept: What it can read but not change, inside the roots.
        hosts: What it may reach; nothing else of the network is there.
        settings: The settings that it was made from.
    """

    strict: bool
    roots: tuple[Path, ...]
    temporary: Path
    hidden: tuple[Path, ...]
    kept: tuple[Path, ...]
    hosts: tuple[str, ...]
    settings: SandboxSettings

    @classmethod
    def of(
        cls, settings: SandboxSettings, roots: Sequence[Path], temporary: Path, hosts: Sequence[str] = ()
    ) -> Profile:
        """Return the profile for a command in a workspace, as the disk is now.

        Args:
            roots: The folders of the workspace.
            temporary: A folder of our own; the command sees it as `/tmp`.
            hosts: What this command may reach besides the hosts of the settings.

        Raises:
            ValueError: If a root is inside the program's own files.
        """
        real = tuple(dict.fromkeys(_real(root) for root in (*roots, *settings.write) if root.is_dir()))
        own = tuple(map(_real, map(Path, settings.protected)))
        for root in real:
            if any(root.is_relative_to(path) for path in own):
                raise ValueError(f"{root} belongs to the program itself, and no command runs there")
        hidden = dict.fromkeys([*own, *_secret_places(settings, real), *_secret_files(settings, real)])
        return cls(
            strict=settings.mode == "strict",
            roots=real,
            temporary=temporary,
            hidden=tuple(path for path in hidden if not path.is_symlink() and path.exists()),
            kept=tuple(_kept(real)),
            hosts=tuple(dict.fromkeys((*settings.hosts, *hosts))),
            settings=settings,
        )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _secret_places(settings: SandboxSettings, roots: Sequence[Path]) -> Iterator[Path]:
    home = os.path.realpath(Path.home())
    own = (f"{os.environ.get(name) or home + usual}/agent" for name, usual in _OWN_FOLDERS.items())
    places = [*(f"{home}/{name}" for name in SECRET_PLACES), *SYSTEM_SECRETS, *own]
    for place in (_real(Path(text)) for text in places if os.path.lexists(text)):  # most are not there
        # A folder that somebody opens as a workspace, or one around it, cannot be hidden from the workspace.
        if not _shown(place, settings.show) and not any(root.is_relative_to(place) for root in roots):
            yield place


def _secret_files(settings: SandboxSettings, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the files in a workspace that hold keys: of its upper levels, since looking must stay quick."""
    looked = 0
    waiting = [(root, 0) for root in roots]
    while waiting and looked < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        looked += 1
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth + 1 < _DEPTH and entry.name not in _SKIPPED:
                    waiting.append((folder / entry.name, depth + 1))
            elif is_secret_file(entry.name) and entry.is_file(follow_symlinks=False):
                path = folder / entry.name
                if not _shown(path, settings.show):
                    yield path


def _shown(path: Path, show: Iterable[str]) -> bool:
    """Say whether a setting shows what is hidden by itself."""
    return any(
        fnmatchcase(path.name, one) if "/" not in one else path.is_relative_to(_real(Path(one).expanduser()))
        for one in show
    )


def _kept(roots: Sequence[Path]) -> Iterator[Path]:
    for root in roots:
        for name in STARTED_LATER:
            path = root / name
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            # A link could be turned to anything at any time; what it leads to has its own place.
            if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and not path.parent.is_symlink():
                yield path
