"""What an `Agent` adds to its runs: instructions that are functions, outputs, guardrails, dynamic tools.

It is one runtime plugin and uses the same doors as everybody's. It places a hook only where the agent has
something to do there, so that an agent of text and tools runs as if the plugin were not there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any

from agent_core import PluginError, lazy
from agent_core.drivers import call, call_async
from agent_core.models import ToolDescriptor
from agent_core.steps import Run, Work, ask
from agent_runtime.agent_functions import ask_function, call_named, misused
from agent_runtime.agent_run import AgentRun, agent_run
from agent_runtime.commands import Command
from agent_runtime.engine import finish_slowly
from agent_runtime.outputs import OutputForm, OutputType, Refused, instructions_for, read_json
from agent_runtime.phases import Phase
from agent_runtime.results import unfinished
from agent_runtime.run_context import ModelRetry
from agent_runtime.state import StateKey
from agent_runtime.tool_sets import Condition, DynamicTools, as_function_tool

if TYPE_CHECKING:
    from agent_core import FunctionTool
    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.guardrails import Guardrail, GuardrailTripped
    from agent_runtime.outputs import OutputMode
    from agent_runtime.phases import PhaseView
    from agent_runtime.run_context import RunContext

Instructions = Callable[..., "str | Awaitable[str | None] | None"]
Validator = Callable[..., Any]

INSTRUCTIONS: StateKey[str] = StateKey("agent.instructions", "")
"""What functions say about the next request."""

_ACCEPTED = "The answer was accepted."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """The parts of an agent that are functions.

    Attributes:
        instructions: Functions that say more than the system prompt, asked before each request.
        output: What the run is for.
        mode: By which way the model gives it; decided when the model is known.
        validators: Asked about each output, in order; what one returns goes to the next.
        output_retries: How often an output may be sent back.
        input_guardrails: Look at what the user said.
        output_guardrails: Look at the output.
        conditions: When a tool is offered, by its name.
        dynamic: Tool sets that are made anew for each step.
    """

    instructions: tuple[Instructions, ...] = ()
    output: OutputType
    mode: OutputMode = "tool"
    validators: tuple[Validator, ...] = ()
    output_retries: int = 2
    input_guardrails: tuple[Guardrail, ...] = ()
    output_guardrails: tuple[Guardrail, ...] = ()
    conditions: Mapping[str, tuple[Condition, ...]]
    dynamic: tuple[DynamicTools, ...] = ()

    @property
    def changes_requests(self) -> bool:
        """Whether a request is not simply what the session and the system prompt say."""
        by_other_way = bool(self.output.forms) and self.mode != "tool"
        return bool(self.instructions or self.conditions or self.dynamic or by_other_way)

    @property
    def does_something(self) -> bool:
        """Whether a run of the agent needs anything of this."""
        return self.changes_requests or self.checks_output or bool(self.input_guardrails)

    @property
    def checks_output(self) -> bool:
        """Whether the model's answer is more than its last words."""
        return bool(not self.output.is_plain_text or self.validators or self.output_guardrails)


