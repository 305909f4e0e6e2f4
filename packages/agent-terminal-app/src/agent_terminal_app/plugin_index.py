"""Index files: lists of plugins that anybody can write and host, and the one that comes with the program.

An index is a JSON file, at an address or on a disk. It says where the wheel of a plugin is and what its
checksum must be, or the distribution and version that a package registry has. Nothing in it is run.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from agent_core.clean_text import one_line
from agent_core.errors import nearest
from agent_core.plugin.discovery import KINDS
from agent_core.product import USER_AGENT
from agent_terminal_app import __version__
from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SHIPPED = "keelwork"
"""The name of the index that comes with the program."""
FORMAT = 1
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.!+]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST_INDEX = 4 << 20
_LARGEST_WHEEL = 512 << 20
_PATIENCE = 30.0
_LOCAL = ("127.0.0.1", "localhost", "::1")
_TEXTS = (
    "name",
    "kind",
    "summary",
    "distribution",
    "version",
    "author",
    "license",
    "source",
    "wheel",
    "sha256",
)
_NEEDED = ("name", "kind", "summary", "distribution", "version", "author")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A plugin of an index.

    Attributes:
        name: The name of its entry point.
        distribution: What is installed.
        source: Where its source can be read.
        wheel: Where its wheel is; empty if a package registry has it.
        sha256: The checksum of the wheel.
        index: The index that lists it.
        registry: Whether the index says that its distributions are in package registries.
    """

    name: str
    kind: str
    summary: str
    distribution: str
    version: str
    author: str
    license: str = ""
    source: str = ""
    wheel: str = ""
    sha256: str = ""
    index: str = SHIPPED
    registry: bool = True

    def matches(self, words: Sequence[str]) -> bool:
        """Say whether all words are found in what is known about it."""
        known = f"{self.name} {self.kind} {self.summary} {self.distribution} {self.author}".lower()
        return all(word.lower() in known for word in words)


def read_indexes(places: Sequence[str]) -> list[Listed]:
    """Return the plugins of all indexes, those of the first index first.

    Args:
        places: Files and addresses; `SHIPPED` is the index of the program itself.

    Raises:
        CommandError: If an index cannot be had or read.
    """
    return [plugin for place in places for plugin in _read(place)]


def find_listed(name: str, places: Sequence[str]) -> Listed:
    """Return the plugin of that name, or of that distribution.

    Raises:
        CommandError: If there is none, or if two indexes mean different things by it.
    """
    listed = [one for one in read_indexes(places) if name in (one.name, one.distribution)]
    if not listed:
        known = [one.name for one in read_indexes(places)]
        close = nearest(name, known)
        hint = (
            f"{close}{'' if close.endswith('?') else ';'} a package that no index lists is given by its path"
        )
        raise CommandError(f"no index has a plugin {name!r:.80}", code=Exit.USAGE, hint=hint)
    others = [one for one in listed if one.distribution != listed[0].distribution]
    if others:
        both = (
            f"{listed[0].distribution} ({listed[0].index}) and {others[0].distribution} ({others[0].index})"
        )
        raise CommandError(
            f"{name!r} may be {both}", code=Exit.USAGE, hint="give the name of the distribution"
        )
    return listed[0]


def fetch_wheel(plugin: Listed, folder: Path) -> Path:
    """Bring the wheel of a plugin into a folder and return it, if it is the one that the index means.

    Raises:
        CommandError: If it cannot be had, or its checksum is another one.
    """
    content = _bytes_of(plugin.wheel, _LARGEST_WHEEL)
    found = sha256(content).hexdigest()
    if found != plugin.sha256:
        raise CommandError(
            f"{plugin.wheel} is not the wheel that {plugin.index} lists: its SHA-256 is {found}",
            hint="nothing was installed; tell the author of the index",
        )
    path = folder / Path(urlsplit(plugin.wheel).path).name
    path.write_bytes(content)
    return path


