"""API keys that know where they came from, and never show themselves; secrets kept out of errors and logs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_provider_kit.wire import Config

NOWHERE = "nowhere"
"""The origin of a key that is not there; behind a colon it may say why."""
MASK = "[secret]"
_SHORTEST = 6  # anything shorter would blacken ordinary words
SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"}
)


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


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers for showing, the secret ones masked."""
    return {name: MASK if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}