class AgentPlugin:
    """Takes part in the runs of one `Agent`."""

    name = "agent"
    version = "1"

    def __init__(self, parts: AgentParts) -> None:
        self.parts = parts

    def register(self, registrar: PluginRegistrar) -> None:
        """Place what the agent needs, and nothing else."""
        parts = self.parts
        registrar.state_key(INSTRUCTIONS)
        if parts.instructions:
            registrar.phase_hook(Phase.BEFORE_INFERENCE, self._instruct)
        if parts.input_guardrails:
            registrar.phase_hook(Phase.RUN_START, self._guard_input)
            registrar.phase_hook(Phase.AFTER_INFERENCE, self._join_guards)
        if parts.dynamic:
            registrar.phase_hook(Phase.RUN_START, self._make_tools)
            registrar.phase_hook(Phase.BEFORE_INFERENCE, self._make_tools)
        if parts.checks_output:
            registrar.phase_hook(Phase.AFTER_TOOL_EXECUTE, self._after_output_tool)
            registrar.end_hook(self._at_the_end)
        if parts.changes_requests:
            registrar.request_transform(self._transform)

    def output_tools(self) -> list[OutputTool]:
        """Return a tool for each form that the model gives by calling one."""
        return [OutputTool(form, self) for form in self.parts.output.forms]

    # Before a request

    def _instruct(self, view: PhaseView) -> Flow[Command]:
        texts = []
        for function in self.parts.instructions:
            text = yield from ask_function("instructions", function, view.context)
            if text is not None and not isinstance(text, str):
                problem = f"it must return a text, not {type(text).__name__}"
                raise misused("instructions", function, problem)
            texts += [text] if text else []
        return Command().update(INSTRUCTIONS, "\n\n".join(texts))

    def _make_tools(self, view: PhaseView) -> Flow[None]:
        made: dict[str, FunctionTool[..., Any]] = {}
        for tools in self.parts.dynamic:
            found = yield from finish_slowly(partial(tools.make, view.context))
            made |= {one.name: one for one in map(as_function_tool, found)}
        toolbox = agent_run(view.run.context).toolbox
        toolbox.clear()
        toolbox.update(made)

    def _transform(self, prompt: Prompt, view: PhaseView) -> Prompt:
        run, parts = agent_run(view.run.context), self.parts
        if text := view.state.read(INSTRUCTIONS):
            prompt = prompt.with_system(text)
        if parts.conditions or parts.dynamic:
            prompt = replace(prompt, tools=self._offered(prompt.tools, view, run))
        return prompt if not parts.output.forms or parts.mode == "tool" else self._asked_for(prompt)

    def _offered(
        self, tools: Sequence[ToolDescriptor], view: PhaseView, run: AgentRun
    ) -> tuple[ToolDescriptor, ...]:
        context, conditions = view.context, self.parts.conditions
        kept = [one for one in tools if all(asked(context, one) for asked in conditions.get(one.name, ()))]
        made = [_descriptor(schema) for one in run.toolbox.values() for schema in one.get_tool_schemas()]
        return (*kept, *made)

    def _asked_for(self, prompt: Prompt) -> Prompt:
        """Return the prompt of a model that gives its output without a tool."""
        output = self.parts.output
        tools = tuple(tool for tool in prompt.tools if output.form(tool.name) is None)
        prompt = replace(prompt, tools=tools)
        if self.parts.mode == "native":
            return replace(prompt, config={**prompt.config, "output_schema": output.schema()})
        return prompt.with_system(instructions_for(output))

    # Guardrails

    def _guard_input(self, view: PhaseView) -> Flow[Command | None]:
        said = _last_words_of_the_user(view)
        run = agent_run(view.run.context)
        later = [guardrail for guardrail in self.parts.input_guardrails if guardrail.parallel]
        for guardrail in self.parts.input_guardrails:
            if not guardrail.parallel:
                tripped = yield from guardrail.look(view.context, said)
                if tripped is not None:
                    return _trip(run, tripped)
        if later:
            yield from ask(Run(Work(awaitable=partial(_begin_looking, later, view, said, run))))
        return None

    async def _join_guards(self, view: PhaseView) -> Command | None:
        run = agent_run(view.run.context)
        looking, run.looking = run.looking, []
        for task in looking:
            tripped = await task
            if tripped is not None:
                return _trip(run, tripped)
        return None

    # After an answer

    def _after_output_tool(self, view: PhaseView) -> Command | None:
        if view.call is None or view.result is None or self.parts.output.form(view.call.name) is None:
            return None
        run = agent_run(view.run.context)
        if run.failed is not None:
            raise run.failed
        if run.tripped is not None:
            return _trip(run, run.tripped)
        if "error" not in view.result["metadata"]:
            return Command().stop("natural_end")
        return self._sent_back(run, str(view.result["content"]).removeprefix("Error: "))

    def _at_the_end(self, view: PhaseView) -> Flow[Command | None]:
        """Take the model's last words as the output, or send it back."""
        run, parts = agent_run(view.run.context), self.parts
        text = "".join(str(message.content) for message in view.messages)
        try:
            if parts.output.takes_text:
                if not text.strip():
                    raise Refused("the answer is empty")  # noqa: TRY301 - refused like all the others
                value = yield from self._validated(text, view.context, run)
            elif parts.mode == "tool":
                names = " or ".join(form.name for form in parts.output.forms)
                raise Refused(f"give the answer by calling {names}")  # noqa: TRY301
            else:
                form, given = parts.output.load(read_json(text))
                value = yield from self.produced(form, given, view.run.context, view.context, run)
        except Refused as refused:
            about = view.messages[-1].metadata if view.messages else {}
            problem = unfinished(about) or str(refused)
            return self._sent_back(run, problem) or Command().go_on(f"That is not the answer yet: {problem}.")
        if run.tripped is not None:
            return _trip(run, run.tripped)
        run.output = value
        return None

    def _sent_back(self, run: AgentRun, why: str) -> Command | None:
        """Count an output that is none, and end the run if there were too many."""
        run.refused += 1
        if run.refused <= self.parts.output_retries:
            return None
        tries = "1 try" if run.refused == 1 else f"{run.refused} tries"
        return Command().stop("output_retries", f"no {self.parts.output.words} after {tries}: {why}")

    def produced(
        self,
        form: OutputForm,
        given: object,
        lent: Mapping[str, Any],
        context: RunContext[Any],
        run: AgentRun,
    ) -> Flow[object]:
        """Return the output that a JSON value stands for, after everybody has looked at it.

        Raises:
            Refused: If it is none, with what the model reads.
        """
        if form.function is None:
            value = form.load(given)
        else:
            positional, named = form.bind(given, lent)
            try:
                function = form.function.__wrapped__
                value = yield from call_named(
                    "output_type", function, partial(function, *positional, **named)
                )
            except ModelRetry as retry:
                raise Refused(str(retry)) from retry
        return (yield from self._validated(value, context, run))

    def _validated(self, value: object, context: RunContext[Any], run: AgentRun) -> Flow[object]:
        context = replace(context, retry=run.refused)
        try:
            for validator in self.parts.validators:
                before, value = (
                    value,
                    (yield from ask_function("output_validator", validator, context, value)),
                )
                if value is None and before is not None and not self.parts.output.may_be_none:
                    problem = "it returned None: return the output, changed or not"
                    raise misused("output_validator", validator, problem)
            for guardrail in self.parts.output_guardrails:
                run.tripped = run.tripped or (yield from guardrail.look(context, value))
        except ModelRetry as retry:
            raise Refused(str(retry)) from retry
        return value


