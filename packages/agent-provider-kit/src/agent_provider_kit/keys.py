"""API keys that know where they came from, and never show themselves; secrets kept out of errors and logs.

What a secret looks like is known in `agent_plugin_kit.secrets`. Here is which settings may carry one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from agent_plugin_kit.credentials import NoCredential, is_reference, look_up
from agent_plugin_kit.secrets import is_secret_field, secret_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_provider_kit.wire import Config

NOWHERE = "nowhere"
"""The origin of a key that is not there; behind a colon it may say why."""
MASK = "[secret]"
_SHORTEST = 6  # anything shorter would blacken ordinary words
_MAY_CARRY_SECRETS = (
    "extra_headers", "extra_query", "extra_body", "mcp_servers", "server_tools", "builtin_tools",
)  # fmt: skip


class ApiKey(NamedTuple):
    """A key and its origin, for example ``config['api_key']`` or ``environment OPENAI_API_KEY``."""

    value: str
    origin: str

    @property
    def reason(self) -> str:
        """Why there is no key, as far as whoever looked for it said so."""
        return "" if self.value or self.origin == NOWHERE else self.origin.removeprefix(f"{NOWHERE}: ")

    def __repr__(self) -> str:
        return f"ApiKey(from {self.origin})"

    def __str__(self) -> str:
        return repr(self)


def find_key(config: Config, *variables: str) -> ApiKey:
    """Return the configured key, or the first that the environment has; an empty one if there is none."""
    configured = config.get("api_key")
    if configured is not None:
        value = str(configured).strip()
        if is_reference(value):  # a login, whose token changes from request to request
            try:
                return ApiKey(look_up(value), f"the login {value}")
            except NoCredential as error:
                return ApiKey("", f"{NOWHERE}: {error}")
        usual = "config['api_key']" if value else NOWHERE
        return ApiKey(value, str(config.get("api_key_origin") or usual))
    for variable in variables:
        value = os.environ.get(variable, "").strip()  # a file's last newline often comes along
        if value:
            return ApiKey(value, f"environment {variable}")
    return ApiKey("", NOWHERE)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with each of the secret values masked, longest first."""
    for secret in sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def secrets_in(config: Config) -> tuple[str, ...]:
    """Return what else is secret in a configuration besides the key, wherever a setting carries it along.

    Tokens in headers, in the address, in more fields of the body, and those for MCP servers.
    """
    address = str(config.get("base_url") or "")
    password = urlsplit(address if "//" in address else f"//{address}").password
    carried = [value for name in _MAY_CARRY_SECRETS for value in secret_values(config.get(name))]
    return tuple(dict.fromkeys([*carried, *([password] if password else [])]))


def brings_its_own_key(config: Config) -> bool:
    """Say whether a header or a parameter of the configuration proves who asks, so that no key is needed."""
    given = (*(config.get("extra_headers") or ()), *(config.get("extra_query") or ()))
    return any(map(is_secret_field, given))
