"""Cards: what a plugin wants the user to read, with a title, a body, and follow-ups to choose from.

Only cards that `agent_core` has validated get here, and each follow-up says what it really does next to the
label that its plugin chose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from agent_core.display import validate_display
from agent_core.display.markdown import code_regions
from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.text import clean, count, one_line, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["open_url", "copy_text", "run_action"]
_KINDS: tuple[str, ...] = get_args(Kind)
_STYLES = {"info": "code", "success": "green", "warning": "yellow", "error": "red"}
_PREVIEW = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """Something that a card offers to do.

    Attributes:
        label: What its plugin calls it.
        url: The page to open.
        text: The text to copy.
        plugin: Whose action to run.
        action_id: Which action.
        params: What to run it with.
        keeps_card: Whether the card's choices stay after the action has run.
    """

    kind: Kind
    label: str
    url: str = ""
    text: str = ""
    plugin: str = ""
    action_id: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    keeps_card: bool = False

    @property
    def host(self) -> str:
        """The host of the page, in ASCII, so that no letter can be mistaken for another."""
        return urlsplit(self.url).netloc

    @property
    def effect(self) -> str:
        """What choosing it does, in words."""
        if self.kind == "open_url":
            return f"opens {self.host}"
        if self.kind == "copy_text":
            return f"copies {one_line(self.text, _PREVIEW)}"
        return f"done by the plugin {self.plugin}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A display that was checked.

    Attributes:
        display_id: By which a later one takes its place; empty if none can.
        left_out: How many follow-ups this terminal does not know.
    """

    body: str
    is_markdown: bool = False
    title: str = ""
    variant: str = ""
    display_id: str = ""
    follow_ups: tuple[FollowUp, ...] = ()
    left_out: int = 0

    @classmethod
    def read(cls, payload: object) -> Card | None:
        """Return the card that a payload describes; None if there is nothing in it to show."""
        report = validate_display(payload)
        if report.display is None:
            return None
        shown = report.display
        actions = shown.get("actions", [])
        known = [one for one in actions if one["kind"] in _KINDS]
        dropped = [warning for warning in report.warnings if _is_about_kind(warning)]
        return cls(
            body=shown["body"],
            is_markdown=shown["format"] == "markdown",
            title=shown.get("title", ""),
            variant=shown.get("variant", ""),
            display_id=shown.get("display_id", ""),
            follow_ups=tuple(_follow_up(one) for one in known),
            left_out=len(actions) - len(known) + len(dropped),
        )

    def lines(
        self, *, color: bool, width: int | None = None, updated: bool = False, by_key: bool = False
    ) -> Iterator[str]:
        """Yield the card as it is shown: in a frame where there are colours, else only indented.

        Args:
            updated: Whether it takes the place of one that was shown before.
            by_key: Whether a number key chooses; where keys cannot be read, a command does.
        """
        edge = f"{styled('│', self._style, color=True)} " if color else "  "
        inside = None if width is None else max(20, width - 2)
        yield from self._heading(color=color, updated=updated)
        yield from (f"{edge}{line}" for line in self._body(color=color, width=inside))
        for number, one in enumerate(self.follow_ups, 1):
            choice = clean(f"[{number}] {one.label} — {one.effect}")
            yield f"{edge}{choice}"
        yield from (f"{edge}{note}" for note in self._notes(by_key=by_key))

    @property
    def _style(self) -> str:
        return _STYLES.get(self.variant, "dim")

    def _heading(self, *, color: bool, updated: bool) -> Iterator[str]:
        prefix = "updated: " if updated else ""
        word = f"({self.variant})" if self.variant else ""
        heading = " ".join(part for part in (f"{prefix}{one_line(self.title)}".strip(), word) if part)
        if heading:
            yield styled(f"╭ {heading}", self._style, color=True) if color else heading

    def _body(self, *, color: bool, width: int | None) -> Iterator[str]:
        if not self.is_markdown:
            yield from clean(self.body).split("\n")
            return
        words = LineMarkdown(color=color, width=width)
        yield from words.feed(f"{_readable(self.body)}\n")
        yield from words.end()

    def _notes(self, *, by_key: bool) -> Iterator[str]:
        last = len(self.follow_ups)
        if last == 1:
            yield "Press 1 to do it." if by_key else "/1 does it"
        elif last:
            yield f"Press 1 to {last} to choose." if by_key else f"/1 to /{last} do one of them"
        if self.left_out:
            yield f"{count(self.left_out, 'follow-up')} skipped: their kind is not known here"


def _follow_up(action: Mapping[str, Any]) -> FollowUp:
    return FollowUp(
        kind=action["kind"],
        label=action["label"],
        url=action.get("url", ""),
        text=action.get("text", ""),
        plugin=action.get("plugin", ""),
        action_id=action.get("action_id", ""),
        params=action.get("params", {}),
        keeps_card=action.get("preserve_display", False),
    )


def _is_about_kind(warning: str) -> bool:
    where, _, _problem = warning.partition(": ")
    return where.startswith("actions[") and where.endswith(".kind")


def _readable(markdown: str) -> str:
    """Return checked markdown with what was escaped for renderers of HTML as it was; code has no escapes."""
    parts, position = [], 0
    for start, end in code_regions(markdown):
        parts += [markdown[position:start].replace("&lt;", "<"), markdown[start:end]]
        position = end
    return "".join([*parts, markdown[position:].replace("&lt;", "<")])
