"""What is said about a command: to the model, and to the person who watches."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.sandbox import explain
from shell_tool.output import Output, decoded, from_character, whole_characters

if TYPE_CHECKING:
    from shell_tool.jobs import Job
    from shell_tool.processes import End
    from shell_tool.settings import Settings

_COMMAND_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning and the end of an output, and how many bytes of it lie between them."""

    head: bytes
    tail: bytes
    left_out: int

    @classmethod
    def of(cls, output: Output, limit: int) -> Excerpt:
        """Take *limit* bytes of an output, whole characters only."""
        if output.total <= limit and not output.is_full:
            return cls(output.read(0, limit), b"", 0)
        head = whole_characters(output.read(0, limit // 2))
        tail = from_character(output.tail(min(limit - limit // 2, output.total - len(head))))
        return cls(head, tail, output.total - len(head) - len(tail))


def outcome(job: Job, settings: Settings) -> dict[str, Any]:
    """Return the result of a command that has ended."""
    output, end = job.running.output, job.running.end
    assert end is not None
    excerpt = Excerpt.of(output, settings.output_bytes)
    text = _shown(excerpt, job, output)
    denied = _denied(job, excerpt)
    notes = [f"[{note}]" for note in (*_end_notes(end, settings), output.problem, *denied) if note]
    message = "\n".join([*([text.removesuffix("\n")] if text else []), *notes]) if notes else text
    succeeded = end.cause == "exit" and end.code == 0
    return {
        "success": succeeded,
        "result" if succeeded else "error": message or "(no output)",
        "exit_code": end.code,
        "seconds": round(end.seconds, 3),
        "output_bytes": output.total,
        **({"id": job.id} if excerpt.left_out else {}),
        **({"kept_bytes": output.kept} if output.is_full else {}),
        **job.whole.fields,
    }


def started(job: Job) -> dict[str, Any]:
    """Return the result of a command that goes on in the background."""
    text = f"{job.id} runs in the background: shell_output reads its output, shell_stop ends it."
    return {"success": True, "result": text, "id": job.id}


def stopped(job: Job, settings: Settings) -> dict[str, Any]:
    """Return the result of ending a command."""
    result = outcome(job, settings)
    text = result.pop("error", None) or result["result"]
    return {**result, "success": result["exit_code"] is not None, "result": text}


def part(job: Job, offset: int, settings: Settings) -> dict[str, Any]:
    """Return the output of a command from a byte on."""
    output = job.running.output
    piece = output.read(offset, settings.output_bytes)
    if output.read(offset + len(piece), 1):
        piece = whole_characters(piece)
    after = offset + len(piece)
    more = f" of {output.total:,} bytes" if output.total > after else ""
    notes = [state(job), f"next offset {after}{more}"]
    if not piece and output.is_full:
        piece = from_character(output.tail(settings.output_bytes))
        notes[1] = f"only the first {output.kept:,} bytes are kept; this is the end of {output.total:,}"
    text = "\n".join([*([decoded(piece)] if piece else []), f"[{'; '.join(notes)}]"])
    about = {"next_offset": after, "output_bytes": output.total, **job.whole.fields}
    return {"success": True, "result": text, **about}


def listed(jobs: list[Job]) -> dict[str, Any]:
    """Return the list of a session's commands."""
    lines = [f"{job.id}  {state(job)}, {job.running.output.total:,} bytes  {brief(job.text)}" for job in jobs]
    return {"success": True, "result": "\n".join(lines) or "There are no commands in the background."}


def state(job: Job) -> str:
    """Return in a few words how a command stands."""
    end = job.running.end
    if end is None:
        return f"running for {job.running.seconds:.0f} s"
    return ", ".join(_end_words(end)) or "exit code 0"


def brief(text: str) -> str:
    """Return a command on one line: its beginning if it is long, or has several lines."""
    lines = [one for line in text.splitlines() if (one := " ".join(line.split()))]
    line = lines[0] if lines else ""
    if len(lines) > 1:
        return f"{line[: _COMMAND_LENGTH - 2]} …"
    return line if len(line) <= _COMMAND_LENGTH else f"{line[: _COMMAND_LENGTH - 1]}…"


def _shown(excerpt: Excerpt, job: Job, output: Output) -> str:
    if not excerpt.left_out:
        return decoded(excerpt.head + excerpt.tail)
    readable = "" if output.kept == output.total else f", up to byte {output.kept:,}"
    note = (
        f"[{excerpt.left_out:,} of {output.total:,} bytes are left out here; "
        f"shell_output with id {job.id} and offset {len(excerpt.head)} reads on{readable}]"
    )
    return f"{decoded(excerpt.head)}\n{note}\n{decoded(excerpt.tail)}"


def _denied(job: Job, excerpt: Excerpt) -> list[str]:
    """Return what the sandbox refused, if the command failed, or asked for a host that is not allowed."""
    confined, end = job.running.launch.confined, job.running.end
    if confined is None or end is None or (end.code == 0 and not (confined.proxy and confined.proxy.refused)):
        return []
    return explain(confined, decoded(excerpt.head + excerpt.tail) if end.code else "")


def _end_notes(end: End, settings: Settings) -> list[str]:
    notes = _end_words(end)
    if end.cause == "timeout":
        longer = (
            f"give it a longer timeout (up to {settings.max_timeout:g} s), or run it with background: true"
        )
        notes[0] = f"{notes[0]}: {longer}"
    if end.left_running and end.cause == "exit":
        notes.append("processes that it left running were ended: run such a command with background: true")
    return notes


def _end_words(end: End) -> list[str]:
    words = {
        "exit": [],
        "timeout": [f"ended after {end.seconds:.1f} s, when its time was over"],
        "stop": ["stopped"],
    }[end.cause]
    if end.code is None:
        return [*words, "it could not be ended and may still run"]
    if end.cause != "exit" or end.code == 0:
        return words
    return [f"ended by {_signal_name(-end.code)}" if end.code < 0 else f"exit code {end.code}"]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
