"""One run as spans, made of its events.

::

    invoke_agent desk
      step 1
        chat gpt-5                      the request to the model, from the question to its last token
        execute_tool orders
          invoke_agent helper           a delegate, wherever it runs: the trace context is handed down
      step 2
        chat gpt-5
      handoff refunds
        invoke_agent refunds            the agent that goes on

The names are those of the GenAI semantic conventions; what these have no name for begins with "agent.".
"""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.context import attach, detach, get_current
from opentelemetry.trace import SpanKind, Status, StatusCode

from traces_feature.content import finish_reason, shown_answer, shown_messages, shown_text, shown_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

    from agent_core.events import Event
    from agent_runtime import RunScope


class Instruments:
    """Where the figures go."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long an answer or a tool took."
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk", "s", "How long until the first piece of an answer."
        )
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of an answer.")
        self._runs = meter.create_histogram("agent.run.duration", "s", "How long a run took.")

    def answered(
        self, provider: str, model: str, used: Mapping[str, Any], seconds: float, first: float | None
    ) -> None:
        """Note an answer of a model."""
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        self._duration.record(seconds, about)
        if first is not None:
            self._first.record(first, about)
        self._tokens.record(used.get("input_tokens", 0), {**about, "gen_ai.token.type": "input"})
        self._tokens.record(used.get("output_tokens", 0), {**about, "gen_ai.token.type": "output"})

    def ran(self, tool: str, seconds: float, *, failed: bool) -> None:
        """Note a call of a tool."""
        about: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        self._duration.record(seconds, {**about, "error.type": "_OTHER"} if failed else about)

    def ended(self, agent: str, reason: str, seconds: float) -> None:
        """Note the end of a run."""
        self._runs.record(seconds, {"gen_ai.agent.name": agent, "agent.run.reason": reason})


_PROVIDERS = {
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "openai": "openai",
    "openai_compatible": "openai",
    "openai_responses": "openai",
}
_COUNTS = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}


class _Active:
    """Makes a span the active one while a block runs."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, *_error: object) -> None:
        detach(self._token)


