"""Which calls run, which wait and which never do; what the model and the person read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from agent_core import Cancellation, Session
from agent_core.encoding import canonical
from agent_core.frozen import freeze
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime.agent import Agent
from agent_runtime.clock import SystemClock
from agent_runtime.env import PluginRegistrar
from agent_runtime.errors import BuildError, InvalidPluginConfig, SpecError
from agent_runtime.permissions import CallPattern, Effect, Permissions, PermissionsPlugin, Rule, Ruling
from agent_runtime.phases import CallView, Phase, PhaseView
from agent_runtime.policies import RunStats
from agent_runtime.results import RunResult, Usage
from agent_runtime.runs import RunInfo
from agent_runtime.specs import AgentSpec, ModelSpec
from agent_runtime.state import State
from agent_runtime.suspension import Decision
from agent_runtime.verdicts import Block, Suspend

if TYPE_CHECKING:
    from agent_core.steps import Flow

few = settings(max_examples=40)  # of each law, since there are many

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


class Shell:
    """A tool plugin that knows what its calls are about: the commands of a line."""

    name = "shell"
    version = "1"

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        assert tool_name == "shell"
        return [command.strip() for command in arguments.pop("command").split("&&") if command.strip()]


def a_call(
    name: str, arguments: Any = None, *, tool: Any = None, decision: Decision | None = None
) -> CallView:
    return CallView(id="call_1", name=name, arguments=freeze(arguments), raw={}, tool=tool, decision=decision)


def shell(command: str, **more: Any) -> CallView:
    return a_call("shell", {"command": command, **more})


def permissions(default: Effect = "ask", **rules: list[str]) -> Permissions:
    return Permissions.from_section({"default": default, **rules})


def decided(call: CallView, default: Effect = "ask", **rules: list[str]) -> str:
    return permissions(default, **rules).decide(call).effect


def allowing(pattern: str) -> Rule:
    return Rule("allow", CallPattern.parse(pattern))


def allows(pattern: str, call: CallView) -> bool:
    return decided(call, "ask", allow=[pattern]) == "allow"


def denies(pattern: str, call: CallView) -> bool:
    return decided(call, "ask", deny=[pattern]) == "deny"


# --- patterns of calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "call", "fits"),
    [
        ("read_*", a_call("read_file", {"path": "a", "n": 1}), True),
        ("read_*", a_call("write_file", {"path": "a"}), False),
        ("shell(git status*)", shell("git status --short"), True),
        ("shell(git status*)", shell("git push"), False),
        ("*(git status*)", shell("git status"), True),
        ("shell(echo a, b)", shell("echo a, b"), True),
        ("shell(git log --format=%H)", shell("git log --format=%H"), True),
        (r"shell(FOO\=1 make)", shell("FOO=1 make"), True),
        (r"shell(echo (a\))", shell("echo (a)"), True),
        (r"shell(a\\*)", shell("a\\b"), True),
        (r"a\(b\)", a_call("a(b)", {}), True),
        ("patch(*+ tea*)", a_call("patch", "- coffee\n+ tea\n"), True),
        ("edit(path=src/*)", a_call("edit", {"path": "src/a.py", "mode": "w"}), True),
        ("edit(path=src/*)", a_call("edit", {"path": "doc/a.md", "mode": "w"}), False),
        ("edit(path=src/*)", a_call("edit", {"file": "src/a.py"}), False),
        ("edit(path=src/*)", a_call("edit", "path=src/a"), False),
        ("edit(path=src/*, mode=?)", a_call("edit", {"path": "src/a.py", "mode": "w"}), True),
        ("edit(path=src/*, mode=?)", a_call("edit", {"path": "src/a.py", "mode": "rw"}), False),
        ("edit( path = src/* ,mode = ? )", a_call("edit", {"path": "src/a.py", "mode": "w"}), True),
        (r"edit(path=a\,b\ , mode=w)", a_call("edit", {"path": "a,b ", "mode": "w"}), True),
        (r"edit(path=a\\ , mode=w)", a_call("edit", {"path": "a\\", "mode": "w"}), True),
        ("edit(options.mode=w)", a_call("edit", {"options": {"mode": "w"}}), True),
        ("edit(options.mode=w)", a_call("edit", {"options.mode": "w"}), True),
        ("edit(options.mode=w)", a_call("edit", {"options": "mode"}), False),
        ("wait(seconds=5)", a_call("wait", {"seconds": 5, "loud": True}), True),
        ("wait(loud=true)", a_call("wait", {"seconds": 5, "loud": True}), True),
        (r'wait(how={"a":1\,"b":null})', a_call("wait", {"how": {"b": None, "a": 1}}), True),
        ("wait(marks=[])", a_call("wait", {"marks": []}), True),
        ('two({"a":1,"b":"x*"})', a_call("two", {"b": "xyz", "a": 1}), True),
    ],
)
def test_a_pattern_is_about_a_tool_and_its_arguments(pattern: str, call: CallView, fits: bool) -> None:
    assert allows(pattern, call) == fits
    assert denies(pattern, call) == fits


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", 1, "name of a tool is missing"),
        ("(git*)", 1, "name of a tool is missing"),
        ("shell()", 7, "parentheses are empty"),
        ("shell(git", 6, "never closed"),
        (r"shell(git\)", 6, "never closed"),
        ("shell)", 6, "nothing is open"),
        ("shell(a)b", 9, r"continues after \)"),
        ("shell(f(a))", 11, r"continues after \)"),
        ("shell\\", 6, "backslash"),
        ("shell(a\\", 8, "backslash"),
        ("edit(path=)", 11, "'path' has no pattern"),
        ("edit(path= , mode=w)", 12, "'path' has no pattern"),
        ("edit(path=a, b)", 13, "name=pattern"),
        ("edit(path=a,)", 13, "name=pattern"),
        ("edit(a.b=1, a.b=2)", 12, "'a.b' is named twice"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_the_place(text: str, place: int, problem: str) -> None:
    with pytest.raises(SpecError, match=problem) as caught:
        CallPattern.parse(text, where="permissions.deny[0]")

    assert f"permissions.deny[0] {text!r}, character {place}: " in str(caught.value)
    assert caught.value.field == "permissions.deny[0]"


def test_a_pattern_must_be_a_text() -> None:
    with pytest.raises(SpecError, match="pattern must be a text, not int"):
        CallPattern.parse(3)  # type: ignore[arg-type]  # bad on purpose


@pytest.mark.parametrize(
    ("items", "allowed", "denied"),
    [
        (["src/a", "src/b"], True, True),
        (["src/a", "etc/b"], False, True),
        (["etc/a", "etc/b"], False, False),
        ([["src/a"], ["etc/b"]], False, True),
        ([], False, False),
    ],
)
def test_of_a_list_every_item_must_fit_to_allow_and_one_is_enough_to_deny(
    items: list[Any], allowed: bool, denied: bool
) -> None:
    call = a_call("edit", {"paths": items, "more": 1})

    assert (allows("edit(paths=src/*)", call), denies("edit(paths=src/*)", call)) == (allowed, denied)


def test_an_item_without_the_argument_is_not_allowed_for_the_others_sake() -> None:
    call = a_call("edit", {"edits": [{"path": "src/a"}, {"file": "/etc/passwd"}]})

    assert not allows("edit(edits.path=src/*)", call)
    assert denies("edit(edits.path=src/*)", call)
    assert not allows("edit(edits.path=src/*)", a_call("edit", {"edits": []}))


def test_where_a_path_can_mean_two_things_both_must_fit_to_allow_and_one_is_enough_to_deny() -> None:
    call = a_call("edit", {"to.path": "src/a", "to": {"path": "/etc/passwd"}})

    assert not allows("edit(to.path=src/*)", call)
    assert denies("edit(to.path=src/*)", call) and denies("edit(to.path=/etc/*)", call)


@few
@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_an_exact_pattern_is_about_one_call(name: str, subject: str, other_name: str, other: str) -> None:
    pattern = CallPattern.exact(name, subject)

    assert pattern == CallPattern.parse(pattern.text)
    assert allows(pattern.text, a_call(name, subject))
    assert allows(pattern.text, a_call(name, other)) == (other == subject)
    assert allows(pattern.text, a_call(other_name, subject)) == (other_name == name)


@pytest.mark.parametrize("subject", ["FOO=1", "a.b = c", "x=1, y=2", "f(x)", "\\", "*", " padded "])
def test_an_exact_pattern_takes_no_text_for_syntax(subject: str) -> None:
    pattern = CallPattern.exact("shell", subject)

    assert pattern.arguments == () and allows(pattern.text, shell(subject))


# --- what a call is about ---------------------------------------------------------------------------------


def test_an_argument_that_is_alone_and_a_text_is_what_the_call_is_about() -> None:
    assert allows("shell(git *)", shell("git status"))
    assert not allows("wait(5)", a_call("wait", {"seconds": 5}))
    assert allows('wait({"seconds":5})', a_call("wait", {"seconds": 5}))


def test_one_argument_more_takes_a_call_out_of_what_is_allowed() -> None:
    assert not allows("shell(git *)", shell("git status", environment={"PAGER": "rm -rf /"}))


@few
@given(st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text() | st.lists(st.text())))
def test_no_arguments_besides_take_a_call_out_of_what_is_denied_or_asked(more: dict[str, Any]) -> None:
    call = a_call("shell", {**more, "command": "rm -rf /"})

    assert decided(call, allow=["shell"], deny=["shell(rm *)"]) == "deny"
    assert decided(call, allow=["shell"], ask=["shell(rm *)"]) == "ask"


def test_a_text_is_found_wherever_it_hides() -> None:
    call = a_call("batch", {"steps": [{"run": {"line": ["ls", "rm -rf /"]}}], "n": 1})

    assert denies("batch(rm *)", call)


def test_a_tool_says_what_its_calls_are_about_and_each_of_it_must_be_allowed() -> None:
    call = a_call("shell", {"command": "git add . && ls -l"}, tool=Shell())

    assert not allows("shell(git *)", call)
    assert decided(call, allow=["shell(git *)", "shell(ls*)"]) == "allow"
    assert decided(call, allow=["shell(git *)", "shell(ls*)"], ask=["shell(ls -l)"]) == "ask"
    assert denies("shell(ls*)", call)
    assert not denies("shell(git*ls*)", call)


class Watched(Shell):
    """A shell that knows other names for its commands."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def permission_watched(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        return self._names


