"""Finding plugins: in modules that somebody lists, and among installed distributions."""

import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentError,
    ArgumentTypeError,
    DuplicatePluginError,
    InstalledPlugin,
    PluginError,
    PluginNotFoundError,
    RegistrationError,
    find_installed,
)
from agent_core.plugin.discovery import KINDS, kind_of
from agent_core.testing import EchoProvider

PROVIDER = """
class {name}:
    name = "{plugin}"
    version = "1"
    def call_api(self, native_messages, state):
        return [], [], native_messages, state
"""

Write = Callable[[str, str], None]
Install = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on `sys.path`; what was imported from it is forgotten afterwards."""
    monkeypatch.delenv("AGENT_LOAD_PLUGINS", raising=False)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def write(site: Path) -> Write:
    """Write a module that can be imported."""

    def write_module(path: str, source: str) -> None:
        *packages, name = path.split(".")
        folder = site.joinpath(*packages)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(dedent(source))
        importlib.invalidate_caches()

    return write_module


@pytest.fixture
def install(site: Path, write: Write) -> Install:
    """Install a distribution with one module and the entry points into it."""

    def install_distribution(distribution: str, source: str, **entry_points: dict[str, str]) -> None:
        module = distribution.replace("-", "_")
        write(module, source)
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        sections = [
            "\n".join(
                [f"[agent_platform.{kind}]", *(f"{name} = {module}:{item}" for name, item in them.items())]
            )
            for kind, them in entry_points.items()
        ]
        (info / "entry_points.txt").write_text("\n\n".join(sections) + "\n")
        importlib.invalidate_caches()

    return install_distribution


def registered(core: AgentCore) -> list[str]:
    return [wrapper.name for wrapper in core._registry]


def test_the_methods_of_a_class_tell_its_kind(write: Write) -> None:
    write(
        "assorted",
        """
        class Calls:
            name = "calls"
            def call_api(self, native_messages, state): ...

        class Watches:
            name = "watches"
            def process_chunk(self, chunk, partials, finals, native_messages, state): ...

        class Runs:
            name = "runs"
            def get_tool_schemas(self): return []
            def execute_tool(self, tool_name, arguments): ...

        class Follows:
            name = "follows"
        """,
    )
    core = AgentCore()

    assert core.discover_and_register(["assorted"]) == {
        "providers": ["calls"],
        "features": ["follows"],
        "tools": ["runs"],
        "extensions": ["watches"],
    }
    assert registered(core) == ["calls", "watches", "follows", "runs"]


@pytest.mark.parametrize(
    ("methods", "kind"),
    [
        (["stream_api", "process_chunk"], "providers"),
        (["call_api"], "providers"),
        (["stream_api_async", "process_chunk"], "providers"),
        (["call_api_async"], "providers"),
        (["call_api", "process_chunk", "get_tool_schemas", "execute_tool"], "providers"),
        (["get_tool_schemas", "execute_tool"], "tools"),
        (["get_tool_schemas", "stream_tool"], "tools"),
        (["get_tool_schemas", "execute_tool_async"], "tools"),
        (["get_tool_schemas", "execute_tool", "process_chunk"], "tools"),
        (["process_chunk"], "extensions"),
        (["process_chunk", "get_tool_schemas"], "extensions"),
        (["get_tool_schemas"], "features"),
        (["execute_tool"], "features"),
        (["get_actions"], "features"),
        ([], "features"),
    ],
)
def test_each_kind_by_its_methods(write: Write, methods: list[str], kind: str) -> None:
    body = "".join(f"    def {name}(self, *arguments): ...\n" for name in methods)
    write("with_provider", PROVIDER.format(name="Provider", plugin="with_provider"))
    write("judged", f"class Judged:\n    name = 'judged'\n{body}")
    modules = ["judged"] if kind == "providers" else ["with_provider", "judged"]

    summary = AgentCore().discover_and_register(modules)

    assert [name for name, found in summary.items() if "judged" in found] == [kind]


def test_without_a_name_the_summary_has_the_class(write: Write) -> None:
    write("nameless", "class Nameless: ...")

    assert AgentCore().discover_and_register(["nameless"])["features"] == ["Nameless"]


def test_only_classes_that_a_module_defines_itself_are_taken(write: Write) -> None:
    write("elsewhere", "class Elsewhere: ...")
    write("here", "from elsewhere import Elsewhere\nclass Here: ...\nAlias = Here\nnumber = 3")

    assert AgentCore().discover_and_register(["here"])["features"] == ["Here"]


def test_private_classes_exceptions_and_protocols_are_not_taken_for_features(write: Write) -> None:
    write(
        "helpers",
        """
        from typing import Protocol

        class _Private: ...
        class Refused(ValueError): ...
        class Shape(Protocol): ...
        class Real: ...
        """,
    )

    assert AgentCore().discover_and_register(["helpers"])["features"] == ["Real"]


def test_classes_of_a_module_come_in_the_order_of_their_names(write: Write) -> None:
    write("many", "class B: ...\nclass C: ...\nclass A: ...")

    assert AgentCore().discover_and_register(["many"])["features"] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("module", "classes", "first"),
    [
        ("acme", {"Zeta": "acme", "Alpha": "alpha"}, "acme"),
        ("acme_chat", {"Zeta": "Acme-Chat", "Alpha": "alpha"}, "Acme-Chat"),
        ("acme_provider", {"AcmeProvider": "zeta", "AaProvider": "alpha"}, "zeta"),
        ("models.acme", {"Zeta": "acme", "Alpha": "alpha"}, "acme"),
        ("unrelated", {"Zeta": "zeta", "Alpha": "alpha"}, "alpha"),
    ],
)
def test_of_several_providers_the_one_named_after_its_module_comes_first(
    write: Write, caplog: pytest.LogCaptureFixture, module: str, classes: dict[str, str], first: str
) -> None:
    write(module, "\n".join(PROVIDER.format(name=name, plugin=plugin) for name, plugin in classes.items()))
    core = AgentCore()

    with caplog.at_level(logging.WARNING, "agent_core"):
        summary = core.discover_and_register([module])

    assert summary["providers"] == [first]
    assert registered(core) == [first]
    assert "only_first_provider_registered" in caplog.text


def test_the_first_provider_of_all_modules_gets_all_extensions(write: Write) -> None:
    watching = "class {}:\n    def process_chunk(self, c, p, f, n, s): ..."
    write("one", watching.format("First"))
    write("two", PROVIDER.format(name="Two", plugin="two") + watching.format("Second"))
    write("three", PROVIDER.format(name="Three", plugin="three") + watching.format("Third"))
    core = AgentCore()

    summary = core.discover_and_register(["one", "two", "three"])

    assert summary["providers"] == ["two"]
    assert summary["extensions"] == ["First", "Second", "Third"]
    assert [e.name for e in core.resolve({}).provider.extensions] == ["First", "Second", "Third"]


def test_extensions_without_a_provider_are_left_out_with_a_warning(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("alone", "class Alone:\n    def process_chunk(self, c, p, f, n, s): ...")
    core = AgentCore()

    with caplog.at_level(logging.WARNING, "agent_core"):
        summary = core.discover_and_register(["alone"])

    assert summary == {"providers": [], "features": [], "tools": [], "extensions": []}
    assert registered(core) == []
    assert "extensions_without_provider extensions=['Alone']" in caplog.text


def test_the_summary_names_only_what_is_new(write: Write) -> None:
    write("first", "class First: ...")
    write("second", "class Second: ...")
    core = AgentCore()
    core.discover_and_register(["first"])

    assert core.discover_and_register(["second"])["features"] == ["Second"]
    assert registered(core) == ["First", "Second"]


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("class Broken:\n    def get_tags(self, config, models, context, surplus): ...", RegistrationError),
        ("class Broken:\n    def __init__(self): raise OSError('no licence')", PluginError),
        ("class Good: ...", DuplicatePluginError),
        ("raise OSError('no licence')", OSError),
        ("import not_there_at_all", ModuleNotFoundError),
    ],
)
def test_one_plugin_that_cannot_be_registered_keeps_out_all(
    write: Write, broken: str, error: type[Exception]
) -> None:
    write("good", "class Good: ...\n" + PROVIDER.format(name="Provider", plugin="good"))
    write("broken", broken)
    core = AgentCore()

    with pytest.raises(error):
        core.discover_and_register(["good", "broken"])
    assert registered(core) == []


@pytest.mark.parametrize("modules", ["json", None, [3], iter(["json"])])
def test_modules_are_a_list_of_import_paths(modules: list[str]) -> None:
    with pytest.raises(ArgumentTypeError, match="modules must be a list of import paths"):
        AgentCore().discover_and_register(modules)


FOUR_KINDS = (
    PROVIDER.format(name="Provider", plugin="sample_provider")
    + """
