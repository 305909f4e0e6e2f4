"""One call of a tool: from its arguments to its result, and what a person approved of it.

What a person was shown is what is done, or nothing is. Between a question and its answer may lie a night and
a restart, and other programs work in the meantime. So what is shown also says which files it is about and
what was in them, by digests. It is kept with the question, and comes back with the answer. If another
program has changed a file by then, the change is another one than the one that was approved, and it is
refused.

Changes that the session itself has made since surprise nobody: a model that edits one file twice in one
answer is asked about both edits before the first is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from files_tool.contents import digest_of
from files_tool.diffs import shown
from files_tool.edits import plan_edit, plan_patch, plan_write
from files_tool.expressions import read_expression
from files_tool.limits import DEEPEST_FOLDER, LISTED_BY_DEFAULT
from files_tool.pages import Range, read
from files_tool.places import Refused
from files_tool.ripgrep import find_ripgrep
from files_tool.schemas import EDIT, FIND, LIST, PATCH, READ, SEARCH, WRITE
from files_tool.search import Wanted, find, glob_expression, list_folders, search
from files_tool.tree import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from files_tool.places import Place
    from files_tool.steps import Step

    OwnChanges = Callable[[Place, float], Sequence[tuple[str | None, str | None]]]
    from files_tool.journal import Journal
    from files_tool.workspace import Workspace


BASIS = "basis"
"""Where it stands in a display; None there means that a refusal was shown."""
REFUSED = "refused"
"""Why a call that is shown beforehand would fail; nobody is asked about it then."""

_AT, _FILES = "at", "files"
_NOTHING = ""


def basis_of(steps: Sequence[Step]) -> dict[str, Any]:
    """Return what steps start from: for each file its content's digest, and when that was so."""
    return {_AT: time.time(), _FILES: {_key(step.place): _digest(step) for step in steps}}


def is_bound(shown: Any) -> bool:
    """Say whether what a person saw says what it started from; of a call that nobody saw there is nothing."""
    return isinstance(shown, Mapping) and BASIS in shown


def check_shown(steps: Sequence[Step], shown: Any, own_changes: OwnChanges) -> None:
    """Let steps pass if they are those that were shown, or if nothing was.

    Args:
        shown: What a person saw before they decided; None if nobody was asked.
        own_changes: Returns what the session itself made of a file since then, before and after.

    Raises:
        Refused: If they are others.
    """
    if not steps or not is_bound(shown):
        return
    basis = shown[BASIS]
    if basis is None:
        raise Refused(
            "this call was shown for approval as one that is refused, so nothing was done: call it again"
        )
    files = basis[_FILES]
    changed = [
        step.place.shown
        for step in steps
        if _key(step.place) not in files or not _led_here(files[_key(step.place)], step, basis, own_changes)
    ]
    if changed:
        raise Refused(
            f"{', '.join(changed)} changed after this call was shown for approval, so nothing was done: "
            "read it again, then call it again"
        )


def _led_here(digest: str, step: Step, basis: Mapping[str, Any], own_changes: OwnChanges) -> bool:
    """Say whether a file is as it was, or as the session's own changes have left it."""
    if digest == _digest(step):
        return True
    for before, after in own_changes(step.place, basis[_AT]):
        if (before or _NOTHING) == digest:
            digest = after or _NOTHING
    return digest == _digest(step)


def _digest(step: Step) -> str:
    return _NOTHING if step.before is None else step.before.digest


def _key(place: Place) -> str:
    """Return a name for a place that is the same wherever it is kept, and no other place's."""
    return sha256(place.absolute.encode(errors="surrogateescape")).hexdigest()[:32]


