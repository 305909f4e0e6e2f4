"""How an answer ended, in words that mean the same for every provider."""

from __future__ import annotations

from typing import Literal

Ending = Literal["complete", "length", "tool_calls", "refusal", "filtered", "paused"]
"""`complete`, cut by the `length` limit, waiting for `tool_calls`, a `refusal` of the model, `filtered`
by the provider, or `paused` by it to be continued. Anything else is not an ending but an error: see
`agent_provider_kit.failures`."""