def test_what_a_tool_has_watched_is_asked_for_and_denied_and_never_allowed() -> None:
    call = a_call("shell", {"command": "FOO=1 rm x"}, tool=Watched(["rm x"]))

    assert denies("shell(rm *)", call)
    assert decided(call, "allow", ask=["shell(rm *)"]) == "ask"
    assert not allows("shell(rm *)", call)
    assert allows("shell(FOO\\=1 rm *)", call)


@pytest.mark.parametrize("names", ["rm", None, [1]])
def test_a_tool_that_cannot_say_what_is_to_be_watched_has_its_calls_asked_for(names: Any) -> None:
    assert decided(a_call("shell", {"command": "ls"}, tool=Watched(names)), allow=["shell"]) == "ask"


class Guessing:
    """A tool that does not know all of what its calls are about: `$` stands for what is only known later."""

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[Any]:
        return [self._told(text) for text in arguments["about"]]

    def _told(self, text: str) -> Any:
        may_be = [text.replace("$", "*"), text.replace("$", "")] if "$" in text else []
        return {"text": f"<{text}>", "may_be": [glob for glob in may_be if glob]} if may_be else text


def guess(*about: str, **more: Any) -> CallView:
    return a_call("sh", {"about": list(about), **more}, tool=Guessing())


@pytest.mark.parametrize(
    ("pattern", "text", "allowed", "denied"),
    [
        ("sh(git *)", "git $ x", True, True),
        ("sh(git * x)", "git $ x", True, True),
        ("sh(git push*)", "git $ x", False, True),
        ("sh(git push*)", "git l$ x", False, False),
        ("sh(git ? x)", "git $ x", False, True),
        ("sh(*.env)", "cat $v", False, True),
        ("sh(<git $>)", "git $", True, True),
        ("sh(<git*>)", "git $", False, True),
        ("sh(<git $>)", "git $ ", False, False),
        ("sh(git $)", "git $", False, True),
        ("sh(*)", "$", True, True),
        ("sh", "$", True, True),
    ],
)
def test_what_is_not_known_is_allowed_if_every_outcome_is_and_denied_if_one_could_be(
    pattern: str, text: str, allowed: bool, denied: bool
) -> None:
    assert allows(pattern, guess(text)) == allowed
    assert denies(pattern, guess(text)) == denied
    assert (decided(guess(text), "allow", ask=[pattern]) == "ask") == denied
    assert (decided(guess(text), "allow", always_ask=[pattern]) == "ask") == denied