def wheels_for(plugin: Listed, folder: Path) -> list[Path]:
    """Return the wheels of a folder that a plugin needs and that are not installed: its own, then others.

    Only wheels for every platform are looked at: which of the others fits is for the installer to say.

    Raises:
        CommandError: If one of Keelwork's own is missing. A package of its name in a registry is not ours.
    """
    there = list(_pure_wheels(folder))
    waiting = [Requirement(f"{plugin.distribution}=={plugin.version}")]
    chosen: dict[str, Path] = {}
    while waiting:
        wanted = waiting.pop(0)
        name = canonicalize_name(wanted.name)
        if name in chosen:
            continue
        here = _installed(wanted)
        if here is not None:
            waiting += _needs(here, wanted.extras) if wanted.extras else []
            continue
        fits = [file for has, version, file in there if has == name and version in wanted.specifier]
        if fits:
            chosen[name] = fits[-1]
            [found] = distributions(path=[str(fits[-1])])
            waiting += _needs(found, wanted.extras)
        elif name == canonicalize_name(plugin.distribution) or name.partition("-")[0] == SHIPPED:
            hint = "`make wheels` in a clone builds all that belong together"
            raise CommandError(f"{folder} has no wheel of {wanted}", hint=hint)
    return list(chosen.values())


def _pure_wheels(folder: Path) -> Iterator[tuple[str, str, Path]]:
    for file in sorted(folder.glob("*-none-any.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue
        yield name, str(version), file


def _installed(wanted: Requirement) -> Distribution | None:
    try:
        here = distribution(wanted.name)
    except PackageNotFoundError:
        return None
    return here if wanted.specifier.contains(here.version, prereleases=True) else None


def _needs(found: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """Return what a distribution asks for, with some of its extras."""
    kinds = ["", *extras]
    return [
        one
        for one in map(Requirement, found.requires or [])
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in kinds)
    ]


def _read(place: str) -> Iterator[Listed]:
    if place == SHIPPED:
        text = (files("agent_terminal_app") / "plugin_index.json").read_text(encoding="utf-8")
        content = text.replace("@VERSION@", __version__).encode()
    else:
        content = _bytes_of(place, _LARGEST_INDEX)
    try:
        index = json.loads(content)
    except ValueError as error:
        raise _unusable(place, f"it is not JSON: {error}") from error
    if not isinstance(index, dict) or not isinstance(index.get("plugins"), list):
        raise _unusable(place, "it has no list of plugins")
    if index.get("format") != FORMAT:
        raise _unusable(place, f"its format is {index.get('format')!r:.40}, and this program reads {FORMAT}")
    for entry in index["plugins"]:
        yield _listed(place, entry, registry=index.get("registry", True) is True)


def _listed(place: str, entry: Any, *, registry: bool) -> Listed:
    """Return a plugin from its entry; control characters and line breaks are taken out of its texts."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key, ""), str) for key in _TEXTS):
        raise _unusable(place, f"an entry must be a dict of texts, not {entry!r:.80}")
    texts = {key: one_line(entry.get(key, "")) for key in _TEXTS}
    for key in _NEEDED:
        if not texts[key]:
            raise _unusable(place, f"an entry has no {key}: {entry!r:.80}")
    if texts["kind"] not in KINDS:
        raise _unusable(place, f"the kind of {texts['name']} must be one of {', '.join(KINDS)}")
    if not _DISTRIBUTION.fullmatch(texts["distribution"]) or not _VERSION.fullmatch(texts["version"]):
        raise _unusable(
            place, f"{texts['distribution']} {texts['version']} is not a distribution with a version"
        )
    if texts["wheel"]:
        if not _DIGEST.fullmatch(texts["sha256"]):
            raise _unusable(place, f"the wheel of {texts['name']} has no sha256 of 64 small hex digits")
        texts["wheel"] = _beside(place, texts["wheel"])
    return Listed(**texts, index=place, registry=registry)


def _beside(place: str, wheel: str) -> str:
    """Return where a wheel is that is named relative to its index."""
    return (
        urljoin(place, wheel) if _is_address(place) or _is_address(wheel) else str(Path(place).parent / wheel)
    )


def _is_address(place: str) -> bool:
    return "://" in place


def _bytes_of(place: str, most: int) -> bytes:
    """Return a file, or what an address answers with.

    Raises:
        CommandError: If it cannot be read, is too large, or would come over a line that others can change.
    """
    try:
        if not _is_address(place):
            content = Path(place).expanduser().read_bytes()
        else:
            parts = urlsplit(place)
            if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
                raise _unusable(place, "an address must begin with https://")
            request = urllib.request.Request(place, headers={"User-Agent": USER_AGENT})  # noqa: S310 - checked above
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 - checked above
                content = answer.read(most + 1)
    except (OSError, urllib.error.URLError) as error:
        raise _unusable(place, str(getattr(error, "reason", error))) from error
    if len(content) > most:
        raise _unusable(place, f"it has more than {most >> 20} MB")
    return content


def _unusable(place: str, problem: str) -> CommandError:
    return CommandError(f"{place} cannot be used: {problem}", code=Exit.NOT_CONFIGURED)
