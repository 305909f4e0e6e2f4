"""Chat Completions, of OpenAI and of the many servers that imitate it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_provider_kit import (
    AZURE_SETTINGS,
    Azure,
    Cloud,
    Config,
    Dicts,
    HttpProvider,
    JsonObject,
    RequestRefused,
    State,
    read_effort,
    read_output_schema,
    read_parallel,
    read_tool_choice,
)
from agent_provider_kit.chat import (
    THOUGHTS,
    ChatReply,
    Chunk,
    compose_encoded,
    decode_chunk,
    refused_fields,
    remember_refused,
    repair_items,
    to_item,
    to_message,
    validate_items,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import ApiKey, Exchange, HttpResponse, SseEvent, ToolChoice

DROPPED_FIELDS = "dropped_fields"
"""The key under which a session's metadata reports fields of earlier answers that the server refused."""
_REFUSED = "openai_compatible.refused_fields"


_BODY_SETTINGS: dict[str, JsonObject] = {
    "temperature": {"type": "number"},
    "top_p": {"type": "number"},
    "max_tokens": {"type": "integer"},
    "max_completion_tokens": {"type": "integer"},
    "stop": {"type": "array"},
    "seed": {"type": "integer"},
    "presence_penalty": {"type": "number"},
    "frequency_penalty": {"type": "number"},
    "response_format": {"type": "object", "description": "As the API takes it; wins over output_schema."},
    "parallel_tool_calls": {"type": "boolean", "description": "False for one tool call at a time."},
    "service_tier": {"type": "string"},
    "prompt_cache_key": {"type": "string"},
    "user": {"type": "string"},
    "modalities": {"type": "array", "description": 'What to answer with: ["text", "audio"] for speech.'},
    "audio": {"type": "object", "description": "The voice and the format of a spoken answer."},
    "n": {"type": "integer", "description": "How many answers to give; the first is the message."},
}


class OpenAICompatibleProvider(HttpProvider):
    """Speaks Chat Completions with OpenAI, Ollama, LM Studio, llama.cpp, vLLM, OpenRouter and others."""

    name = "openai_compatible"
    one_item_per_message = True
    default_base_url = "https://api.openai.com/v1"
    key_variables = ("OPENAI_API_KEY",)
    default_tags = ("streaming", "tools", "parallel_tools", "vision", "structured_output", "prompt_cache")
    tool_schema_formats = ("openai.chat.function", "openai.chat.custom")
    clouds: ClassVar[Mapping[str, Cloud]] = {"azure": Azure()}
    settings: ClassVar[dict[str, JsonObject]] = {
        **_BODY_SETTINGS,
        **AZURE_SETTINGS,
        "stream_usage": {
            "type": "boolean",
            "default": True,
            "description": "Ask for token counts in streams.",
        },
        "send_reasoning": {"type": "boolean", "default": True, "description": "Send earlier reasoning back."},
    }

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [to_message(item) for item in native_messages]

    def validate_native(self, native_messages: Dicts) -> list[str]:
        """Return what a server would not accept about these items."""
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts, memory: State | None = None) -> tuple[Dicts, list[str]]:
        """Return items that a server accepts, and what had to be changed."""
        return repair_items(native_messages, memory)

    def endpoint(self, config: Config, *, stream: bool) -> str:
        return "/chat/completions"

    def auth_headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        """Return the key as a bearer token."""
        return {"Authorization": f"Bearer {key.value}"}

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> JsonObject:
        config = state["config"]
        body: JsonObject = {"messages": self._sent(native_messages, state)}
        body |= {key: config[key] for key in ("model", *_BODY_SETTINGS) if config.get(key) is not None}
        body = {**_answer_fields(config, state["tools"]), **body}
        if state["tools"]:
            body["tools"] = state["tools"]
        if stream:
            body["stream"] = True
            if config.get("stream_usage", True):
                body["stream_options"] = {"include_usage": True}
        return body

    def new_reply(self, state: State, exchange: Exchange) -> ChatReply:
        config = state.get("config") or {}
        audio = config.get("audio") or {}
        return ChatReply(exchange, audio_format=audio.get("format"), choices=config.get("n") or 1)

    def decode(self, event: SseEvent) -> Chunk | None:
        return decode_chunk(event.data)

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items; fields that the server refused are not sent to it any more."""
        if state.get(_REFUSED):
            native_messages, _places = remember_refused(native_messages, state[_REFUSED])
        return super().finalize(native_messages, state)

    def _sent(self, native_messages: Dicts, state: State) -> object:
        config = state["config"]
        server = self._exchange_of(state, "request_body").server
        left_out = {*(state.get(_REFUSED) or ()), *(() if config.get("send_reasoning", True) else THOUGHTS)}
        return compose_encoded(native_messages, server, left_out, state.get("memory"))

    async def _send(
        self, native_messages: Dicts, state: State, exchange: Exchange, *, stream: bool
    ) -> HttpResponse:
        """Send a request; again without fields of earlier answers that the server complains about."""
        complaints: list[str] = []
        while True:
            before: frozenset[str] = state.get(_REFUSED) or frozenset()
            try:
                response = await super()._send(native_messages, state, exchange, stream=stream)
            except RequestRefused as refusal:
                complaints.append(refusal.provider_message)
                more = refused_fields(native_messages, exchange.server, complaints[-1], before)
                if not more:
                    raise
                state[_REFUSED] = before | more
            else:
                if before:
                    self._report(native_messages, state, complaints)
                return response

    def _report(self, native_messages: Dicts, state: State, complaints: list[str]) -> None:
        _items, places = remember_refused(native_messages, state[_REFUSED])
        report = {"reason": complaints[-1], "fields": sorted(state[_REFUSED]), "native_indices": places}
        patch = state.get("session_metadata_patch") or {}
        state["session_metadata_patch"] = {**patch, DROPPED_FIELDS: report}


def _answer_fields(config: Config, tools: Dicts) -> JsonObject:
    """Return the settings about the answer in the API's words."""
    fields: JsonObject = {}
    if (effort := read_effort(config)) is not None:
        fields["reasoning_effort"] = effort
    read_parallel(config)  # sent as it is, if it can be
    if (choice := read_tool_choice(config)) is not None:
        fields["tool_choice"] = _tool_choice(choice, tools)
    if (output := read_output_schema(config)) is not None:
        named = {"name": output.name, "schema": output.schema, "strict": output.strict}
        described = {"description": output.description} if output.description else {}
        fields["response_format"] = {"type": "json_schema", "json_schema": {**named, **described}}
    return fields


def _tool_choice(choice: ToolChoice, tools: Dicts) -> Any:
    if choice.mode == "native":
        return choice.native
    if choice.mode != "tool":
        return choice.mode
    custom = any((tool.get("custom") or {}).get("name") == choice.name for tool in tools)
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": choice.name}}