class RunSpans:
    """The spans of one run.

    Args:
        content: Whether what is said, called and returned is recorded.
    """

    pieces = False

    def __init__(self, scope: RunScope, tracer: Tracer, instruments: Instruments, *, content: bool) -> None:
        self._scope = scope
        self._tracer = tracer
        self._instruments = instruments
        self._content = content
        self._base: Context | None = None
        self._run: Span | None = None
        self._step: Span | None = None
        self._chat: Span | None = None
        self._answered: tuple[Span, int] | None = None
        self._below_run: Context | None = None
        self._below_step: Context | None = None
        self._below_chat: Context | None = None
        self._tools: dict[str, Span] = {}
        self._tools_lock = threading.Lock()
        self._asked_at = 0.0
        self._first_at: float | None = None
        self._began = monotonic()
        self._model, self._model_id = scope.model_name, ""
        self._provider = _PROVIDERS.get(scope.provider, scope.provider)

    def see(self, event: Event) -> None:
        """Begin or end what the event is about."""
        handler = _HANDLERS.get(event["type"])
        if handler is not None:
            handler(self, event)

    def asks(self) -> Callable[[], _Active]:
        """Begin the span of a request to the model, which is active while the request is opened."""
        if self._chat is None:
            self._asked_at, self._first_at = monotonic(), None
            attributes: dict[str, Any] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._provider,
                "gen_ai.request.model": self._model,
                "gen_ai.request.stream": self._scope.stream,
            }
            self._chat = self._tracer.start_span(
                f"chat {self._model}", self._below_step, SpanKind.CLIENT, attributes
            )
            self._below_chat = trace.set_span_in_context(self._chat, self._base)
        assert self._below_chat is not None
        return partial(_Active, self._below_chat)

    def calls(self, call_id: str, name: str) -> Callable[[], _Active]:
        """Return how the span of a tool becomes active; tools run in threads, perhaps before their event."""
        return partial(_Active, trace.set_span_in_context(self._tool(call_id, name), self._base))

    def close(self) -> None:
        """End what is still open: the run was left before its last event."""
        self._end_answered()
        for span in (*self._tools.values(), self._chat, self._step, self._run):
            if span is not None:
                span.set_attribute("agent.interrupted", value=True)
                span.end()
        self._tools, self._chat, self._step, self._run = {}, None, None, None

    def _begin_run(self, event: Any) -> None:
        scope = self._scope
        self._base = propagate.extract(scope.trace) if scope.trace else get_current()
        self._model, self._model_id = self._model or event["model"], event["model"]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": self._provider,
            "gen_ai.agent.name": event["agent_id"],
            "gen_ai.agent.id": event["agent_id"],
            "gen_ai.conversation.id": event["session_id"],
            "gen_ai.request.model": self._model,
            "agent.run.id": event["run_id"],
            "agent.run.resumed": event["resumed"],
        }
        if len(scope.parents) > 1:
            attributes["agent.run.parents"] = list(scope.parents[:-1])
        name = f"invoke_agent {event['agent_id']}"
        self._run = self._tracer.start_span(name, self._base, SpanKind.INTERNAL, attributes)
        self._below_run = trace.set_span_in_context(self._run, self._base)
        scope.own_trace = _carrier(self._below_run)
        scope.traces = self._trace_of
        if not scope.trace and isinstance(scope.trace, dict) and type(scope.trace) is dict:
            scope.trace.update(scope.own_trace)  # for the agents that take over in this run

    def _trace_of(self, call_id: str | None) -> Mapping[str, str]:
        span = self._tools.get(call_id or "")
        return {} if span is None else _carrier(trace.set_span_in_context(span, self._base))

    def _begin_step(self, event: Any) -> None:
        self._end(self._step)
        number = event["round"]
        self._step = self._tracer.start_span(
            f"step {number}", self._below_run, attributes={"agent.step": number}
        )
        self._below_step = trace.set_span_in_context(self._step, self._base)

    def _first_piece(self, _event: Any) -> None:
        if self._first_at is None:
            self._first_at = monotonic()

    def _end_chat(self, event: Any) -> None:
        if event.get("beside"):  # a question for a summary, which is not part of the conversation
            return
        used, chat = event["usage"], self._chat
        if chat is None:
            return
        seconds = monotonic() - self._asked_at
        about: dict[str, Any] = {name: used[key] for key, name in _COUNTS.items() if used.get(key)}
        about |= _cost(used)
        first = None
        if self._first_at is not None:
            first = about["gen_ai.response.time_to_first_chunk"] = self._first_at - self._asked_at
        chat.set_attributes(about)
        self._answered, self._chat = (chat, time_ns()), None
        model = self._model if event["model"] == self._model_id else event["model"]
        self._instruments.answered(self._provider, model, used, seconds, first)

    def _end_answered(self, message: Mapping[str, Any] | None = None) -> None:
        """End the span of a request at the time of its answer, with what the answer says of itself."""
        if self._answered is None:
            return
        (chat, at), self._answered = self._answered, None
        if message is not None:
            about = message["metadata"]
            for name, key in (("gen_ai.response.model", "model"), ("gen_ai.response.id", "response_id")):
                if value := about.get(key):
                    chat.set_attribute(name, str(value))
            chat.set_attribute("gen_ai.response.finish_reasons", [finish_reason(message)])
            if self._content:
                chat.set_attribute("gen_ai.output.messages", shown_messages([message]))
        chat.end(at)

    def _note_retry(self, event: Any) -> None:
        if self._chat is not None:
            attributes = {
                key: event[key]
                for key in ("attempt", "seconds", "category", "model", "instead_of")
                if key in event
            }
            self._chat.add_event(event["type"], attributes)

    def _tool(self, call_id: str, name: str) -> Span:
        """Return the span of a call, which begins when the call or its event comes, whichever is first."""
        with self._tools_lock:
            span = self._tools.get(call_id)
            if span is None:
                attributes: dict[str, Any] = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": name,
                    "gen_ai.tool.call.id": call_id,
                    "gen_ai.tool.type": "function",
                }
                below = self._below_run if self._step is None else self._below_step
                span = self._tracer.start_span(f"execute_tool {name}", below, attributes=attributes)
                self._tools[call_id] = span
            return span

    def _begin_tool(self, event: Any) -> None:
        span = self._tool(event["call_id"], event["name"])
        if self._content:
            span.set_attribute("gen_ai.tool.call.arguments", shown_value(event["arguments"]))

    def _end_tool(self, event: Any) -> None:
        span = self._tools.pop(event["call_id"], None)
        if span is None:
            return
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", shown_text(str(event["message"]["content"])))
        if event["is_error"]:
            kind = (event["message"]["metadata"].get("error") or {}).get("type", "_OTHER")
            _fail(span, str(kind))
        span.end()
        self._instruments.ran(event["name"], event["seconds"], failed=event["is_error"])

    def _end_step(self, event: Any) -> None:
        said = [message for message in event["messages"] if message["role"] == "assistant"]
        self._end_answered(said[-1] if said else None)
        self._end(self._chat)
        self._end(self._step)
        self._chat = self._step = None

    def _note_error(self, event: Any) -> None:
        kind = str(event["error"].get("category") or event["error"]["type"])
        for span in (self._chat, self._run):
            if span is not None:
                _fail(span, kind, shown_text(str(event["error"]["message"])) if self._content else None)

    def _end_run(self, event: Any) -> None:
        run = self._run
        if run is None:
            return
        reason, used = event["reason"], event["usage"]
        run.set_attributes(
            {
                "agent.run.reason": reason["code"],
                "agent.run.rounds": event["rounds"],
                **{name: used[key] for key, name in _COUNTS.items() if used.get(key)},
                **_cost(used),
            }
        )
        if self._content:
            asked = [message for message in event["messages"] if message["role"] == "user"]
            run.set_attribute("gen_ai.input.messages", shown_messages(asked))
            run.set_attribute("gen_ai.output.messages", shown_answer(event["text"], reason["code"]))
        if reason["code"] == "handoff":
            about = {"agent.handoff.from": event["agent_id"], "agent.handoff.to": reason["detail"]}
            self._tracer.start_span(f"handoff {reason['detail']}", self._below_run, attributes=about).end()
        self._instruments.ended(event["agent_id"], reason["code"], monotonic() - self._began)
        self._end_answered()
        for span in (*self._tools.values(), self._chat, self._step, run):
            self._end(span)
        self._tools, self._chat, self._step, self._run = {}, None, None, None

    def _end(self, span: Span | None) -> None:
        if span is not None:
            span.end()