def test_of_what_may_be_anything_a_deny_asks_and_this_very_thing_can_be_allowed() -> None:
    call = guess("$")

    for allow in ("sh", "sh(*)", "*"):
        assert decided(call, allow=[allow]) == "allow"
        ruling = permissions(allow=[allow], deny=["sh(rm *)"]).decide(call)
        assert (ruling.effect, str(ruling.rule), ruling.certain) == ("ask", "deny sh(rm *)", False)
    assert decided(call, "allow", deny=["sh(rm *)"]) == "ask"
    assert decided(call, "allow", deny=["other(rm *)"]) == "allow"
    assert decided(call, "allow", deny=["sh(*)"]) == "deny"
    assert decided(call, "allow", deny=["sh(x=a)"]) == "allow"
    assert decided(guess("$", x="b"), "allow", deny=["sh(x=a)"]) == "ask"
    assert decided(call, allow=["sh(<$>)"], deny=["sh(rm *)"]) == "allow"
    assert decided(call, allow=["sh(<$>)"], always_ask=["sh(rm *)"]) == "ask"
    granted = permissions(deny=["sh(?*)"]).with_granted([allowing("sh(*)")])
    assert granted.decide(call).effect == "ask"


def test_each_thing_is_ruled_on_by_itself_also_if_it_is_not_known() -> None:
    rules: dict[str, Any] = {"allow": ["sh(cat *)", "sh(ls*)"], "deny": ["sh(rm *)"]}

    assert decided(guess("cat a$", "ls $"), **rules) == "allow"
    assert decided(guess("pwd$"), allow=["sh(pwd)", "sh(pwd*)"]) == "allow"
    assert decided(guess("pwd$"), allow=["sh(pwd)", "sh(pwd -?)"]) == "ask"
    assert decided(guess("cat a$", "make"), **rules) == "ask"
    assert decided(guess("cat a$", "rm $"), **rules) == "deny"


