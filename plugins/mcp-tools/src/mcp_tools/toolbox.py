"""The tools that a model sees: those of the servers, and two for resources and prompts.

A toolbox is a picture of one moment. When the servers offer something else, a new one is made, and by that
the runtime knows that an agent's tools have changed. Whether a tool may run is decided when it is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_core.encoding import parse, readable
from mcp_tools import calls
from mcp_tools.calls import Answered, Call, Failed, Progress
from mcp_tools.tool_list import wire_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_types import (
        BlobResourceContents,
        CallToolResult,
        ContentBlock,
        GetPromptResult,
        ReadResourceResult,
        TextResourceContents,
    )

    from mcp_tools.calls import Ask
    from mcp_tools.fleet import Fleet, Report
    from mcp_tools.settings import Server, Settings
    from mcp_tools.tool_list import Tool


Part = dict[str, str]
Result = dict[str, Any]
"""What the platform takes from a tool."""
_IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


def tool_result(answer: CallToolResult) -> Result:
    """Return the answer to a tool call as a tool's result."""
    parts = _parts(answer.content)
    structured = answer.structured_content
    if structured is not None and not _says_already(parts, structured):
        parts.append(_text(readable(structured)))
    return as_result(parts, failed=answer.is_error)


def resource_result(answer: ReadResourceResult) -> Result:
    """Return a resource that was read as a tool's result."""
    return as_result([_resource(one) for one in answer.contents])


def prompt_result(answer: GetPromptResult) -> Result:
    """Return a prompt as a tool's result: its messages, each with who says it."""
    parts = []
    for message in answer.messages:
        parts += [_text(f"[{message.role}]"), *_parts([message.content])]
    return as_result(parts)


def as_result(parts: Sequence[Part], *, failed: bool = False) -> Result:
    """Return parts as a result; images stand apart from the text."""
    texts = [part["text"] for part in parts if part["type"] == "text"]
    text = "\n".join(texts)
    if failed:
        result = {"success": False, "error": text or "the tool failed and does not say why"}
    else:
        result = {"success": True, "result": text or ("" if parts else "(no content)")}
    return result if len(texts) == len(parts) else {**result, "parts": list(parts)}


def _says_already(parts: Sequence[Part], structured: Any) -> bool:
    """Say whether the text is the structured content once more, as the protocol asks servers to send it.

    A value that is not an object is wrapped by many as `result`; a list is often sent as one text per item.
    """
    texts = [_read(part["text"]) for part in parts if part["type"] == "text"]
    wrapped = structured.get("result") if isinstance(structured, dict) and len(structured) == 1 else None
    said: list[Any] = [*texts, texts, [part["text"] for part in parts if part["type"] == "text"]]
    said += said[-1]
    return any(one in (structured, wrapped) for one in said if one is not None)


