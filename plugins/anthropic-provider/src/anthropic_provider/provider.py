"""The Messages API, of Anthropic and of servers that imitate it."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

import orjson

from agent_provider_kit import (
    Bedrock,
    Cloud,
    Config,
    Dicts,
    EncodedJson,
    HttpProvider,
    JsonObject,
    RequestRefused,
    State,
    Vertex,
    encode_body,
    last_turn,
)
from agent_provider_kit.clouds.vertex import location
from anthropic_provider.events import StreamEvent, decode_event
from anthropic_provider.messages import begins_turn, to_item, to_messages
from anthropic_provider.options import SETTINGS, options, tool_options
from anthropic_provider.refusals import (
    is_about_system_role,
    is_about_thinking,
    refused_blocks,
    wants_the_error,
    without_blocks,
)
from anthropic_provider.repair import repair_new_items, validate_items
from anthropic_provider.reply import MessageReply
from anthropic_provider.request import (
    Encoded,
    compose,
    encode_turns,
    takes_system_role,
    with_marks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import ApiKey, Exchange, HttpResponse, SseEvent


DROPPED_THINKING = "dropped_thinking"
"""The key under which a session's metadata and a request's state report thinking that was left out."""
_NO_SYSTEM_ROLE = "anthropic.no_system_role"
_TAGS = {
    "image_input": "vision",
    "pdf_input": "files",
    "thinking": "reasoning",
    "structured_outputs": "structured_output",
    "code_execution": "code_execution",
    "citations": "citations",
}
_COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking", "output_config")
_CLOUD_VERSIONS = {"vertex": "vertex-2023-10-16", "bedrock": "bedrock-2023-05-31"}
_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "prompt_cache"]


class AnthropicProvider(HttpProvider):
    """Speaks the Messages API: thinking, tools, server tools, prompt caching."""

    name = "anthropic"
    default_base_url = "https://api.anthropic.com"
    key_variables = ("ANTHROPIC_API_KEY",)
    default_tags = ("streaming", "tools", "parallel_tools", "vision", "reasoning", "prompt_cache")
    tool_schema_formats = ("anthropic.tool",)
    clouds: ClassVar[Mapping[str, Cloud]] = {"vertex": Vertex(), "bedrock": Bedrock()}
    settings: ClassVar[dict[str, JsonObject]] = SETTINGS

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return the messages of each item, which is nearly always one."""
        return [message for item in native_messages for message in to_messages(item)]

    def validate_native(self, native_messages: Dicts) -> list[str]:
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts, memory: State | None = None) -> tuple[Dicts, list[str]]:
        return repair_new_items(native_messages, memory)

    def endpoint(self, config: Config, *, stream: bool) -> str:
        """Return the address of the API; the clouds have the model in it."""
        model = quote(str(config.get("model") or ""), safe=":@")
        if config.get("cloud") == "vertex":
            return f"{_models(config)}/{model}:{'streamRawPredict' if stream else 'rawPredict'}"
        if config.get("cloud") == "bedrock":
            return f"/model/{model}/{'invoke-with-response-stream' if stream else 'invoke'}"
        return "/v1/messages"

    def count_request(self, native_messages: Dicts, state: State) -> tuple[str, JsonObject]:
        """Ask for the tokens of everything that is sent."""
        config = state["config"]
        if config.get("cloud") == "bedrock":
            encoded = b64encode(encode_body(self.request_body(native_messages, state, stream=False)))
            model = quote(str(config.get("model") or ""), safe=":@")
            return f"/model/{model}/count-tokens", {"input": {"invokeModel": {"body": encoded.decode()}}}
        whole = self._plain_body(native_messages, state)
        body = {key: whole[key] for key in _COUNTED if key in whole}
        if config.get("cloud") == "vertex":
            return f"{_models(config)}/count-tokens:rawPredict", body
        return "/v1/messages/count_tokens", body

    def models_endpoint(self) -> str:
        """Return the address of the list of models, all on one page."""
        return "/v1/models?limit=1000"

    def read_models(self, body: JsonObject) -> Dicts:
        """Return the models with names and capability tags."""
        return [read_model(model) for model in super().read_models(body)]

    def auth_headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        return {"x-api-key": key.value}

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> JsonObject:
        config = state["config"]
        body = self._plain_body(native_messages, state)
        if config.get("cloud"):
            body = {"anthropic_version": _CLOUD_VERSIONS[config["cloud"]], **body}
            del body["model"]
        if config.get("cloud") == "bedrock":
            return {**body, **({"anthropic_beta": list(config["betas"])} if config.get("betas") else {})}
        return {**body, "stream": True} if stream else body

    def _plain_body(self, native_messages: Dicts, state: State) -> JsonObject:
        config = state["config"]
        system_role, memory = self._system_role(state), state.get("memory")
        start, before = 0, None
        if memory is not None and (start := last_turn(native_messages, begins_turn)):
            before = encode_turns(native_messages, start, memory, system_role=system_role)
        system, messages = compose(native_messages[start:], system_role=system_role)
        body: JsonObject = {"model": config.get("model"), **options(config)}
        if before is not None:
            system = before.system
        if system is not None:
            body["system"] = system
        body |= {**tool_options(config, state["tools"]), "messages": messages}
        if config.get("cache"):
            body = with_marks(body, config["cache"], 0 if before is None else before.marks)
        if before is not None:
            rest = Encoded(None, orjson.dumps(body["messages"])[1:-1], 0)
            body["messages"] = EncodedJson(b"[" + before.joined(rest).messages + b"]")
        return body

    def new_reply(self, state: State, exchange: Exchange) -> MessageReply:
        return MessageReply(exchange)

    def decode(self, event: SseEvent) -> StreamEvent | None:
        return decode_event(event)

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items; thinking that the API refused is put aside in what came before."""
        if DROPPED_THINKING in state:
            native_messages = without_blocks(native_messages, *state[DROPPED_THINKING])
        return super().finalize(native_messages, state)

    async def _send(
        self, native_messages: Dicts, state: State, exchange: Exchange, *, stream: bool
    ) -> HttpResponse:
        """Send a request, once more without what the API refuses of earlier turns."""
        if not native_messages:
            raise RequestRefused(exchange, "there is no message to send; nothing was sent")
        try:
            return await super()._send(native_messages, state, exchange, stream=stream)
        except RequestRefused as refusal:
            complaint = refusal.provider_message
            system_role = self._system_role(state)
            if system_role and is_about_system_role(complaint):
                state[_NO_SYSTEM_ROLE] = True
                return await self._send(native_messages, state, exchange, stream=stream)
            if not is_about_thinking(complaint) or wants_the_error(state["config"]):
                raise
            refused = refused_blocks(native_messages, complaint, system_role=system_role)
            if not refused:
                raise
        lighter = without_blocks(native_messages, refused, complaint)
        response = await super()._send(lighter, state, exchange, stream=stream)
        self._report_dropped(state, refused, complaint)
        return response

    def _system_role(self, state: State) -> bool:
        """Say whether a system message may stand in the middle; the clouds do not take it there."""
        config = state["config"]
        alone = not config.get("cloud") and not state.get(_NO_SYSTEM_ROLE)
        return alone and takes_system_role(config.get("model"))

    def _report_dropped(self, state: State, refused: list[tuple[int, int]], complaint: str) -> None:
        state[DROPPED_THINKING] = (refused, complaint)
        report = {
            "reason": complaint,
            "blocks": len(refused),
            "native_indices": sorted({index for index, _number in refused}),
        }
        patch = state.get("session_metadata_patch") or {}
        state["session_metadata_patch"] = {**patch, DROPPED_THINKING: report}

    def _headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        betas = "" if config.get("cloud") == "bedrock" else ",".join(config.get("betas") or ())
        return {
            "anthropic-version": config.get("api_version") or SETTINGS["api_version"]["default"],
            **({"anthropic-beta": betas} if betas else {}),
            **super()._headers(config, key),
        }

    def _base_url(self, config: Config) -> str:
        return super()._base_url(config).removesuffix("/v1")


def _models(config: Config) -> str:
    return f"{location(config)}/publishers/anthropic/models"


def read_model(model: JsonObject) -> JsonObject:
    """Return a model with all that the server said, and `name`, `context_window`, `tags` in addition."""
    found = {"name": model.get("display_name"), "context_window": model.get("max_input_tokens")}
    known = {key: value for key, value in found.items() if value is not None}
    capabilities = model.get("capabilities")
    if isinstance(capabilities, dict):
        known["tags"] = [*_EVERY_MODEL, *(tag for name, tag in _TAGS.items() if _has(capabilities, name))]
    return {**model, **known}


def _has(capabilities: JsonObject, name: str) -> bool:
    capability = capabilities.get(name)
    return isinstance(capability, dict) and capability.get("supported") is True
