"""Which rule counts: a deny, else a floor, else the most specific of allow and ask, else the default.

A rule comes from the agent's declaration, or a person granted it later. A grant answers a question in
advance: it counts over an ask that says no more than it does, and it forbids. What the declaration denies,
by a rule or by its default, and what it asks for always, no grant makes run.

Each thing that a call is about is ruled on by itself and the strictest ruling is the call's. So a call
about several things runs by itself only if every one of them is allowed, by one rule or by several, and
one thing that is denied denies the call.

What is only known when the call runs is ruled on before. So an allow counts if it fits whatever comes out,
and an ask or a deny if it could fit. Of a thing that may be anything at all every rule could be: there a
deny would deny everything, so it asks instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from agent_runtime import fields
from agent_runtime.errors import SpecError, nearest
from agent_runtime.permissions.call_patterns import CallPattern
from agent_runtime.permissions.subjects import Subjects, read_subjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_runtime.patterns import Glob
    from agent_runtime.permissions.call_patterns import Specificity
    from agent_runtime.permissions.subjects import Subject
    from agent_runtime.phases import CallView

Effect = Literal["allow", "ask", "deny"]
"""What becomes of a call: it runs, it waits for a person, it does not run."""

EFFECTS: tuple[Effect, ...] = get_args(Effect)
FLOOR = "always_ask"
"""The list of calls that are asked for each time, whatever allows them."""

LISTS = (*EFFECTS, FLOOR)
"""The lists of patterns that a section has."""

_FIELDS = (*LISTS, "default", "on_ask")
_COULD = "what it is about is only known when it runs, and it could fall under the rule {!r}"
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
            raise SpecError("what is granted allows or denies; it cannot ask", field="effect")
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
        return self.effect == "deny", self.floor, self.pattern.specificity, order, self.pattern.text

    def concerns(self, call: CallView, subjects: Subjects) -> bool:
        """Say whether the tool and the arguments that the pattern names fit.

        Where a tool says itself what its calls are about, an argument as the model wrote it tells less. It
        allows nothing then, and what asks or denies is held against what the tool says as well.
        """
        pattern = self.pattern
        if self.effect == "allow":
            names_some = bool(pattern.arguments) and subjects.told
            return not names_some and pattern.fits(call.name, call.arguments, every=True)
        told = (*subjects.each, *subjects.within) if subjects.told else ()
        return pattern.fits(
            call.name,
            call.arguments,
            every=False,
            or_else=lambda glob: any(self._counts(glob, one) for one in told),
        )

    def is_about(self, subject: Subject | None, within: Sequence[Subject]) -> bool:
        """Say whether the rule is about a subject, or may be for what is inside of it."""
        glob = self.pattern.subject
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
        rules = [rule for rule in self.rules if rule.concerns(call, subjects)]
        rulings = [self._rule_on(call, rules, subject, subjects) for subject in subjects.each or (None,)]
        ruling = max(rulings, key=lambda one: _STRICTNESS[one.effect])
        if subjects.problem and ruling.effect == "allow":
            return Ruling("ask", None, subjects.problem)
        return ruling

    def _rule_on(
        self, call: CallView, rules: Sequence[Rule], subject: Subject | None, subjects: Subjects
    ) -> Ruling:
        matching = [rule for rule in rules if rule.is_about(subject, subjects.within)]
        if self.default == "deny" and all(rule.granted and rule.effect == "allow" for rule in matching):
            matching = []
        rule = max(matching, key=lambda one: one.precedence, default=None)
        effect = self.default if rule is None else rule.effect
        if effect == "allow" and (doubt := self._doubt(call, rule, subject, subjects)) is not None:
            return Ruling("ask", doubt, _COULD.format(str(doubt)), certain=False)
        if rule is None:
            return Ruling(effect, None, self._unruled(call, subjects))
        if _is_certain(rule, subject, subjects.within):
            return Ruling(effect, rule, f"it falls under the rule {str(rule)!r}")
        return Ruling(effect, rule, _COULD.format(str(rule)), certain=False)

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
        reason = f"no rule is about it, and the default is {self.default}"
        for rule in self.rules:
            names_some = rule.effect == "allow" and bool(rule.pattern.arguments) and subjects.told
            if names_some and rule.pattern.fits(call.name, call.arguments, every=True):
                return (
                    f"{reason}; {str(rule)!r} names an argument, but {call.name} says itself what its calls "
                    f"are about, so write {call.name}(…) without a name"
                )
        return reason


def _is_certain(rule: Rule, subject: Subject | None, within: Sequence[Subject]) -> bool:
    glob = rule.pattern.subject
    things = within if subject is None else (subject, *within)
    return glob is None or any(one.surely(glob) for one in things)


def _read_list(name: str, patterns: Any, where: str) -> list[Rule]:
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
