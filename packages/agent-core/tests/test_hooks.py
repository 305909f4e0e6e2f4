"""Every documented form of a hook's signature is called rightly; every other form is refused by name."""

import functools
import inspect
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from agent_core import AgentCore, PluginError, PluginMutationError, RegistrationError, types
from agent_core.frozen import FrozenDict, FrozenList
from agent_core.plugin.base import PluginWrapper
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.hooks import HookSpec
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.tool import ToolWrapper
from agent_core.testing import EchoProvider

Case = Callable[..., AbstractContextManager[None]]

WRAPPERS: dict[str, type[PluginWrapper]] = {
    "provider": ProviderWrapper,
    "extension": ExtensionWrapper,
    "feature": FeatureWrapper,
    "tool": ToolWrapper,
}
PROTOCOLS: dict[str, type] = {
    "provider": types.ProviderPlugin,
    "extension": types.ProviderExtensionPlugin,
    "feature": types.FeaturePlugin,
    "tool": types.ToolPlugin,
}
HOOKS = [(kind, spec) for kind, wrapper in WRAPPERS.items() for spec in wrapper.hooks]

each_kind = pytest.mark.parametrize("kind", WRAPPERS)


class Needed:
    """What each kind must have to be registered at all."""

    name = "stand_in"
    version = "1"

    def call_api(self, native_messages: Any, state: Any) -> Any: ...

    def process_chunk(self, *everything: Any) -> Any: ...

    def get_tool_schemas(self) -> Any: ...

    def execute_tool(self, tool_name: Any, arguments: Any) -> Any: ...


def written(signature: str) -> Callable[..., dict[str, Any]]:
    """Return a function with that signature which answers with what it was given."""
    names: dict[str, Any] = {}
    exec(f"def hook({signature}): return dict(locals())", names)
    function: Callable[..., dict[str, Any]] = names["hook"]
    return function


def receive(kind: str, spec: HookSpec, member: object) -> dict[str, Any]:
    """Register a plugin with that hook, call it as the pipeline does, and return what it got."""
    hook = WRAPPERS[kind](type("Plugin", (Needed,), {spec.name: member})).hook(spec.name)
    assert hook is not None
    received: dict[str, Any] = hook(*values(spec.arguments))
    received.pop("self", None)
    received.pop("cls", None)
    return received


def values(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"<{name}>" for name in names)


def by_name(names: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(names, values(names), strict=True))


Form = Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, dict[str, Any]]]
FORMS: dict[str, Form] = {}


def form(function: Form) -> Form:
    FORMS[function.__name__] = function
    return function


def joined(*parameters: str) -> str:
    return ", ".join(("self", *parameters))


@form
def all_arguments(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, *may), by_name(must + may)


@form
def only_what_must_be(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must), by_name(must)


@form
def only_the_last_optional_one(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, *may[-1:]), by_name(must + may[-1:])


