"""What people can do about memories: search them, add one, change one, remove one, and undo that.

The page draws all of it as a collection; in the terminal each action is a command, `/memory` the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memory_feature.memory import MemoryProblem, shortened
from memory_feature.shelf import PERSON, SCOPES, Shelf, Shelved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLUGIN: Final = "memory"
LIST, ADD, CHANGE = "memory", "add_memory", "change_memory"
FORGET, RESTORE, DELETE_FILE = "forget_memory", "restore_memory", "delete_memory_file"
_TITLE = 80
_TEXT: Final = {
    "text": {"type": "string", "required": True, "label": "What to remember", "widget": "textarea"}
}
_ITEM: Final = {
    "item_id": {
        "type": "string",
        "required": True,
        "description": "Its id, such as person/likes-tea, or the beginning of it.",
    }
}
# The person's own memories are the same for every session, also before there is one.
_ANYWHERE: Final = {"without_session": True}
ACTIONS: Final[list[dict[str, Any]]] = [
    {
        **_ANYWHERE,
        "id": LIST,
        "label": "Memory",
        "description": "Lists what agents remember, or searches it.",
        "inputs": {"query": {"type": "string", "description": "Words to look for."}},
        "idempotent": True,
    },
    {
        **_ANYWHERE,
        "id": ADD,
        "label": "Remember something",
        "description": "Keeps a fact for later sessions.",
        "inputs": {
            **_TEXT,
            "scope": {
                "type": "string",
                "enum": list(SCOPES),
                "default": PERSON,
                "description": "For you in all projects, or for this project alone.",
            },
        },
    },
    {
        **_ANYWHERE,
        "id": CHANGE,
        "label": "Change",
        "description": "Gives a memory another text.",
        "inputs": {**_ITEM, **_TEXT},
    },
    {
        **_ANYWHERE,
        "id": FORGET,
        "label": "Forget",
        "description": "Removes a memory.",
        "inputs": _ITEM,
    },
    {
        **_ANYWHERE,
        "id": RESTORE,
        "label": "Restore",
        "description": "Puts a memory back that was removed.",
        "inputs": {**_ITEM, **_TEXT, "created": {"type": "string"}},
    },
    {
        **_ANYWHERE,
        "id": DELETE_FILE,
        "label": "Delete the file",
        "description": "Deletes a file that cannot be used as a memory.",
        "inputs": _ITEM,
        "confirm": "Delete the file for good? This cannot be undone.",
    },
]
ELEMENTS: Final[list[dict[str, Any]]] = [
    {
        "ui_type": "collection",
        "label": "Memory",
        "description": "Facts that agents keep for later sessions: yours, and those of this project.",
        "action_id": LIST,
        "item_actions": [ADD, CHANGE, FORGET, RESTORE, DELETE_FILE],
    }
]


def run_action(shelf: Shelf, action_id: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Run an action on the shelf of a session; the answer says what cannot be done."""
    run = _RUN.get(action_id)
    if run is None:
        return _failed("unknown_action", f"there is no action {action_id!r}")
    try:
        return run(shelf, params)
    except MemoryProblem as problem:
        return _failed("memory_problem", str(problem))


def _list(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    query = params.get("query") or ""
    found, broken = shelf.find(query), shelf.broken()
    others = [one for one in shelf.problems() if one not in {problem for _, problem in broken}]
    items = [_item(shelf, one) for one in found]
    items += [{"id": id_, "problem": problem, "actions": [DELETE_FILE]} for id_, problem in broken]
    items += [{"id": f"problem {at}", "problem": one, "actions": []} for at, one in enumerate(others)]
    lines = [f"{one.id}: {shortened(one.memory.text, 500)}" for one in found]
    lines += [f"{id_}: {problem}; {DELETE_FILE} deletes it" for id_, problem in broken]
    lines += [f"left out: {problem}" for problem in others]
    nothing = f"Nothing is remembered about {query!r}." if query.split() else "Nothing is remembered yet."
    return {
        "items": items,
        "display": {"title": "Memory", "body": "\n".join(lines) or nothing, "display_id": "memory"},
    }


def _item(shelf: Shelf, one: Shelved) -> dict[str, Any]:
    day = f", {one.memory.at[:10]}" if one.memory.at else ""
    return {
        "id": one.id,
        "title": shortened(one.memory.name.replace("-", " "), _TITLE),
        "text": one.memory.text,
        "origin": f"{one.scope}{day}, {shelf.folder(one.scope).path}",
        "values": {"text": one.memory.text},
        "actions": [CHANGE, FORGET],
    }


def _add(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    scope = params.get("scope") or PERSON
    added = Shelved(scope, shelf.folder(scope).add(params["text"]))
    return _done(f"Remembered as {added.id}.", FORGET, {"item_id": added.id})


def _change(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    item_id = shelf.resolve(params["item_id"])
    folder, name = shelf.place(item_id)
    before, _ = folder.change(name, params["text"])
    return _done(f"{item_id} is changed.", CHANGE, {"item_id": item_id, "text": before.text})


def _forget(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    item_id = shelf.resolve(params["item_id"])
    folder, name = shelf.place(item_id)
    gone = folder.remove(name)
    undo = {"item_id": item_id, "text": gone.text, "created": gone.created}
    return _done(f"{item_id} is forgotten.", RESTORE, undo)


def _delete_file(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    item_id = shelf.resolve(params["item_id"])
    folder, name = shelf.place(item_id)
    folder.delete_broken(name)
    return {"display": {"body": f"The file of {item_id} is deleted.", "display_id": "memory-change"}}


def _restore(shelf: Shelf, params: Mapping[str, Any]) -> dict[str, Any]:
    item_id = params["item_id"]
    folder, name = shelf.place(item_id)
    folder.restore(name, params["text"], params.get("created") or "")
    return _done(f"{item_id} is remembered again.", FORGET, {"item_id": item_id})


def _done(body: str, undo: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was done, with a button to undo it."""
    button = {"kind": "run_action", "id": "undo", "label": "Undo", "plugin": PLUGIN}
    return {
        "display": {
            "body": body,
            "display_id": "memory-change",
            "actions": [{**button, "action_id": undo, "params": dict(params)}],
        }
    }


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"type": kind, "message": message}}


_RUN: Final[Mapping[str, Callable[[Shelf, Mapping[str, Any]], dict[str, Any]]]] = {
    LIST: _list,
    ADD: _add,
    CHANGE: _change,
    FORGET: _forget,
    RESTORE: _restore,
    DELETE_FILE: _delete_file,
}
