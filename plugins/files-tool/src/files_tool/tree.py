"""Walking through folders of the workspace: in order, without links, and without what is ignored.

Every folder is opened relative to the one above it, as in `descriptors`, and stays open while what is in it
is looked at. So the walk stays inside, whatever is moved in the meantime.
"""

from __future__ import annotations

import heapq
import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from agent_plugin_kit.safe_files import FOLDER
from files_tool.contents import Missed, Why, read_all
from files_tool.descriptors import is_of_the_kernel, opened_folder
from files_tool.gitignore import Rules, rules_of
from files_tool.limits import DEEPEST_FOLDER, LARGEST_RULES, MOST_IN_FOLDER
from files_tool.places import NOTHING, Protected, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from files_tool.places import Place

_GIT, _RULES_FILE = ".git", ".gitignore"
IS_FILE, IS_FOLDER, IS_LINK, IS_OTHER = "file", "folder", "link", "other"


class Entry(NamedTuple):
    """Something in a folder.

    Attributes:
        path: Its way down from the root.
        name: Its name in the folder.
        kind: `IS_FILE`, `IS_FOLDER`, `IS_LINK` or `IS_OTHER`.
        folder: The folder, open until the walk goes on.
    """

    path: str
    name: str
    kind: str
    folder: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What of a folder is wanted.

    Attributes:
        hidden: Also names that begin with a dot.
        ignored: Also what a .gitignore leaves out.
        depth: How many folders deep.
        excluded: What is left out in any case.
        protected: What is left out under any name; a walk has that of the place where it begins.
        is_cancelled: Asked at every folder.
        missed: Counts what is passed over.
    """

    hidden: bool = False
    ignored: bool = False
    depth: int = DEEPEST_FOLDER
    excluded: Rules
    protected: Protected = NOTHING
    is_cancelled: Callable[[], bool] = lambda: False
    missed: Missed = field(default_factory=Missed)


class Above(NamedTuple):
    """The rules of a folder further up, and how long the way to it is."""

    length: int
    rules: Rules


class Folder(NamedTuple):
    """A folder that is walked through.

    Attributes:
        prefix: What stands before the names in it; empty for a root.
        above: The rules that hold in it, its own included.
        files: The names of all its files, wanted or not; only where folders alone are walked through.
    """

    prefix: str
    above: tuple[Above, ...]
    files: Sequence[str] = ()

    def leaves_out(self, name: str, choice: Choice) -> bool:
        """Say whether a file in it is left out."""
        return _is_left_out(self.prefix + name, choice, self.above, is_folder=False)


def walk(start: Place, choice: Choice) -> Iterator[Entry]:
    """Yield everything below a folder, by name, each folder before what is in it.

    Raises:
        Refused: If the folder cannot be opened; one further down is passed over.
    """
    choice = replace(choice, protected=start.protected)
    with opened_folder(start) as fd:
        yield from _below(fd, _first(start, choice), choice, choice.depth)


def walk_folders(start: Place, choice: Choice) -> Iterator[Folder]:
    """Yield the folders only, this one first, in no order; that is quicker where there are many files.

    Raises:
        Refused: If the folder cannot be opened; one further down is passed over.
    """
    choice = replace(choice, protected=start.protected)
    with opened_folder(start) as fd:
        yield from _folders_below(fd, _first(start, choice), choice, choice.depth)


def _first(start: Place, choice: Choice) -> Folder:
    prefix = f"{start.path}/" if start.parts else ""
    return Folder(prefix, () if choice.ignored else _rules_above(start))


def _below(fd: int, folder: Folder, choice: Choice, depth: int) -> Iterator[Entry]:
    folder = _entered(fd, folder, choice)
    is_judged = bool(folder.above or choice.excluded)
    for name, kind in _entries(fd, choice):
        path = folder.prefix + name
        if is_judged and _is_left_out(path, choice, folder.above, is_folder=kind == IS_FOLDER):
            continue
        yield Entry(path, name, kind, fd)
        if kind == IS_FOLDER and _goes_on(choice, depth):
            with _opened(fd, name, choice) as child:
                if child is not None:
                    yield from _below(child, Folder(f"{path}/", folder.above), choice, depth - 1)


def _folders_below(fd: int, folder: Folder, choice: Choice, depth: int) -> Iterator[Folder]:
    folder = _entered(fd, folder, choice)
    names, files = _folders_and_files(fd, choice)
    yield folder._replace(files=files)
    for name in names:
        path = folder.prefix + name
        if not _is_left_out(path, choice, folder.above, is_folder=True) and _goes_on(choice, depth):
            with _opened(fd, name, choice) as child:
                if child is not None:
                    yield from _folders_below(child, Folder(f"{path}/", folder.above), choice, depth - 1)


def _entered(fd: int, folder: Folder, choice: Choice) -> Folder:
    """Return a folder with its own rules."""
    if choice.is_cancelled():
        raise Refused("it was cancelled")
    rules = None if choice.ignored else _rules_in(fd)
    return Folder(folder.prefix, (*folder.above, Above(len(folder.prefix), rules))) if rules else folder


@contextmanager
def _opened(fd: int, name: str, choice: Choice) -> Iterator[int | None]:
    """Hold a folder in a folder open; None if it is gone, has become a link, or is closed to us."""
    try:
        child = os.open(name, FOLDER, dir_fd=fd)
    except OSError as error:
        choice.missed.add_closed(error, Why.CLOSED_FOLDER)
        yield None
        return
    try:
        state = os.fstat(child)
        yield None if is_of_the_kernel(state) or choice.protected.is_(state) else child
    finally:
        os.close(child)


def _entries(fd: int, choice: Choice) -> list[tuple[str, str]]:
    """Return names and kinds, by name; of a folder that is too large the first ones."""
    with os.scandir(fd) as found:
        named = ((entry.name, _kind(entry)) for entry in found if _is_seen(entry, choice))
        entries = list(islice(named, MOST_IN_FOLDER + 1))
        if len(entries) > MOST_IN_FOLDER:
            choice.missed.add(Why.FULL_FOLDER)
            return heapq.nsmallest(MOST_IN_FOLDER, chain(entries, named))
    entries.sort()
    return entries


def _folders_and_files(fd: int, choice: Choice) -> tuple[list[str], list[str]]:
    """Return the folders in a folder, and its files, not all of which may be wanted."""
    folders, files, count = [], [], 0
    with os.scandir(fd) as found:
        for entry in found:
            count += 1
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False) and _is_seen(entry, choice):
                folders.append(entry.name)
    if count > MOST_IN_FOLDER:
        choice.missed.add(Why.FULL_FOLDER)
    return folders, files


def _goes_on(choice: Choice, depth: int) -> bool:
    """Say whether the walk goes further down; that it ends where nobody asked it to is noted."""
    if depth <= 1 and choice.depth == DEEPEST_FOLDER:
        choice.missed.add(Why.DEEP_FOLDER)
    return depth > 1


def _is_seen(entry: os.DirEntry[str], choice: Choice) -> bool:
    if entry.name[0] == "." and (not choice.hidden or entry.name == _GIT):
        return False
    return not choice.protected.lists(entry)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return IS_FILE
    if entry.is_dir(follow_symlinks=False):
        return IS_FOLDER
    return IS_LINK if entry.is_symlink() else IS_OTHER


def _is_left_out(path: str, choice: Choice, above: tuple[Above, ...], *, is_folder: bool) -> bool:
    if choice.excluded.verdict(path, is_folder=is_folder):
        return True
    for length, rules in reversed(above):
        verdict = rules.verdict(path[length:], is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _rules_above(start: Place) -> tuple[Above, ...]:
    """Return the rules of the folders on the way to a place."""
    found = []
    for depth in range(len(start.parts)):
        place = start.upto(depth)
        with opened_folder(place) as folder:
            rules = _rules_in(folder)
        if rules:
            found.append(Above(len(place.path) + (depth > 0), rules))
    return tuple(found)


def _rules_in(folder: int) -> Rules:
    """Return the rules of a folder; none if they cannot be read."""
    try:
        fd = os.open(_RULES_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return rules_of(b"")
    try:
        return rules_of(read_all(fd, LARGEST_RULES))
    except OSError:  # a folder of that name, or a FIFO without a writer
        return rules_of(b"")
    finally:
        os.close(fd)