class Extension:
    name = "sample_extension"

class Feature:
    name = "sample_feature"

class Tools:
    name = "sample_tools"
    def get_tool_schemas(self): return []
    def execute_tool(self, tool_name, arguments): ...

def add(first: int, second: int) -> int:
    "Add two numbers."
    return first + second

class Application: ...
"""
)


@pytest.fixture
def four_kinds(install: Install) -> None:
    install(
        "sample-plugins",
        FOUR_KINDS,
        providers={"sample_provider": "Provider"},
        extensions={"sample_extension": "Extension"},
        features={"sample_feature": "Feature"},
        tools={"sample_tools": "Tools", "sample_add": "add"},
        applications={"sample_application": "Application"},
    )


def ours(found: list[InstalledPlugin]) -> list[tuple[str, str]]:
    """Return kind and name of what the tests installed, whatever else this machine has."""
    return [(plugin.kind, plugin.name) for plugin in found if plugin.distribution.startswith("sample")]


@pytest.mark.usefixtures("four_kinds")
def test_installed_plugins_are_found_by_the_group_that_announces_them() -> None:
    found = [plugin for plugin in find_installed() if plugin.distribution == "sample-plugins"]

    assert [(plugin.kind, plugin.name, plugin.plugin.__name__) for plugin in found] == [
        ("providers", "sample_provider", "Provider"),
        ("extensions", "sample_extension", "Extension"),
        ("features", "sample_feature", "Feature"),
        ("tools", "sample_add", "add"),
        ("tools", "sample_tools", "Tools"),
        ("applications", "sample_application", "Application"),
    ]
    assert {plugin.problem for plugin in found} == {None}


@pytest.mark.usefixtures("four_kinds")
def test_installed_plugins_can_be_picked_by_name_and_kind() -> None:
    assert ours(find_installed(["sample_feature", "sample_add", "not_there"])) == [
        ("features", "sample_feature"),
        ("tools", "sample_add"),
    ]
    assert ours(find_installed(kinds=["tools"])) == [("tools", "sample_add"), ("tools", "sample_tools")]
    assert ours(find_installed(["sample_add"], ["features"])) == []
    assert ours(find_installed([])) == []
    assert ours(find_installed(kinds=[])) == []


@pytest.mark.usefixtures("four_kinds")
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (
            None,
            ["sample_provider", "sample_extension", "sample_feature", "sample_add", "sample_tools"],
        ),
        ("", []),
        (" , ", []),
        ("sample_add", ["sample_add"]),
        (" sample_add ,, sample_feature,unknown", ["sample_feature", "sample_add"]),
    ],
)
def test_the_environment_picks_which_plugins_load(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, expected: list[str]
) -> None:
    if chosen is not None:
        monkeypatch.setenv("AGENT_LOAD_PLUGINS", chosen)
    kinds = ["providers", "extensions", "features", "tools"]

    assert [name for _, name in ours(find_installed(kinds=kinds))] == expected


@pytest.mark.usefixtures("four_kinds")
def test_names_that_are_given_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "sample_add")

    assert ours(find_installed(["sample_feature"])) == [("features", "sample_feature")]


@pytest.mark.usefixtures("four_kinds")
def test_what_the_environment_does_not_pick_is_not_even_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "")

    AgentCore().register_installed()

    assert "sample_plugins" not in sys.modules


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"kinds must be among \['providers', .*\], not 'toys'"):
        find_installed(kinds=["toys"])
    for kind in ("toys", "applications", "extensions"):
        with pytest.raises(ArgumentError, match=rf"'features', 'tools'\], not '{kind}'"):
            AgentCore().register_installed(kinds=[kind])


@pytest.mark.usefixtures("four_kinds")
def test_a_name_that_nothing_installed_has_is_an_error_and_nothing_is_registered() -> None:
    core = AgentCore()

    with pytest.raises(PluginNotFoundError, match=r"'sample_featur' .*did you mean 'sample_feature'"):
        core.register_installed(["sample_tools", "sample_featur"])

    assert core.get_available_tools({}) == []


def test_names_are_a_list() -> None:
    with pytest.raises(ArgumentTypeError, match="names must be a list of names"):
        find_installed("sample_add")


ALL = ["sample_provider", "sample_extension", "sample_feature", "sample_tools", "sample_add"]


@pytest.mark.usefixtures("four_kinds")
def test_installed_plugins_are_registered_by_kind() -> None:
    core = AgentCore()

    reports = core.register_installed(ALL)

    assert [(report.name, report.problem) for report in reports] == [
        ("sample_provider", None),
        ("sample_feature", None),
        ("sample_add", None),
        ("sample_tools", None),
        ("sample_extension", None),
    ]
    assert core.get_plugins_for_config({}) == {
        "providers": ["sample_provider"],
        "extensions": ["sample_extension"],
        "features": ["sample_feature"],
        "tools": ["add", "sample_tools"],
    }


@pytest.mark.usefixtures("four_kinds")
def test_only_the_kinds_that_are_asked_for_are_registered() -> None:
    core = AgentCore()

    reports = core.register_installed(ALL, kinds=["tools"])

    assert [report.name for report in reports] == ["sample_add", "sample_tools"]
    assert registered(core) == ["add", "sample_tools"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise OSError('no licence')", "OSError: no licence"),
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "AttributeError: module 'sample_broken' has no attribute 'Broken'"),
        (
            "class Broken:\n    def get_tags(self): ...",
            (
                "Plugin 'Broken' cannot be registered: "
                "the hook get_tags(config, models, context) must take 'config'"
            ),
        ),
        (
            "class Broken:\n    def __init__(self): raise OSError('no licence')",
            "Plugin 'Broken', hook '__init__': raised OSError: no licence",
        ),
        ("Broken = None", "Plugin 'NoneType' cannot be registered: a plugin must be a class"),
        ("class Broken:\n    name = property(lambda self: 1 / 0)", "ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.usefixtures("four_kinds")
def test_one_that_fails_is_reported_with_its_reason_and_the_rest_works(
    install: Install, source: str, reason: str
) -> None:
    install("sample-broken", source, features={"sample_broken": "Broken"})
    core = AgentCore()

    reports = {report.name: report for report in core.register_installed([*ALL, "sample_broken"])}

    broken = reports.pop("sample_broken")
    assert broken.problem is not None and broken.problem.startswith(reason)
    assert (broken.kind, broken.distribution, broken.plugin) == ("features", "sample-broken", None)
    assert {report.problem for report in reports.values()} == {None}
    assert registered(core) == [
        "sample_provider",
        "sample_extension",
        "sample_feature",
        "add",
        "sample_tools",
    ]


def test_of_two_distributions_with_one_plugin_name_the_second_is_reported(install: Install) -> None:
    install("sample-one", "class One:\n    name = 'same'", features={"sample_one": "One"})
    install("sample-two", "class Two:\n    name = 'same'", features={"sample_two": "Two"})
    core = AgentCore()

    one, two = core.register_installed(["sample_one", "sample_two"])

    assert one.problem is None
    assert two.problem == (
        "Plugin 'same' cannot be registered: sample_two.Two has the name of the feature sample_one.One"
    )
    assert registered(core) == ["same"]


TWO_PROVIDERS = PROVIDER.format(name="North", plugin="north") + PROVIDER.format(name="South", plugin="south")


@pytest.mark.parametrize(
    ("providers", "expected"),
    [
        ("", ["north", "extra", "south", "extra"]),
        ("providers = ['south']", ["north", "south", "extra"]),
        ("providers = ('north', 'south')", ["north", "extra", "south", "extra"]),
        ("providers = 'north'", ["north", "extra", "south"]),
        ("providers = ['west', 'north']", ["north", "extra", "south"]),
    ],
)
def test_an_extension_goes_to_the_providers_that_it_names_or_to_all(
    install: Install, providers: str, expected: list[str]
) -> None:
    install(
        "sample-world",
        f"{TWO_PROVIDERS}\nclass Extra:\n    name = 'extra'\n    {providers}\n",
        providers={"sample_north": "North", "sample_south": "South"},
        extensions={"sample_extra": "Extra"},
    )
    core = AgentCore()

    reports = core.register_installed(["sample_north", "sample_south", "sample_extra"])

    assert {report.problem for report in reports} == {None}
    assert registered(core) == expected


def test_an_installed_extension_also_finds_a_provider_that_was_registered_by_hand(install: Install) -> None:
    install("sample-extra", "class Extra:\n    providers = ['echo']", extensions={"sample_extra": "Extra"})
    core = AgentCore()
    core.register_provider(EchoProvider)

    core.register_installed(["sample_extra"])

    assert core.get_plugins_for_config({})["extensions"] == ["Extra"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "class Extra:\n    providers = ['west']",
            "Plugin 'Extra' cannot be registered: none of its providers ['west'] is registered",
        ),
        (
            "class Extra:\n    def process_chunk(self, chunk): ...",
            (
                "Plugin 'Extra' cannot be registered: the hook "
                "process_chunk(chunk, partials, finals, native_messages, state) must take "
                "'partials', 'finals', 'native_messages', 'state'"
            ),
        ),
        (
            "class Extra:\n    name = 'echo'",
            (
                "Plugin 'echo' cannot be registered: sample_extra.Extra has the name of the provider "
                "agent_core.testing.echo.EchoProvider"
            ),
        ),
    ],
)
def test_an_extension_that_cannot_be_registered_leaves_its_provider_working(
    install: Install, source: str, problem: str
) -> None:
    install("sample-extra", source, extensions={"sample_extra": "Extra"})
    core = AgentCore()
    core.register_provider(EchoProvider)

    [report] = core.register_installed(["sample_extra"])

    assert report.problem == problem
    assert registered(core) == ["echo"]


def test_an_extension_without_any_provider_is_reported(install: Install) -> None:
    install("sample-extra", "class Extra: ...", extensions={"sample_extra": "Extra"})

    [report] = AgentCore().register_installed(["sample_extra"])

    assert report.problem == "Plugin 'Extra' cannot be registered: no provider is registered"


def test_registering_twice_reports_what_is_there_already(install: Install) -> None:
    install("sample-one", "class One: ...", features={"sample_one": "One"})
    core = AgentCore()
    core.register_installed(["sample_one"])

    [report] = core.register_installed(["sample_one"])

    assert report.problem == (
        "Plugin 'One' cannot be registered: sample_one.One has the name of the feature sample_one.One"
    )
    assert registered(core) == ["One"]


# The kind of a plugin that is given as an object


class Ambiguous:
    """Talks to a model, and calls one of its helpers like a tool's hooks."""

    name = "ambiguous"

    def call_api(self, native_messages: Any, state: Any) -> Any:
        return [], [], native_messages, state

    def get_tool_schemas(self) -> list[Any]:
        return []

    def execute_tool(self, tool_name: str, arguments: Any) -> None:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_plugin_says_of_its_kind_counts_whatever_its_hooks_are(kind: str) -> None:
    assert kind_of(type("Saying", (Ambiguous,), {"kind": kind})) == kind
    assert kind_of(type("Saying", (Ambiguous,), {"kind": kind})()) == kind


def test_a_plugin_whose_hooks_fit_several_kinds_has_to_say_which_it_is() -> None:
    with pytest.raises(RegistrationError, match=r"'ambiguous'.*a provider and of a tool: say which"):
        kind_of(Ambiguous)


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"its kind must be one of provider, .* not 'gadget'"):
        kind_of(type("Gadget", (), {"kind": "gadget"}))


@pytest.mark.parametrize(
    ("hooks", "kind"),
    [
        ((), "feature"),
        (("process_chunk",), "extension"),
        (("stream_api", "process_chunk"), "provider"),
        (("get_tool_schemas", "stream_tool"), "tool"),
    ],
)
def test_a_plugin_that_says_nothing_is_known_by_its_hooks(hooks: tuple[str, ...], kind: str) -> None:
    assert kind_of(type("Plugin", (), dict.fromkeys(hooks, lambda self: None))) == kind
