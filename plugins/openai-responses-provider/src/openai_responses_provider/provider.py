"""The Responses API, of OpenAI and of servers that imitate it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from agent_provider_kit import (
    AZURE_SETTINGS,
    Azure,
    Cloud,
    Config,
    Dicts,
    HttpProvider,
    JsonObject,
    ProviderFailure,
    RequestRefused,
    State,
)
from openai_responses_provider.events import StreamEvent, decode_event
from openai_responses_provider.messages import to_items, to_messages
from openai_responses_provider.options import SETTINGS, included, options, tool_options, wants_encrypted
from openai_responses_provider.refusals import Concessions, concede, remember, report
from openai_responses_provider.repair import validate_items
from openai_responses_provider.reply import ResponsesReply
from openai_responses_provider.request import compose_encoded, repair_new_items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import ApiKey, Ask, Exchange, HttpResponse, SseEvent


BACKGROUND_RESPONSE = "background_response"
"""The key under which the session's metadata has the id and the status of an answer that was not ready."""
_WAITING = ("queued", "in_progress")
_MOST_FAILURES = 5
_LONGEST_PAUSE = 15.0
_PAUSE_GROWS = 1.5
DROPPED_REASONING = "dropped_reasoning"
"""The key under which the session's metadata reports reasoning that had to be left out."""
_COUNTED = (
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text",
    "truncation",
)  # fmt: skip
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
    clouds: ClassVar[Mapping[str, Cloud]] = {"azure": Azure()}
    settings: ClassVar[dict[str, JsonObject]] = {**SETTINGS, **AZURE_SETTINGS}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        """Return the items of each message."""
        return [item for message in messages for item in to_items(message)]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return one message for all items of a turn."""
        return to_messages(native_messages)

    def validate_native(self, native_messages: Dicts) -> list[str]:
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts, memory: State | None = None) -> tuple[Dicts, list[str]]:
        return repair_new_items(native_messages, memory)

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
        body |= compose_encoded(
            native_messages, config, state.get("memory"), made.reasoning, omit_ids=made.omit_ids
        )
        body |= tool_options(config, state["tools"])
        include = included(config, encrypted=made.encrypted and wants_encrypted(config))
        if include:
            body["include"] = include
        if stream:
            body["stream"] = True
        return {key: value for key, value in body.items() if value is not None}

    def count_request(self, native_messages: Dicts, state: State) -> tuple[str, JsonObject]:
        """Ask for the tokens of the input."""
        body = self.request_body(native_messages, state, stream=False)
        return "/responses/input_tokens", {key: body[key] for key in _COUNTED if key in body}

    async def follow(self, state: State, body: JsonObject | None, ask: Ask) -> JsonObject | None:
        """Look up an answer that is not ready, until it is; its id is kept in the session until then."""
        found = state["reply"].response if body is None else body
        response_id = found.get("id")
        # A stream that breaks off is lost with its connection, unless the provider works without one.
        stays = body is not None or found.get("background") or found.get("status") == "queued"
        if not response_id or not stays or found.get("status") not in _WAITING:
            return None
        pause = float(state["config"].get("poll_seconds") or SETTINGS["poll_seconds"]["default"])
        failures = 0
        while found.get("status") in _WAITING:
            self._note(state, {"id": response_id, "status": found["status"]})
            try:
                found = await ask(f"/responses/{quote(str(response_id), safe='')}", pause)
                failures = 0
            except ProviderFailure as failure:
                failures += 1
                if not failure.retryable or failures == _MOST_FAILURES:
                    failure.add_note(
                        f"The answer {response_id} may be ready later: it was {found['status']}."
                    )
                    failure.response_id = response_id
                    raise
            pause = min(pause * _PAUSE_GROWS, max(_LONGEST_PAUSE, pause))
        self._note(state, {"id": response_id, "status": found.get("status")})
        return found

    def _note(self, state: State, known: JsonObject) -> None:
        patch = state.get("session_metadata_patch") or {}
        state["session_metadata_patch"] = {**patch, BACKGROUND_RESPONSE: known}

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
