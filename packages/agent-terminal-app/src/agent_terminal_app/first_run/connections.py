"""What can answer: providers with their own plugin, services that imitate OpenAI, servers on this machine.

The tables are small on purpose: anything else is reached as the user's own server, by its URL.

What of it is there is found without delay: keys in the environment and stored keys are looked up, and
servers are asked all at once, on this machine alone; one that does not answer within a fifth of a second is
not there.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_app.defaults import SHORT_NAMES
from agent_terminal_app import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_terminal_app.keys import KeyStore

COMPATIBLE = "openai_compatible"
"""The provider that speaks with services and servers."""
EMBEDDED = "local_llama"
"""The provider of the embedded model, which needs no key and no network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Something that can answer, and how it is reached.

    Attributes:
        name: Under which its key is stored and its model declared.
        label: What users call it.
        provider: The plugin that speaks with it.
        base_url: Where it is; empty for the provider's own address.
        variables: Variables of the environment that may hold its key.
        needs_key: Whether it refuses requests without one.
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
"""Servers that users run on their own machine, at their usual ports."""

KNOWN = (*PROVIDERS, *SERVICES, *SERVERS)


def find_connection(name: str, connections: Iterable[Connection] = KNOWN) -> Connection | None:
    """Return the connection that is meant by its name or the provider's; "openai" is OpenAI's own."""
    wanted = SHORT_NAMES.get(name, name)
    return next((one for one in connections if one.name == wanted), None)


def own_server(base_url: str, label: str = "") -> Connection:
    """Return the connection to a server at an address, by which it is named as well."""
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
    """Return what can be connected with the installed plugins, also providers that are not in the tables."""
    there = {one.name: one.plugin for one in lazy.find_installed(kinds=["providers"]) if not one.problem}
    known = tuple(one for one in (*PROVIDERS, *SERVICES) if one.provider in there)
    named = {one.name for one in known} | {COMPATIBLE, EMBEDDED}
    others = (_of_plugin(name, plugin) for name, plugin in there.items() if name not in named)
    return (*known, *(one for one in others if one is not None))


def _of_plugin(name: str, plugin: Any) -> Connection | None:
    """Return the connection of a provider that is not in the tables; None if it takes no key."""
    variables = tuple(getattr(plugin, "key_variables", ()))
    return Connection(name=name, label=name, provider=name, variables=variables) if variables else None


PATIENCE = 0.2
"""How many seconds a server has to accept and answer."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""What this machine is called."""
_LONGEST_HEAD = 8_192
_WORDS_OF_A_STATUS = 2


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be connected as it is.

    Attributes:
        connection: What it is.
        key: Where its key is, as settings refer to it; empty if it needs none.
        seen: What was found, in a few words.
    """

    connection: Connection
    key: str
    seen: str


def keys_in_environment(
    environment: Mapping[str, str] | None = None, connections: Iterable[Connection] = KNOWN
) -> list[Found]:
    """Return what can be connected with a key that the environment has."""
    variables = os.environ if environment is None else environment
    found = []
    for connection in connections:
        name = next((one for one in connection.variables if variables.get(one, "").strip()), None)
        if name is not None:
            found.append(Found(connection, f"env:{name}", f"{name} found in the environment"))
    return found


def keys_in_store(store: KeyStore, connections: Iterable[Connection] = KNOWN) -> list[Found]:
    """Return what can be connected with a key that is stored.

    Raises:
        CommandError: If the stored keys cannot be read.
    """
    names = set(store.names())
    return [
        Found(one, f"stored:{one.name}", f"a key of {one.label} is stored")
        for one in connections
        if one.name in names
    ]


async def servers_nearby(servers: Sequence[Connection] = SERVERS, patience: float = PATIENCE) -> list[Found]:
    """Return the servers that listen on this machine, in the order of the table."""
    answers = await asyncio.gather(*(_is_an_api(one.base_url, patience) for one in servers))
    return [
        Found(one, "", f"{one.label} answers on {urlsplit(one.base_url).netloc}")
        for one, there in zip(servers, answers, strict=True)
        if there
    ]


async def _is_an_api(base_url: str, patience: float) -> bool:
    """Ask for the list of models, and look only at how the answer begins."""
    parts = urlsplit(base_url)
    if parts.hostname not in LOOPBACK:
        return False
    question = f"GET {parts.path}/models HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=_LONGEST_HEAD)
            try:
                writer.write(question.encode("ascii"))
                head = await reader.readuntil(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return False
    return is_answer_of_an_api(head)


def is_answer_of_an_api(head: bytes) -> bool:
    """Say whether an answer may be that of an API: web pages and files are served on these ports, too."""
    first, _, headers = head.lower().partition(b"\r\n")
    words = first.split(b" ")
    if not words[0].startswith(b"http/1.") or len(words) < _WORDS_OF_A_STATUS:
        return False
    return words[1] in (b"401", b"403") or (words[1] == b"200" and b"json" in headers)
