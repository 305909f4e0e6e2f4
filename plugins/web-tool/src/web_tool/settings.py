"""The settings of reading the web."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.settings import read_settings, setting, settings_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Network = IPv4Network | IPv6Network

VERSION = "0.1.0"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXT_TYPES = (
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
)
_MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PrivateHosts:
    """What may be called although it is not on the public internet."""

    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def read(cls, texts: Sequence[str]) -> PrivateHosts:
        networks, hosts = list[Network](), list[str]()
        for text in texts:
            try:
                networks.append(ip_network(text.strip("[]"), strict=False))
            except ValueError:
                if "/" in text:
                    raise ValueError(f"has {text!r}, which is neither a network nor a host") from None
                hosts.append(_host_pattern(text))
        return cls(tuple(networks), tuple(hosts))


def _host_pattern(text: str) -> str:
    """Return a pattern as hosts are spelled: in lower case, other letters in punycode."""
    labels = [label if label.isascii() else label.encode("idna").decode() for label in text.split(".")]
    return ".".join(labels).lower().removesuffix(".")


def _host_patterns(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_host_pattern, texts))


def _lower(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(str.lower, texts))


def _header(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be a text in one line, without control characters")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration; in a configuration they begin with `web_`."""

    allow_hosts: tuple[str, ...] = setting(
        (),
        "Only hosts that fit one of these patterns, such as *.python.org; all if empty.",
        key="web_allow_hosts",
        convert=_host_patterns,
    )
    deny_hosts: tuple[str, ...] = setting(
        (),
        "Never hosts that fit one of these patterns, whatever else allows them.",
        key="web_deny_hosts",
        convert=_host_patterns,
    )
    private: PrivateHosts = setting(
        (),
        "Networks (10.0.0.0/8), addresses and host patterns that may be called, on any port,"
        " although they are not on the public internet.",
        key="web_allow_private",
        reads=tuple[str, ...],
        convert=PrivateHosts.read,
    )
    ports: frozenset[int] = setting(
        (80, 443, 8080, 8443),
        "The ports of public hosts that may be called; all if empty.",
        key="web_ports",
        reads=tuple[int, ...],
        convert=frozenset,
        at_least=1,
        at_most=65_535,
    )
    content_types: tuple[str, ...] = setting(
        (*_TEXT_TYPES, *IMAGE_TYPES),
        "The media types that are read. Of others the model reads only type and size.",
        key="web_content_types",
        convert=_lower,
    )
    max_bytes: int = setting(
        5_000_000,
        "So much of a page is read at most, counted after unpacking.",
        key="web_max_bytes",
        at_least=1,
        at_most=_MOST,
    )
    max_image_bytes: int = setting(
        1_000_000,
        "A picture up to this size is shown to the model; 0 for none.",
        key="web_max_image_bytes",
        at_least=0,
        at_most=_MOST,
    )
    max_characters: int = setting(
        40_000,
        "So much text is returned by one call; the model can ask for more.",
        key="web_max_characters",
        at_least=100,
        at_most=_MOST,
    )
    timeout: float = setting(30, "Seconds for the whole of a call.", key="web_timeout", above=0, at_most=600)
    idle_timeout: float = setting(
        10,
        "Seconds to wait for a connection, and for the next bytes.",
        key="web_idle_timeout",
        above=0,
        at_most=600,
    )
    max_redirects: int = setting(
        5,
        "How many redirects within one host are followed.",
        key="web_max_redirects",
        at_least=0,
        at_most=20,
    )
    user_agent: str = setting(
        f"keelwork-web-tool/{VERSION} (reads pages for an AI agent)",
        "How the tool introduces itself to servers.",
        key="web_user_agent",
        convert=_header,
    )
    use_proxy: bool = setting(
        default=False,
        description="Whether to use the proxy that HTTP_PROXY and HTTPS_PROXY name. It looks up names"
        " itself, so it has to keep private addresses out.",
        key="web_use_proxy",
    )

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        return read_settings(cls, config)

    def allows_host(self, host: str) -> bool:
        """Say whether the lists of hosts let a host pass."""
        return (not self.allow_hosts or fits(host, self.allow_hosts)) and not fits(host, self.deny_hosts)

    def reads(self, media_type: str) -> bool:
        """Say whether a media type is among those that are read."""
        return fits(media_type, self.content_types)


SCHEMA = settings_schema(Settings)


def fits(text: str, patterns: tuple[str, ...]) -> bool:
    """Say whether *text* fits one of the patterns, in which * stands for anything."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)
