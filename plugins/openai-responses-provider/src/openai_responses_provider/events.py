"""The events of a stream: how they are decoded, and what their ends, token counts and errors mean.

An event that brings a piece of text is decoded quickly, any other completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_provider_kit import Dicts, JsonObject, decode_object, failure_in_reply, make_usage
from openai_responses_provider.client_tools import waiting_calls
from openai_responses_provider.items import is_message

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, ProviderFailure, SseEvent, Usage

_MEANINGLESS = (b"", b"[DONE]")
_INCOMPLETE: dict[str, Ending] = {"max_output_tokens": "length", "content_filter": "filtered"}
# What a response repeats of the request, or what has a place of its own.
_KEPT_ELSEWHERE = frozenset(
    {
        "id",
        "object",
        "output",
        "model",
        "status",
        "error",
        "incomplete_details",
        "usage",
        "instructions",
        "tools",
        "tool_choice",
    }
    | {"text", "temperature", "top_p", "top_logprobs", "reasoning"}
    | {"truncation", "max_output_tokens", "max_tool_calls", "store", "background"}
    | {"parallel_tool_calls", "previous_response_id", "prompt", "user", "safety_identifier"}
    | {"prompt_cache_key", "prompt_cache_retention", "frequency_penalty", "presence_penalty"}
)


class Piece(msgspec.Struct, gc=False):
    """More of a text; whatever else such an event holds comes again when the item is complete."""

    type: Literal[
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    ]
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0


StreamEvent = Piece | JsonObject

_piece = msgspec.json.Decoder(Piece)


def decode_event(event: SseEvent) -> StreamEvent | None:
    """Return what the event says; None for one that says nothing.

    Raises:
        ValueError: If it is not a JSON object.
    """
    name = event.event
    if not name or name.endswith(b".delta"):
        try:
            return _piece.decode(event.data)
        except msgspec.MsgspecError:
            pass
    return _decode_full(event.data.strip(), name)


def _decode_full(data: bytes, name: bytes) -> JsonObject | None:
    if data in _MEANINGLESS:
        return None
    decoded = decode_object(data)
    # Servers that imitate the API may give the type only as the event's name.
    return decoded if "type" in decoded or not name else {"type": name.decode("utf-8", "replace"), **decoded}


def finish_reason(response: JsonObject) -> str | None:
    """Return the provider's own word for the end: its status, or why it is incomplete."""
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason or response.get("status")


def ending_of(response: JsonObject, items: Dicts) -> Ending | None:
    """Return how an answer ended; None if that was not said."""
    if response.get("status") == "incomplete":
        return _INCOMPLETE.get(str(finish_reason(response)), "length")
    if response.get("status") != "completed":
        return None
    if waiting_calls(items):
        return "tool_calls"
    return "refusal" if any(map(refusal_in, items)) else "complete"


def refusal_in(item: JsonObject) -> str:
    """Return why the model will not, if the item says so."""
    content = item.get("content") if is_message(item) else None
    if not isinstance(content, list):
        return ""
    return "".join(part["refusal"] for part in content if isinstance(part.get("refusal"), str))


def read_usage(usage: Any) -> Usage:
    """Return the token counts in the common shape."""
    if not isinstance(usage, dict):
        return make_usage()
    sent, made = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return make_usage(
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        total_tokens=usage.get("total_tokens"),
        cached_input_tokens=sent.get("cached_tokens"),
        cache_write_tokens=sent.get("cache_write_tokens"),
        reasoning_tokens=made.get("reasoning_tokens"),
    )


def rest_of(response: JsonObject) -> JsonObject:
    """Return what else the provider said about its answer."""
    return {
        key: value
        for key, value in response.items()
        if key not in _KEPT_ELSEWHERE and value is not None and value != {}
    }


def failure_in(exchange: Exchange, event: JsonObject) -> ProviderFailure:
    """Return the failure that an error event or a failed response means; its status was a good one."""
    return failure_in_reply(exchange, event.get("error") or event)