def test_a_ruling_says_if_the_rule_only_could_be_about_the_call() -> None:
    ruling = permissions(deny=["sh(rm *)"]).decide(guess("rm $"))
    assert ruling.certain and ruling.reason == "it falls under the rule 'deny sh(rm *)'"

    ruling = permissions(deny=["sh(rm -r*)"]).decide(guess("rm $"))
    assert not ruling.certain
    assert ruling.reason == (
        "its target is only known when it runs, and it could fall under the rule 'deny sh(rm -r*)'"
    )


@pytest.mark.parametrize(
    "thing",
    [
        {"text": "a"},
        {"text": "a", "may_be": []},
        {"text": "a", "may_be": "*"},
        {"text": 1, "may_be": ["*"]},
        {"text": "a", "may_be": ["a\\"]},
        {"text": "a", "may_be": [""]},
        {"text": "a", "may_be": ["*"], "more": 1},
    ],
)
def test_what_is_not_known_must_be_described_in_full(thing: Any) -> None:
    call = a_call("shell", {"command": "ls"}, tool=Broken([thing]))

    assert decided(call, allow=["shell"]) == "ask"
    assert decided(a_call("shell", {"command": "ls"}, tool=Watched([thing])), allow=["shell"]) == "ask"


def test_where_a_tool_says_what_calls_are_about_no_named_argument_allows() -> None:
    call = a_call("shell", {"command": "git status && rm -rf x"}, tool=Shell())

    ruling = permissions(allow=["shell(command=git status*)"]).decide(call)

    assert ruling.effect == "ask"
    assert "'allow shell(command=git status*)' names an argument" in ruling.reason
    assert "write shell(…) without a name" in ruling.reason
    assert allows("shell(command=git status*)", a_call("shell", {"command": "git status", "n": 1}))


class Paths:
    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return [arguments["path"].removeprefix("./")]


def test_a_named_argument_asks_and_denies_for_what_the_tool_says_as_well() -> None:
    call = a_call("write", {"path": "./secrets/x", "append": True}, tool=Paths())

    for pattern in ("write(path=secrets/*)", "write(path=./secrets/*)", "write(path=secrets/*, append=true)"):
        assert decided(call, "allow", deny=[pattern]) == "deny"
        assert decided(call, "allow", ask=[pattern]) == "ask"
    for pattern in ("write(path=src/*)", "write(path=secrets/*, append=false)", "write(file=secrets/*)"):
        assert decided(call, "allow", deny=[pattern]) == "allow"
    assert (
        decided(
            a_call("write", {"path": "true", "append": 1}, tool=Paths()), "allow", deny=["write(append=true)"]
        )
        == "allow"
    )


def test_a_tool_gets_a_copy_of_the_arguments() -> None:
    call = a_call("shell", {"command": "ls"}, tool=Shell())

    assert allows("shell(ls)", call)
    assert call.arguments == {"command": "ls"}


def test_a_call_about_nothing_is_not_allowed_by_what_a_rule_says_about_subjects() -> None:
    call = a_call("shell", {"command": " "}, tool=Shell())

    assert not allows("shell(*)", call)
    assert allows("shell", call)


class Broken:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def permission_subjects(self, tool_name: str, arguments: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [ValueError("no idea"), "rm", None, [1], {"rm": 1}])
def test_a_tool_that_cannot_say_has_its_calls_asked_for(answer: Any) -> None:
    call = a_call("shell", {"command": "ls"}, tool=Broken(answer))

    ruling = permissions("allow", allow=["shell", "shell(*)"]).decide(call)

    assert ruling.effect == "ask" and ruling.rule is None
    assert ruling.reason.startswith("shell ") and "what the call is about" in ruling.reason
    assert decided(call, allow=["shell"], deny=["sh*"]) == "deny"
    assert decided(call, "deny") == "deny"


def test_arguments_nested_too_deep_are_denied() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    call = CallView(id="call_1", name="shell", arguments={"command": deep, "n": 1}, raw={})

    for allowed in ("shell", "shell(command=x)"):
        assert decided(call, "allow", allow=[allowed]) == "deny"


# --- which rule counts ------------------------------------------------------------------------------------

PIECES = st.lists(st.sampled_from(["a", "b", " ", "*", "?"]), min_size=1, max_size=5).map("".join)
NAMES = st.sampled_from(["sh", "shell", "s*", "*", "?h"])
CALL_PATTERNS = st.one_of(
    NAMES,
    st.builds("{}({})".format, NAMES, PIECES),
    st.builds("{}(x={})".format, NAMES, PIECES.filter(str.strip)),
)
RULES = st.builds(Rule, st.sampled_from(["allow", "ask", "deny"]), CALL_PATTERNS.map(CallPattern.parse))
RULE_LISTS = st.lists(RULES, max_size=6)
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
WORDS = st.text("ab ", min_size=1, max_size=4)


class Listed:
    """A tool whose calls are about what is listed in `about`."""

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return list(arguments["about"])


