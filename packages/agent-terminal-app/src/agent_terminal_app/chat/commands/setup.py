"""`/setup`: connect a model without leaving the chat."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from agent_terminal_app.chat.commands.models import use_model
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.opening import open_quietly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_terminal_app.opening import Opened

_CHOICE = "Number or name (Enter: 1; Esc leaves it)"


@command("setup", "connect a model", group="The program", idle=True)
async def setup(talk: Talk, _rest: str) -> None:
    """Connect a model: a provider, a server of your own, or the embedded one.

    What is there already is found: keys in the environment, stored keys, servers on this machine. It counts
    for every later start, and for this session from your next message on.
    """
    from agent_terminal_app.first_run.dialogue import set_up

    opened = await asyncio.to_thread(open_quietly)
    outcome = await set_up(ChatAsk(talk), opened)
    if outcome.changed:
        await asyncio.to_thread(_declare, talk, opened.again(), outcome.model)
        await use_model(talk, outcome.model)


class ChatAsk:
    """Asks through the prompt of the chat, as dialogues of the first run want to be asked."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Show a list and read a number, or a part of a name."""
        from agent_terminal_app.first_run.asking import choose_by_typing

        return await choose_by_typing(title, options, tell=self.tell, read=partial(self.line, _CHOICE))

    async def secret(self, prompt: str) -> str | None:
        """Read a key, which is neither shown nor kept among what was typed."""
        return await self._talk.ask(prompt.rstrip(), hidden=True)

    async def line(self, prompt: str) -> str | None:
        """Read a line."""
        return await self._talk.ask(prompt.rstrip())

    def tell(self, text: str) -> None:
        """Show lines."""
        for line in text.splitlines():
            self._talk.line(line)


def _declare(talk: Talk, opened: Opened, name: str) -> None:
    """Make a model known to the application that runs: it was written into the settings just now."""
    from agent_runtime import ModelSpec
    from agent_terminal_app.key_lookup import KeyLookup, with_keys
    from agent_terminal_app.keys import KeyStore
    from agent_terminal_app.wiring import application_config, read_model

    config = with_keys(application_config(opened.settings), KeyLookup(KeyStore(opened.paths)))
    model = ModelSpec.from_dict({**config["models"].get(name, read_model(name)), "id": name})
    talk.app.runtime.registries.models.replace(name, model)
