"""The Gemini API, of Google and of servers that imitate it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from agent_provider_kit import (
    Cloud,
    Config,
    Dicts,
    HttpProvider,
    JsonObject,
    RequestRefused,
    State,
    Vertex,
    repaired_by_turns,
)
from agent_provider_kit.clouds.vertex import location
from gemini_provider.events import Chunk, decode_chunk
from gemini_provider.failures import failure_of_status
from gemini_provider.messages import to_item, to_messages
from gemini_provider.options import SETTINGS, options, tool_options
from gemini_provider.repair import repair_items, validate_items
from gemini_provider.reply import GenerateReply
from gemini_provider.request import (
    begins_turn,
    compose_encoded,
    demands_signatures,
    is_about_signatures,
    refusing,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import ApiKey, Exchange, HttpResponse, SseEvent


REFUSED_SIGNATURES = "refused_signatures"
"""The key under which the session's metadata reports signatures that the API did not take back."""

_SIGNATURES_REFUSED = "signatures_refused"
_OK = 200
_COUNTED = ("contents", "systemInstruction", "tools", "generationConfig")
_VERSION = re.compile(r"/v\d+((alpha|beta)\d*)?(/|$)")
_GENERATES = "generateContent"
_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "vision", "files", "structured_output"]


class GeminiProvider(HttpProvider):
    """Speaks generateContent: thoughts with signatures, tools, code execution, grounding."""

    name = "gemini"
    default_base_url = "https://generativelanguage.googleapis.com"
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    default_tags = (
        "streaming",
        "tools",
        "parallel_tools",
        "vision",
        "files",
        "reasoning",
        "structured_output",
    )
    tool_schema_formats = ("gemini.function_declaration",)
    clouds: ClassVar[Mapping[str, Cloud]] = {"vertex": Vertex()}
    settings: ClassVar[dict[str, JsonObject]] = SETTINGS

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return the messages of each item, which is nearly always one."""
        return to_messages(native_messages)

    def validate_native(self, native_messages: Dicts) -> list[str]:
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts, memory: State | None = None) -> tuple[Dicts, list[str]]:
        return repaired_by_turns(native_messages, memory, begins_turn, repair_items)

    def endpoint(self, config: Config, *, stream: bool) -> str:
        """Return the address of the model, and of the way to ask it."""
        return f"{_path(config)}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def count_request(self, native_messages: Dicts, state: State) -> tuple[str, JsonObject]:
        """Ask for the tokens of everything that is sent."""
        config = state["config"]
        body = self.request_body(native_messages, state, stream=False)
        if config.get("cloud") != "vertex":
            model = _path(config).removeprefix("/")
            return f"{_path(config)}:countTokens", {"generateContentRequest": {"model": model, **body}}
        return f"{_path(config)}:countTokens", {key: body[key] for key in _COUNTED if key in body}

    def models_endpoint(self) -> str:
        """Return the address of the list of models, all on one page."""
        return "/models?pageSize=1000"

    def read_models(self, body: JsonObject) -> Dicts:
        """Return the models that answer, with ids, names and capability tags."""
        models = [model for model in body.get("models") or [] if isinstance(model, dict)]
        return [read_model(model) for model in models if answers(model)]

    def auth_headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        return {"x-goog-api-key": key.value}

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> JsonObject:
        """Return the body of a request; the address says whether it is streamed."""
        config = state["config"]
        sentinels = _SIGNATURES_REFUSED in state or demands_signatures(config.get("model"))
        system, contents = compose_encoded(native_messages, state.get("memory"), sentinels=sentinels)
        body: JsonObject = {} if system is None else {"systemInstruction": system}
        return {**body, **tool_options(config, state["tools"]), **options(config), "contents": contents}

    def new_reply(self, state: State, exchange: Exchange) -> GenerateReply:
        return GenerateReply(exchange)

    def decode(self, event: SseEvent) -> Chunk | None:
        return decode_chunk(event.data)

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items; what came before is marked if the API refused its signatures."""
        if _SIGNATURES_REFUSED in state:
            native_messages, _places = refusing(native_messages)
        return super().finalize(native_messages, state)

    async def _send(
        self, native_messages: Dicts, state: State, exchange: Exchange, *, stream: bool
    ) -> HttpResponse:
        """Send a request, once more without the signatures that the API does not take back."""
        if not native_messages:
            raise RequestRefused(exchange, "there is no message to send; nothing was sent")
        try:
            return await super()._send(native_messages, state, exchange, stream=stream)
        except RequestRefused as refusal:
            complaint = refusal.provider_message
            lighter, places = refusing(native_messages)
            unsent = not places and demands_signatures(state["config"].get("model"))
            if not is_about_signatures(complaint) or unsent:
                raise
        state[_SIGNATURES_REFUSED] = complaint
        response = await super()._send(lighter, state, exchange, stream=stream)
        report = {"reason": complaint, "native_indices": places}
        patch = state.get("session_metadata_patch") or {}
        state["session_metadata_patch"] = {**patch, REFUSED_SIGNATURES: report}
        return response

    async def _accept(self, response: HttpResponse, exchange: Exchange) -> HttpResponse:
        if response.status == _OK:
            return await super()._accept(response, exchange)
        try:
            body = await response.read()
        except OSError:
            body = b""
        raise failure_of_status(exchange, response.status, response.headers, body)

    def _base_url(self, config: Config) -> str:
        base = super()._base_url(config)
        if config.get("cloud"):
            return base.removesuffix("/v1")
        if _VERSION.search(base):
            return base
        return f"{base}/{config.get('api_version') or SETTINGS['api_version']['default']}"


def _path(config: Config) -> str:
    model = str(config.get("model") or "")
    if config.get("cloud") != "vertex":
        return "/" + quote(model if "/" in model else f"models/{model}", safe="/:@")
    if model.startswith("projects/"):
        return "/v1/" + quote(model, safe="/:@")
    named = model if "/" in model else f"publishers/google/models/{model}"
    return f"{location(config)}/{quote(named, safe='/:@')}"


def answers(model: JsonObject) -> bool:
    """Whether it is a model that answers, and not one for embeddings or the like."""
    methods = model.get("supportedGenerationMethods")
    return not isinstance(methods, list) or _GENERATES in methods


def read_model(model: JsonObject) -> JsonObject:
    """Return a model with all that the server said, and `id`, `context_window`, `tags` in addition."""
    wire_name = str(model.get("name") or "")
    found = {
        "name": model.get("displayName") or wire_name,
        "context_window": model.get("inputTokenLimit"),
        "max_output_tokens": model.get("outputTokenLimit"),
    }
    known = {key: value for key, value in found.items() if value is not None}
    tags = [*_EVERY_MODEL, *(["reasoning"] if model.get("thinking") is True else [])]
    return {**model, "id": wire_name.removeprefix("models/"), **known, "tags": tags}
