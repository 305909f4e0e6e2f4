"""What users of other libraries write by habit, and what to write here."""

from __future__ import annotations

HABITS = {
    "run_sync": "write agent.run(...), which waits for the answer",
    "run_stream": "write agent.stream(...) or agent.stream_async(...)",
    "run_stream_sync": "write agent.stream(...)",
    "run_streamed": "write agent.stream_async(...)",
    "tool_plain": "write @agent.tool; a function without a RunContext is taken as well",
    "system_prompt": "write @agent.instructions, or instructions=... when you make the agent",
    "result_validator": "write @agent.output_validator",
    "invoke": "write agent.run(...)",
    "ainvoke": "write await agent.run_async(...)",
    "arun": "write await agent.run_async(...)",
    "astream": "write agent.stream_async(...)",
    "run_stream_events": "write agent.stream_async(...)",
    "to_cli": "write agent.repl()",
    "to_cli_sync": "write agent.repl()",
    "data": "write result.output",
    "final_output": "write result.output",
    "content": "write result.text, or result.output for a typed one",
    "all_messages": "write result.session.messages",
    "new_messages": "write result.messages, or result.added for `Message` objects",
    "to_input_list": "write result.session, and session=result.session in the next run",
    "last_agent": "write result.agent, the name of the agent that ended the run",
    "new_items": "write result.messages",
    "interruptions": "write result.suspended",
    "stream_text": "write stream.text()",
    "stream_output": "write stream.outputs()",
    "stream_events": "read the stream itself: `for event in stream`",
    "get_output": "write stream.result.output, once the stream is read",
}
"""What users of other libraries write, and what it is here."""


def missing(owner: str, name: str) -> AttributeError:
    """Return the error for an attribute that is not there, with what to write in its place."""
    hint = HABITS.get(name)
    return AttributeError(f"{owner} has no attribute {name!r}" + (f": {hint}" if hint else ""))