Result = dict[str, Any]
CHANGES = (WRITE, EDIT, PATCH)
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call under way.

    Attributes:
        tool: The tool's name.
        arguments: What it was called with; they fit the tool's schema.
        workspace: Where it may work.
        journal: Where changes are recorded.
        is_cancelled: Says whether anybody still waits for the result.
        shown: What a person saw of it before they allowed it; None if nobody was asked.
    """

    tool: str
    arguments: dict[str, Any]
    workspace: Workspace
    journal: Journal
    is_cancelled: Callable[[], bool] = lambda: False
    shown: Any = None

    def run(self) -> Result:
        """Do what the call asks for.

        Raises:
            Refused: If that cannot be done.
        """
        return self._change() if self.tool in CHANGES else _LOOKING[self.tool](self)

    def plan(self) -> list[Step]:
        """Return the steps that the call would take, after a look at whether it may.

        Raises:
            Refused: If it may not.
        """
        given = self.arguments
        if self.tool == WRITE:
            steps = plan_write(self.workspace, given["path"], given["content"])
        elif self.tool == EDIT:
            everywhere = given.get("all", False)
            steps = plan_edit(
                self.workspace, given["path"], given["old"], given["new"], everywhere=everywhere
            )
        else:
            steps = plan_patch(self.workspace, given["patch"])
        for step in steps:
            if step.before is not None:
                self.journal.seen.check(step.place, step.before)
        return steps

    def plan_for_people(self) -> list[Step]:
        """Return the same steps before they are taken; somebody may have seen others already.

        Raises:
            Refused: If it may not take them, or these are not those.
        """
        steps = self.plan()
        if is_bound(self.shown):
            with self.journal.locked(self.is_cancelled) as journal:
                check_shown(steps, self.shown, journal.changes_of)
        return steps

    def _change(self) -> Result:
        with self.journal.locked(self.is_cancelled) as journal:
            steps = self.plan()
            check_shown(steps, self.shown, journal.changes_of)
            if not steps:
                return _result("Nothing was changed: it is so already.")
            journal.perform("change", self.tool, steps)
            for step in steps:
                if step.data is not None:
                    self.journal.seen.note(step.place, digest_of(step.data))
        return _result("\n".join(map(_told, steps)), shown_steps(steps))

    def read(self) -> Result:
        """Run `read_file`."""
        given = self.arguments
        place = self.workspace.locate(given["path"])
        wanted = Range(
            start=given.get("start_line", 1),
            end=given.get("end_line"),
            numbered=given.get("numbered", False),
        )
        reading = read(place, wanted, self.is_cancelled)
        if reading.content is not None:
            self.journal.seen.note(place, reading.content.digest)
        if not isinstance(reading.answer, str):
            return _result(reading.answer, {"type": "text", "content": reading.answer[0]["text"]})
        language = place.parts[-1].rpartition(".")[2]
        display = {"type": "code", "title": place.shown, "language": language, "content": reading.answer}
        return _result(reading.answer, display)

    def list_all(self) -> Result:
        """Run `list_files`."""
        return _result(list_folders(self._starts(self.arguments.get("depth", 1)), self._limit))

    def find(self) -> Result:
        """Run `find_files`."""
        return _result(find(self._starts(), self.arguments["glob"], self._limit))

    def search(self) -> Result:
        """Run `search_files`."""
        given = self.arguments
        expression = read_expression(
            given["pattern"],
            is_literal=given.get("literal", False),
            ignore_case=given.get("ignore_case", False),
        )
        wanted = Wanted(
            search=expression,
            glob=glob_expression(given["glob"]) if given.get("glob") else None,
            around=given.get("context", 0),
            names_only=given.get("names_only", False),
            limit=self._limit,
        )
        program = find_ripgrep([place.root for place in self.workspace.roots])
        return _result(search(self._starts(), wanted, program))

    @property
    def _limit(self) -> int:
        limit: int = self.arguments.get("limit", LISTED_BY_DEFAULT)
        return limit

    def _starts(self, depth: int = DEEPEST_FOLDER) -> list[tuple[Place, Choice]]:
        """Return the folders to begin in: the one that is named, or all roots."""
        path = self.arguments.get("path")
        return [
            (
                place,
                Choice(
                    hidden=self.arguments.get("hidden", False),
                    ignored=self.arguments.get("ignored", False),
                    depth=depth,
                    excluded=self.workspace.excluded(place),
                    is_cancelled=self.is_cancelled,
                ),
            )
            for place in ([self.workspace.locate(path)] if path else self.workspace.roots)
        ]


_LOOKING: dict[str, Callable[[Call], Result]] = {
    READ: Call.read,
    LIST: Call.list_all,
    FIND: Call.find,
    SEARCH: Call.search,
}


def shown_beforehand(steps: Sequence[Step]) -> dict[str, Any]:
    """Return steps as a person sees them who decides about them, bound to what they start from."""
    shown = shown_steps(steps) if steps else {"type": "text", "content": "This call changes nothing."}
    return {**shown, BASIS: basis_of(steps)}


def shown_refusal(error: Exception) -> dict[str, Any]:
    """Return what a person sees of a call that would be refused."""
    return {"type": "text", "content": f"This call will fail: {error}", REFUSED: str(error), BASIS: None}


def shown_steps(steps: Sequence[Step]) -> dict[str, Any]:
    """Return steps as a person sees them: one diff, cut where it is too long to be read."""
    names = [step.place.shown for step in steps]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    linked = [step.place.shown for step in steps if step.before is not None and step.before.names > 1]
    links = (
        f"; other names (hard links) of {', '.join(linked[:_NAMED])} keep the old content" if linked else ""
    )
    title = ", ".join(names[:_NAMED]) + more + links
    return {"type": "diff", "title": title, "content": shown([step.diff for step in steps])}


def _told(step: Step) -> str:
    """Return what became of a file, for the model."""
    verb = "Created" if step.before is None else "Removed" if step.data is None else "Changed"
    others = 0 if step.before is None else step.before.names - 1
    links = f"; {others} other name(s) of it (hard links) keep the old content" if others else ""
    return f"{verb} {step.place.shown} (+{step.diff.added} -{step.diff.removed} lines){links}"


def _result(answer: Any, display: dict[str, Any] | None = None) -> Result:
    result = {"success": True, "result": answer}
    return result if display is None else {**result, "display": display}
