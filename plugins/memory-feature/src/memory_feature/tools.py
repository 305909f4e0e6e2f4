"""The tools by which the model remembers, recalls and forgets.

What is remembered goes into later prompts, so `remember` and `forget` are asked about like any other change,
with the file as a diff; `recall` only reads.
"""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from memory_feature.memory import ENDING, LONGEST_TEXT, MemoryProblem, checked_text, name_for, shortened
from memory_feature.shelf import PERSON, PROJECT, SCOPES, Shelf, Shelved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REMEMBER, RECALL, FORGET = "remember", "recall", "forget"
MOST_FOUND: Final = 20
_LONGEST_PREVIEW = 120
_ID = {"type": "string", "description": "The id of the memory, as it is listed."}
_SCHEMAS: Final[list[dict[str, Any]]] = [
    {
        "name": REMEMBER,
        "description": (
            "Keep a fact for later sessions. Call it only when the user asks you to remember something, or "
            "states a lasting preference, decision or correction that you will need again. Do not call it "
            "for greetings, questions or small talk: answer those. Do not keep secrets, passing states, or "
            "what the project's own files say."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_TEXT,
                    "description": "The fact, in one or two sentences that are clear without this session.",
                },
                "scope": {
                    "type": "string",
                    "enum": list(SCOPES),
                    "default": PERSON,
                    "description": (
                        f"{PERSON}: about the user, in all projects. {PROJECT}: about this project alone."
                    ),
                },
                "replaces": {
                    "type": "string",
                    "description": "The id of a memory that this text corrects; it keeps its scope.",
                },
            },
            "required": ["text"],
            "additionalProperties": False,
        },
    },
    {
        "name": RECALL,
        "description": (
            "Search what was remembered. Call it only when the answer depends on an earlier session and the "
            "list of memories does not have it. Do not call it for greetings or general questions. Without a "
            "query, it returns the newest memories."
        ),
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words to look for."}},
            "additionalProperties": False,
        },
    },
    {
        "name": FORGET,
        "description": (
            "Remove a memory. Call it only when the user wants something forgotten, or a listed memory is "
            "wrong. Do not call it in any other case."
        ),
        "parameters": {
            "type": "object",
            "properties": {"id": _ID},
            "required": ["id"],
            "additionalProperties": False,
        },
    },
]


class MemoryTools:
    """Remembers, recalls and forgets on the shelf of a session, which is looked up for each call.

    Args:
        shelf: Returns the shelf of a session, by its metadata.
    """

    name = "memory_tools"
    version = "0.1.0"
    parallel = (RECALL,)

    def __init__(self, shelf: Callable[[Mapping[str, Any]], Shelf]) -> None:
        self.shelf = shelf

    def forbidden_tags(self) -> list[str]:
        """Leave the tools out for a demo model, which calls one at "hi", whatever the descriptions say."""
        return ["demo_model"]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the three tools."""
        return [{"type": "function", "function": one} for one in _SCHEMAS]

    def execute_tool(
        self, tool_name: str, arguments: Mapping[str, Any], context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run a tool; the result says what cannot be done."""
        shelf = self._shelf(context)
        try:
            match tool_name:
                case "remember":
                    answer = _remember(shelf, arguments)
                case "recall":
                    answer = _recall(shelf, arguments.get("query") or "")
                case "forget":
                    folder, name = shelf.place(arguments["id"])
                    answer = f"forgotten: {shortened(folder.remove(name).text, _LONGEST_PREVIEW)}"
                case _:
                    return {"success": False, "error": f"there is no tool {tool_name!r}"}
        except MemoryProblem as problem:
            return {"success": False, "error": str(problem)}
        return {"success": True, "result": answer}

    def permission_subjects(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the scope that is written to, or the memory that is changed or removed."""
        if tool_name == RECALL:
            return [str(arguments.get("query") or "")]
        if tool_name == FORGET:
            return [str(arguments.get("id", ""))]
        replaced = arguments.get("replaces")
        return [str(replaced)] if replaced else [f"{arguments.get('scope') or PERSON}/"]

    def permission_suggestions(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return what could be granted for good: everything in the scope."""
        if tool_name == RECALL:
            return []
        scope = self.permission_subjects(tool_name, arguments)[0].partition("/")[0]
        return [f"{scope}/*"] if scope in SCOPES else []

    def refusal(
        self, tool_name: str, arguments: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> str | None:
        """Return why a call cannot be done, so that no person is asked about it; None if it can be."""
        if tool_name == RECALL:
            return None
        try:
            _planned(self.shelf(metadata), tool_name, arguments)
        except MemoryProblem as problem:
            return str(problem)
        return None

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Return what the call will do, in one line."""
        if tool_name == RECALL:
            query = arguments.get("query")
            return f"Look for {query!r} in memory" if query else "Read the newest memories"
        if tool_name == FORGET:
            return f"Forget {arguments.get('id', '')}"
        replaced = arguments.get("replaces")
        scope = f"in place of {replaced}" if replaced else f"for the {arguments.get('scope') or PERSON}"
        return f"Remember {scope}: {shortened(str(arguments.get('text', '')), _LONGEST_PREVIEW)}"

    def format_tool_call_display(
        self, tool_name: str, arguments: Mapping[str, Any], *, context: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return the change of the file as a diff; of a call that would be refused, why."""
        if tool_name == RECALL:
            return None
        try:
            content = _planned(self._shelf(context), tool_name, arguments)
        except MemoryProblem as problem:
            return {"type": "text", "content": str(problem)}
        return {"type": "diff", "content": content}

    def _shelf(self, context: Mapping[str, Any] | None) -> Shelf:
        return self.shelf((context or {}).get("session_metadata") or {})


def _remember(shelf: Shelf, arguments: Mapping[str, Any]) -> str:
    text = arguments["text"]
    if replaced := arguments.get("replaces"):
        folder, name = shelf.place(replaced)
        folder.change(name, text)
        return f"remembered as {replaced}, in place of what it said"
    scope = arguments.get("scope") or PERSON
    memory = shelf.folder(scope).add(text)
    return f"remembered as {Shelved(scope, memory).id}"


def _recall(shelf: Shelf, query: str) -> str:
    found = shelf.find(query)
    if not found:
        return f"nothing is remembered about {query!r}" if query.split() else "nothing is remembered yet"
    lines = [_found(one) for one in found[:MOST_FOUND]]
    if more := len(found) - len(lines):
        lines.append(f"{more} more: search with other words")
    return "\n\n".join(lines)


def _found(one: Shelved) -> str:
    day = f" ({one.memory.at[:10]})" if one.memory.at else ""
    return f"{one.id}{day}: {one.memory.text}"


def _planned(shelf: Shelf, tool_name: str, arguments: Mapping[str, Any]) -> str:
    """Return the diff that a call would make."""
    if tool_name == FORGET:
        folder, name = shelf.place(arguments["id"])
        before, after = folder.get(name).text, ""
    elif replaced := arguments.get("replaces"):
        folder, name = shelf.place(replaced)
        before, after = folder.get(name).text, checked_text(arguments["text"])
    else:
        folder = shelf.folder(arguments.get("scope") or PERSON)
        before, after = "", checked_text(arguments["text"])
        name = name_for(after)
    path = str(folder.path / f"{name}{ENDING}")
    lines = unified_diff(
        before.splitlines(),
        after.splitlines(),
        path if before else "/dev/null",
        path if after else "/dev/null",
        lineterm="",
    )
    return "\n".join(lines)
