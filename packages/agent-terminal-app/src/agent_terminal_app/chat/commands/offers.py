"""The actions that plugins offer, as the chat names them, and the forms for their inputs.

Inputs are asked for one by one, or given on one line: as `name=value`, or as plain words for those that must
be given.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agent_core import ActionInputError, AgentError
from agent_core.actions import Action
from agent_core.display import validate_element
from agent_core.display.elements import COLLECTION, ELEMENT_TYPES
from agent_core.frozen import EMPTY
from agent_terminal_app.chat.agent import who_answers
from agent_terminal_app.chat.rendering.text import one_line
from agent_terminal_app.remote import server_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from agent_core.actions import ActionInput
    from agent_terminal_app.chat.conversation import Conversation

    Asking = Callable[..., Awaitable[str | None]]
    """Asks for a line, with `hidden` for one that must not be shown; None if the user leaves."""

_WORDS = {
    **dict.fromkeys(("y", "yes", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "false", "off", "0"), False),
}
_EMPTY = '""'
_NAMED = re.compile(r"(?:^|(?<=\s))(\w+)=")
_EXPECTED = {
    "integer": "write a whole number, such as 3",
    "number": "write a number, such as 3 or 0.5",
    "boolean": "write yes or no",
    "array": 'write a JSON list, such as ["a", "b"]',
    "object": 'write a JSON object, such as {"a": 1}',
}


_IN_A_LINE = {"textarea": "a terminal takes one line of it", "file": "a terminal takes its path"}
"""What a terminal says of widgets that it does not have."""


class Unreadable(ValueError):
    """What was typed is not what the field takes; the message says what to type."""


@dataclass(frozen=True, slots=True)
class Field:
    """One input as the user fills it in.

    Attributes:
        wanted: What the action takes.
        label: What it is called.
        default: What an empty line means; None for nothing.
        remark: What else to say about it.
        widget: How its plugin wants it asked for; a terminal asks for a line.
    """

    wanted: ActionInput
    label: str
    default: Any = None
    remark: str = ""
    widget: str = ""

    @classmethod
    def of(cls, wanted: ActionInput, asked: Mapping[str, Any] = EMPTY, *, default: Any = None) -> Field:
        """Return the field of an input.

        Args:
            asked: What its plugin's dialog says of it, which counts more than the input's own words.
            default: What is meant here without a word, unless the dialog says something else.
        """
        options = tuple(asked.get("options", ()))
        example = f"such as {asked['placeholder']}" if "placeholder" in asked else ""
        said = asked.get("description", wanted.description)
        own = wanted.default if default is None else default
        return cls(
            replace(wanted, enum=options) if options and not wanted.enum else wanted,
            one_line(asked.get("label") or wanted.label or wanted.name),
            asked.get("default", own),
            one_line(", ".join(text for text in (said, example) if text)),
            asked.get("widget", ""),
        )

    @property
    def is_secret(self) -> bool:
        """Whether what is typed must not be shown."""
        return self.widget == "password"

    @property
    def question(self) -> str:
        """What the user is asked: the name, what can be typed, and what an empty line means."""
        hints = "; ".join(
            hint for hint in (self._kind, self._when_empty, _IN_A_LINE.get(self.widget)) if hint
        )
        return f"{self.label} ({hints})" + (f": {self.remark}" if self.remark else "")

    def read(self, typed: str) -> Any:
        """Return the value that was typed; None for none.

        Raises:
            Unreadable: If the input does not take it.
        """
        text = typed.strip()
        if not text:
            if self.default is None and self.wanted.required:
                raise Unreadable(f"{self.label} is needed: type something, or press Esc to leave")
            return self.default
        value = self._chosen(text) if self.wanted.enum else _value(self.wanted.type, typed)
        problem = self.wanted.problem_with(value)
        if problem is not None:
            raise Unreadable(f"{self.label}: {problem}")
        return value

    @property
    def _kind(self) -> str:
        if not self.wanted.enum:
            return {"string": "text", "boolean": "yes or no", "any": "anything"}.get(
                self.wanted.type, self.wanted.type
            )
        if not self._is_numbered:
            return "one of " + ", ".join(map(_written, self.wanted.enum))
        return ", ".join(f"[{number}] {_written(one)}" for number, one in enumerate(self.wanted.enum, 1))

    @property
    def _when_empty(self) -> str:
        if self.default is not None:
            return f"Enter for {_written(self.default)}"
        return "needed" if self.wanted.required else "Enter for none"

    @property
    def _is_numbered(self) -> bool:
        """Whether choices have numbers; where they are numbers themselves, that would only confuse."""
        return not any(str(one).lstrip("-").isdecimal() for one in self.wanted.enum)

    def _chosen(self, text: str) -> Any:
        for one in self.wanted.enum:
            if text in (str(one), _written(one)):
                return one
        if self._is_numbered and text.isdecimal() and 1 <= int(text) <= len(self.wanted.enum):
            return self.wanted.enum[int(text) - 1]
        raise Unreadable(f"{self.label}: {one_line(text, 40)!r} is none of {self._kind}")


async def fill_in(
    fields: Iterable[Field],
    ask: Asking,
    tell: Callable[[str], None],
) -> dict[str, Any] | None:
    """Ask for each field until it can be read, and return the values; None if the user leaves the form."""
    values: dict[str, Any] = {}
    for one in fields:
        while (typed := await _ask(ask, one)) is not None:
            try:
                value = one.read(typed)
            except Unreadable as problem:
                tell(str(problem))
                continue
            if value is not one.wanted.default:  # which the action knows by itself
                values[one.wanted.name] = value
            break
        else:
            return None
    return values


def _ask(ask: Asking, field: Field) -> Awaitable[str | None]:
    return ask(field.question, hidden=True) if field.is_secret else ask(field.question)


def read_inline(action: Action, text: str) -> dict[str, Any]:
    """Return the values that were given as `name=value`; quotes hold spaces together.

    Plain words are for the texts that must be given: one word for each, and the rest for the last.

    Raises:
        ActionInputError: If one cannot be read, or names no input.
    """
    values: dict[str, Any] = {}
    for word in _plain(action, text) or _split(action, text):
        name, equals, typed = word.partition("=")
        wanted = action.inputs.get(name)
        if not equals or wanted is None:
            raise ActionInputError(action.id, one_line(name, 40), f"no such input; {_takes(action)}")
        try:
            values[name] = Field.of(wanted).read(typed or _EMPTY)
        except Unreadable as problem:
            raise ActionInputError(action.id, name, str(problem)) from None
    return values


def _plain(action: Action, text: str) -> Sequence[str]:
    """Return plain words with the names of the inputs that they are for; nothing if names are written."""
    needed = [one.name for one in missing(action, {}) if one.type == "string"]
    names = [match[1] for match in _NAMED.finditer(text)]
    if not needed or _NAMED.match(text) or not action.inputs.keys().isdisjoint(names):
        return ()
    pieces = text.split(maxsplit=len(needed) - 1)
    return [f"{name}={piece.strip()}" for name, piece in zip(needed, pieces, strict=False)]


def _split(action: Action, text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:
        problem = f"a quote is not closed; {_takes(action)}"
        raise ActionInputError(action.id, one_line(text, 40), problem) from None


def _takes(action: Action) -> str:
    if not action.inputs:
        return "it takes nothing"
    names = ", ".join(one_line(name) for name in action.inputs)
    return f'write {next(iter(action.inputs))}=VALUE, with spaces in "quotes"; it takes {names}'


def _value(kind: str, typed: str) -> Any:
    """Return what was typed as a value of a type; text stays as it is."""
    text = typed.strip()
    if kind in ("string", "any") and text == _EMPTY:
        return ""
    if kind == "string":
        return typed
    value = _WORDS.get(text.lower()) if kind == "boolean" else _parsed(text)
    if kind == "any":
        return typed if value is None else value
    if value is None or isinstance(value, str):
        raise Unreadable(f"{one_line(text, 40)!r} cannot be read: {_EXPECTED[kind]}")
    return value


def _parsed(text: str) -> Any:
    """Return JSON as a value; None if it is none, or one that no input takes."""
    try:
        return json.loads(text, parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(value if isinstance(value, str) else json.dumps(value, default=str), 60)


def missing(action: Action, given: Mapping[str, Any]) -> list[ActionInput]:
    """Return the inputs that must be given and were not."""
    return [
        one
        for one in action.inputs.values()
        if one.required and one.default is None and one.name not in given
    ]


_LAST = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An action that the user can ask for.

    Attributes:
        action: The action.
        label: What it is called.
        description: What it does.
        order: Where it stands among others; the least comes first.
        icon: The picture that its plugin wants for it, which a terminal does not show.
        dialog: What its plugin wants asked before, as `validate_element` returned it.
        is_list: Whether it lists what a plugin keeps; words after its name are what to search for.
    """

    action: Action
    label: str
    description: str = ""
    order: float = _LAST
    icon: str = ""
    dialog: Mapping[str, Any] = field(default_factory=dict)
    is_list: bool = False

    @property
    def name(self) -> str:
        return f"{self.action.plugin}.{self.action.id}"

    @property
    def about(self) -> str:
        """One line about it."""
        said = one_line(self.description, 80)
        return f"{one_line(self.label, 40)}: {said}" if said else one_line(self.label, 40)

    @property
    def title(self) -> str:
        """What stands above the questions."""
        return one_line(self.dialog.get("title") or self.label)

    @property
    def confirm(self) -> str:
        """What must be answered with yes before it runs; empty if it just runs."""
        asked = self.dialog.get("confirm")
        return self.action.confirm or (f"{self.label}?" if asked is True else asked or "")

    def input(self, name: str) -> Mapping[str, Any]:
        """Return what the dialog says of an input."""
        return next((one for one in self.dialog.get("inputs", ()) if one["name"] == name), {})

    @property
    def is_of_application(self) -> bool:
        """Whether it serves the whole application, and not one session."""
        return self.action.owner == "application"

    @property
    def needs_session(self) -> bool:
        """Whether something must have been said before; its plugin may say that no session matters to it."""
        return not self.is_of_application and self.action.extra.get("without_session") is not True


