"""A question of the agent, and what a line means as an answer to it.

The call is shown whole, with nothing hidden in it. Permission can be given for more than one call: each
choice says for how long and for which calls, so that nobody agrees to more than they read. Each choice has a
key of its own. Any other line refuses the call, and the agent reads it as the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app.grants import project_of
from agent_core.clean_text import hides, look_alikes
from agent_runtime import SpecError
from agent_runtime.permissions import CallPattern
from agent_terminal_app.chat.questions.approvals import Unclear
from agent_terminal_app.chat.rendering.displays import as_json, display_lines
from agent_terminal_app.chat.rendering.text import clean, one_line, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app import Approval
    from agent_core import Session

_INDENT = "  "
_SIDES = {"old": "-", "new": "+"}
"""The arguments of an edit, and the sign of the lines of a diff that have them."""
_MOST_NAMED = 10
_PLACE = re.compile(r"@@(?: -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)?")


def heading(asked: Mapping[str, Any], tool: str) -> str:
    """Return the one line about a call, however long it is."""
    preview = asked.get("preview")
    return one_line(preview) if isinstance(preview, str) and preview.strip() else one_line(tool)


def call_lines(asked: Mapping[str, Any], *, color: bool, above: str = "") -> Iterator[str]:
    """Yield a call line by line: what its tool shows of it, and every argument that is not in that.

    Args:
        asked: The parameters of an approval.
        above: The line about the call that was shown before; what it says is not said again.
    """
    display, arguments = asked.get("display"), asked.get("arguments")
    if isinstance(display, Mapping) and display.get("content"):
        repeats = _repeats(str(display["content"]), above)
        shown = (
            _title(display, color=color, above=above)
            if repeats
            else _shown(display, color=color, above=above)
        )
        yield from _indented(shown)
        if isinstance(arguments, Mapping):
            arguments_left = {key: one for key, one in arguments.items() if not _is_shown(key, one, display)}
            yield from _indented(_argument_lines(arguments_left))
    elif arguments not in (None, {}):
        yield from _indented(_argument_lines(arguments))
    if any(_hides_something(text) for text in _texts(arguments)):
        yield _INDENT + styled("It contains invisible characters. Exactly:", "yellow", color=color)
        yield _INDENT + json.dumps(arguments)
    similar = list(dict.fromkeys(found for text in _texts(arguments) for found in look_alikes(text)))
    if similar:
        words = "It contains letters that look like others: " + ", ".join(similar[:_MOST_NAMED])
        yield _INDENT + styled(words, "yellow", color=color)


def _is_shown(name: str, value: Any, display: Mapping[str, Any]) -> bool:
    """Say whether what a tool shows has all of an argument in it."""
    if not isinstance(value, str):
        return False
    if display.get("type") == "diff" and name in _SIDES:  # the text of an edit, in the lines around it
        sign = _SIDES[name]
        side = [line[1:] for line in str(display["content"]).split("\n") if line[:1] in (sign, " ")]
        if value in "\n".join(side):
            return True
    # A diff has a sign before each line, and a title names files.
    lines = str(display["content"]).split("\n")
    shown = {*lines, *(line[1:] for line in lines), *str(display.get("title") or "").split(", ")}
    given = value.removesuffix("\n").split("\n")
    if display.get("type") == "diff":  # a patch may say roughly where its lines are, the diff says it exactly
        given = [line for line in given if not _PLACE.fullmatch(line)]
    return all(line in shown for line in given)


def _repeats(content: str, above: str) -> bool:
    """Say whether a line about a call ends with all that its tool shows of it: a short command, say."""
    return bool(content) and "\n" not in content and (above == content or above.endswith(f" {content}"))


def _shown(display: Mapping[str, Any], *, color: bool, above: str) -> Iterator[str]:
    """Yield what a tool shows; Markdown as it is written, since what is styled away may matter."""
    yield from _title(display, color=color, above=above)
    plain = {**display, "type": "text"} if display.get("type") == "markdown" else display
    yield from display_lines(plain, width=None, color=color)


def _title(display: Mapping[str, Any], *, color: bool, above: str) -> Iterator[str]:
    """Yield the title, unless the line above has it: as a word, or as the host of an address."""
    title = display.get("title")
    if not isinstance(title, str) or not title:
        return
    words = above.replace(",", " ").split()
    if not any(one_line(title) == word or f"://{one_line(title)}" in word for word in words):
        yield styled(one_line(title), "bold", color=color)


def _argument_lines(arguments: Any) -> Iterator[str]:
    if not isinstance(arguments, Mapping):
        yield from _lines(arguments)
        return
    for name, value in arguments.items():
        first, *more = _lines(value)
        if more:
            yield f"{one_line(str(name))}:"
            yield from _indented([first, *more])
        else:
            yield f"{one_line(str(name))}: {first}"


def _lines(value: Any) -> list[str]:
    """Return a value as lines that are safe to show; only a newline ends one."""
    text = value if isinstance(value, str) else as_json(value)
    return [clean(line) for line in text.removesuffix("\n").split("\n")]


def _hides_something(text: str) -> bool:
    """Say whether a text has characters that do not show: they could hide other text."""
    seen = text.replace("\r\n", "\n")
    return hides(seen) or any(not one.isprintable() for one in seen if one not in "\n\t")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in nested data, names among them; a model decides how deep it is, so no recursion."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, Mapping):
            waiting += [*here, *here.values()]
        elif isinstance(here, (list, tuple)):
            waiting += here


_YES = ("y", "yes")
_NO = ("n", "no")
_PERHAPS = (*_YES, "ok", "okay", "sure", "yep", "yeah", "go", "allow", "approve")
_FOR_SESSION = ("a", "d")
_REFUSES = "-"
_UNRULED = "no rule covers it"
"""How the reason begins of a call that is asked about because nothing else was decided."""
_WHERE = {"session": "for this session", "project": "in this project", "always": "always"}
_FOR_LONGER = re.compile(r"(allow|deny)\s+(session|project|always)(?:\s+(.+))?", re.DOTALL)
_MOST_DIGITS = 3
_LONGEST_PATTERN = 200
_MOST_NUMBER_KEYS = 9


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line means.

    Attributes:
        decision: What is decided, as applications take it.
        scope: For how long something is granted with it; empty for this call alone.
        patterns: What is granted or refused. One pattern goes with the decision; several, for a call that is
            about several things, are given one by one, and the call is decided with them.
    """

    decision: Mapping[str, Any]
    scope: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be chosen by its number.

    Attributes:
        label: What it means, with all that it grants.
        answer: What is answered by it.
    """

    label: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the agent waits for, with what can be answered.

    Attributes:
        approval: What is asked.
        choices: What can be chosen.
        scopes: For how long something can be granted.
        folder: Where the session works; empty if that is not known.
    """

    approval: Approval
    choices: tuple[Choice, ...]
    scopes: tuple[str, ...] = ()
    folder: str = ""

    @classmethod
    def of(cls, approval: Approval, session: Session) -> Question:
        """Return the question of an approval in its session."""
        if not _wants_yes_or_no(approval):
            options = _options(approval.suspension)
            return cls(approval, tuple(Choice(_written(one), Answer({"value": one})) for one in options))
        scopes = [scope for scope in _WHERE if scope != "project" or project_of(session) is not None]
        if not _is_about_permissions(approval):
            scopes = []
        patterns = offered_patterns(approval.suspension["parameters"])
        granting = [_granting(scope, patterns) for scope in scopes if patterns]
        no = Choice("no, or type what to do instead", Answer({"approved": False}))
        choices = (Choice("yes, once", Answer({"approved": True})), *granting, no)
        return cls(approval, choices, tuple(scopes), _folder_of(session))

    @property
    def id(self) -> str:
        """By what it is decided."""
        return self.approval.id

    def lines(self, *, color: bool) -> Iterator[str]:
        """Yield what the user reads: the call as it is, where, which rule asks for it, and the choices."""
        asked, suspension = self.approval.suspension["parameters"], self.approval.suspension
        above = ""
        if _is_about_permissions(self.approval):
            above = heading(asked, asked["tool"])
            yield styled(f"? {above}", "bold", color=color)
            if self.folder:
                yield styled(f"  in {one_line(self.folder)}", "dim", color=color)
        else:
            first, *more = clean(suspension["message"]).split("\n")
            yield styled(f"? {first}", "bold", color=color)
            yield from more
        yield from call_lines(_with_arguments(suspension), color=color, above=above)
        yield from (styled(line, "dim", color=color) for line in self._why())
        yield from self.choice_lines(color=color)

    def _why(self) -> Iterator[str]:
        asked, tool = self.approval.suspension["parameters"], self.approval.suspension["tool"]
        if _is_about_permissions(self.approval):
            if asked.get("rule"):
                yield _INDENT + one_line(f"Asked by the rule {asked['rule']}.")
            elif not asked["reason"].startswith(_UNRULED):
                yield _INDENT + one_line(f"Asked because {asked['reason']}.")
        if asked.get("tool", tool) != tool:
            yield _INDENT + one_line(f"{asked['tool']} will run, called by {tool}.")

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys that answer at once, each with the line that it stands for."""
        if not _wants_yes_or_no(self.approval):
            return _number_keys(len(self.choices))
        known = {"y": "y", "n": "n", **_number_keys(len(self.choices))}
        if self.scopes and any(choice.answer.scope == self.scopes[0] for choice in self.choices):
            known["a"] = "a"
        if self.scopes and self._forbidden():
            known["d"] = "d"
        return known

    def choice_lines(self, *, color: bool) -> Iterator[str]:
        """Yield the choices, each with its key."""
        if not _wants_yes_or_no(self.approval):
            for number, choice in enumerate(self.choices, 1):
                yield f"  [{number}] {one_line(choice.label)}"
            yield styled(f"  Type your answer; a single {_REFUSES} gives none.", "dim", color=color)
            return
        yes, *granting, no = self.choices
        yield f"  [y] {yes.label}"
        if granting:
            first, *longer = granting
            yield f"  [a] {one_line(first.label)}"
            if longer:
                others = [f"[{n}] {_WHERE[one.answer.scope]}" for n, one in enumerate(longer, 3)]
                yield styled(f"      the same for longer: {', '.join(others)}", "dim", color=color)
        yield f"  [n] {no.label}"
        if "d" in self.keys:
            yield f"  [d] no, {_WHERE[self.scopes[0]]}: {one_line(', '.join(self._forbidden()))}"

    def _forbidden(self) -> tuple[str, ...]:
        """Return the narrowest patterns that forbid this call; none if there is nothing to offer."""
        asked = self.approval.suspension["parameters"]
        if asked.get("whole"):
            return offered_patterns(asked)
        narrow = _narrow(asked.get("suggestions") or ())
        return (narrow[0].text,) if narrow else _effects(asked) or _whole_call(asked)

    def read(self, line: str) -> Answer:
        """Return what a line means.

        Raises:
            Unclear: If it means none.
        """
        text = line.strip()
        if _wants_yes_or_no(self.approval):
            return self._permission(text)
        return Answer({"approved": False} if text == _REFUSES else {"value": self._value(text)})

    def _permission(self, text: str) -> Answer:
        word = text.lower().rstrip(".!")
        if word in (*_YES, *_NO):
            return Answer({"approved": word in _YES})
        if word in _FOR_SESSION and word in self.keys:
            return self._for_longer(self.scopes[0], None, approved=word == "a")
        if text.isdecimal() and len(text) <= _MOST_DIGITS:
            return self._chosen(int(text))
        if (found := _FOR_LONGER.fullmatch(text)) is not None:
            return self._for_longer(found[2], found[3], approved=found[1] == "allow")
        if re.split(r"[\s,.!;]", word, maxsplit=1)[0] in _PERHAPS:
            raise Unclear("Is that a yes? y runs it once; begin with another word to refuse and say why.")
        return Answer({"approved": False, "reason": text})

    def _chosen(self, number: int) -> Answer:
        if not 1 <= number <= len(self.choices):
            raise Unclear(f"There is no [{number}]: choose from 1 to {len(self.choices)}, or say why not.")
        return self.choices[number - 1].answer

    def _for_longer(self, scope: str, pattern: str | None, *, approved: bool) -> Answer:
        if pattern is not None:
            return Answer({"approved": approved}, scope, (pattern.strip(),))
        for choice in self.choices:
            if approved and choice.answer.scope == scope:
                return choice.answer
        narrowest = self._forbidden()
        if approved or not narrowest:
            raise Unclear(f"Say for which calls: {'allow' if approved else 'deny'} {scope} PATTERN")
        return Answer({"approved": False}, scope, narrowest)

    def _value(self, text: str) -> Any:
        options = _options(self.approval.suspension)
        for one in options:
            if text in (one, _written(one)):
                return one
        if options:
            if text.isdecimal() and 1 <= int(text) <= len(options):
                return options[int(text) - 1]
            raise Unclear(f"Choose from 1 to {len(options)}, or {_REFUSES} to refuse.")
        kind = (self.approval.suspension.get("response_schema") or {}).get("type", "string")
        if kind == "string":
            return text
        if kind == "boolean" and text.lower() in (*_YES, *_NO):
            return text.lower() in _YES
        try:
            return json.loads(text)
        except ValueError:
            raise Unclear(f"The answer must be of the type {kind}, written as JSON.") from None


def _folder_of(session: Session) -> str:
    """Return the folder that a session works in, as a person writes it."""
    roots = session.metadata.get("workspace_roots")
    folder = roots[0] if roots and isinstance(roots[0], str) else ""
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder


def _number_keys(count: int) -> dict[str, str]:
    """Return the keys of numbered choices; of more than nine a single key cannot mean each."""
    return {str(n): str(n) for n in range(1, count + 1)} if count <= _MOST_NUMBER_KEYS else {}


def _wants_yes_or_no(approval: Approval) -> bool:
    return bool(approval.suspension.get("action", "approve") == "approve")


def _with_arguments(suspension: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is known of the call; a gate of a plugin may not tell its arguments, but the call does."""
    asked: Mapping[str, Any] = suspension["parameters"]
    call = suspension["call"].get("function") or suspension["call"].get("custom") or {}
    if "arguments" in asked or suspension.get("action", "approve") != "approve":
        return asked
    written = call.get("arguments") or call.get("input") or ""
    try:
        return {**asked, "arguments": json.loads(written)}
    except (TypeError, ValueError):
        return {**asked, "arguments": written}


