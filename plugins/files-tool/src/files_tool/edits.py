"""What the three tools that change files are about to do, worked out without doing any of it.

The same plan is shown to a person beforehand and carried out afterwards. `edit_file` puts one text in place
of another and touches nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from files_tool.contents import current
from files_tool.descriptors import missing_folders
from files_tool.limits import LARGEST_FILE, LARGEST_PATCH_BYTES, LARGEST_PATCH_FILES, amount
from files_tool.patches import apply_hunks, read_patch
from files_tool.places import Missing, Refused
from files_tool.steps import Step
from files_tool.texts import PlainLines, Text, decode, nearest_lines

if TYPE_CHECKING:
    from files_tool.contents import Content
    from files_tool.patches import FilePatch
    from files_tool.places import Place
    from files_tool.workspace import Workspace


_NAMED = 10


def replace(text: Text, old: str, new: str, *, everywhere: bool, name: str) -> str:
    """Return a text with *old* replaced; line ends are compared as newlines and written as the file has them.

    Raises:
        Refused: If *old* is not there, or several times without *everywhere*.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise Refused("old is empty: give the text to replace, or write the whole file with write_file")
    if old == new:
        raise Refused("old and new are the same: there is nothing to change")
    plain = PlainLines(text.text)
    places = _places(plain.text, old)
    if not places:
        raise Refused(f"{name} does not have that text{nearest_lines(plain.text, old)}")
    if len(places) > 1 and not everywhere:
        raise Refused(_ambiguous(plain.text, places, name))
    return _spliced(text, plain, places, len(old), new.replace("\n", text.line_end))


def _places(text: str, old: str) -> list[int]:
    places, at = [], text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


def _spliced(text: Text, plain: PlainLines, places: list[int], length: int, new: str) -> str:
    pieces, done = [], 0
    for at in places:
        pieces += [text.text[done : plain.original_place(at)], new]
        done = plain.original_place(at + length)
    return "".join([*pieces, text.text[done:]])


def _ambiguous(text: str, places: list[int], name: str) -> str:
    lines, counted, at_line = [], 0, 1
    for at in places[:_NAMED]:
        at_line += text.count("\n", counted, at)
        counted = at
        lines.append(str(at_line))
    more = ", …" if len(places) > _NAMED else ""
    return (
        f"{name} has that text {len(places)} times, at lines {', '.join(lines)}{more}: give more of the "
        "lines around it, or set all to replace every one"
    )


_ANY_WRITE_BIT = 0o222


def plan_write(workspace: Workspace, path: str, content: str) -> list[Step]:
    """Return the step that gives a file this content; none if it has it."""
    place, plan = _writable(workspace, path), _Plan()
    plan.put(place, Text("").encode(content, place.shown))
    return plan.steps()


def plan_edit(workspace: Workspace, path: str, old: str, new: str, *, everywhere: bool) -> list[Step]:
    """Return the step that replaces a text in a file."""
    place, plan = _writable(workspace, path), _Plan()
    text = plan.text(place)
    changed = replace(text, old, new, everywhere=everywhere, name=place.shown)
    plan.put(place, text.encode(changed, place.shown))
    return plan.steps()


def plan_patch(workspace: Workspace, patch: str) -> list[Step]:
    """Return the steps that a patch takes; none if it changes nothing."""
    patches = read_patch(patch)
    if len(patches) > LARGEST_PATCH_FILES:
        raise Refused(f"the patch is about more than {LARGEST_PATCH_FILES} files: make several of it")
    plan = _Plan()
    for one in patches:
        _apply(plan, workspace, one)
    return plan.steps()


@dataclass(frozen=True, slots=True)
class _Planned:
    """A file: what is there, and what will be there."""

    before: Content | None
    data: bytes | None
    mode: int | None


class _Plan:
    """Files as they are, and as they will be when the plan is carried out."""

    def __init__(self) -> None:
        self._files: dict[Place, _Planned] = {}

    def file(self, place: Place) -> _Planned:
        """Return a file as the plan has it so far."""
        if place not in self._files:
            before = current(place)
            data, mode = (None, None) if before is None else (before.data, before.mode)
            self._files[place] = _Planned(before, data, mode)
        return self._files[place]

    def text(self, place: Place) -> Text:
        """Return a file's text.

        Raises:
            Refused: If there is none.
        """
        data = self.file(place).data
        if data is None:
            raise Missing(
                f"there is no {place.shown}: make it with write_file, or find its name with find_files"
            )
        text = decode(data)
        if text is None:
            raise Refused(
                f"{place.shown} is not a text file, so it cannot be edited: use a program that understands it"
            )
        return text

    def put(self, place: Place, data: bytes | None, mode: int | None = None) -> None:
        """Plan another content for a file; one that is new may be given its mode.

        Raises:
            Refused: If the file is protected, or would become too large.
        """
        known = self.file(place)
        if known.before is not None and not known.before.mode & _ANY_WRITE_BIT:
            raise Refused(f"{place.shown} is write-protected: ask for another way, or change its mode first")
        if data is not None and len(data) > LARGEST_FILE:
            size, most = amount(len(data)), amount(LARGEST_FILE)
            raise Refused(f"{place.shown} would have {size}, more than {most}: write less")
        self._files[place] = _Planned(known.before, data, mode if known.mode is None else known.mode)

    def steps(self) -> list[Step]:
        """Return what has to be done."""
        if sum(len(file.data or b"") for file in self._files.values()) > LARGEST_PATCH_BYTES:
            raise Refused(
                f"the files have more than {amount(LARGEST_PATCH_BYTES)} together: make several patches"
            )
        return [
            Step(
                place=place,
                before=file.before,
                data=file.data,
                mode=file.mode,
                folders=tuple(missing_folders(place)) if file.before is None else (),
            )
            for place, file in self._files.items()
            if file.data != (None if file.before is None else file.before.data)
        ]


def _apply(plan: _Plan, workspace: Workspace, patch: FilePatch) -> None:
    """Put into the plan what a patch does to one file."""
    source = None if patch.old is None else _writable(workspace, patch.old)
    target = None if patch.new is None else _writable(workspace, patch.new)
    text = Text("") if source is None else plan.text(source)
    changed = apply_hunks(text, patch.hunks, " to ".join(patch.names))
    mode = None if source is None else plan.file(source).mode
    if source is not None and source != target:
        if target is None and changed:
            raise Refused(f"{source.shown} has more lines than the patch removes: read it again")
        plan.put(source, None)
    if target is not None:
        if source != target and plan.file(target).data is not None:
            raise Refused(f"{target.shown} is there already: the patch must change it, or take another name")
        plan.put(target, text.encode(changed, target.shown), mode)


def _writable(workspace: Workspace, path: str) -> Place:
    """Return a place that may be changed.

    Raises:
        Refused: If it is a root, or belongs to git: what stands there is run by git itself.
    """
    place = workspace.locate(path)
    if not place.parts:
        raise Refused(f"{place.shown} is a folder: name a file in it")
    if any(part.lower() == ".git" for part in place.parts):
        raise Refused(f"{place.shown} is git's own: use git to change it")
    return place