async def find_offers(conversation: Conversation) -> list[Offer]:
    """Return what can be asked for now; without a session, what its agent's plugins will offer in one."""
    app, session_id = conversation.app, conversation.session_id
    given = await app.get_actions_async(session_id)
    if session_id is None:
        with suppress(AgentError):  # an agent that cannot run takes nothing from the application's plugins
            who = await who_answers(conversation)
            given += await asyncio.to_thread(who.core.get_session_actions, dict(who.config))
    shown = {
        (one.get("plugin"), one.get("action_id")): one for one in reversed(await find_elements(conversation))
    }
    offers = [_offer(one, shown.get((one["plugin"], one["id"]), {})) for one in given]
    return sorted((one for one in offers if one.action.is_manual), key=lambda one: one.order)


async def find_elements(conversation: Conversation) -> list[dict[str, Any]]:
    """Return what plugins want shown: those of the application, and of the agent that answers."""
    if (server := server_of(conversation.app)) is not None:
        return list(await server.get_ui_schema_async(conversation.session_id))
    elements = await conversation.app.get_ui_elements_async()
    try:
        who = await who_answers(conversation)
        given = await asyncio.to_thread(who.core.get_ui_schema, dict(who.config))
    except AgentError:
        if conversation.session_id is not None:
            raise
        return elements
    return elements + [found for one in given if (found := validate_element(one).element) is not None]


