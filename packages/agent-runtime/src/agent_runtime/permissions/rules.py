"""Which rule decides a call: a deny, else a floor, else the most specific of allow and ask, else the default.

A rule comes from the agent's declaration, or a person granted it later. A grant answers a question in
advance: it wins over an ask that says no more than it does, and it may forbid. What the declaration denies,
by a rule or by its default, and what it always asks for, no grant makes run.

A call is about one or several *subjects*: texts that a rule's glob is compared with. Each subject is ruled
on by itself and the strictest ruling is the call's. So a call about several things runs without a question
only if every one of them is allowed, by one rule or by several, and one thing that is denied denies the
call.

A tool plugin knows its subjects best: its `permission_subjects(tool_name, arguments)` returns a list of
texts, a shell the commands of a line, say; its `permission_watched` may name more that only asking and
denying rules look at. If a text is not known before the call runs, a dictionary takes its place: `text`
names this very thing, and the globs of `may_be` fit everything that it may turn out to be. An allow must
then fit *surely*, whatever comes out; rules that ask or deny count if they fit *possibly*. If a thing may
be anything at all, every rule could fit it: a deny would then deny everything, so it asks instead.

A thing that no general permission should cover says what a rule must spell out at its beginning (`spelled`):
`allow shell` and `allow shell(*)` do not let a command run outside its sandbox, `allow shell(outside the
sandbox: make *)` does.

A call that its tool keeps inside a sandbox (`permission_contained`) may also be allowed as `sandboxed`,
whatever the tool: that is a rule of last resort, and any rule that names the tool is stronger.

For tools without that method the same care is taken. *What may be allowed* is the whole call: the one
argument if it is a text and alone, else all arguments as canonical JSON. *What is watched for* is also
every text anywhere in the arguments: a call does not slip past `deny shell(rm *)` by having one argument
more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from agent_core.encoding import canonical
from agent_core.errors import nearest
from agent_core.frozen import thaw
from agent_runtime import fields
from agent_runtime.errors import SpecError
from agent_runtime.patterns import Glob
from agent_runtime.permissions.patterns import CallPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_core import Session
    from agent_runtime.permissions.patterns import Specificity
    from agent_runtime.phases import CallView


Effect = Literal["allow", "ask", "deny"]
"""What becomes of a call: it runs, it waits for a person, it does not run."""

EFFECTS: tuple[Effect, ...] = get_args(Effect)
FLOOR = "always_ask"
"""The list of calls that are asked for each time, whatever allows them."""

LISTS = (*EFFECTS, FLOOR)
"""The lists of patterns that a section has."""

SANDBOXED = "sandboxed"
"""What a rule names in place of a tool to be about every call that stays inside a sandbox."""
_FIELDS = (*LISTS, "default", "on_ask")
_COULD = "its target is only known when it runs, and it could fall under the rule {!r}"
_STRICTNESS = {effect: place for place, effect in enumerate(EFFECTS)}


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of the calls that fit a pattern.

    Attributes:
        effect: Whether they run, wait or do not run.
        pattern: Which calls these are.
        granted: True if a person gave it for longer than one call; False if it was declared.
        floor: For an ask: nothing that allows the call can skip it.
    """

    effect: Effect
    pattern: CallPattern
    granted: bool = False
    floor: bool = False

    def __post_init__(self) -> None:
        _check_effect("effect", self.effect)
        if self.effect == "ask" and self.granted:
            raise SpecError("a grant allows or denies; it cannot ask", field="effect")
        if self.effect != "ask" and self.floor:
            raise SpecError("only what asks can be a floor", field="floor")
        if not isinstance(self.pattern, CallPattern):
            raise SpecError("a rule needs a pattern read by CallPattern.parse", field="pattern")

    def __str__(self) -> str:
        return f"{FLOOR if self.floor else self.effect} {self.pattern.text}"

    @property
    def precedence(self) -> tuple[bool, bool, Specificity, int, str]:
        """Of the rules that match, the one with the greatest counts; the text only settles a draw.

        Of an allow and an ask that say as much, the ask counts, unless a person granted the allow since.
        """
        order = 2 if self.granted else int(self.effect == "ask")
        specificity = self.pattern.specificity
        if self._is_for_sandboxes:  # it names no tool
            specificity = (*specificity[:4], 0, False)
        return self.effect == "deny", self.floor, specificity, order, self.pattern.text

    @property
    def _is_for_sandboxes(self) -> bool:
        return self.pattern.name.pattern == SANDBOXED

    def concerns(self, call: CallView, subjects: Subjects) -> bool:
        """Say whether the tool and the arguments that the pattern names fit.

        Where a tool says itself what its calls are about, an argument as the model wrote it says less. It
        allows nothing then, and what asks or denies is compared with what the tool says as well.
        """
        pattern = self.pattern
        if self.effect == "allow":
            names_some = bool(pattern.arguments) and subjects.from_tool
            name = SANDBOXED if call.contained and self._is_for_sandboxes else call.name
            return not names_some and pattern.fits(name, call.arguments, every=True)
        things = (*subjects.each, *subjects.within) if subjects.from_tool else ()
        return pattern.fits(
            call.name,
            call.arguments,
            every=False,
            or_else=lambda glob: any(self._counts(glob, one) for one in things),
        )

    def is_about(self, subject: Subject | None, within: Sequence[Subject]) -> bool:
        """Say whether the rule is about a subject, or may be for what is inside it."""
        glob = self.pattern.subject
        if self.effect == "allow" and subject is not None and not subject.is_spelled_by(glob):
            return False
        if glob is None:
            return True
        own = () if subject is None else (subject,)
        if self.effect == "allow":
            return any(one.surely(glob) for one in own)
        return any(self._counts(glob, one) for one in (*own, *within))

    def _counts(self, glob: Glob, thing: Subject) -> bool:
        if self.effect == "deny" and thing.is_blank:
            return thing.surely(glob)
        return thing.possibly(glob)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a call.

    Attributes:
        effect: What becomes of it.
        rule: By which rule; None: by none.
        reason: The same as words.
        certain: False if the rule only could be about it, for what is known before it runs.
    """

    effect: Effect
    rule: Rule | None
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Permissions:
    """Rules, in no order, and what becomes of a call that no rule is about."""

    rules: tuple[Rule, ...] = ()
    default: Effect = "ask"

    def __post_init__(self) -> None:
        _check_effect("default", self.default)
        object.__setattr__(self, "rules", tuple(self.rules))
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise SpecError(f"rules must hold rules, not {type(rule).__name__}", field="rules")

    @classmethod
    def from_section(cls, section: Mapping[str, Any], *, where: str = "permissions") -> Permissions:
        """Read the rules of a `permissions` section.

        Raises:
            SpecError: If a pattern cannot be read, a field is unknown, or the default is none of the three.
        """
        for key in section:
            if key not in _FIELDS:
                raise SpecError(
                    f"{where} has no field {key!r}: {nearest(key, _FIELDS)}", field=f"{where}.{key}"
                )
        rules = [rule for name in LISTS for rule in _read_list(name, section.get(name, ()), where)]
        _check_effect(f"{where}.default", section.get("default", "ask"))
        return cls(tuple(rules), section.get("default", "ask"))

    def with_rule(self, effect: Effect, pattern: CallPattern | str) -> Permissions:
        """Return the permissions with one declared rule more."""
        read = CallPattern.parse(pattern) if isinstance(pattern, str) else pattern
        return replace(self, rules=(*self.rules, Rule(effect, read)))

    def with_granted(self, rules: Iterable[Rule]) -> Permissions:
        """Return the permissions with what a person granted since; each counts as a grant, however it came.

        Raises:
            SpecError: If one of them asks, which nobody can grant.
        """
        granted = tuple(replace(rule, granted=True) for rule in rules)
        return replace(self, rules=(*self.rules, *granted)) if granted else self

    def decide(self, call: CallView) -> Ruling:
        """Return what becomes of a call; asking changes nothing."""
        try:
            return self._decide(call, read_subjects(call))
        except RecursionError:
            return Ruling("deny", None, "the arguments are nested too deep to be looked through")

    def _decide(self, call: CallView, subjects: Subjects) -> Ruling:
        own = _rule_of_the_tool(call)
        rules = [rule for rule in (*self.rules, *own) if rule.concerns(call, subjects)]
        rulings = [self._rule_on(call, rules, subject, subjects) for subject in subjects.each or (None,)]
        ruling = max(rulings, key=lambda one: _STRICTNESS[one.effect])
        if subjects.problem and ruling.effect == "allow":
            return Ruling("ask", None, subjects.problem)
        return ruling

    def _rule_on(
        self, call: CallView, rules: Sequence[Rule], subject: Subject | None, subjects: Subjects
    ) -> Ruling:
        matching = [rule for rule in rules if rule.is_about(subject, subjects.within)]
        if self.default == "deny" and all(self._is_later(rule) for rule in matching):
            matching = []
        rule = max(matching, key=lambda one: one.precedence, default=None)
        effect = self.default if rule is None else rule.effect
        if rule is None and effect == "allow" and subject is not None and subject.spelled:
            return Ruling("ask", None, f"no rule allows {subject.text!r}")
        if effect == "allow" and (doubt := self._doubt(call, rule, subject, subjects)) is not None:
            return Ruling("ask", doubt, _COULD.format(str(doubt)), certain=False)
        if rule is None:
            return Ruling(effect, None, self._unruled(call, subjects))
        if rule not in self.rules:
            return Ruling(effect, rule, "its tool requires approval")
        if _is_certain(rule, subject, subjects.within):
            return Ruling(effect, rule, f"it falls under the rule {str(rule)!r}")
        return Ruling(effect, rule, _COULD.format(str(rule)), certain=False)

    def _is_later(self, rule: Rule) -> bool:
        """Say whether a rule cannot make run what the default denies: a grant, or what a tool asks for."""
        return (rule.granted and rule.effect == "allow") or rule not in self.rules

    def _doubt(
        self, call: CallView, allowed_by: Rule | None, subject: Subject | None, subjects: Subjects
    ) -> Rule | None:
        """Return a deny that could be about what may be anything, unless a rule allows this very thing."""
        if subject is None or not subject.is_blank:
            return None
        glob = None if allowed_by is None else allowed_by.pattern.subject
        if glob is not None and subject.is_named_by(glob):
            return None
        for rule in self.rules:
            asking = replace(rule, effect="ask", granted=False)
            concerns = rule.effect == "deny" and asking.concerns(call, subjects)
            if concerns and asking.is_about(subject, subjects.within):
                return rule
        return None

    def _unruled(self, call: CallView, subjects: Subjects) -> str:
        """Say that no rule is about a call, and which one only looks as if it were."""
        reason = f"no rule covers it, and the default is {self.default}"
        for rule in self.rules:
            names_some = rule.effect == "allow" and bool(rule.pattern.arguments) and subjects.from_tool
            if names_some and rule.pattern.fits(call.name, call.arguments, every=True):
                return (
                    f"{reason}; {str(rule)!r} names an argument, but {call.name} says itself what its calls "
                    f"are about, so write {call.name}(…) without a name"
                )
        return reason


def _rule_of_the_tool(call: CallView) -> tuple[Rule, ...]:
    """Return the rule that a tool brings along if it requires approval: one that asks about all its calls."""
    if getattr(call.tool, "requires_approval", False) is not True:
        return ()
    return (Rule("ask", CallPattern.exact(call.name)),)


def _is_certain(rule: Rule, subject: Subject | None, within: Sequence[Subject]) -> bool:
    glob = rule.pattern.subject
    things = within if subject is None else (subject, *within)
    return glob is None or any(one.surely(glob) for one in things)


def _read_list(name: str, patterns: object, where: str) -> list[Rule]:
    """Return the rules that a list of patterns stands for."""
    effect: Effect = "ask" if name == FLOOR else cast("Effect", name)
    return [
        Rule(effect, CallPattern.parse(text, where=f"{where}.{name}[{place}]"), floor=name == FLOOR)
        for place, text in enumerate(fields.names(f"{where}.{name}", patterns))
    ]


def _check_effect(where: str, effect: object) -> None:
    if effect not in EFFECTS:
        raise SpecError(
            f"{where} must be allow, ask or deny, not {effect!r}: {nearest(effect, EFFECTS)}", field=where
        )


class Subject(NamedTuple):
    """One thing that a call is about.

    Attributes:
        text: What it is; if that is not known, a text that names this very thing and no other.
        may_be: If it is not known, what it may turn out to be; one with another glob stands for the rest.
        spelled: What a rule must spell out at its beginning to allow it; empty if any rule may.
    """

    text: str
    may_be: Glob | None = None
    spelled: str = ""

    def is_spelled_by(self, glob: Glob | None) -> bool:
        """Say whether a glob says explicitly that it is about such a thing."""
        return not self.spelled or (glob is not None and glob.beginning.startswith(self.spelled))

    @property
    def is_blank(self) -> bool:
        """True if it may be anything."""
        return self.may_be is not None and self.may_be.literal_length == 0

    def surely(self, glob: Glob) -> bool:
        """Say whether it fits a glob in any case."""
        if self.may_be is None:
            return glob.matches(self.text)
        return self.is_named_by(glob) or glob.covers(self.may_be)

    def possibly(self, glob: Glob) -> bool:
        """Say whether it may fit a glob."""
        return glob.matches(self.text) or (self.may_be is not None and glob.meets(self.may_be))

    def is_named_by(self, glob: Glob) -> bool:
        """Say whether a glob fits this very thing alone."""
        return glob.is_literal and glob.matches(self.text)


class Subjects(NamedTuple):
    """What a call is about.

    Attributes:
        each: The things that must all be allowed.
        within: Things inside those, which ask and deny look at as well.
        problem: Why the tool could not say; empty if it could.
        from_tool: Whether the tool says itself what its calls are about.
    """

    each: tuple[Subject, ...]
    within: tuple[Subject, ...] = ()
    problem: str = ""
    from_tool: bool = False


def read_subjects(call: CallView) -> Subjects:
    """Return what *call* is about."""
    name_subjects = getattr(call.tool, "permission_subjects", None)
    if callable(name_subjects):
        return _ask_the_tool(name_subjects, call)
    arguments = call.arguments
    if isinstance(arguments, Mapping) and len(arguments) == 1:
        (arguments,) = arguments.values()
    if isinstance(arguments, str):
        return Subjects((Subject(arguments),))
    whole = Subject(canonical(call.arguments).decode())
    return Subjects((whole,), tuple(map(Subject, _texts_in(call.arguments))))


def roots_for(call: CallView) -> dict[str, tuple[str, ...]]:
    """Return the folders of the session as an argument for the tool's methods, if it says it wants them."""
    return {"roots": call.roots} if getattr(call.tool, "permission_takes_roots", False) is True else {}


