"""What a sandbox refused, as words for the model and the person: what it was, and which rule would allow it.

The kernel does not say why it refuses. So the output of a command that failed is searched for the usual words
of programs, and compared with the profile; of hosts the proxy knows exactly.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_plugin_kit.sandbox.machine import Confined

_READ_ONLY: Final = re.compile(r"read-only file system|EROFS|Errno 30\b", re.IGNORECASE)
_DENIED: Final = re.compile(r"permission denied|operation not permitted|EACCES|EPERM", re.IGNORECASE)
_NO_NETWORK: Final = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution|"
    r"network is unreachable|"
    r"getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|no address associated|failed to lookup address|"
    r"couldn't connect to server|nodename nor servname",
    re.IGNORECASE,
)
_HOST: Final = re.compile(
    r"(?:resolve host(?:name)?:?|resolving|ENOTFOUND|EAI_AGAIN|https?://|unable to resolve host address) ?"
    r"['\u2018\"]?([a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+)",
    re.IGNORECASE,
)
_TOO_MANY: Final = re.compile(
    r"resource temporarily unavailable|cannot allocate memory|too many open files|file size limit|"
    r"file too large|MemoryError|out of memory",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?<![\w/.-])(~?/[^\s:'\"`,;()<>|]+)")
_MOST: Final = 3
_LIMITS: Final = "sandbox_memory, sandbox_processes, sandbox_open_files and sandbox_file_size set the limits"


def explain(confined: Confined, text: str) -> list[str]:
    """Return what the sandbox refused to a command that failed, as far as that is known.

    Args:
        confined: The command.
        text: What it printed, or the end of that.
    """
    return [*_of_hosts(confined, text), *_of_files(confined, text), *_of_limits(text)]


def _of_hosts(confined: Confined, text: str) -> Iterator[str]:
    refused = {} if confined.proxy is None else confined.proxy.refused
    for place, why in list(refused.items())[:_MOST]:
        host = place.removesuffix(":443").removesuffix(":80") if "among" in why else place
        yield f"the sandbox refused a connection to {place}: {why}. {_allow_host(confined, host)}"
    if not refused and _NO_NETWORK.search(text):
        hosts = list(dict.fromkeys(found.lower() for found in _HOST.findall(text)))[:_MOST]
        name = hosts[0] if hosts else "HOST"
        yield f"there is no network in the sandbox. {_allow_host(confined, name)}"


def _allow_host(confined: Confined, host: str) -> str:
    setting = f'the setting sandbox_hosts = ["{host}"] allows it'
    if confined.profile.settings.requests and not confined.profile.strict:
        return f'Call again with hosts: ["{host}"] to ask for it; {setting} for good'
    return f"T{setting[1:]}"


def _of_files(confined: Confined, text: str) -> Iterator[str]:
    profile = confined.profile
    named = [Path(found).expanduser() for found in _PATH.findall(text)]
    kept = next((path for path in profile.kept if _is_named(path, named, text)), None)
    if _READ_ONLY.search(text):
        if kept is not None:
            yield f"{kept} is read-only in the sandbox, since other programs obey it. {_outside(confined)}"
        else:
            yield (
                "the sandbox writes the workspace and /tmp only. The setting "
                f'sandbox_write = ["FOLDER"] allows another folder. {_outside(confined)}'
            )
    elif _DENIED.search(text):
        hidden = next((path for path in profile.hidden if _is_named(path, named, text)), None)
        if hidden is not None:
            yield (
                f"{hidden} is hidden in the sandbox, since it may hold keys. The setting "
                f'sandbox_show = ["{hidden}"] shows it. {_outside(confined)}'
            )


def _is_named(path: Path, named: list[Path], text: str) -> bool:
    if any(one == path or one.is_relative_to(path) for one in named):
        return True
    return re.search(rf"(?<![\w.-]){re.escape(path.name)}(?![\w-])", text) is not None


def _outside(confined: Confined) -> str:
    if confined.profile.settings.requests and not confined.profile.strict:
        return "If it must be, call again with outside_sandbox: true; a person is then asked"
    return "Continue without it, or ask the person to run it"


def _of_limits(text: str) -> Iterator[str]:
    if _TOO_MANY.search(text):
        yield f"this may be a limit of the sandbox: {_LIMITS}"