CALLS = st.one_of(
    st.builds(a_call, st.sampled_from(["sh", "shell"]), WORDS | st.fixed_dictionaries({"x": WORDS})),
    st.builds(
        lambda about, x: a_call("sh", {"about": about, "x": x}, tool=Listed()),
        st.lists(WORDS, max_size=3),
        WORDS,
    ),
    st.builds(lambda x, y: a_call("sh", {"x": x, "y": y}), WORDS, st.integers(0, 1) | WORDS),
)


def is_about(rule: Rule, call: CallView) -> bool:
    """Say whether a rule alone decides something about a call."""
    other: Effect = "ask" if rule.effect == "deny" else "deny"
    return Permissions((rule,), other).decide(call).rule == rule


@few
@given(RULE_LISTS, EFFECTS, CALLS)
def test_a_deny_that_matches_always_wins(rules: list[Rule], default: Effect, call: CallView) -> None:
    denying = [rule for rule in rules if rule.effect == "deny" and is_about(rule, call)]

    ruling = Permissions(tuple(rules), default).decide(call)

    assert (ruling.rule in denying) if denying else (ruling.effect != "deny" or ruling.rule is None)


@few
@given(RULE_LISTS, EFFECTS, CALLS, st.data())
def test_the_order_of_rules_is_irrelevant(
    rules: list[Rule], default: Effect, call: CallView, data: st.DataObject
) -> None:
    other_order = data.draw(st.permutations(rules))

    assert Permissions(tuple(other_order), default).decide(call) == Permissions(tuple(rules), default).decide(
        call
    )


@few
@given(RULE_LISTS, EFFECTS, CALLS, CALL_PATTERNS)
def test_an_allow_that_is_added_never_undoes_a_deny_and_never_forbids(
    rules: list[Rule], default: Effect, call: CallView, pattern: str
) -> None:
    before = Permissions(tuple(rules), default)
    ruling = before.decide(call)

    after = before.with_rule("allow", pattern).decide(call)

    assert STRICTNESS[after.effect] <= STRICTNESS[ruling.effect]
    if ruling.effect == "deny" and ruling.rule is not None:
        assert after == ruling


@few
@given(RULE_LISTS, EFFECTS, CALLS, CALL_PATTERNS)
def test_a_deny_that_is_added_never_permits(
    rules: list[Rule], default: Effect, call: CallView, pattern: str
) -> None:
    before = Permissions(tuple(rules), default)

    after = before.with_rule("deny", pattern).decide(call)

    assert STRICTNESS[after.effect] >= STRICTNESS[before.decide(call).effect]


@few
@given(RULE_LISTS, st.sampled_from(["allow", "ask"]), CALLS, CALL_PATTERNS)
def test_an_ask_that_is_added_never_permits(
    rules: list[Rule], default: Effect, call: CallView, pattern: str
) -> None:
    before = Permissions(tuple(rules), default)

    after = before.with_rule("ask", pattern).decide(call)

    assert STRICTNESS[after.effect] >= STRICTNESS[before.decide(call).effect]


@few
@given(RULE_LISTS, st.sampled_from(["sh", "shell"]), WORDS)
def test_the_rule_that_decides_is_the_most_specific_of_those_that_match(
    rules: list[Rule], name: str, text: str
) -> None:
    call = a_call(name, text)
    matching = [rule for rule in rules if rule.effect != "deny" and is_about(rule, call)]

    ruling = Permissions(tuple(rule for rule in rules if rule.effect != "deny")).decide(call)

    if ruling.rule is None:
        assert not matching and ruling.effect == "ask"
    else:
        best = max(rule.pattern.specificity for rule in matching)
        equals = {rule.effect for rule in matching if rule.pattern.specificity == best}
        assert ruling.rule.pattern.specificity == best
        assert ruling.effect == ("ask" if "ask" in equals else "allow")


@few
@given(st.lists(st.one_of(NAMES, st.builds("{}({})".format, NAMES, PIECES)), max_size=6), WORDS)
def test_a_call_that_is_allowed_exactly_is_not_asked_for_by_any_wider_rule(
    asked: list[str], text: str
) -> None:
    exact = CallPattern.exact("sh", text)
    wider = [pattern for pattern in asked if pattern != exact.text]

    assert decided(a_call("sh", text), ask=wider, allow=[exact.text]) == "allow"


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("shell(git push*)", "shell(git *)"),
        ("shell(g*)", "shell"),
        ("*(*)", "shell"),
        ("shell(git push origin)", "shell(git push origin*)"),
        ("shell(git*)", "s*(git*)"),
        ("shell", "shel?"),
        ("shell", "shell*"),
        ("shel*", "s*"),
        ("shell(command=git*, user=*)", "shell(command=git*)"),
    ],
)
def test_the_more_specific_of_two_rules_counts(narrow: str, wide: str) -> None:
    call = a_call("shell", "git push origin")
    if "=" in narrow:
        call = a_call("shell", {"command": "git push origin", "user": "ada"})

    assert decided(call, ask=[narrow], allow=[wide]) == "ask"
    assert decided(call, ask=[wide], allow=[narrow]) == "allow"


