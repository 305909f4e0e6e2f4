"""The Gemini API, of Google and of servers that imitate it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from agent_provider_kit import HttpProvider, RequestRefused
from gemini_provider.chunks import Chunk, decode_chunk
from gemini_provider.failures import failure_of_status
from gemini_provider.messages import to_item, to_messages
from gemini_provider.models import answers, read_model
from gemini_provider.options import SETTINGS, options, tool_options
from gemini_provider.repair import repair_items, validate_items
from gemini_provider.reply import GenerateReply
from gemini_provider.sending import compose
from gemini_provider.signatures import demands_signatures, is_about_signatures, refusing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import ApiKey, Exchange, HttpResponse, SseEvent

Dicts = list[dict[str, Any]]
State = dict[str, Any]

REFUSED_SIGNATURES = "refused_signatures"
"""Where the session's metadata tells of signatures that the API did not take back."""

_SIGNATURES_REFUSED = "signatures_refused"
_OK = 200
_VERSION = re.compile(r"/v\d+((alpha|beta)\d*)?(/|$)")


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
    settings: ClassVar[dict[str, dict[str, Any]]] = SETTINGS

    def to_native_messages(self, messages: Dicts) -> Dicts:
        """Return one item per message."""
        return [to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return the messages of each item, which is nearly always one."""
        return to_messages(native_messages)

    def validate_native(self, native_messages: Dicts) -> list[str]:
        """Return what the API would not accept about these items."""
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts) -> tuple[Dicts, list[str]]:
        """Return items that the API accepts, and what had to be changed."""
        return repair_items(native_messages)

    def endpoint(self, config: Mapping[str, Any], *, stream: bool) -> str:
        """Return the address of the model, and of the way to ask it."""
        model = str(config.get("model") or "")
        path = quote(model if "/" in model else f"models/{model}", safe="/:@")
        return f"/{path}:streamGenerateContent?alt=sse" if stream else f"/{path}:generateContent"

    def models_endpoint(self) -> str:
        """Return the address of the list of models, all on one page."""
        return "/models?pageSize=1000"

    def read_models(self, body: dict[str, Any]) -> Dicts:
        """Return the models that answer, with ids, names and capability tags."""
        models = [model for model in body.get("models") or [] if isinstance(model, dict)]
        return [read_model(model) for model in models if answers(model)]

    def auth_headers(self, config: Mapping[str, Any], key: ApiKey) -> dict[str, str]:  # noqa: ARG002
        """Return the key in the API's own header."""
        return {"x-goog-api-key": key.value}

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the body of a request; whether it is streamed is told by the address."""
        config = state["config"]
        sentinels = _SIGNATURES_REFUSED in state or demands_signatures(config.get("model"))
        system, contents = compose(native_messages, sentinels=sentinels)
        body: dict[str, Any] = {} if system is None else {"systemInstruction": system}
        return {**body, **tool_options(config, state["tools"]), **options(config), "contents": contents}

    def new_reply(self, state: State, exchange: Exchange) -> GenerateReply:  # noqa: ARG002
        """Return an empty answer."""
        return GenerateReply(exchange)

    def decode(self, event: SseEvent) -> Chunk | None:
        """Return one chunk of a stream."""
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
        told = {"reason": complaint, "native_indices": places}
        patch = state.get("session_metadata_patch") or {}
        state["session_metadata_patch"] = {**patch, REFUSED_SIGNATURES: told}
        return response

    async def _accept(self, response: HttpResponse, exchange: Exchange) -> HttpResponse:
        if response.status == _OK:
            return await super()._accept(response, exchange)
        try:
            body = await response.read()
        except OSError:
            body = b""
        raise failure_of_status(exchange, response.status, response.headers, body)

    def _base_url(self, config: Mapping[str, Any]) -> str:
        base = super()._base_url(config)
        if _VERSION.search(base):
            return base
        return f"{base}/{config.get('api_version') or SETTINGS['api_version']['default']}"
