"""`/cost`, `/context`: what was used, and what the next request would send."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_terminal_app.chat.answering import who_answers
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.words import count, one_line

if TYPE_CHECKING:
    from agent_terminal_app.chat.sending import Part

_GROUP = "What answers"


@command("cost", "say what was used", group=_GROUP)
async def cost(talk: Talk, _rest: str) -> None:
    """Say what the last request sent, and what this session has used in all, by model.

    Tokens are as the providers counted them. Money is known only for models that are declared with prices.
    """
    from agent_terminal_app.chat.usage import used_by_model

    talk.line(f"last request: {talk.conversation.context:,} tokens")
    session_id = talk.conversation.session_id
    used = {} if session_id is None else await asyncio.to_thread(used_by_model, talk.app, session_id)
    for model, usage in used.items():
        spent = f" · {usage.cost:.4f} spent" if usage.cost else ""
        talk.line(
            f"{one_line(model)}: {count(usage.requests, 'request')}, {usage.input_tokens:,} tokens in "
            f"({usage.cached_input_tokens:,} cached), {usage.output_tokens:,} out{spent}"
        )
    total = sum(usage.total_tokens for usage in used.values())
    money = sum(usage.cost for usage in used.values())
    talk.line(f"this session: {total:,} tokens" + (f" · {money:.4f} spent" if money else ""))


@command("context", "say what the next request would send", group=_GROUP)
async def context(talk: Talk, _rest: str) -> None:
    """Say what the next request would send, with the tokens of each part, and what is left of the window.

    The counts are estimates; /cost has what the provider counted.
    """
    from agent_terminal_app.chat.sending import parts_sent

    who = await who_answers(talk.conversation)
    parts = await asyncio.to_thread(parts_sent, who.agent, who.model, who.session)
    total = sum(part.tokens for part in parts)
    for part in parts:
        talk.row(f"  {part.what:<28}", _share(part, total))
    windows = talk.conversation.windows
    window = await asyncio.to_thread(windows.find, who.agent.spec.id, who.model.id)
    left = "the window of the model is not known" if window is None else f"{total / window:.0%} of {window:,}"
    talk.row(f"  {'in all':<28}", f"~{total:,} tokens, {left}")


def _share(part: Part, total: int) -> str:
    return f"~{part.tokens:,} tokens ({part.tokens / total:.0%})" if total else "~0 tokens"