def test_of_two_rules_that_say_as_much_the_one_that_asks_counts() -> None:
    assert decided(shell("ab"), ask=["shell(a*)"], allow=["shell(*b)"]) == "ask"


def test_of_two_rules_that_say_the_same_one_is_named_whatever_their_order() -> None:
    one = permissions(deny=["shell(a*)", "shell(*b)"]).decide(shell("ab"))

    assert permissions(deny=["shell(*b)", "shell(a*)"]).decide(shell("ab")) == one


def test_a_ruling_names_the_rule_and_says_why() -> None:
    rules = permissions("deny", ask=["shell(git push*)"])

    ruling = rules.decide(shell("git push"))
    assert ruling == Ruling("ask", rules.rules[0], "it falls under the rule 'ask shell(git push*)'")
    assert rules.decide(shell("ls")) == Ruling("deny", None, "no rule covers it, and the default is deny")


def test_adding_a_rule_leaves_the_permissions_as_they_were() -> None:
    before = permissions()

    after = before.with_rule("allow", "shell(ls)")

    assert before == permissions()
    assert after.decide(shell("ls")).effect == "allow" and before.decide(shell("ls")).effect == "ask"
    assert after == before.with_rule("allow", CallPattern.exact("shell", "ls"))


@pytest.mark.parametrize(
    ("section", "field", "problem"),
    [
        ({"default": "alow"}, "permissions.default", "did you mean 'allow'"),
        ({"default": ["ask"]}, "permissions.default", "must be allow, ask or deny"),
        ({"denied": ["shell"]}, "permissions.denied", "did you mean 'deny'"),
        ({"allow": "shell"}, "permissions.allow", "must be a list"),
        ({"allow": ["ls", 3]}, "permissions.allow[1]", "must be a string"),
        ({"deny": ["ls", "rm("]}, "permissions.deny[1]", "never closed"),
    ],
)
def test_a_section_with_a_mistake_is_refused_by_field(
    section: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(SpecError, match=problem) as caught:
        Permissions.from_section(section)

    assert caught.value.field == field


def test_what_is_no_rule_is_refused() -> None:
    with pytest.raises(SpecError, match="effect must be allow, ask or deny, not 'permit'"):
        Rule("permit", CallPattern.parse("a"))  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(SpecError, match=r"CallPattern\.parse"):
        Rule("allow", "a")  # type: ignore[arg-type]  # bad on purpose
    with pytest.raises(SpecError, match="rules must hold rules, not str"):
        Permissions(("deny a",))  # type: ignore[arg-type]  # bad on purpose


# --- the gate ---------------------------------------------------------------------------------------------


def gated(call: CallView | None, section: dict[str, Any]) -> Any:
    """Ask the gate that the plugin places for an agent with this section."""
    spec = AgentSpec("helper", "small", sections={"permissions": section})
    registrar = PluginRegistrar(spec)
    registrar.plugin = "permissions"
    PermissionsPlugin().register(registrar)
    [(plugin, gate)] = registrar.env(()).tool_gates
    assert plugin == "permissions"
    return gate(a_view(spec, call))


def a_view(spec: AgentSpec, call: CallView | None) -> PhaseView:
    run = RunInfo(
        run_id="run_1",
        agent_id=spec.id,
        round=1,
        parents=(),
        model=ModelSpec("small", "scripted"),
        tools=(),
        clock=SystemClock(),
        cancellation=Cancellation(),
        ask=no_model,
    )
    return PhaseView(
        phase=Phase.TOOL_GATE,
        run=run,
        spec=spec,
        session=Session(session_id="session_1"),
        state=State({}),
        usage=Usage(),
        stats=RunStats(),
        call=call,
    )


def no_model(*_messages: Any, **_more: Any) -> Flow[str]:
    raise AssertionError("a gate asks no model")


def test_a_call_that_is_allowed_passes_the_gate() -> None:
    assert gated(shell("ls"), {"allow": ["shell(ls)"]}) is None
    assert gated(shell("ls"), {"default": "allow"}) is None
    assert gated(None, {"default": "deny"}) is None


def test_a_call_that_is_denied_is_blocked_and_the_model_reads_why() -> None:
    verdict = gated(shell("rm -rf /"), {"default": "allow", "deny": ["shell(rm *)"]})

    assert isinstance(verdict, Block)
    assert "'deny shell(rm *)'" in verdict.reason and "Do not make this call again" in verdict.reason


def test_without_a_section_every_call_is_asked_for() -> None:
    assert isinstance(gated(shell("ls"), {}), Suspend)


def test_a_question_shows_the_exact_call_and_how_to_allow_it() -> None:
    verdict = gated(a_call("shell", {"command": "git push"}), {"ask": ["shell(git*)"]})

    assert verdict == Suspend(
        'Run shell with {"command":"git push"}? '
        "Reason for the question: it falls under the rule 'ask shell(git*)'.",
        action="approve",
        parameters={
            "tool": "shell",
            "arguments": {"command": "git push"},
            "rule": "ask shell(git*)",
            "reason": "it falls under the rule 'ask shell(git*)'",
            "suggestions": ["shell(git push)"],
            "together": [],
        },
        mode="replay",
    )


def test_a_question_that_no_rule_asked_for_says_so() -> None:
    verdict = gated(a_call("now", {}), {})

    assert verdict.parameters == {
        "tool": "now",
        "arguments": {},
        "rule": None,
        "reason": "no rule covers it, and the default is ask",
        "suggestions": ["now({})", "now"],
        "together": [],
    }
    assert "the default is ask" in verdict.message


def test_a_long_call_is_previewed_and_kept_whole() -> None:
    text = "x" * 5000

    verdict = gated(a_call("write", text), {})

    assert len(verdict.message) < 500 and "(4700 characters more)" in verdict.message
    assert verdict.parameters["arguments"] == text
    assert verdict.parameters["suggestions"] == ["write"]


def test_nothing_in_a_preview_moves_the_cursor_or_turns_the_line_around() -> None:
    verdict = gated(a_call("write\x1b[2J", "a\nb\x1b[31m\u202egpj.exe é"), {})

    assert verdict.message.isprintable()
    assert r"a\u000ab\u001b[31m\u202egpj.exe é" in verdict.message


@few
@given(RULE_LISTS, EFFECTS, CALLS)
def test_every_pattern_that_is_suggested_would_let_the_call_run(
    rules: list[Rule], default: Effect, call: CallView
) -> None:
    section: dict[str, Any] = {"default": default}
    for rule in rules:
        section.setdefault(rule.effect, []).append(rule.pattern.text)

    verdict = gated(call, section)

    if isinstance(verdict, Suspend):
        for pattern in verdict.parameters["suggestions"]:
            granted = Permissions.from_section(section).with_granted([allowing(pattern)])
            assert granted.decide(call).effect == "allow"


def test_an_approved_call_passes_and_a_refused_one_does_not() -> None:
    approved = a_call("shell", {"command": "git push"}, decision=Decision("call_1"))
    refused = a_call(
        "shell", {"command": "git push"}, decision=Decision("call_1", approved=False, reason="not now")
    )

    assert gated(approved, {}) is None
    assert "not now" in gated(refused, {}).reason


def test_a_call_that_could_be_denied_is_blocked_and_the_model_reads_how_to_be_clear() -> None:
    verdict = gated(guess("git $"), {"default": "allow", "deny": ["sh(git push*)"]})

    assert isinstance(verdict, Block)
    assert "it could fall under the rule 'deny sh(git push*)'. If you mean" in verdict.reason
    assert "every word is written out" in verdict.reason and "Do not make" not in verdict.reason


def test_of_a_call_that_is_not_known_this_very_call_is_offered() -> None:
    verdict = gated(guess("git $"), {})

    assert verdict.parameters["suggestions"] == ["sh(<git $>)", "sh"]
    assert gated(guess("git $", "ls"), {}).parameters["together"] == ["sh(<git $>)", "sh(ls)"]


def test_an_approval_does_not_help_against_a_deny() -> None:
    approved = a_call("shell", {"command": "rm -rf /"}, decision=Decision("call_1"))

    assert isinstance(gated(approved, {"deny": ["shell(rm *)"]}), Block)


def test_where_nobody_watches_what_would_be_asked_is_refused() -> None:
    verdict = gated(shell("git push"), {"on_ask": "deny", "ask": ["shell(git push*)"]})

    assert isinstance(verdict, Block)
    assert "'ask shell(git push*)'" in verdict.reason and "nobody is there to be asked" in verdict.reason


def test_a_call_without_a_name_is_blocked() -> None:
    verdict = gated(a_call(""), {"default": "allow", "allow": ["*"]})

    assert isinstance(verdict, Block) and "names no tool" in verdict.reason


@few
@given(st.dictionaries(st.text(max_size=9), st.text() | st.sampled_from(["shell", "allow", "permissions"])))
def test_no_arguments_change_a_rule(arguments: dict[str, str]) -> None:
    smuggled = {**arguments, "permissions": {"default": "allow", "allow": ["*"]}, "approved": True}

    assert isinstance(gated(a_call("shell", smuggled), {"deny": ["shell"]}), Block)
    assert isinstance(gated(a_call("shell", smuggled), {}), Suspend)


@few
@given(RULE_LISTS, CALLS)
def test_a_question_can_be_kept_as_json(rules: list[Rule], call: CallView) -> None:
    verdict = gated(call, {"ask": [rule.pattern.text for rule in rules]})

    assert jsonschema_rs.is_valid({"type": "object"}, verdict.parameters)
    assert canonical(verdict.parameters)


# --- the section's schema ---------------------------------------------------------------------------------


def test_the_schema_takes_what_the_plugin_reads_and_refuses_the_rest() -> None:
    [(section, schema)] = PermissionsPlugin.config_schemas()
    assert section == "permissions"

    whole = {
        "default": "deny",
        "allow": ["a"],
        "ask": ["b(c)"],
        "deny": [],
        "always_ask": ["d"],
        "on_ask": "deny",
    }
    assert jsonschema_rs.is_valid(schema, whole) and jsonschema_rs.is_valid(schema, {})
    wrong: list[Any] = [{"allow": "a"}, {"allow": [""]}, {"default": "x"}, {"on_ask": "allow"}, {"alow": []}]
    for bad in wrong:
        assert not jsonschema_rs.is_valid(schema, bad)


def test_the_schema_is_the_callers_own() -> None:
    [(_, schema)] = PermissionsPlugin.config_schemas()
    schema["properties"].clear()

    assert PermissionsPlugin().config_schemas()[0][1]["properties"]


def test_a_pattern_that_cannot_be_read_keeps_the_agent_from_being_resolved() -> None:
    with pytest.raises(InvalidPluginConfig, match=r"permissions\.deny\[0\] 'rm\(', character 3") as caught:
        gated(None, {"deny": ["rm("]})

    assert (caught.value.agent_id, caught.value.section) == ("helper", "permissions")


# --- whole runs -------------------------------------------------------------------------------------------


class Commands:
    """A shell that remembers what it ran."""

    name = "commands"
    version = "1"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": "shell", "input_schema": command}]

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return [command.strip() for command in arguments["command"].split("&&")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self.ran.append(arguments["command"])
        return "ran"


def an_agent(commands: Commands, section: dict[str, Any], *asked: str) -> Agent:
    """Return an agent whose model makes one call for each command and then ends."""
    calls = [ToolCall("shell", {"command": command}) for command in asked]
    script: list[Reply | str] = [Reply(tool_calls=calls), "done"] if calls else ["done"]
    return Agent(ScriptedProvider(script), tools=[commands], sections={"permissions": section})


def answers(result: RunResult) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


SECTION = {"allow": ["shell(git *)", "shell(ls*)"], "ask": ["shell(git push*)"], "deny": ["shell(rm *)"]}


def test_in_a_run_each_call_goes_its_way() -> None:
    commands = Commands()

    result = an_agent(commands, SECTION, "git add . && ls", "git push", "ls && rm -r .").run("go")

    assert commands.ran == ["git add . && ls"]
    assert result.reason.code == "suspended"
    [waiting] = result.suspended
    assert (waiting.tool, waiting.owner, waiting.action) == ("shell", "permissions", "approve")
    assert waiting.parameters["arguments"] == {"command": "git push"}
    assert "'deny shell(rm *)'" in answers(result)[-1]


def test_a_run_goes_on_in_another_process_with_what_was_approved() -> None:
    waiting = an_agent(Commands(), SECTION, "git push", "git push --force").run("go")
    session = Session.from_dict(waiting.session.to_dict())
    commands = Commands()

    decisions = [Decision(waiting.suspended[0].id), Decision(waiting.suspended[1].id, approved=False)]
    result = an_agent(commands, SECTION).run((), session=session, decisions=decisions)

    assert (commands.ran, result.text, result.reason.code) == (["git push"], "done", "natural_end")
    assert len(answers(result)) == 2


def test_what_was_denied_in_the_meantime_does_not_run_although_it_was_approved() -> None:
    waiting = an_agent(Commands(), SECTION, "git push").run("go")
    commands = Commands()

    result = an_agent(commands, {"deny": ["shell(git push)"]}).run(
        (), session=waiting.session, decisions=[Decision("call_1")]
    )

    assert commands.ran == [] and result.text == "done"
    assert "'deny shell(git push)'" in answers(result)[0]


def test_a_run_that_nobody_watches_never_waits() -> None:
    commands = Commands()

    result = an_agent(commands, {**SECTION, "on_ask": "deny"}, "git push", "ls").run("go")

    assert (commands.ran, result.text, result.suspended) == (["ls"], "done", ())
    assert "nobody is there to be asked" in answers(result)[0]


def test_what_was_suggested_lets_the_call_run_next_time() -> None:
    waiting = an_agent(Commands(), SECTION, "git add . && git push").run("go")
    suggestions = waiting.suspended[0].parameters["suggestions"]
    commands = Commands()

    granted = {**SECTION, "allow": [*SECTION["allow"], suggestions[0]]}
    an_agent(commands, granted, "git add . && git push", "git push --force").run("go")

    assert suggestions == ["shell(git push)"]
    assert commands.ran == ["git add . && git push"]


def test_an_agent_with_a_bad_pattern_is_not_built() -> None:
    with pytest.raises(BuildError, match=r"permissions\.allow\[0\] 'shell\(', character 6: .* never closed"):
        an_agent(Commands(), {"allow": ["shell("]})
    with pytest.raises(BuildError, match="permissions"):
        an_agent(Commands(), {"denied": ["shell"]})
