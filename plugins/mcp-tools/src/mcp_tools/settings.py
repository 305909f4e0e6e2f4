"""What the configuration says about servers, read and checked.

The values that a server is given by name, its variables or its headers, are part of what a person approves,
so they are shown and pinned: a reference as it is written, a text as it is, and a secret that stands there
as itself by its digest, so that it is neither shown nor kept. Of our own environment a server gets next to
nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from agent_core import ConfigError
from agent_core.encoding import canonical
from agent_core.frozen import thaw
from agent_core.json_schema import first_misfit
from agent_plugin_kit.credentials import is_reference
from agent_plugin_kit.sandbox import SANDBOX_SCHEMA, SandboxSettings
from agent_plugin_kit.secrets import begins_like_key


class Lost(Exception):  # says what happened
    """There is no connection, or none any more; the text says why."""


FROM_ENVIRONMENT: Final = "env:"
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:(?:api)?key|token|secret|pass|passwd|password|passphrase|pwd|pw|credentials?|auth|"
    r"authorization|cookie|session|webhook)$|(?:apikey|token|secret|password|passphrase)$",
    re.IGNORECASE,
)
# What these say decides which code a program loads: a person must see it, whatever it looks like.
_STEERING_NAME: Final = re.compile(r"(?:PATH|OPTIONS|ARGS|ENV|HOME)$|^(?:LD|DYLD|PYTHON|PERL|RUBY|BASH)")
_HARMLESS_START: Final = ("/", "~", ".", "-")


def approved_values(given: Mapping[str, Any], *, hidden: bool = False) -> dict[str, Any]:
    """Return what a person is shown of values, and what is pinned of them.

    Args:
        hidden: Whether every text that stands there as itself is a secret.
    """
    return {name: _approved(name, given[name], hidden=hidden) for name in sorted(given)}


def filled_in(own: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the values themselves, with those that are `env:NAME` taken from our environment.

    Raises:
        Lost: If one is not there.
    """
    return {name: _value(own, name, value) for name, value in given.items()}


def _approved(name: str, value: Any, *, hidden: bool) -> Any:
    if isinstance(value, Mapping):
        return value["reference"]
    if value.startswith(FROM_ENVIRONMENT) or is_reference(value) or not (hidden or _is_secret(name, value)):
        return value
    # No text can pass for this: a value that is shown is never a table.
    return {"hidden": f"{len(value)} characters", "sha256": sha256(canonical([name, value])).hexdigest()}


def _is_secret(name: str, value: str) -> bool:
    """Say whether a text opens doors, as far as can be known; a path or an option never does."""
    if not value or value.startswith(_HARMLESS_START) or any(one.isspace() for one in value):
        return False
    if _SECRET_NAME.search(name):
        return True
    return begins_like_key(value) and not _STEERING_NAME.search(name)


def _value(own: Mapping[str, str], name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        if value["value"] is None:
            raise Lost(f"{name} must be {value['reference']}, and there is no such key")
        return str(value["value"])
    if not value.startswith(FROM_ENVIRONMENT):
        return str(value)
    source = value.removeprefix(FROM_ENVIRONMENT)
    if source not in own:
        raise Lost(f"{name} must be the environment variable {source}, which is not set")
    return own[source]


USUAL: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP",
    "USERNAME", "USERPROFILE",
)  # fmt: skip
"""The variables that every program needs; none of them is a secret."""


