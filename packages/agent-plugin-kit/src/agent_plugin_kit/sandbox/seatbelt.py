"""macOS: a profile for `sandbox-exec`, the system's own sandbox.

It is not run by the tests of this project on Linux; there they only look at the text.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_plugin_kit.sandbox.limits import limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_plugin_kit.sandbox.profile import Profile

_PROGRAM: Final = "/usr/bin/sandbox-exec"


class Seatbelt:
    """The sandbox of macOS."""

    name = "Seatbelt"

    def arguments(self, profile: Profile, command: Sequence[str], port: int | None) -> list[str]:
        """Return the command in the sandbox; it must be started in its folder."""
        return [_PROGRAM, "-p", rules(profile, port), *limited(profile.settings, command)]


def find_seatbelt() -> Seatbelt | str:
    """Return the sandbox of macOS, or else why it cannot be used."""
    if sys.platform == "darwin" and Path(_PROGRAM).exists():
        return Seatbelt()
    return "this is not macOS"


def rules(profile: Profile, port: int | None) -> str:
    """Return a profile in the language of Seatbelt; later lines win over earlier ones.

    Args:
        profile: What the command may do.
        port: The port of our proxy, if hosts are allowed.
    """
    writable = [*profile.roots, profile.temporary, Path("/private/var/folders"), Path("/dev")]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny file-write*)",
        "(deny process-info* (target others))",
        "(deny signal (target others))",
        "(allow signal (target same-sandbox))",
        '(deny mach-lookup (global-name-prefix "com.apple.securityd"))',
        "(deny appleevent-send)",
    ]
    if profile.strict:
        lines.append(_rule("deny", "file-read*", [Path(os.path.realpath(Path.home()))]))
        lines.append(_rule("allow", "file-read*", profile.roots))
    lines.append(_rule("allow", "file-write*", writable))
    lines += [_rule("deny", "file-read* file-write*", profile.hidden)] if profile.hidden else []
    lines += [_rule("deny", "file-write*", profile.kept)] if profile.kept else []
    if port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{port}"))')
    return "\n".join(lines)


def _rule(effect: str, operation: str, paths: Sequence[Path]) -> str:
    return f"({effect} {operation} {' '.join(f'(subpath {_quoted(path)})' for path in paths)})"


def _quoted(path: Path) -> str:
    return '"' + os.fspath(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
