"""A real model without a key: small, in this process, and honest about it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent_core import ConfigError
from agent_provider_kit import (
    ANSWER_SETTINGS,
    ApiKey,
    Dicts,
    Exchange,
    JsonObject,
    RequestRefused,
    State,
    read_effort,
    read_output_schema,
    read_tool_choice,
)
from agent_provider_kit.chat import ChatReply, repair_items, to_item, to_message, validate_items
from local_llama_provider.engine import ENGINES, EngineSettings
from local_llama_provider.tool_choice import answer_format, as_spoken, form, instructions, read_answer
from local_llama_provider.weights import FILE_NAME, find_weights

if TYPE_CHECKING:
    from collections.abc import Iterator


DEMO_MODEL = "smollm2-135m-instruct"
_EXCHANGE = Exchange("local_llama", "stream_api", "local://this-process", ApiKey("", "nowhere"))
_MEANINGLESS = frozenset({"response_id", "response_fields", "server"})
_SYSTEM = "You are a helpful assistant. Answer briefly, in the language of the question."
_DEFAULTS = {"temperature": 0.0, "repeat_penalty": 1.05, "max_tokens": 1024}
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "repeat_penalty",
    "cache_prompt",
    "max_tokens",
)


class LocalLlamaProvider:
    """Runs a GGUF model with llama.cpp in this process; without settings, a small demo model."""

    name = "local_llama"
    version = "0.1.0"
    accepts_unlisted_models = True
    tool_schema_formats = ("openai.chat.function",)

    def __init__(self) -> None:
        self._stops: dict[str, threading.Event] = {}

    def get_config_schema(self) -> JsonObject:
        """Return the configuration keys."""
        return {
            "model_path": {"type": "string", "description": "A GGUF file of your own."},
            "context_size": {"type": "integer", "default": 8192, "description": "Tokens that fit in."},
            "threads": {"type": "integer", "default": 1, "description": "CPU threads to use."},
            "max_tokens": {"type": "integer", "default": 1024, "description": "Longest answer."},
            "temperature": {"type": "number", "default": 0.0, "description": "Higher is more surprising."},
            "seed": {"type": "integer", "description": "Makes sampling repeatable."},
            **ANSWER_SETTINGS,
        }

    def get_models(self, config: JsonObject) -> Dicts:
        """Return the one model that the configuration means."""
        known = {"tags": self.get_tags(config), "context_window": config.get("context_size") or 8192}
        if config.get("model_path"):
            return [{"id": config.get("model") or "local", "name": str(config["model_path"]), **known}]
        note = "A small demo model that runs on this computer. It chats, and it is often wrong."
        about = {"name": "SmolLM2 135M (demo model)", "description": note, "demo": True, **known}
        return [{"id": DEMO_MODEL, **about}]

    def get_tags(self, config: JsonObject) -> list[str]:
        """Say what a local model can do; a demo model says so."""
        known = ["streaming", "tools", "structured_output", "local"]
        return known if config.get("model_path") else [*known, "demo_model"]

    def init(self, config: JsonObject) -> State:
        return {
            "config": config,
            "tools": _chosen(config),
            "reply": ChatReply(_EXCHANGE),
            "stopped": threading.Event(),
        }

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [to_message(item) for item in native_messages]

    def validate_native(self, native_messages: Dicts) -> list[str]:
        """Return what is wrong with a history."""
        return validate_items(native_messages)

    def repair_native(self, native_messages: Dicts) -> tuple[Dicts, list[str]]:
        """Return a history without orphaned calls and results, and what was changed."""
        return repair_items(native_messages)

    def stream_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> Iterator[JsonObject]:
        """Yield the answer chunk by chunk; the first time, say that the model is being loaded."""
        settings = _settings(state["config"])
        if not ENGINES.is_loaded(settings):
            yield {"status": f"Loading {settings.path.name} ..."}
        engine = ENGINES.get(settings)
        if request_id is not None:
            self._stops[request_id] = state["stopped"]
        try:
            yield from engine.stream(request_body(native_messages, state), state["stopped"])
        except (ValueError, RuntimeError) as error:
            raise RequestRefused(
                _EXCHANGE, "the embedded model refused", provider_message=str(error)
            ) from error
        finally:
            self._stops.pop(request_id or "", None)

    def process_chunk(
        self, chunk: JsonObject, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Add one chunk to the reply; while tools are on, text is kept back until it can be read."""
        if "status" in chunk:
            return (
                [{"role": "assistant", "content": "", "status": chunk["status"]}],
                [],
                native_messages,
                state,
            )
        shown = state["reply"].add(chunk)
        return ([] if state["tools"] else shown), [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the answer, a tool call read out of it if there is one."""
        items = [_own(item, state["config"]) for item in state["reply"].items()]
        if items and state["tools"]:
            items = [_with_call(items[0], f"call_{len(native_messages)}")]
        return items, [*native_messages, *items], state

    def cancel_request(self, request_id: str) -> None:
        """Stop a request at its next token."""
        stopped = self._stops.get(request_id)
        if stopped is not None:
            stopped.set()


def _chosen(config: JsonObject) -> Dicts:
    """Return the tools that `tool_choice` leaves.

    Raises:
        ConfigError: If it names a tool that there is not, or is in the form of another API.
    """
    tools, choice = list(config.get("tools") or ()), read_tool_choice(config)
    if choice is None or choice.mode in ("auto", "required"):
        return tools
    if choice.mode == "none":
        return []
    named = [tool for tool in tools if tool["function"]["name"] == choice.name]
    if not named and tools:
        raise ConfigError(
            f"tool_choice: there is no tool {choice.name or choice.native!r}; "
            'use "auto", "none", "required" or {"name": …} with the name of a tool',
            field="tool_choice",
        )
    return named


def _offered(native_messages: Dicts, state: State) -> Dicts:
    """The demo model would call the same tool again and again: after a result it is asked for its answer."""
    answered = bool(native_messages) and native_messages[-1]["role"] == "tool"
    return [] if answered and not state["config"].get("model_path") else state["tools"]


def _settings(config: JsonObject) -> EngineSettings:
    return EngineSettings(
        find_weights(config), config.get("context_size") or 8192, config.get("threads") or 1
    )


def request_body(native_messages: Dicts, state: State) -> JsonObject:
    """Return what the engine is asked, as Chat Completions has it."""
    config, tools = state["config"], state["tools"]
    body: JsonObject = {**_DEFAULTS, "stream_options": {"include_usage": True}}
    body |= {key: config[key] for key in _SAMPLING if config.get(key) is not None}
    spoken = [as_spoken(item) for item in native_messages]
    if not any(item["role"] == "system" for item in spoken):
        # Without any instruction so small a model loses itself.
        spoken = [{"role": "system", "content": _SYSTEM}, *spoken]
    output, choice = read_output_schema(config), read_tool_choice(config)
    if (effort := read_effort(config)) is not None:
        body["chat_template_kwargs"] = {"enable_thinking": effort != "none", "reasoning_effort": effort}
    if tools:
        tools = _offered(native_messages, state)
        must_call = choice is not None and choice.mode in ("required", "tool")
        body["response_format"] = answer_format(tools, answer=output and output.schema, must_call=must_call)
        spoken = [{"role": "system", "content": instructions(tools)}, *spoken]
    elif output is not None:
        body["response_format"] = form(output.schema)
    return {**body, "messages": spoken}


def _own(item: JsonObject, config: JsonObject) -> JsonObject:
    """Return the engine's item under the model's name; its own id and timings mean nothing to anybody."""
    about = {key: value for key, value in item["_metadata"].items() if key not in _MEANINGLESS}
    return {**item, "_metadata": {**about, "model": _model_name(config)}}


def _with_call(item: JsonObject, call_id: str) -> JsonObject:
    text, call = read_answer(item.get("content") or "")
    if call is None:
        return {**item, "content": text}
    about = {**item["_metadata"], "ending": "tool_calls"}
    return {**item, "content": None, "tool_calls": [{"id": call_id, **call}], "_metadata": about}


def _model_name(config: JsonObject) -> str:
    return config.get("model") or (DEMO_MODEL if not config.get("model_path") else FILE_NAME)