def _options(suspension: Mapping[str, Any]) -> list[Any]:
    schema = suspension.get("response_schema") or {}
    return list(schema.get("enum") or ())


def _is_about_permissions(approval: Approval) -> bool:
    """Say whether it is the rules that ask; what a plugin asks by itself cannot be granted."""
    return "suggestions" in approval.suspension["parameters"]


def _granting(scope: str, patterns: tuple[str, ...]) -> Choice:
    return Choice(f"yes, {_WHERE[scope]}: {', '.join(patterns)}", Answer({"approved": True}, scope, patterns))


def offered_patterns(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what to offer for longer: the family of the call, if its tool knows one, or this very call.

    Granting the whole tool is too much for one key, unless the tool says that its calls only differ in words
    that do not come again; it can be typed instead.
    """
    if asked.get("whole") and asked.get("suggestions"):
        return (asked["suggestions"][-1],)
    narrow = _narrow(asked.get("suggestions") or ())
    families = [one for one in narrow if one.subject is not None and not one.subject.is_literal]
    best = next(iter([*families, *narrow]), None)
    return tuple(asked.get("together") or ()) if best is None else (best.text,)


def _effects(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the things of a call about several that may have an effect.

    A tool knows families of what only reads (`grep *`), and `cd` changes nothing by itself. Whoever refuses a
    line with them means the others: without `make tea`, the agent still needs `grep`.
    """
    patterns = [CallPattern.parse(text) for text in asked.get("together") or ()]
    exact = [one for one in patterns if one.subject is not None and one.subject.is_literal]
    return tuple(one.text for one in exact if not one.text.startswith(f"{asked['tool']}(cd "))


def _whole_call(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a pattern for a call about several things, by its argument: each thing alone is harmless."""
    arguments = asked.get("arguments")
    texts = arguments.items() if asked.get("together") and isinstance(arguments, Mapping) else ()
    name, text = next(((name, one) for name, one in texts if isinstance(one, str)), ("", ""))
    if not text or len(text) > _LONGEST_PATTERN or not text.isprintable():
        return ()
    try:
        return (CallPattern.with_argument(asked["tool"], name, text).text,)
    except SpecError:  # a name that no pattern can have
        return ()


def _narrow(offered: Sequence[str]) -> list[CallPattern]:
    """Return the patterns that are about something, and not about a whole tool."""
    patterns = [CallPattern.parse(text) for text in offered]
    return [pattern for pattern in patterns if pattern.subject is not None]


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