class OutputTool:
    """The tool by which a model gives its output in one form."""

    version = "1"
    stateless = True
    checks_arguments = True
    gives_output = True

    def __init__(self, form: OutputForm, plugin: AgentPlugin) -> None:
        self.name = form.name
        self.without_effect = form.function is None
        self._form = form
        self._plugin = plugin
        called = {"name": form.name, "description": form.description, "parameters": form.schema}
        self._schemas = [{"type": "function", "function": called}]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self._schemas

    def execute_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, object]:
        return call(self._taken(arguments, context or {}))

    async def execute_tool_async(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        state: Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, object]:
        return await call_async(self._taken(arguments, context or {}))

    def _taken(self, arguments: Mapping[str, Any], lent: Mapping[str, Any]) -> Flow[dict[str, object]]:
        run = agent_run(lent)
        context = lent["run"].run_context(lent)
        try:
            value = yield from self._plugin.produced(self._form, arguments, lent, context, run)
        except Refused as refused:
            return {"success": False, "error": f"the answer was not accepted: {refused}"}
        except PluginError as error:  # not the model's fault: the run ends when the call has its answer
            run.failed = error
            return {"success": False, "error": str(error)}
        if run.tripped is None:
            run.output = value
        return {"success": True, "result": _ACCEPTED}


async def _begin_looking(guardrails: Sequence[Guardrail], view: PhaseView, said: str, run: AgentRun) -> None:
    """Start guardrails that look while the model answers; one that trips cancels the answer."""

    async def look(guardrail: Guardrail) -> GuardrailTripped | None:
        tripped = await call_async(guardrail.look(view.context, said))
        if tripped is not None:
            run.tripped = run.tripped or tripped
            view.run.cancellation.cancel()
        return tripped

    run.looking = [lazy.asyncio.create_task(look(guardrail)) for guardrail in guardrails]


def _trip(run: AgentRun, tripped: GuardrailTripped) -> Command:
    run.tripped = tripped
    return Command().stop("guardrail", str(tripped))


def _last_words_of_the_user(view: PhaseView) -> str:
    """Return what the user said last; behind it may be what the agents did that handed over to this one."""
    messages = dropwhile(lambda message: message.role != "user", reversed(view.session.messages))
    said = [str(message.content) for message in takewhile(lambda message: message.role == "user", messages)]
    return "\n".join(reversed(said))


def _descriptor(schema: dict[str, Any]) -> ToolDescriptor:
    inner = schema["function"]
    return ToolDescriptor(
        name=inner["name"], schema=schema, plugin="dynamic_tools", description=inner["description"]
    )
