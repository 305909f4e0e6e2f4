"""The feature that undoes changes and redoes them: what was replaced is put back, if nobody touched it since.

Its actions are for people. So they show what they would do, and do it when that is confirmed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agent_core import ConfigError, plugin_config
from files_tool.contents import current
from files_tool.descriptors import missing_folders, remove_folders
from files_tool.diffs import diff, shown
from files_tool.journal import Journal
from files_tool.places import Refused
from files_tool.settings import Settings
from files_tool.steps import Step
from files_tool.tool import TAG, FilesTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Session
    from files_tool.contents import Content
    from files_tool.journal import LockedJournal
    from files_tool.places import Place
    from files_tool.records import Change, FileRecord, History, Operation


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes to be reversed, the next one first, and what that does to the files."""

    changes: tuple[Change, ...]
    diff: str


def plan_reversal(journal: LockedJournal, changes: Sequence[Change]) -> Plan:
    """Find out whether changes can be reversed, and return what that would do.

    Raises:
        Refused: If a file is not as the change has left it; the text names it.
    """
    now: dict[Place, Content | None] = {}
    then: dict[Place, str | None] = {}
    for number, change in enumerate(changes):
        for file in change.files:
            place = file.place
            if place not in now:
                now[place] = current(place)
                then[place] = _digest(now[place])
            _check(file, then[place], change, number)
            then[place] = file.before
    diffs = []
    for place, digest in then.items():
        there = now[place]
        data = None if digest is None else journal.content(digest)
        diffs.append(diff(place.shown, None if there is None else there.data, data))
    return Plan(tuple(changes), shown(diffs))


def reverse(journal: LockedJournal, op: Operation, changes: Sequence[Change]) -> None:
    """Reverse changes, the first one first; each is recorded by itself.

    Raises:
        Refused: If a file is not as it was left. Changes before that one are reversed.
    """
    for change in changes:
        journal.perform(op, op, [_step(journal, file, change) for file in change.files])
        for file in change.files:
            if file.before is None:
                remove_folders(file.place, file.folders)


def _step(journal: LockedJournal, file: FileRecord, change: Change) -> Step:
    now = current(file.place)
    _check(file, _digest(now), change, 0)
    return Step(
        place=file.place,
        before=now,
        data=None if file.before is None else journal.content(file.before),
        mode=file.mode,
        folders=tuple(missing_folders(file.place)) if now is None else (),
    )


def _check(file: FileRecord, digest: str | None, change: Change, before: int) -> None:
    """Refuse to reverse a change of what is another file by now; *before* could be reversed."""
    if digest != file.after:
        others = f"; set count to {before} to leave it out" if before else ""
        raise Refused(
            f"{file.place.shown} has changed since change {change.number} ({change.tool}), so nothing was "
            f"done: bring it back by hand, or keep it as it is{others}"
        )


def _digest(content: Content | None) -> str | None:
    return None if content is None else content.digest


Dicts = list[dict[str, Any]]
Answer = dict[str, Any]
PLUGIN = "files_undo"
UNDO: Final = "undo"
REDO: Final = "redo"
CHANGES, FORGET = "changes", "forget_changes"
_LISTED = 50