def unknown_elements(elements: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the elements that a terminal cannot show, by plugin and type."""
    known = (*ELEMENT_TYPES, None)
    found = [(one.get("plugin"), one.get("ui_type")) for one in elements if one.get("ui_type") not in known]
    return [one_line(f"{kind} of {plugin}", 60) for plugin, kind in dict.fromkeys(found)]


def by_name(offers: Iterable[Offer], taken: Collection[str] = ()) -> dict[str, Offer]:
    """Return offers by what can be typed: their whole names, and their ids where these mean only one."""
    known = list(offers)
    ids = Counter(offer.action.id for offer in known)
    short = {one.action.id: one for one in known if ids[one.action.id] == 1 and one.action.id not in taken}
    return {**short, **{offer.name: offer for offer in known}}  # no id can pass for another's whole name


def shortest_names(
    offers: Iterable[Offer], taken: Collection[str] = (), covered: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Return each offer once, by the shortest name that means it, with a line about it.

    Args:
        taken: Names that mean something else.
        covered: The offers that are left out, by their whole names, since a command does the same.
    """
    known = [one for one in offers if one.name not in covered]
    named = by_name(known, taken)
    return [(one.action.id if named.get(one.action.id) is one else one.name, one.about) for one in known]


def _offer(definition: Mapping[str, Any], element: Mapping[str, Any]) -> Offer:
    own = {key: value for key, value in definition.items() if key not in ("plugin", "action_owner")}
    action = Action.from_dict(own, plugin=definition["plugin"], owner=definition["action_owner"])
    return Offer(
        action=action,
        label=element.get("label") or action.label,
        description=element.get("description") or action.description,
        order=float(element.get("order", _LAST)),
        icon=element.get("icon", ""),
        dialog=element.get("dialog", {}),
        is_list=element.get("ui_type") == COLLECTION,
    )