@form
def only_the_last_one_by_keyword(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    star = ("*",) if may else ()
    return joined(*must, *star, *may[-1:]), by_name(must + may[-1:])


@form
def optional_ones_in_another_order(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, *reversed(may)), by_name(must + may)


@form
def optional_ones_by_keyword(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    star = ("*",) if may else ()
    return joined(*must, *star, *may), by_name(must + may)


@form
def everything_by_keyword(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    star = ("*",) if must + may else ()
    return joined(*star, *must, *may), by_name(must + may)


@form
def defaults_everywhere(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*(f"{name}=None" for name in must + may)), by_name(must + may)


@form
def positional_only(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, *may, "/"), by_name(must + may)


@form
def names_of_ones_own(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    own = tuple(f"my_{name}" for name in must + may)
    return joined(*own), dict(zip(own, values(must + may), strict=True))


@form
def a_default_of_ones_own_among_them(
    must: tuple[str, ...], may: tuple[str, ...]
) -> tuple[str, dict[str, Any]]:
    optional = (f"{name}=None" for name in may)
    return joined(*must, "mine='kept'", *optional), {**by_name(must + may), "mine": "kept"}


@form
def a_keyword_of_ones_own(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, "*", "mine='kept'"), {**by_name(must), "mine": "kept"}


@form
def the_rest_by_name(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, "**rest"), {**by_name(must), "rest": by_name(may)}


@form
def everything_by_name(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined("**rest"), {"rest": by_name(must + may)}


@form
def the_rest_by_position(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined(*must, "*rest"), {**by_name(must), "rest": values(may)}


@form
def everything_by_position(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined("*rest"), {"rest": values(must + may)}


@form
def the_rest_by_position_and_the_last_by_name(
    must: tuple[str, ...], may: tuple[str, ...]
) -> tuple[str, dict[str, Any]]:
    return joined(*must, "*rest", *may[-1:]), {**by_name(must + may[-1:]), "rest": values(may[:-1])}


@form
def anything_at_all(must: tuple[str, ...], may: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    return joined("*rest", "**named"), {"rest": values(must + may), "named": {}}


@each_kind
def test_a_hook_may_be_written_in_every_documented_form(kind: str, case: Case) -> None:
    for wanted, form in FORMS.items():
        with case(wanted):
            received, expected = {}, {}
            for spec in WRAPPERS[kind].hooks:
                must, may = spec.arguments[: spec.least], spec.arguments[spec.least :]
                signature, expected[spec.name] = form(must, may)
                received[spec.name] = receive(kind, spec, written(signature))

            assert received == expected


@each_kind
def test_a_hook_may_be_a_static_method_a_class_method_or_an_attribute_of_the_object(kind: str) -> None:
    for spec in WRAPPERS[kind].hooks:
        expected = by_name(spec.arguments)
        static = staticmethod(written(", ".join(spec.arguments)))
        of_the_class = classmethod(written(", ".join(("cls", *spec.arguments))))
        plugin = Needed()
        setattr(plugin, spec.name, written(", ".join(spec.arguments)))
        attribute = WRAPPERS[kind](plugin).hook(spec.name)

        assert receive(kind, spec, static) == expected
        assert receive(kind, spec, of_the_class) == expected
        assert attribute is not None and attribute(*values(spec.arguments)) == expected


@each_kind
def test_a_hook_may_be_wrapped_by_a_decorator_or_be_a_callable_object(kind: str) -> None:
    for spec in WRAPPERS[kind].hooks:
        inner = written(joined(*spec.arguments))

        @functools.wraps(inner)
        def wrapped(*args: Any, inner: Any = inner, **kwargs: Any) -> Any:
            return inner(*args, **kwargs)

        assert receive(kind, spec, wrapped) == by_name(spec.arguments)
        assert receive(kind, spec, staticmethod(functools.partial(inner, None))) == by_name(spec.arguments)


@pytest.mark.parametrize(
    ("kind", "hook", "signature", "expected"),
    [
        ("tool", "execute_tool", "self, name, payload", {"name": "<tool_name>", "payload": "<arguments>"}),
        ("tool", "stream_tool", "self, name, args", {"name": "<tool_name>", "args": "<arguments>"}),
        (
            "tool",
            "format_tool_call_preview",
            "self, name, *, payload",
            {"name": "<tool_name>", "payload": "<arguments>"},
        ),
        ("feature", "get_ui_elements", "self, config, ui_context", None),
    ],
)
def test_some_arguments_have_a_second_name(
    kind: str, hook: str, signature: str, expected: dict[str, str] | None
) -> None:
    [spec] = [spec for spec in WRAPPERS[kind].hooks if spec.name == hook]

    received = receive(kind, spec, written(signature))

    assert received == (expected or {"config": "<config>", "ui_context": "<context>"})


def test_a_documented_name_gets_its_argument_wherever_it_stands() -> None:
    [spec] = [spec for spec in FeatureWrapper.hooks if spec.name == "to_native_messages"]

    received = receive("feature", spec, written("self, state, native_messages, messages"))

    assert received == by_name(("state", "native_messages", "messages"))


def test_a_positional_only_parameter_behind_one_that_keeps_its_default_keeps_its_own() -> None:
    [spec] = [spec for spec in FeatureWrapper.hooks if spec.name == "get_tags"]

    assert receive("feature", spec, written("self, config, mine='kept', models='too', /")) == {
        "config": "<config>",
        "mine": "kept",
        "models": "too",
    }
    assert receive("feature", spec, written("self, config, mine='kept', *rest, context")) == {
        "config": "<config>",
        "mine": "kept",
        "rest": (),
        "context": "<context>",
    }


def test_a_parameter_that_nobody_fills_is_refused_with_its_name(case: Case) -> None:
    for kind, spec in HOOKS:
        with case(kind, spec):
            for signature in (joined(*spec.arguments, "surplus"), joined(*spec.arguments, "*", "surplus")):
                with pytest.raises(RegistrationError) as caught:
                    receive(kind, spec, written(signature))

                assert caught.value.plugin == "stand_in"
                assert str(caught.value) == (
                    "Plugin 'stand_in' cannot be registered: "
                    f"the hook {spec.name}({', '.join(spec.arguments)}) has no argument 'surplus'"
                )


def test_a_hook_that_leaves_out_what_it_must_take_is_refused_with_the_name(case: Case) -> None:
    cases: list[tuple[str, HookSpec]] = [hook for hook in HOOKS if hook[1].least]
    for kind, spec in cases:
        with case(kind, spec):
            must = spec.arguments[: spec.least]
            with pytest.raises(RegistrationError) as caught:
                receive(kind, spec, written(joined(*must[:-1])))

            assert caught.value.plugin == "stand_in"
            assert caught.value.problem == (
                f"the hook {spec.name}({', '.join(spec.arguments)}) must take {must[-1]!r}"
            )


def test_a_name_of_ones_own_in_a_place_that_another_name_has_is_refused() -> None:
    [spec] = [spec for spec in FeatureWrapper.hooks if spec.name == "get_tags"]

    with pytest.raises(
        RegistrationError, match=r"get_tags\(config, models, context\) has no argument 'mine'"
    ):
        receive("feature", spec, written("self, config, context, mine"))


def test_a_hook_that_cannot_be_called_is_refused(case: Case) -> None:
    for kind, spec in HOOKS:
        with case(kind, spec):
            with pytest.raises(RegistrationError) as caught:
                receive(kind, spec, ["a list"])

            assert caught.value.plugin == "stand_in"
            assert caught.value.problem == f"{spec.name} must be a method, not list"


def without_self() -> list[str]:  # a mistake that plugin authors make
    return []


@pytest.mark.parametrize(
    "hook", [without_self, type("Odd", (), {"__call__": print, "__signature__": "none"})()]
)
def test_a_hook_whose_signature_python_cannot_tell_is_refused(hook: object) -> None:
    with pytest.raises(RegistrationError, match=r"'odd'.*get_tags\(.*signature that Python cannot tell"):
        AgentCore().register_feature(type("Feature", (), {"name": "odd", "get_tags": hook}))


@each_kind
def test_a_hook_that_is_none_counts_as_not_written(kind: str) -> None:
    class Plugin(Needed):
        get_tags = None

    assert not WRAPPERS[kind](Plugin).has("get_tags")


def test_objects_of_one_class_may_bring_different_hooks() -> None:
    class Passing:
        """Passes on what another plugin has, and has nothing of its own."""

        def __init__(self, inner: object) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    class Plain:
        name = "plain"

    class Tagging:
        name = "tagging"

        def get_tags(self, config: Any, context: Any) -> list[str]:
            return ["deep"]

    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(Passing(Plain()))
    core.register_feature(Passing(Tagging()))

    assert "deep" in core.resolve({}).tags


def test_a_class_that_was_changed_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    AgentCore().register_provider(EchoProvider)
    monkeypatch.setattr(EchoProvider, "get_tags", lambda self, config, models: [models[0]["id"]])
    core = AgentCore()
    core.register_provider(EchoProvider)

    assert list(core.resolve({}).tags) == ["echo"]


def test_a_plugin_that_inherits_from_its_protocol_has_only_the_hooks_that_it_wrote() -> None:
    class Loud(types.FeaturePlugin):
        name = "loud"
        version = "1"

        def get_tags(self, config: Any, **rest: Any) -> list[str]:
            return ["loud"]

    wrapper = FeatureWrapper(Loud)

    assert [spec.name for spec in wrapper.hooks if wrapper.has(spec.name)] == ["get_tags"]


@each_kind
def test_the_protocols_and_the_table_of_hooks_agree(kind: str) -> None:
    protocol, documented = PROTOCOLS[kind], {}
    for name in dir(protocol):
        method = getattr(protocol, name)
        if inspect.isfunction(method) and not name.startswith("_"):
            parameters = list(inspect.signature(method).parameters.values())[1:]
            documented[name] = (
                tuple(p.name for p in parameters),
                sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters),
            )

    assert documented == {spec.name: (spec.arguments, spec.least) for spec in WRAPPERS[kind].hooks}


@each_kind
def test_every_hook_of_a_protocol_says_when_it_is_called(kind: str) -> None:
    undocumented = [
        spec.name for spec in WRAPPERS[kind].hooks if not getattr(PROTOCOLS[kind], spec.name).__doc__
    ]

    assert not undocumented


def asking(hook: str, answer: object) -> Callable[[], Any]:
    """Return a question to a core whose feature answers *hook* with *answer*, or raises it."""

    def respond(self: object, *arguments: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(type("Feature", (), {"name": "asked", "version": "1", hook: respond}))
    if hook == "get_template":
        return lambda: core.get_template({})
    return lambda: core.get_ui_schema({})


ASKED = {
    "get_tags": "a list of strings",
    "required_tags": "a list of strings",
    "forbidden_tags": "a list of strings",
    "is_enabled": "True, False or None",
    "get_models": "a list of dicts",
    "prepare_tools": "a list of ToolDescriptor",
    "get_template": "a string",
}


def test_what_a_hook_raises_gets_the_names_of_plugin_and_hook(case: Case) -> None:
    for hook in ASKED:
        with case(hook):
            with pytest.raises(PluginError) as caught:
                asking(hook, OSError("no disk"))()

            assert (caught.value.plugin, caught.value.hook) == ("asked", hook)
            assert str(caught.value) == f"Plugin 'asked', hook {hook!r}: raised OSError: no disk"
            assert isinstance(caught.value.__cause__, OSError)


WRONG: dict[str, list[object]] = {
    **{hook: [None, 3, "text", [3], ["text", None]] for hook in ASKED},
    "is_enabled": ["yes", 1, []],
    "get_template": [None, 3, ["text"]],
}


def test_an_answer_of_the_wrong_kind_is_refused_with_the_names_of_plugin_and_hook(case: Case) -> None:
    cases: list[tuple[str, object]] = [
        (hook, answer) for hook, answers in WRONG.items() for answer in answers
    ]
    for hook, answer in cases:
        with case(hook, answer):
            with pytest.raises(PluginError) as caught:
                asking(hook, answer)()

            assert (caught.value.plugin, caught.value.hook) == ("asked", hook)
            assert f"must return {ASKED[hook]}, returned " in caught.value.problem


@pytest.mark.parametrize("hook", ["get_tags", "is_enabled", "get_models", "get_template"])
def test_a_hook_that_changes_its_arguments_in_place_is_named(hook: str) -> None:
    def change(config: dict[str, Any], *rest: Any) -> None:
        config["seen"] = True

    with pytest.raises(PluginMutationError) as caught:
        asking(hook, change)()

    assert (caught.value.plugin, caught.value.hook) == ("asked", hook)


IN_A_REQUEST: dict[str, list[str]] = {
    "provider": ["stream_api", "process_chunk"],
    "extension": ["process_chunk"],
    "feature": [],
}
IN_EVERY_CHAIN = ["init", "to_native_messages", "from_native_messages", "initialize_request", "finalize"]
MISBEHAVING = [(kind, hook) for kind, more in IN_A_REQUEST.items() for hook in (*IN_EVERY_CHAIN, *more)]


def core_with_one_that(kind: str, hook: str, behave: Callable[..., Any]) -> AgentCore:
    """Return a core in which the plugin "broken" of that kind does something in one of its hooks."""
    written: dict[str, Any] = {"name": "broken", hook: lambda self, *arguments: behave(*arguments)}
    written["stream_api_async"] = None  # so that event loops meet stream_api as well
    core = AgentCore()
    broken = type("Broken", (EchoProvider,) if kind == "provider" else (), written)
    core.register_provider(broken if kind == "provider" else EchoProvider, [broken] * (kind == "extension"))
    if kind == "feature":
        core.register_feature(broken)
    return core


def spoil(*lent: Any) -> None:
    """Change what a hook must not change."""
    frozen = next(value for value in lent if isinstance(value, (FrozenDict, FrozenList)))
    if isinstance(frozen, FrozenDict):
        frozen["mine"] = True
    else:
        frozen.append({})


def test_a_request_names_the_plugin_and_the_hook_that_answered_nothing(
    drive: Callable[..., Any], case: Case
) -> None:
    for kind, hook in MISBEHAVING:
        with case(kind, hook):
            core = core_with_one_that(kind, hook, lambda *arguments: None)
            session = core.add_message(core.create_session(), "user", "hello")
            with pytest.raises(PluginError) as caught:
                drive(core, session, {})

            assert (caught.value.plugin, caught.value.hook) == ("broken", hook)


def test_a_request_names_the_plugin_and_the_hook_that_raised(case: Case) -> None:
    for kind, hook in MISBEHAVING:
        with case(kind, hook):

            def fail(*arguments: Any) -> None:
                raise OSError("no disk")

            core = core_with_one_that(kind, hook, fail)
            session = core.add_message(core.create_session(), "user", "hello")
            with pytest.raises(PluginError) as caught:
                core.send_request(session, {})

            assert (caught.value.plugin, caught.value.hook) == ("broken", hook)
            assert caught.value.problem == "raised OSError: no disk"


def test_a_request_names_the_plugin_and_the_hook_that_changed_what_it_was_lent(case: Case) -> None:
    for kind, hook in MISBEHAVING:
        with case(kind, hook):
            core = core_with_one_that(kind, hook, spoil)
            session = core.add_message(core.create_session(), "user", "hello")
            before = session.to_dict()
            with pytest.raises(PluginMutationError) as caught:
                core.send_request(session, {"depth": {"of": ["it"]}})

            assert (caught.value.plugin, caught.value.hook) == ("broken", hook)
            assert session.to_dict() == before


class Lean:
    """Takes what it must and nothing else."""

    name = "spoken"
    version = "1"

    def init(self, config: Any) -> Any:
        return {"config": config}

    def to_native_messages(self, messages: Any) -> Any:
        return [{"role": m["role"], "content": m["content"]} for m in messages]

    def from_native_messages(self, native_messages: Any) -> Any:
        return [{**item} for item in native_messages]

    def initialize_request(self, native_messages: Any, state: Any) -> Any:
        return native_messages, state

    def stream_api(self, native_messages: Any, state: Any) -> Any:
        yield "word"

    def process_chunk(self, chunk: Any, native_messages: Any, state: Any) -> Any:
        state["text"] = chunk
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Any, state: Any) -> Any:
        said = {"role": "assistant", "content": state["text"]}
        return [said], [*native_messages, said], state


class Full(Lean):
    """Does the same, takes everything, and remembers the other arguments."""

    def __init__(self) -> None:
        self.contexts: dict[str, Any] = {}
        self.request_ids: list[Any] = []

    def init(self, config: Any, *, context: Any = None) -> Any:
        self.contexts["init"] = context
        return super().init(config)

    def to_native_messages(self, messages: Any, *, state: Any = None, context: Any = None) -> Any:
        assert state["config"]["mood"] == "calm"
        self.contexts["to_native_messages"] = context
        return super().to_native_messages(messages)

    def from_native_messages(self, native_messages: Any, *, state: Any = None, context: Any = None) -> Any:
        assert state["text"] == "word"
        self.contexts["from_native_messages"] = context
        return super().from_native_messages(native_messages)

    def initialize_request(self, native_messages: Any, state: Any, *, context: Any = None) -> Any:
        self.contexts["initialize_request"] = context
        return super().initialize_request(native_messages, state)

    def stream_api(self, native_messages: Any, state: Any, *, request_id: Any = None) -> Any:
        self.request_ids.append(request_id)
        return super().stream_api(native_messages, state)

    def finalize(self, native_messages: Any, state: Any, *, context: Any = None) -> Any:
        self.contexts["finalize"] = context
        return super().finalize(native_messages, state)


def test_a_lean_provider_and_a_full_one_give_the_same_answer(drive: Callable[..., Any]) -> None:
    answers, full = [], Full()
    for provider in (Lean(), full):
        core = AgentCore()
        core.register_provider(provider)
        session = core.add_message(core.create_session("one"), "user", "Speak")
        answers.append(drive(core, session, {"mood": "calm"}, request_id="r-1")[0].to_dict())

    assert answers[0] == answers[1]
    assert answers[0]["messages"][-1]["content"] == "word"
    assert full.request_ids == ["r-1"]
    assert set(full.contexts) == {
        "init",
        "to_native_messages",
        "from_native_messages",
        "initialize_request",
        "finalize",
    }
    assert {context["request_id"] for context in full.contexts.values()} == {"r-1"}


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "plugins.md"


def documented(spec: HookSpec) -> str:
    """Return the hook as the page writes it: what may be left out stands after the star."""
    must, may = spec.arguments[: spec.least], spec.arguments[spec.least :]
    return f"`{spec.name}({', '.join([*must, *(['*', *may] if may else [])])})`"


def rows(*headings: str) -> list[str]:
    """Return the hooks in the tables of these sections of the page, as they are written there."""
    sections = re.split(r"^#{2,3} ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    chosen = [section for section in sections if section.split("\n", 1)[0] in headings]
    assert len(chosen) == len(headings)
    return [row for section in chosen for row in re.findall(r"^\| (`\w+\(.*?\)`) \|", section, re.MULTILINE)]


@pytest.mark.parametrize(
    ("kind", "headings"),
    [
        ("provider", ["Providers"]),
        ("extension", ["Extensions and features", "Extensions only"]),
        ("feature", ["Extensions and features", "Features only"]),
        ("tool", ["Tools"]),
    ],
)
def test_the_reference_page_names_every_hook_and_argument(kind: str, headings: list[str]) -> None:
    on_the_page = rows("Hooks of all kinds", *headings)

    assert sorted(on_the_page) == sorted(documented(spec) for spec in WRAPPERS[kind].hooks)


@each_kind
def test_the_reference_page_names_every_attribute(kind: str) -> None:
    protocol = PROTOCOLS[kind]
    attributes = {name for base in protocol.__mro__ for name in getattr(base, "__annotations__", {})}
    page = PAGE.read_text(encoding="utf-8")

    assert {"name", "version", "default_enabled"} <= attributes
    assert [name for name in attributes if f"| `{name}` |" not in page] == []


def test_the_reference_page_names_every_second_name() -> None:
    page = PAGE.read_text(encoding="utf-8")
    aliases = {alias for wrapper in WRAPPERS.values() for spec in wrapper.hooks for alias, _ in spec.aliases}

    assert [alias for alias in aliases if f"`{alias}`" not in page] == []