class FilesUndo:
    """Undoes and redoes what the files tool has changed in a session."""

    name = PLUGIN
    version = "0.1.0"

    def required_tags(self) -> list[str]:
        """Return the tag of the tool whose changes these are; without it there is nothing to undo."""
        return [TAG]

    def get_ui_elements(self, config: Mapping[str, Any]) -> Dicts:
        """Return a button for each of the actions."""
        labels = ((UNDO, "Undo file change"), (REDO, "Redo file change"), (CHANGES, "File changes"))
        return [
            {"ui_type": "session_action", "label": label, "action_id": action} for action, label in labels
        ]

    def get_actions(self) -> Dicts:
        """Offer to undo, to redo and to list; forget everything when the session is deleted."""
        return _ACTIONS

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Run an action; the answer says what cannot be done."""
        try:
            config = (context or {}).get("config")
            # The journal is a setting of the tool, whose changes these are.
            settings = Settings.read(
                plugin_config(config if isinstance(config, Mapping) else {}, FilesTool.name)
            )
            return _run(action_id, Journal(settings.journal, session.session_id), params)
        except ConfigError as error:
            return _failed("config", str(error))
        except Refused as refused:
            return _failed("refused", str(refused))
        except OSError as error:
            return _failed("system", f"the system refused: {error}")


def _run(action_id: str, journal: Journal, params: Mapping[str, Any]) -> Answer:
    if action_id == UNDO:
        return _reverse(UNDO, journal, params)
    if action_id == REDO:
        return _reverse(REDO, journal, params)
    if action_id == CHANGES:
        return _listed(journal.history())
    if action_id == FORGET:
        journal.forget()
        return {"status": "ok"}
    return _failed("unknown_action", f"there is no action {action_id!r}")


def _reverse(op: Operation, journal: Journal, params: Mapping[str, Any]) -> Answer:
    """Show what undoing or redoing would do, or do it if that is confirmed."""
    count = params.get("count") or 1
    if not isinstance(count, int) or count < 1:
        return _failed("count", "count must be 1 or more")
    if not _next(op, journal.history()):
        return {"status": "noop", "message": f"There is nothing to {op}."}
    with journal.locked() as locked:
        changes = _next(op, locked.history())[:count]
        expected = params.get("change")
        if expected is not None and (not changes or changes[0].number != expected):
            return _failed("outdated", f"other changes were made since this was shown: look at {op} again")
        return _reversed(op, locked, changes) if params.get("confirm") else _shown(op, locked, changes)


def _next(op: Operation, history: History) -> list[Change]:
    """Return the changes that would be reversed, the next one first."""
    return list(reversed(history.done if op == UNDO else history.undone))


def _shown(op: Operation, journal: LockedJournal, changes: Sequence[Change]) -> Answer:
    plan = plan_reversal(journal, changes)
    params = {"count": len(changes), "confirm": True, "change": changes[0].number}
    confirm = {
        "kind": "run_action",
        "id": f"confirm-{op}",
        "label": op.capitalize(),
        "plugin": PLUGIN,
        "action_id": op,
        "params": params,
    }
    return {
        "status": "plan",
        "changes": [change.number for change in changes],
        "display": {
            "format": "markdown",
            "title": f"{op.capitalize()} {_counted(changes)}?",
            "body": _fenced(plan.diff),
            "variant": "warning",
            "presentation": "inline",
            "dismissible": True,
            "display_id": f"files-{op}",
            "actions": [confirm],
        },
    }


def _reversed(op: Operation, journal: LockedJournal, changes: Sequence[Change]) -> Answer:
    plan = plan_reversal(journal, changes)
    reverse(journal, op, changes)
    return {
        "status": "ok",
        "changes": [change.number for change in changes],
        "display": {
            "format": "markdown",
            "title": f"{_DONE[op]} {_counted(changes)}",
            "body": _fenced(plan.diff),
            "variant": "success",
            "presentation": "inline",
            "dismissible": True,
            "display_id": f"files-{op}",
        },
    }


def _listed(history: History) -> Answer:
    undone = [_described(change, is_undone=True) for change in history.undone]
    found = [*undone, *(_described(change, is_undone=False) for change in reversed(history.done))]
    lines = [
        f"{one['number']}. {one['tool']}, {one['at']}{' (undone)' if one['undone'] else ''}: "
        + ", ".join(f"{file['path']} +{file['added']} -{file['removed']}" for file in one["files"])
        for one in found[:_LISTED]
    ]
    if len(found) > _LISTED:
        lines.append(f"… and {len(found) - _LISTED} before")
    body = "\n".join(lines) or "No file was changed in this session."
    display = {"format": "text", "title": "File changes", "body": body, "display_id": "files-changes"}
    return {"status": "ok", "changes": found, "display": {**display, "dismissible": True}}


def _described(change: Change, *, is_undone: bool) -> dict[str, Any]:
    files = []
    for file in change.files:  # of a change that was undone, the undoing is what is on record
        came, went = (file.removed, file.added) if is_undone else (file.added, file.removed)
        files.append({"root": file.root, "path": file.path, "added": came, "removed": went})
    at = datetime.fromtimestamp(change.at, UTC).isoformat(timespec="seconds")
    return {"number": change.number, "tool": change.tool, "at": at, "undone": is_undone, "files": files}


def _counted(changes: Sequence[Change]) -> str:
    if len(changes) == 1:
        return f"change {changes[0].number}"
    return f"{len(changes)} changes, {changes[-1].number} to {changes[0].number}"


def _fenced(diff: str) -> str:
    """Return a diff as a block of code that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", diff)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{diff}{fence}"


def _failed(kind: str, message: str) -> Answer:
    return {"status": "error", "error": {"type": kind, "message": message}}


_DONE = {UNDO: "Undid", REDO: "Redid"}
_REVERSAL_INPUTS = {
    "count": {"type": "integer", "default": 1, "description": "How many changes."},
    "confirm": {"type": "boolean", "default": False, "description": "True to do it and not only show it."},
    "change": {"type": "integer", "description": "The change that must be the next; else nothing is done."},
}
_ACTIONS: Dicts = [
    {
        "id": UNDO,
        "label": "Undo file change",
        "description": "Put back what the last changes of files have replaced.",
        "inputs": _REVERSAL_INPUTS,
    },
    {
        "id": REDO,
        "label": "Redo file change",
        "description": "Make changes again that were undone.",
        "inputs": _REVERSAL_INPUTS,
    },
    {
        "id": CHANGES,
        "label": "File changes",
        "description": "List the changes of files in this session.",
        "inputs": {},
    },
    {
        "id": FORGET,
        "label": "Forget file changes",
        "description": "Remove the journal of a session that is deleted.",
        "inputs": {},
        "trigger": ["session_delete_prepare"],
        "idempotent": True,
    },
]