def _read(text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return text


def _parts(content: Sequence[ContentBlock]) -> list[Part]:
    return [_part(block) for block in content]


def _part(block: ContentBlock) -> Part:
    if block.type == "text":
        return _text(block.text)
    if block.type in ("image", "audio"):
        return _media(block.mime_type, block.data, f"{block.type} of type {block.mime_type}")
    if block.type == "resource":
        return _resource(block.resource)
    if block.type == "resource_link":
        about = f": {block.description}" if block.description else ""
        return _text(f"[resource {block.uri} ({block.name}){about}]")
    return _text(f"[{block.type} left out]")


def _resource(resource: TextResourceContents | BlobResourceContents) -> Part:
    if not hasattr(resource, "blob"):
        return _text(f"[resource {resource.uri}]\n{resource.text}")
    return _media(resource.mime_type or "", resource.blob, f"resource {resource.uri}, binary")


def _media(mime_type: str, data: str, name: str) -> Part:
    """Return an image that providers take, or a note in the place of anything else."""
    if mime_type.lower() in _IMAGES and _BASE64.fullmatch(data) and len(data) % 4 == 0:
        return {"type": "image", "mime_type": mime_type.lower(), "data": data}
    return _text(f"[{name}, {len(data) * 3 // 4} bytes, left out]")


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def listed(entries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Result:
    """Return lists of what servers have, by server, as a result."""
    return {
        "success": True,
        "result": readable({name: [dict(one) for one in all_] for name, all_ in entries.items()}),
    }


Items = Iterator[Result]
READ_RESOURCE: Final = "mcp_read_resource"
GET_PROMPT: Final = "mcp_get_prompt"
_TEXT: Final = {"type": "string"}
_NAMED_SERVER: Final = {
    **_TEXT,
    "description": "The server's name; leave it out to list those of all servers.",
}

_RESOURCE_SCHEMA: Final = {
    "name": READ_RESOURCE,
    "description": "Read a resource of an MCP server. Without a uri, list the resources that there are.",
    "input_schema": {
        "type": "object",
        "properties": {"server": _NAMED_SERVER, "uri": {**_TEXT, "description": "The resource's address."}},
        "additionalProperties": False,
    },
}
_PROMPT_SCHEMA: Final = {
    "name": GET_PROMPT,
    "description": "Get a prompt of an MCP server. Without a name, list the prompts that there are.",
    "input_schema": {
        "type": "object",
        "properties": {
            "server": _NAMED_SERVER,
            "name": {**_TEXT, "description": "The prompt's name."},
            "arguments": {"type": "object", "additionalProperties": _TEXT},
        },
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class Offer:
    """A tool under the name by which the model calls it."""

    server: Server
    tool: Tool

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return wire_name(self.server.name, self.tool.name)

    def schema(self) -> dict[str, Any]:
        """Return what the model is shown; where the name is an alias, also the real one."""
        plain = self.name.endswith(f"__{self.tool.name}")
        alias = "" if plain else f"\n\nThe server {self.server.name!r} calls it {self.tool.name!r}."
        return {
            "name": self.name,
            "description": f"{self.tool.description}{alias}",
            "input_schema": dict(self.tool.schema),
        }


class Toolbox:
    """A tool plugin for the tools of one agent.

    Attributes:
        contents: What it offers; two toolboxes with the same contents are the same to a model.
        parallel: The tools that may run in parallel.
    """

    name = "mcp_tools"
    version = "0.1.0"

    def __init__(self, fleet: Fleet, settings: Settings, contents: Contents) -> None:
        self._fleet = fleet
        self._settings = settings
        self.contents = contents
        self.parallel = frozenset(offer.name for offer in contents.offers if offer.server.parallel)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools that are as they were approved."""
        schemas = [offer.schema() for offer in self.contents.offers]
        schemas += [_RESOURCE_SCHEMA] if self.contents.resources else []
        return schemas + ([_PROMPT_SCHEMA] if self.contents.prompts else [])

    def stream_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        cancellation: Any = None,
        context: Mapping[str, Any] | None = None,
    ) -> Items:
        """Run a tool: its progress as parts, then its result."""
        if tool_name == READ_RESOURCE:
            yield from self._resource(arguments, cancellation)
        elif tool_name == GET_PROMPT:
            yield from self._prompt(arguments, cancellation)
        else:
            yield from self._tool(tool_name, arguments, cancellation, _trace(context or {}))

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Return one line that names the server, the tool and the arguments."""
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        offer = self._offer(tool_name)
        subject = tool_name if offer is None else f"{offer.server.name}: {offer.tool.name}"
        line = " ".join(f"{subject}({given})".split())
        return line if len(line) <= 120 else f"{line[:119]}…"  # noqa: PLR2004 - a line

    def format_tool_call_display(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments whole, under the names that the server uses."""
        offer = self._offer(tool_name)
        title = tool_name if offer is None else f"{offer.tool.name} of MCP server {offer.server.name}"
        return {"type": "code", "language": "json", "title": title, "content": readable(dict(arguments))}

    def format_tool_result(self, result: Mapping[str, Any]) -> Result | str:
        """Return the text for the model, with its images."""
        text = str(result.get("result", result.get("error", "")))
        if "parts" not in result:
            return text
        failed = {"is_error": True} if result["success"] is False else {}
        return {"type": "tool_result", "text": text, "parts": result["parts"], **failed}

    def to_display_format(self, text: str) -> dict[str, Any]:
        """Return the text for a person."""
        return {"type": "text", "content": text}

    def _tool(
        self, tool_name: str, arguments: Mapping[str, Any], cancellation: Any, trace: Mapping[str, str]
    ) -> Items:
        offer = self._offer(tool_name)
        if offer is None:
            yield _failed(f"there is no tool {tool_name!r} here")
            return
        report = self._fleet.report(self._settings, offer.server)
        problem = _refusal(report, offer.tool)
        if problem is not None:
            yield _failed(problem)
            return
        ask = calls.tool_call(offer.tool.name, arguments, trace)
        yield from _answers(report, ask, tool_result, cancellation)

    def _resource(self, arguments: Mapping[str, Any], cancellation: Any) -> Items:
        uri = arguments.get("uri")
        if uri is None:
            yield from self._list(arguments, "resource")
        else:
            ask = calls.resource(uri)
            yield from self._ask(arguments, ask, resource_result, cancellation, wanted=("resource", uri))

    def _prompt(self, arguments: Mapping[str, Any], cancellation: Any) -> Items:
        name = arguments.get("name")
        if name is None:
            yield from self._list(arguments, "prompt")
        else:
            ask = calls.prompt(name, arguments.get("arguments", {}))
            yield from self._ask(arguments, ask, prompt_result, cancellation, wanted=("prompt", name))

    def _list(self, arguments: Mapping[str, Any], kind: str) -> Items:
        wanted = arguments.get("server")
        found = {
            report.server.name: [dict(one.fields) for one in report.judgement.of_kind(kind)]
            for report in self._fleet.reports(self._settings)
            if report.snapshot.listing is not None and wanted in (None, report.server.name)
        }
        if wanted is not None and wanted not in found:
            yield _failed(f"there is no server {wanted!r} that is ready")
        else:
            yield listed({name: entries for name, entries in found.items() if entries})

    def _ask(
        self,
        arguments: Mapping[str, Any],
        ask: Ask,
        read: Callable[[Any], Result],
        cancellation: Any,
        *,
        wanted: tuple[str, str],
    ) -> Items:
        server = self._settings.server(str(arguments.get("server")))
        if server is None:
            names = ", ".join(one.name for one in self._settings.servers)
            yield _failed(f"say which server: {names}")
            return
        report = self._fleet.report(self._settings, server)
        problem = _other_refusal(report, *wanted)
        if problem is not None:
            yield _failed(problem)
        else:
            yield from _answers(report, ask, read, cancellation)

    def _offer(self, tool_name: str) -> Offer | None:
        return next((offer for offer in self.contents.offers if offer.name == tool_name), None)


@dataclass(frozen=True)
class Contents:
    """What a toolbox offers."""

    offers: tuple[Offer, ...] = ()
    resources: bool = False
    prompts: bool = False

    @classmethod
    def of(cls, reports: list[Report]) -> Contents:
        """Return what servers offer now, as far as it is approved."""
        judged = [report.judgement for report in reports]
        return cls(
            tuple(Offer(report.server, tool) for report in reports for tool in report.judgement.tools),
            resources=any(one.of_kind("resource") for one in judged),
            prompts=any(one.of_kind("prompt") for one in judged),
        )


def _refusal(report: Report, tool: Tool) -> str | None:
    """Return why a tool may not be called, now that it comes to it."""
    server = report.server.name
    if not report.judgement.launch:
        return f"the server {server!r} is not approved: a person must approve it first"
    if report.snapshot.listing is None or tool in report.judgement.tools:
        return None  # a server that is not there says so itself
    return f"the server {server!r} has changed {tool.name!r}: a person must approve it again"


def _other_refusal(report: Report, kind: str, name: str) -> str | None:
    """Return why a resource or a prompt may not be asked for, now that it comes to it.

    Which resources an approved template stands for, only the server knows.
    """
    server, approved = report.server.name, report.judgement.of_kind(kind)
    if report.snapshot.listing is None or any(one.name == name for one in approved):
        return None  # a server that is not approved, or not there, says so itself
    if any((one.after.kind, one.after.name) == (kind, name) for one in report.judgement.waiting):
        return f"the {kind} {name!r} of the server {server!r} is not approved: a person must approve it first"
    if any(one.is_template for one in approved):
        return None
    return f"the server {server!r} lists no {kind} {name!r}"


def _answers(report: Report, ask: Ask, read: Callable[[Any], Result], cancellation: Any) -> Items:
    """Ask a server; yield its progress, and what it answers."""
    if report.connection is None:
        yield _failed(f"the server {report.server.name!r} is not approved: a person must approve it first")
        return
    call = Call(ask, report.server.timeout)
    with _taken_back(report, call, cancellation):
        report.connection.ask(call)
        for item in call.items():
            if isinstance(item, Progress):
                yield {"part": _progress(item)}
            else:
                yield _outcome(item, read)


@contextmanager
def _taken_back(report: Report, call: Call, cancellation: Any) -> Iterator[None]:
    """Take a call back when its caller loses interest, by cancelling or by leaving."""
    assert report.connection is not None
    cancel = report.connection.cancel
    key = None if cancellation is None else cancellation.add_callback(lambda: cancel(call))
    try:
        yield
    finally:
        if cancellation is not None:
            cancellation.remove_callback(key)
        if not call.finished:
            cancel(call)


def _outcome(outcome: Answered | Failed, read: Callable[[Any], Result]) -> Result:
    return _failed(outcome.problem) if isinstance(outcome, Failed) else read(outcome.value)


def _progress(made: Progress) -> Result:
    known = {"progress": made.progress, "total": made.total, "message": made.message}
    return {"type": "progress", **{key: value for key, value in known.items() if value is not None}}


def _failed(problem: str) -> Result:
    return {"success": False, "error": problem}


def _trace(context: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the trace that a call belongs to; a run of the core alone has none."""
    run: Any = context.get("run")
    found: Mapping[str, str] = run.trace_of(context.get("tool_call_id")) if hasattr(run, "trace_of") else {}
    return found