_HANDLERS: dict[str, Callable[[RunSpans, Any], None]] = {
    "run_start": RunSpans._begin_run,  # noqa: SLF001 - a table of methods, looked up once for each event
    "step_start": RunSpans._begin_step,  # noqa: SLF001
    "text": RunSpans._first_piece,  # noqa: SLF001
    "reasoning": RunSpans._first_piece,  # noqa: SLF001
    "tool_call_args": RunSpans._first_piece,  # noqa: SLF001
    "usage": RunSpans._end_chat,  # noqa: SLF001
    "retry": RunSpans._note_retry,  # noqa: SLF001
    "fallback": RunSpans._note_retry,  # noqa: SLF001
    "tool_call_start": RunSpans._begin_tool,  # noqa: SLF001
    "tool_call_result": RunSpans._end_tool,  # noqa: SLF001
    "step_end": RunSpans._end_step,  # noqa: SLF001
    "error": RunSpans._note_error,  # noqa: SLF001
    "run_end": RunSpans._end_run,  # noqa: SLF001
}


def _carrier(context: Context) -> dict[str, str]:
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    return carrier


def _cost(used: Mapping[str, Any]) -> dict[str, Any]:
    if not used.get("cost"):
        return {}
    return {
        "agent.usage.cost": used["cost"],
        "agent.usage.cost_is_estimate": used.get("cost_is_estimate", False),
    }


def _fail(span: Span, kind: str, message: str | None = None) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))
