"""Settings: layers, origins, what is refused and with which line, trust, and changes that keep the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from agent_terminal_app.errors import CommandError, Exit, SettingsError
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import (
    Settings,
    load_settings,
    set_value,
    settings_schema,
    trust_project,
    unset_value,
)
from agent_terminal_app.settings.keypaths import leaves, read_way, spell
from agent_terminal_app.settings.layers import Layer, Origins, merged
from agent_terminal_app.settings.rules import find_fault
from agent_terminal_app.settings.secrets import is_secret_name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(
        config=tmp_path / "config",
        data=tmp_path / "data",
        state=tmp_path / "state",
        cache=tmp_path / "cache",
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".agent").mkdir(parents=True)
    return tmp_path / "project"


def say(paths: Paths, text: str) -> None:
    paths.config.mkdir(exist_ok=True)
    paths.config_file.write_text(text, encoding="utf-8")


def say_in(project: Path, text: str) -> Path:
    path = project / ".agent" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def load(paths: Paths, project: Path | None = None, **given: Any) -> Settings:
    return load_settings(paths, project=project, **{"environment": {}, **given})


# Layers and origins


def test_without_any_file_the_defaults_hold(paths: Paths) -> None:
    found = load(paths)

    assert found.values == {"ui": {"plain": False, "theme": "auto"}}
    assert dict(found.origins) == {"ui.plain": "default", "ui.theme": "default"}
    assert not paths.config.exists()


def test_each_layer_counts_more_than_the_one_before(paths: Paths, project: Path) -> None:
    say(paths, 'model = "user"\ndefault_agent = "user"\n[ui]\nplain = true\ntheme = "dark"\n')
    say_in(project, 'model = "project"\ndefault_agent = "project"\n[ui]\ntheme = "light"\n')
    trust_project(paths, project)

    found = load(paths, project, environment={"AGENT_MODEL": "variable"}, flags={"agent": "flag"})

    assert found.values["model"] == "variable"
    assert found.values["default_agent"] == "flag"
    assert found.values["ui"] == {"plain": True, "theme": "light"}
    assert found.origins["model"] == "environment AGENT_MODEL"
    assert found.origins["default_agent"] == "flag --agent"
    assert found.origins["ui.plain"] == f"{paths.config_file}:4"
    assert found.origins["ui.theme"] == f"{project / '.agent' / 'config.toml'}:4"


def test_a_flag_that_was_not_given_and_an_empty_variable_say_nothing(paths: Paths) -> None:
    say(paths, 'model = "user"\n')

    found = load(paths, environment={"AGENT_MODEL": " "}, flags={"model": None, "plain": True})

    assert found.values["model"] == "user"
    assert found.values["ui"]["plain"] is True
    assert found.origins["ui.plain"] == "flag --plain"


def test_layers_merge_tables_field_by_field(paths: Paths, project: Path) -> None:
    say(paths, '[models.fast]\nprovider = "anthropic"\nmodel = "small"\n')
    say_in(project, '[models.fast]\nmodel = "large"\n')
    trust_project(paths, project)

    assert load(paths, project).values["models"] == {"fast": {"provider": "anthropic", "model": "large"}}


def test_no_layer_drops_a_rule_of_another(paths: Paths, project: Path) -> None:
    say(paths, '[permissions]\ndeny = ["shell(rm *)", "edit"]\n')
    say_in(project, '[permissions]\ndeny = ["edit", "send"]\n')
    trust_project(paths, project)

    found = load(paths, project)

    assert found.values["permissions"]["deny"] == ["shell(rm *)", "edit", "send"]
    assert found.origins["permissions.deny"].count("config.toml:2") == 2


def test_no_layer_drops_a_rule_of_an_agent_or_a_denial_of_everything_else(
    paths: Paths, project: Path
) -> None:
    section = "agents.a.sections.permissions"
    say(
        paths,
        '[permissions]\ndefault = "deny"\n[agents.a]\nexcluded_tools = ["x"]\n'
        f'[{section}]\ndeny = ["edit"]\n',
    )
    say_in(
        project,
        '[permissions]\ndefault = "allow"\n[agents.a]\nexcluded_tools = ["y"]\n'
        f'[{section}]\ndeny = ["send"]\ndefault = "allow"\n',
    )
    trust_project(paths, project)

    found = load(paths, project)

    own = found.values["agents"]["a"]
    assert own["sections"]["permissions"] == {"deny": ["edit", "send"], "default": "allow"}
    assert own["excluded_tools"] == ["x", "y"]
    assert found.values["permissions"]["default"] == "deny"
    assert found.origins["permissions.default"] == f"{paths.config_file}:2"
    assert found.origins[f"{section}.deny"].count("config.toml") == 2


def test_a_variable_names_another_file_in_place_of_the_usual_one(paths: Paths, tmp_path: Path) -> None:
    say(paths, 'model = "usual"\n')
    (tmp_path / "other.toml").write_text('model = "other"\n', encoding="utf-8")

    environment = {"AGENT_CONFIG": str(tmp_path / "other.toml")}
    assert load(paths, environment=environment).values["model"] == "other"

    with pytest.raises(SettingsError, match=r"missing\.toml: is not a file"):
        load(paths, environment={"AGENT_CONFIG": str(tmp_path / "missing.toml")})


def test_keys_with_dots_in_them_are_distinguished(paths: Paths) -> None:
    say(paths, '[plugins."a.b"]\nc = 1\n[plugins.a.b]\nc = 2\n')

    assert load(paths).origins['plugins."a.b".c'] == f"{paths.config_file}:2"
    assert load(paths).origins["plugins.a.b.c"] == f"{paths.config_file}:4"


TABLES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.just({}),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "c.d"]), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))


@given(st.lists(TABLES, max_size=4))
def test_every_value_has_the_origin_of_the_last_layer_that_says_it(layers: list[dict[str, Any]]) -> None:
    stack = [
        Layer(values, lambda _way, number=number: str(number))  # type: ignore[misc]
        for number, values in enumerate(layers)
    ]
    values, origins = merged(stack), Origins(stack)

    assert set(origins) == {spell(way) for way, _ in leaves(values)}
    for way, value in leaves(values):
        said = dict(leaves(layers[int(origins[spell(way)])]))
        assert said[way] == value


@given(st.lists(st.text(min_size=1).filter(lambda key: key.isprintable()), min_size=1, max_size=4))
def test_a_key_is_read_back_as_it_was_spelt(way: list[str]) -> None:
    assert read_way(spell(tuple(way))) == tuple(way)


@pytest.mark.parametrize("key", ["", ".", "a..b", "a = 1\nb", "a b", "[a]", "a.", "a#"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(CommandError) as refused:
        read_way(key)

    assert refused.value.code == Exit.USAGE


# What is refused

WRONG = [
    ('\nmodle = "x"', 2, "there is no setting 'modle'; did you mean 'model'?"),
    ("model = 3", 1, "model must be a text"),
    ('model = " "', 1, "model must be a text"),
    ("default_agent = []", 1, "default_agent must be a text"),
    ("agents = 3", 1, "agents must be a table, not a number"),
    ("[agents]\nhelper = 3", 2, "agents.helper must be a table"),
    ("[[agents]]\nid = 'x'", 1, "agents must be a table, not a list"),
    ("[agents.helper]\n# why\nmax_round = 3", 3, "did you mean 'max_rounds'?"),
    ("[agents.helper]\nmax_rounds = 'many'", 2, "max_rounds must be a whole number"),
    ("[agents.helper]\nid = 'other'", 2, "id"),
    ("[models.fast]\nmodel = 'x'", 1, "models.fast has no provider; run `agent config set models.fast."),
    ("[models.fast]\nprovider = 'x'\ncontext_window = 0", 3, "context_window must be at least 1"),
    ("[plugins]\nx = 1", 2, "plugins.x must be a table"),
    ("[plugins.x]\nday = 1979-05-27", 2, "plugins.x.day is a date"),
    ("[permissions]\nalow = []", 2, "did you mean 'allow'?"),
    ("[permissions]\nallow = [\n  'a',\n  'b(',\n]", 4, "never closed"),
    ("[permissions]\non_ask = [1]", 2, "permissions.on_ask must be suspend or deny"),
    ("[agents.a.sections.permissions]\ndeny = ['a', 'b(']", 2, "never closed"),
    ("[agents.a.sections.permissions]\ndeny = 3", 2, "deny"),
    ("[agents.a.sections]\npermissions = 3", 2, "agents.a.sections.permissions must be a table"),
    ("[ui]\nplain = 'yes'", 2, "ui.plain must be true or false"),
    ("[ui]\ntheme = 'drak'", 2, "did you mean 'dark'?"),
    ("[ui]\ncolour = 1", 2, "ui has no setting 'colour'"),
    ("model = 'x'\nmodel = 'y'", 2, "is not valid TOML"),
    ("model = ", 1, "is not valid TOML"),
]


@pytest.mark.parametrize(("text", "line", "told"), WRONG, ids=[text for text, _, _ in WRONG])
def test_a_mistake_in_a_file_is_reported_with_its_line(paths: Paths, text: str, line: int, told: str) -> None:
    say(paths, text)

    with pytest.raises(SettingsError) as refused:
        load(paths)

    assert str(refused.value).startswith(f"{paths.config_file}:{line}: ")
    assert told in str(refused.value)
    assert refused.value.code == Exit.NOT_CONFIGURED


SECRETS = [
    ("[plugins.anthropic]\napi_key = 'sk-1'", "agent keys set anthropic"),
    ("[models.fast]\nprovider = 'gemini'\n[models.fast.config]\ntoken = 'x'", "agent keys set gemini"),
    ("[plugins.x.deep]\nlist = [{ client_secret = 'x' }]", "agent keys set x"),
    ("[plugins.x.extra_headers]\nX-Api-Key = 'x'", "agent keys set x"),
    ("[agents.a.endpoint]\nurl = 'http://h'\ntoken = 'x'", "agent keys set NAME"),
]


@pytest.mark.parametrize(("text", "hint"), SECRETS)
def test_secrets_in_a_file_are_refused_and_not_repeated(paths: Paths, text: str, hint: str) -> None:
    say(paths, text.replace("'x'", "'sk-1'"))

    with pytest.raises(SettingsError, match=hint) as refused:
        load(paths)

    assert "sk-1" not in str(refused.value)


def test_what_only_sounds_like_a_secret_is_none() -> None:
    assert not any(map(is_secret_name, ["max_tokens", "tokens", "token_budget", "secretary", "keys", 3]))
    assert find_fault({"plugins": {"x": {"token": True, "password": {"length": 8}}}}) is None


def test_files_that_are_no_files_are_refused_without_waiting(paths: Paths) -> None:
    paths.config_file.mkdir(parents=True)

    with pytest.raises(SettingsError, match="is not a file"):
        load(paths)


def test_a_file_of_endless_depth_is_refused(paths: Paths) -> None:
    say(paths, "[plugins.x]\n" + ".".join(["a"] * 5000) + " = 1\n")
    with pytest.raises(SettingsError, match="nested deeper"):
        load(paths)

    say(paths, "[plugins.x]\na = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(SettingsError, match=r"config\.toml"):
        load(paths)


def test_a_file_in_another_encoding_is_refused_with_the_line(paths: Paths) -> None:
    paths.config.mkdir()
    paths.config_file.write_bytes(b'model = "x"\n# caf\xe9\n')

    with pytest.raises(SettingsError, match=r":2: is not UTF-8"):
        load(paths)


def test_a_byte_order_mark_does_no_harm(paths: Paths) -> None:
    paths.config.mkdir()
    paths.config_file.write_bytes(b'\xef\xbb\xbfmodel = "x"\n')

    assert load(paths).values["model"] == "x"


# Trust


def test_a_project_counts_only_after_it_was_trusted(paths: Paths, project: Path) -> None:
    path = say_in(project, 'model = "theirs"\n')

    before = load(paths, project)
    assert "model" not in before.values
    assert before.untrusted == path
    assert before.warnings == (
        f"{path} is not trusted and is ignored: look at it, then run `agent config trust`",
    )

    trust_project(paths, project)
    after = load(paths, project)
    assert after.values["model"] == "theirs"
    assert after.warnings == () and after.untrusted is None


def test_a_project_that_changed_is_asked_about_again(paths: Paths, project: Path) -> None:
    say_in(project, 'model = "theirs"\n')
    trust_project(paths, project)
    say_in(project, 'model = "worse"\n')

    found = load(paths, project)

    assert "model" not in found.values
    assert "has changed since you trusted it" in found.warnings[0]


def test_what_nobody_trusts_is_not_even_parsed(paths: Paths, project: Path) -> None:
    say_in(project, "this is not TOML")

    assert len(load(paths, project).warnings) == 1

    with pytest.raises(SettingsError, match="is not valid TOML"):
        trust_project(paths, project)
    assert not (paths.state / "trusted.json").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "huge"])
def test_a_project_cannot_keep_the_command_from_working(paths: Paths, project: Path, kind: str) -> None:
    path = project / ".agent" / "config.toml"
    if kind == "huge":
        path.write_text("#" * 1_000_001, encoding="utf-8")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)

    found = load(paths, project)

    assert found.warnings[0].startswith(str(path)) and "ignored" in found.warnings[0]
    with pytest.raises(SettingsError):
        trust_project(paths, project)


def test_even_a_trusted_project_holds_no_keys(paths: Paths, project: Path) -> None:
    say_in(project, '[plugins.anthropic]\napi_key = "sk-1"\n')

    with pytest.raises(SettingsError, match="is a secret"):
        trust_project(paths, project)


def test_trust_is_for_one_folder_and_kept_by_its_owner_alone(paths: Paths, project: Path) -> None:
    say_in(project, 'model = "theirs"\n')
    trust_project(paths, project)
    (project / "copy" / ".agent").mkdir(parents=True)
    say_in(project / "copy", 'model = "theirs"\n')

    assert load(paths, project / "copy").untrusted is not None
    assert (paths.state / "trusted.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_list_trusts_nobody(paths: Paths, project: Path) -> None:
    say_in(project, 'model = "theirs"\n')
    trust_project(paths, project)
    (paths.state / "trusted.json").write_text("[1", encoding="utf-8")

    assert load(paths, project).untrusted is not None


def test_there_is_nothing_to_trust_where_no_file_is(paths: Paths, project: Path) -> None:
    with pytest.raises(CommandError, match=r"there is no .* to trust"):
        trust_project(paths, project)


# Writing


def test_a_change_keeps_comments_and_order(paths: Paths) -> None:
    say(paths, '# mine\nmodel = "a" # why\n\n[agents.helper] # who\nmax_rounds = 3\n')

    set_value(paths, "agents.helper.max_rounds", 5, environment={})
    set_value(paths, "ui.theme", "dark", environment={})

    assert paths.config_file.read_text(encoding="utf-8") == (
        '# mine\nmodel = "a" # why\n\n[agents.helper] # who\nmax_rounds = 5\n\n[ui]\ntheme = "dark"\n'
    )


def test_the_first_change_makes_the_file(paths: Paths) -> None:
    path = set_value(paths, "agents.helper.max_rounds", 5, environment={})

    assert path == paths.config_file
    assert path.read_text(encoding="utf-8") == "[agents.helper]\nmax_rounds = 5\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [file.name for file in paths.config.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("agents.helper.max_round", 5, "did you mean 'max_rounds'"),
        ("agents.helper.max_rounds", "many", "must be a whole number"),
        ("plugins.x.api_key", "sk-1", "agent keys set x"),
        ("model.name", "x", "model is not a table"),
        ("models.fast.model", "x", "models.fast has no provider"),
        ("nothing", 1, "there is no setting 'nothing'"),
        ("plugins.x.y", None, "cannot be changed here"),
    ],
)
def test_a_change_that_would_be_refused_is_not_written(paths: Paths, key: str, value: Any, told: str) -> None:
    say(paths, 'model = "a"\n')

    with pytest.raises(CommandError, match=told):
        set_value(paths, key, value, environment={})

    assert paths.config_file.read_text(encoding="utf-8") == 'model = "a"\n'


def test_a_file_that_is_wrong_already_is_reported_with_its_line_and_can_be_fixed(paths: Paths) -> None:
    say(paths, 'model = "a"\nmodle = "b"\n')

    with pytest.raises(SettingsError, match=r"config\.toml:2: there is no setting 'modle'"):
        set_value(paths, "ui.plain", value=True, environment={})
    unset_value(paths, "modle", environment={})

    assert load(paths).values["model"] == "a"


def test_removing_a_value_removes_the_tables_it_leaves_empty(paths: Paths) -> None:
    say(paths, 'model = "a"\n\n[agents.helper]\nmax_rounds = 3\n')

    unset_value(paths, "agents.helper.max_rounds", environment={})

    assert tomllib.loads(paths.config_file.read_text(encoding="utf-8")) == {"model": "a"}


def test_what_is_needed_and_what_is_not_there_cannot_be_removed(paths: Paths) -> None:
    say(paths, '[models.fast]\nprovider = "x"\nmodel = "y"\n')

    with pytest.raises(CommandError, match=r"models\.fast has no provider"):
        unset_value(paths, "models.fast.provider", environment={})
    with pytest.raises(CommandError, match=r"does not set models\.slow"):
        unset_value(paths, "models.slow", environment={})


def test_a_link_stays_a_link_and_a_narrow_file_stays_narrow(paths: Paths, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text('model = "a"\n', encoding="utf-8")
    real.chmod(0o600)
    paths.config.mkdir()
    paths.config_file.symlink_to(real)

    set_value(paths, "model", "b", environment={})

    assert paths.config_file.is_symlink()
    assert real.read_text(encoding="utf-8") == 'model = "b"\n'
    assert real.stat().st_mode & 0o777 == 0o600


def test_an_agent_is_added_to_a_file_whose_agents_do_not_stand_together(paths: Paths) -> None:
    say(paths, "[agents.a]\nmax_rounds = 1\n[ui]\nplain = true\n[agents.b]\nmax_rounds = 2\n")

    set_value(paths, "agents.c.context_policy.keep_recent", 3, environment={})

    agents = load(paths).values["agents"]
    assert set(agents) == {"a", "b", "c"}
    assert agents["c"] == {"context_policy": {"keep_recent": 3}}


STARTS = [
    "",
    "# only a comment",
    "[plugins]\n[plugins.a]\nb = 1 # one\n",
    "plugins.a.b = 1\nplugins.b.a = 2\n",
    "plugins = { a = { b = 1 }, b = {} }\n",
    "[plugins.a]\nb = 1\n[ui]\nplain = true\n[plugins.b]\na = 1\n",
    "[plugins.a.b.a]\nb = 1\r\n[plugins.a]\nc = 2\n",
]
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(codec="utf-8")),
    st.lists(st.integers(0, 9)),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9)),
)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    start=st.sampled_from(STARTS),
    way=st.lists(st.sampled_from(["a", "b", "c d"]), min_size=2, max_size=4),
    value=VALUES,
)
def test_a_change_says_what_was_asked_and_nothing_else(
    paths: Paths, start: str, way: list[str], value: Any
) -> None:
    """It is done exactly, or refused because a value stands where a table would have to."""
    say(paths, start)
    before = tomllib.loads(start)
    full = ("plugins", *way)

    if any(not isinstance(said, dict) and leaf == full[: len(leaf)] != full for leaf, said in leaves(before)):
        with pytest.raises(CommandError, match="is not a table"):
            set_value(paths, spell(full), value, environment={})
        assert paths.config_file.read_bytes().decode() == start
        return
    set_value(paths, spell(full), value, environment={})

    after = load(paths).values
    asked = dict(leaves({full[-1]: value}, full[:-1]))
    assert asked == {leaf: said for leaf, said in leaves(after) if leaf[: len(full)] == full}
    others = {leaf: said for leaf, said in leaves(before) if leaf[: len(full)] != full and said != {}}
    assert others.items() <= dict(leaves(after)).items()


# The schema


def test_the_schema_agrees_with_what_is_read(paths: Paths) -> None:
    validator = jsonschema_rs.validator_for(settings_schema())
    good = {
        "model": "local",
        "default_agent": "helper",
        "agents": {"helper": {"max_rounds": 3, "system_prompt": "Be brief."}},
        "models": {"fast": {"provider": "anthropic", "model": "x"}},
        "plugins": {"anything": {"goes": [1, {"x": 2}]}},
        "permissions": {"default": "ask", "allow": ["read"], "on_ask": "deny"},
        "ui": {"plain": True, "theme": "none"},
    }

    assert validator.is_valid(good) and find_fault(good) is None
    assert validator.is_valid({}) and find_fault({}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"modle": "x"},
        {"model": 1},
        {"model": ""},
        {"agents": []},
        {"agents": {"a": {"max_round": 1}}},
        {"agents": {"a": {"max_rounds": "x"}}},
        {"models": {"a": {"provider": 1}}},
        {"plugins": {"a": 1}},
        {"permissions": {"default": "maybe"}},
        {"permissions": {"allow": "all"}},
        {"permissions": {"on_ask": "wait"}},
        {"ui": {"plain": 1}},
        {"ui": {"theme": "pink"}},
        {"ui": {"x": 1}},
    ],
    ids=json.dumps,
)
def test_the_schema_refuses_what_is_refused(wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.validator_for(settings_schema()).is_valid(wrong)
    assert find_fault(wrong) is not None


# Speed


def test_a_plain_file_is_read_without_loading_the_runtime(paths: Paths) -> None:
    say(paths, 'model = "local"\n[ui]\nplain = true\n')
    program = (
        "import sys; from pathlib import Path; from agent_terminal_app.paths import Paths; "
        "from agent_terminal_app.settings import load_settings; "
        f"load_settings(Paths(config=Path({str(paths.config)!r}), data=Path(), state=Path(), cache=Path())); "
        "print([name for name in ('agent_runtime', 'tomlkit', 'click', 'asyncio') if name in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"
