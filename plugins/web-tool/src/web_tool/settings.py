"""What the configuration says about reading the web, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Network = IPv4Network | IPv6Network

VERSION = "0.1.0"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_GLOBS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_MOST = 1_000_000_000

_PRIVATE = "web_allow_private"

SCHEMA: dict[str, Any] = {
    "web_allow_hosts": {
        **_GLOBS,
        "default": [],
        "description": "Only hosts that fit one of these patterns, such as *.python.org; all if empty.",
    },
    "web_deny_hosts": {
        **_GLOBS,
        "default": [],
        "description": "Never hosts that fit one of these patterns, whatever else allows them.",
    },
    _PRIVATE: {
        **_GLOBS,
        "default": [],
        "description": "Networks (10.0.0.0/8), addresses and host patterns that may be called, on any port,"
        " although they are not on the public internet.",
    },
    "web_ports": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 65_535},
        "default": [80, 443, 8080, 8443],
        "description": "The ports of public hosts that may be called; all if empty.",
    },
    "web_content_types": {
        **_GLOBS,
        "default": [
            "text/*",
            "application/json",
            "application/*+json",
            "application/x-ndjson",
            "application/xml",
            "application/*+xml",
            "application/javascript",
            "application/yaml",
            "application/toml",
            "image/svg+xml",
            *IMAGE_TYPES,
        ],
        "description": "What is read. Of anything else the model is told type and size.",
    },
    "web_max_bytes": {
        "type": "integer",
        "minimum": 1,
        "maximum": _MOST,
        "default": 5_000_000,
        "description": "So much of a page is read at most, counted after unpacking.",
    },
    "web_max_image_bytes": {
        "type": "integer",
        "minimum": 0,
        "maximum": _MOST,
        "default": 1_000_000,
        "description": "A picture up to this size is shown to the model; 0 for none.",
    },
    "web_max_characters": {
        "type": "integer",
        "minimum": 100,
        "maximum": _MOST,
        "default": 40_000,
        "description": "So much text is returned by one call; the model can ask for more.",
    },
    "web_timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 600,
        "default": 30,
        "description": "Seconds for the whole of a call.",
    },
    "web_idle_timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 600,
        "default": 10,
        "description": "Seconds to wait for a connection, and for the next bytes.",
    },
    "web_max_redirects": {
        "type": "integer",
        "minimum": 0,
        "maximum": 20,
        "default": 5,
        "description": "How many redirects within one host are followed.",
    },
    "web_user_agent": {
        "type": "string",
        "minLength": 1,
        "default": f"agent-platform-web-tool/{VERSION} (reads pages for an AI agent)",
        "description": "How the tool introduces itself to servers.",
    },
    "web_use_proxy": {
        "type": "boolean",
        "default": False,
        "description": "Whether to use the proxy that HTTP_PROXY and HTTPS_PROXY name. It looks up names"
        " itself, so it has to keep private addresses out.",
    },
}
_PREFIX = "web_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration; the fields are those of `SCHEMA` without their prefix.

    Attributes:
        private_networks: The networks of `web_allow_private`.
        private_hosts: Its host patterns.
    """

    allow_hosts: tuple[str, ...]
    deny_hosts: tuple[str, ...]
    private_networks: tuple[Network, ...]
    private_hosts: tuple[str, ...]
    ports: frozenset[int]
    content_types: tuple[str, ...]
    max_bytes: int
    max_image_bytes: int
    max_characters: int
    timeout: float
    idle_timeout: float
    max_redirects: int
    user_agent: str
    use_proxy: bool

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one does not fit; `field` names it.
        """
        values = {key: _read(key, config.get(key)) for key in SCHEMA}
        networks, hosts = _networks_and_hosts(values.pop(_PRIVATE))
        named = {key.removeprefix(_PREFIX): value for key, value in values.items()}
        for field in ("allow_hosts", "deny_hosts"):
            named[field] = tuple(map(_host_pattern, named[field]))
        named["ports"] = frozenset(named["ports"])
        named["content_types"] = tuple(map(str.lower, named["content_types"]))
        return cls(**named, private_networks=networks, private_hosts=hosts)

    def allows_host(self, host: str) -> bool:
        """Say whether the lists of hosts let a host pass."""
        return (not self.allow_hosts or fits(host, self.allow_hosts)) and not fits(host, self.deny_hosts)

    def reads(self, media_type: str) -> bool:
        """Say whether a media type is among those that are read."""
        return fits(media_type, self.content_types)


def fits(text: str, patterns: tuple[str, ...]) -> bool:
    """Say whether *text* fits one of the patterns, in which * stands for anything."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _read(key: str, value: Any) -> Any:
    rule = SCHEMA[key]
    if value is None:
        return rule["default"]
    problem = _problem(rule, value)
    if problem is not None:
        raise ConfigError(f"config[{key!r}] {problem}, not {value!r:.80}", field=key)
    return value


def _problem(rule: Mapping[str, Any], value: Any) -> str | None:
    """Return what is wrong with a value, in words that fit behind its name."""
    kind = rule["type"]
    if kind == "array":
        wanted = "whole numbers" if rule["items"]["type"] == "integer" else "texts"
        bad = not isinstance(value, (list, tuple)) or any(_problem(rule["items"], item) for item in value)
        return f"must be a list of {wanted} that fit" if bad else None
    if kind == "boolean":
        return None if isinstance(value, bool) else "must be true or false"
    if kind == "string":
        return None if isinstance(value, str) and value.isprintable() and value else "must be a text"
    whole = (int,) if kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, whole) or not _in_range(rule, value):
        least, most = rule.get("minimum", rule.get("exclusiveMinimum")), rule["maximum"]
        return f"must be {'a whole' if kind == 'integer' else 'a'} number from {least} to {most}"
    return None


def _in_range(rule: Mapping[str, Any], value: float) -> bool:
    above = value > rule["exclusiveMinimum"] if "exclusiveMinimum" in rule else value >= rule["minimum"]
    return bool(above and value <= rule["maximum"])


def _host_pattern(text: str) -> str:
    """Return a pattern as hosts are spelled: in lower case, other letters in punycode."""
    labels = [label if label.isascii() else label.encode("idna").decode() for label in text.split(".")]
    return ".".join(labels).lower().removesuffix(".")


def _networks_and_hosts(values: Sequence[str]) -> tuple[tuple[Network, ...], tuple[str, ...]]:
    networks, hosts = list[Network](), list[str]()
    for value in values:
        try:
            networks.append(ip_network(value.strip("[]"), strict=False))
        except ValueError:
            if "/" in value:
                problem = f"config[{_PRIVATE!r}] has {value!r}, which is neither a network nor a host"
                raise ConfigError(problem, field=_PRIVATE) from None
            hosts.append(_host_pattern(value))
    return tuple(networks), tuple(hosts)
