"""The sandbox below the rules: what confines programs that a model starts.

::

    profile      what a command may do, from settings and from what is on the disk
    machine      the sandbox that this machine has; commands are put into it
    bubblewrap   Linux: namespaces
    landlock     Linux where namespaces are switched off: Landlock and seccomp
    seatbelt     macOS
    network      a proxy that lets allowed hosts through
    limits       processes, memory, files
    denials      what was refused, in words
"""

from agent_plugin_kit.sandbox.denials import explain
from agent_plugin_kit.sandbox.machine import Confined, NoSandbox, Sandbox, describe, find_way
from agent_plugin_kit.sandbox.network import Host
from agent_plugin_kit.sandbox.profile import (
    MODES,
    SANDBOX_SCHEMA,
    Mode,
    Profile,
    SandboxSettings,
    is_on_everywhere,
    is_secret_file,
)

__all__ = [
    "MODES",
    "SANDBOX_SCHEMA",
    "Confined",
    "Host",
    "Mode",
    "NoSandbox",
    "Profile",
    "Sandbox",
    "SandboxSettings",
    "describe",
    "explain",
    "find_way",
    "is_on_everywhere",
    "is_secret_file",
]
