"""What can answer: providers with a plugin of their own, services that imitate OpenAI, servers nearby.

The tables are small on purpose. Whatever is not in them is reached as a server of one's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPATIBLE = "openai_compatible"
"""The provider that speaks with services and servers."""
EMBEDDED = "local_llama"
"""The provider that needs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Something that can answer, and how it is reached.

    Attributes:
        name: Under which its key is stored and its model declared.
        label: What people call it.
        provider: The plugin that speaks with it.
        base_url: Where it is; empty for the provider's own address.
        variables: Variables of the environment that may hold its key.
        needs_key: Whether it answers nobody without one.
        recommended: Patterns of names of good models, the best family first.
    """

    name: str
    label: str
    provider: str
    base_url: str = ""
    variables: tuple[str, ...] = ()
    needs_key: bool = True
    recommended: tuple[str, ...] = ()


PROVIDERS = (
    Connection(
        name="anthropic",
        label="Anthropic",
        provider="anthropic",
        variables=("ANTHROPIC_API_KEY",),
        recommended=("claude-sonnet-*", "claude-opus-*", "claude-haiku-*"),
    ),
    Connection(
        name="openai_responses",
        label="OpenAI",
        provider="openai_responses",
        variables=("OPENAI_API_KEY",),
        recommended=("gpt-*",),
    ),
    Connection(
        name="gemini",
        label="Google Gemini",
        provider="gemini",
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        recommended=("gemini-*-pro*", "gemini-*-flash*"),
    ),
)
"""Providers with a plugin of their own."""


def _service(name: str, label: str, url: str, variable: str, *recommended: str) -> Connection:
    return Connection(
        name=name,
        label=label,
        provider=COMPATIBLE,
        base_url=url,
        variables=(variable,),
        recommended=recommended,
    )


SERVICES = (
    _service("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    _service("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    _service("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
    _service(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "mistral-large-latest",
        "mistral-medium-latest",
    ),
    _service("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", "grok-*"),
)
"""Services that speak Chat Completions."""


def _server(name: str, label: str, port: int) -> Connection:
    return Connection(
        name=name,
        label=label,
        provider=COMPATIBLE,
        base_url=f"http://127.0.0.1:{port}/v1",
        needs_key=False,
    )


SERVERS = (
    _server("ollama", "Ollama", 11434),
    _server("lmstudio", "LM Studio", 1234),
    _server("llamacpp", "llama.cpp", 8080),
    _server("vllm", "vLLM", 8000),
)
"""Servers that people run on their own machine, where they usually listen."""

KNOWN = (*PROVIDERS, *SERVICES, *SERVERS)


def find_connection(name: str, connections: Iterable[Connection] = KNOWN) -> Connection | None:
    """Return the connection that is meant by its name or the provider's; "openai" is OpenAI's own."""
    from agent_terminal_app.wiring import SHORT_NAMES

    wanted = SHORT_NAMES.get(name, name)
    return next((one for one in connections if one.name == wanted), None)


def own_server(base_url: str, label: str = "") -> Connection:
    """Return the connection to a server at an address, by which it is named as well."""
    import re
    from urllib.parse import urlsplit

    parts = urlsplit(base_url)
    words = re.sub(r"[^a-z0-9]+", "-", parts.netloc.rpartition("@")[2].lower()).strip("-")
    return Connection(
        name=words or "server",
        label=label or parts.netloc,
        provider=COMPATIBLE,
        base_url=base_url,
        needs_key=False,
    )


def installed_connections() -> tuple[Connection, ...]:
    """Return what can be connected with the plugins that are installed, strangers' providers among it."""
    from agent_core.plugin.discovery import find_installed

    there = {one.name: one.plugin for one in find_installed(kinds=["providers"]) if not one.problem}
    known = tuple(one for one in (*PROVIDERS, *SERVICES) if one.provider in there)
    named = {one.name for one in known} | {COMPATIBLE, EMBEDDED}
    others = (_of_plugin(name, plugin) for name, plugin in there.items() if name not in named)
    return (*known, *(one for one in others if one is not None))


def _of_plugin(name: str, plugin: Any) -> Connection | None:
    """Return the connection that a provider offers of which nobody told us; None if it takes no key."""
    variables = tuple(getattr(plugin, "key_variables", ()))
    return Connection(name=name, label=name, provider=name, variables=variables) if variables else None