def server_environment(own: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a server: the usual variables and those that were declared.

    Raises:
        Lost: If a variable that it must have is missing.
    """
    return {**{name: own[name] for name in USUAL if name in own}, **filled_in(own, given)}


SECTION: Final = "mcp_tools"
SERVERS: Final = "servers"
PINS: Final = "pins"
TIMEOUT, START_TIMEOUT = 60.0, 30.0

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_LOOKED_UP: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reference", "value"],
    "properties": {"reference": {"type": "string", "minLength": 1}, "value": {"type": ["string", "null"]}},
}
_PAIRS: Final = {"type": "object", "additionalProperties": {"anyOf": [_TEXT, _LOOKED_UP]}}
_SECONDS: Final = {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400}

# A server's name ends at the first two underscores of a tool's name, so it has none of its own.
SERVER_NAME: Final = "^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$"

_OF_SERVER: Final = {
    key: {name: value for name, value in SANDBOX_SCHEMA[key].items() if name != "default"}
    for key in ("sandbox", "sandbox_hosts", "sandbox_write", "sandbox_show")
}
"""What a server may say about its own sandbox; what it does not say, the settings for all say."""

_SERVER: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "oneOf": [{"required": ["command"]}, {"required": ["url"]}],
    "dependentSchemas": {
        "url": {
            "properties": {"args": False, "env": False, "cwd": False, **dict.fromkeys(_OF_SERVER, False)}
        },
        "command": {"properties": {"headers": False}},
    },
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The program of a local server."},
        "args": {**_TEXTS, "description": "Its arguments."},
        "env": {**_PAIRS, "description": "More variables; `env:NAME` takes one of yours."},
        "cwd": {**_TEXT, "description": "The folder it runs in; by default the home folder."},
        "url": {"type": "string", "pattern": "^https?://[^\\s]+$", "description": "A server elsewhere."},
        "headers": {
            **_PAIRS,
            "description": "Headers of each request; `env:NAME` takes a variable, `oauth:NAME` a login.",
        },
        "enabled": {"type": "boolean", "default": True},
        "timeout": {**_SECONDS, "default": TIMEOUT, "description": "Seconds that a call has."},
        "start_timeout": {**_SECONDS, "default": START_TIMEOUT, "description": "Seconds to get ready in."},
        "tools": {**_TEXTS, "description": "Patterns of the tools that count, by the server's names."},
        "parallel": {"type": "boolean", "default": False, "description": "Whether calls run side by side."},
        **_OF_SERVER,
    },
}

SCHEMA: Final[dict[str, Any]] = {
    SERVERS: {
        "type": "object",
        "propertyNames": {"pattern": SERVER_NAME, "maxLength": 32},
        "additionalProperties": _SERVER,
        "default": {},
        "description": "The servers by name: a command to start, or the address of one that runs.",
    },
    PINS: {
        "type": "string",
        "minLength": 1,
        "description": "The file with your approvals; by default agent/mcp-pins.json in the user's "
        "state directory.",
    },
    **SANDBOX_SCHEMA,
}
SECTION_SCHEMA: Final = {"type": "object", "additionalProperties": False, "properties": SCHEMA}


@dataclass(frozen=True, eq=False)
class Server:
    """One server as it is declared.

    Attributes:
        declared: The declaration itself, complete with what it leaves out.
    """

    name: str
    declared: Mapping[str, Any]

    @classmethod
    def read(cls, name: str, given: Mapping[str, Any], of_all: Mapping[str, Any] | None = None) -> Server:
        """Return a server from its declaration, which fits the schema.

        Args:
            of_all: The settings of the sandbox for all servers.

        Raises:
            ConfigError: If a setting cannot be used.
        """
        usual = {key: one["default"] for key, one in _SERVER["properties"].items() if "default" in one}
        declared = {**usual, **thaw(given)}
        if "command" in declared:
            folder = Path(declared.get("cwd") or "~").expanduser()
            if not folder.is_absolute():
                raise ConfigError(f"the cwd of MCP server {name!r} must be an absolute path", field=SERVERS)
            declared["cwd"] = str(folder)
            own = {key: declared[key] for key in _OF_SERVER if key in declared}
            declared["confined"] = {**(of_all or {}), **own}
            SandboxSettings.read(declared["confined"])
        return cls(name, declared)

    @property
    def sandbox(self) -> SandboxSettings:
        """What confines it."""
        return SandboxSettings.read(self.declared["confined"])

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Server) and self.identity == other.identity

    @cached_property
    def identity(self) -> bytes:
        """All of the declaration, to compare."""
        return canonical([self.name, self.declared])

    @cached_property
    def launch(self) -> dict[str, Any]:
        """What a person approves: what would be started or asked, without secrets."""
        if "url" in self.declared:
            headers = approved_values(self.declared.get("headers", {}), hidden=True)
            return {"url": self.declared["url"], "headers": headers}
        return {
            "command": self.declared["command"],
            "args": list(self.declared.get("args", ())),
            "env": approved_values(self.declared.get("env", {})),
            "cwd": self.declared["cwd"],
            "sandbox": self._shown_sandbox(),
        }

    def _shown_sandbox(self) -> dict[str, Any]:
        """Return what a person approves of the sandbox: all that makes it looser than it could be."""
        settings = self.sandbox
        if settings.mode == "off":
            return {"mode": "off"}
        looser = {"hosts": settings.hosts, "write": map(str, settings.write), "show": settings.show}
        return {"mode": settings.mode, **{name: list(values) for name, values in looser.items()}}

    @property
    def launch_digest(self) -> str:
        """A digest of the launch."""
        return sha256(canonical(self.launch)).hexdigest()

    @property
    def timeout(self) -> float:
        """Seconds that a call has."""
        return float(self.declared["timeout"])

    @property
    def start_timeout(self) -> float:
        """Seconds that it has to get ready."""
        return float(self.declared["start_timeout"])

    @property
    def tools(self) -> tuple[str, ...]:
        """Patterns of the tools that count."""
        return tuple(self.declared.get("tools", ("*",)))

    @property
    def parallel(self) -> bool:
        """Whether its calls may run in parallel."""
        return bool(self.declared["parallel"])


@dataclass(frozen=True)
class Settings:
    """The settings of one agent: the servers that are on, and the file of approvals."""

    servers: tuple[Server, ...]
    pins: Path

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        given = {key: thaw(config[key]) for key in SCHEMA if config.get(key) is not None}
        _check(given)
        pins = Path(given[PINS]).expanduser() if PINS in given else state_folder() / "mcp-pins.json"
        # With their defaults, which a request's configuration has and an agent's section need not have.
        usual = {key: one["default"] for key, one in SANDBOX_SCHEMA.items() if one.get("default") is not None}
        sandbox = usual | {key: given[key] for key in SANDBOX_SCHEMA if key in given}
        servers = [Server.read(name, one, sandbox) for name, one in given.get(SERVERS, {}).items()]
        on = tuple(server for server in servers if server.declared["enabled"])
        return cls(on, Path(os.path.abspath(pins)))  # noqa: PTH100 - without following links

    def server(self, name: str) -> Server | None:
        """Return the server of that name, if it is declared and on."""
        return next((server for server in self.servers if server.name == name), None)


def state_folder() -> Path:
    """Return where the agent keeps what outlives it (the XDG Base Directory Specification)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return home / "agent"


def _check(given: dict[str, Any]) -> None:
    problem = first_misfit(SECTION_SCHEMA, given)
    if problem is not None:
        path = ".".join(str(part) for part in problem.instance_path)
        raise ConfigError(f"{path or SECTION}: {problem.message:.300}", field=path.partition(".")[0] or None)