def roots_of(session: Session) -> tuple[str, ...]:
    """Return the folders that a session works in."""
    roots = session.metadata.get("workspace_roots")
    return tuple(root for root in roots if isinstance(root, str)) if isinstance(roots, (list, tuple)) else ()


def _ask_the_tool(permission_subjects: Callable[..., object], call: CallView) -> Subjects:
    watched = getattr(call.tool, "permission_watched", None)
    where = roots_for(call)
    try:  # with copies of its own: what the tool does to them does not reach the call
        each = permission_subjects(call.name, thaw(call.arguments), **where)
        within = watched(call.name, thaw(call.arguments), **where) if callable(watched) else ()
    except Exception as error:  # a plugin's code
        return _unsaid(f"{call.name} failed to say what the call is about: {error!r}")
    try:
        return Subjects(_read_all(each), _read_all(within), from_tool=True)
    except (SpecError, TypeError) as error:
        return _unsaid(f"{call.name} does not say in texts what the call is about: {error}")


def _unsaid(problem: str) -> Subjects:
    return Subjects((), (), problem, from_tool=True)


def _read_all(things: object) -> tuple[Subject, ...]:
    if not isinstance(things, (list, tuple)):
        raise TypeError(f"it returned a {type(things).__name__}, not a list")
    return tuple(subject for thing in things for subject in _read_subject(thing))


def _read_subject(thing: object) -> list[Subject]:
    if isinstance(thing, str):
        return [Subject(thing)]
    if isinstance(thing, Mapping) and set(thing) == {"text", "spelled"}:
        text, spelled = thing["text"], thing["spelled"]
        if isinstance(text, str) and isinstance(spelled, str) and spelled and text.startswith(spelled):
            return [Subject(text, spelled=spelled)]
        raise TypeError("spelled must be a text with which text begins")
    if not isinstance(thing, Mapping) or set(thing) != {"text", "may_be"} or not thing["may_be"]:
        raise TypeError("a subject that is not a text must have text and may_be, and nothing else")
    if not isinstance(thing["text"], str) or not isinstance(thing["may_be"], (list, tuple)):
        raise TypeError("text must be a text, and may_be a list of globs")
    return [Subject(thing["text"], Glob.parse(glob)) for glob in thing["may_be"]]


def _texts_in(value: object) -> Iterator[str]:
    """Yield every text in nested data; not recursive, since a model decides how deep it is."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, Mapping):
            waiting += here.values()
        elif isinstance(here, (list, tuple)):
            waiting += here
