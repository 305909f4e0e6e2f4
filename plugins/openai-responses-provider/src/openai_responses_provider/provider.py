"""The Responses API, of OpenAI and of servers that imitate it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from agent_provider_kit import Config, Dicts, HttpProvider, JsonObject, RequestRefused, State
from openai_responses_provider.events import StreamEvent, decode_event
from openai_responses_provider.messages import to_items, to_messages
from openai_responses_provider.options import SETTINGS, included, options, tool_options, wants_encrypted
from openai_responses_provider.refusals import Concessions, concede, remember, report
from openai_responses_provider.repair import repair_items, validate_items
from openai_responses_provider.reply import ResponsesReply
from openai_responses_provider.request import compose

if TYPE_CHECKING:
    from agent_provider_kit import ApiKey, Exchange, HttpResponse, SseEvent


DROPPED_REASONING = "dropped_reasoning"
"""The key under which the session's metadata reports reasoning that had to be left out."""
_CONCESSIONS = "openai_responses.concessions"
_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "structured_output", "prompt_cache"]
_THINKS = re.compile(r"o\d|gpt-([5-9]|\d\d)|gpt-oss|codex|computer-use")
_SEES = re.compile(r"o1$|o1-2|o1-pro|o3(?!-mini)|o4|gpt-4o|gpt-4\.|gpt-4-turbo|gpt-([5-9]|\d\d)|computer-use")
_FREEFORM = re.compile(r"gpt-([5-9]|\d\d)")


class OpenAIResponsesProvider(HttpProvider):
    """Speaks the Responses API: reasoning without server state, function, custom and built-in tools."""

    name = "openai_responses"
    default_base_url = "https://api.openai.com/v1"
    key_variables = ("OPENAI_API_KEY",)
    default_tags = (
        "streaming",
        "tools",
        "parallel_tools",
        "freeform_tools",
        "vision",
        "reasoning",
        "structured_output",
        "prompt_cache",
    )
    tool_schema_formats = ("openai.responses.function", "openai.responses.custom")
    settings: ClassVar[dict[str, JsonObject]] = SETTINGS

    def to_native_messages(self, messages: Dicts) -> Dicts:
        """Return the items of each message."""
        return [item for message in messages for item in to_items(message)]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return one message for all items of a turn."""
        return to_messages(native_messages)

    def validate_native(self, native_messages: Dicts) -> list[str]:
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts) -> tuple[Dicts, list[str]]:
        return repair_items(native_messages)

    def endpoint(self, config: Config, *, stream: bool) -> str:
        return "/responses"

    def read_models(self, body: JsonObject) -> Dicts:
        """Return the models, with capability tags where their names are known."""
        return [read_model(model) for model in super().read_models(body)]

    def auth_headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        """Return the key as a bearer token."""
        return {"Authorization": f"Bearer {key.value}"}

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> JsonObject:
        config = state["config"]
        made: Concessions = state.get(_CONCESSIONS) or Concessions()
        body: JsonObject = {"model": config.get("model"), **options(config)}
        body |= compose(native_messages, config, made.reasoning, omit_ids=made.omit_ids)
        body |= tool_options(config, state["tools"])
        include = included(config, encrypted=made.encrypted and wants_encrypted(config))
        if include:
            body["include"] = include
        if stream:
            body["stream"] = True
        return {key: value for key, value in body.items() if value is not None}

    def new_reply(self, state: State, exchange: Exchange) -> ResponsesReply:
        return ResponsesReply(exchange)

    def decode(self, event: SseEvent) -> StreamEvent | None:
        return decode_event(event)

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items; reasoning that the API refused knows it from now on."""
        made: Concessions = state.get(_CONCESSIONS) or Concessions()
        return super().finalize(remember(native_messages, made, state["config"].get("model")), state)

    async def _send(
        self, native_messages: Dicts, state: State, exchange: Exchange, *, stream: bool
    ) -> HttpResponse:
        """Send a request; again without what the API refuses of earlier answers, as long as that helps."""
        made = Concessions()
        while True:
            state[_CONCESSIONS] = made
            try:
                response = await super()._send(native_messages, state, exchange, stream=stream)
            except RequestRefused as refusal:
                model = state["config"].get("model")
                less = concede(made, native_messages, model, refusal.provider_message)
                if less is None:
                    raise
                made = less
            else:
                self._tell(state, made)
                return response

    def _tell(self, state: State, made: Concessions) -> None:
        if made.reasoning:
            patch = state.get("session_metadata_patch") or {}
            state["session_metadata_patch"] = {**patch, DROPPED_REASONING: report(made)}


def read_model(model: JsonObject) -> JsonObject:
    """Return a model with all that the server said, and capability tags if its name is a known one."""
    name = str(model.get("id"))
    signs = {"reasoning": _THINKS, "vision": _SEES, "freeform_tools": _FREEFORM}
    tags = [tag for tag, known in signs.items() if known.match(name)]
    if not tags:
        return dict(model)
    return {**model, "tags": [*_EVERY_MODEL, *tags]}
