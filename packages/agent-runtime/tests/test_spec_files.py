"""Declarations in files: three formats that say the same, and mistakes reported with their file and line."""

import copy
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from agent_runtime import documents
from agent_runtime.documents import Document, line_of, parse_json, parse_toml, parse_yaml
from agent_runtime.errors import SpecError, SpecFileError
from agent_runtime.files import _PARSERS, Declarations, load_specs
from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec, RemoteEndpoint, RetryPolicy

KINDS = ("toml", "python")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(text: str) -> str:
    escaped = re.sub(r'[\x00-\x1f\x7f"\\]', lambda found: f"\\u{ord(found[0]):04x}", text)
    return f'"{escaped}"'


def toml_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else toml_text(key)


def toml_value(value: Any) -> str:
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n  ".join(map(toml_value, value)) + "]"
    return json.dumps(value) if isinstance(value, (bool, int)) else repr(value)


def all_mappings(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)


def toml_tables(data: dict[str, Any], way: tuple[str, ...] = ()) -> Iterator[str]:
    """Write mappings as tables and lists of mappings as arrays of tables."""
    inner: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, dict) or (isinstance(value, list) and value and all_mappings(value)):
            inner.append((key, value))
        else:
            yield f"{toml_key(key)} = {toml_value(value)}  # a comment"
    for key, value in inner:
        name = ".".join(map(toml_key, (*way, key)))
        for item in value if isinstance(value, list) else [value]:
            yield f"\n[[ {name} ]]" if isinstance(value, list) else f"\n[{name}]"
            yield from toml_tables(item, (*way, key))


def toml_inline(data: dict[str, Any]) -> str:
    """Write everything below the ids as dotted keys and inline tables."""
    lines = [
        f"{kind}.{toml_key(name)}.{toml_key(key)} = {toml_value(value)}"
        for kind, section in data.items()
        for name, item in section.items()
        for key, value in item.items()
    ]
    return "\n".join(lines)


Write = Callable[[dict[str, Any]], str]
FORMATS: dict[str, tuple[str, Write]] = {
    "toml tables": (".toml", lambda data: "\n".join(toml_tables(data))),
    "toml inline": (".toml", toml_inline),
    "json": (".json", lambda data: json.dumps(data, indent=1)),
    "json in one line": (".json", json.dumps),
    "yaml": (".yaml", lambda data: str(yaml.safe_dump(data, sort_keys=False))),
    "yaml flow": (
        ".yml",
        lambda data: str(yaml.safe_dump(data, sort_keys=False, default_flow_style=True, width=20)),
    ),
}
every_format = pytest.mark.parametrize("form", FORMATS)


def load_text(text: str | bytes, suffix: str) -> Declarations:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"specs{suffix}"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_specs(path)


def load_as(form: str, data: dict[str, Any]) -> Declarations:
    suffix, write = FORMATS[form]
    return load_text(write(data), suffix)


def mistake(text: str | bytes, suffix: str) -> SpecFileError:
    with pytest.raises(SpecFileError) as caught:
        load_text(text, suffix)
    assert str(caught.value).endswith(caught.value.problem)
    return caught.value


FULL: dict[str, Any] = {
    "agents": {
        "helper": {
            "model": "gpt",
            "system_prompt": "Be short.\nBe \"kind\" and 'true'. \\o/",
            "description": "Knows things",
            "max_rounds": 8,
            "plugin_ids": ["memory", "clock"],
            "delegates": ["partner"],
            "handoffs": [{"agent": "other", "sees": "without_tools"}],
            "allowed_tools": ["read_*", "wait"],
            "excluded_tools": ["read_mail"],
            "context_policy": {
                "max_tokens": 8000,
                "reserve_tokens": 500,
                "keep_recent": 4,
                "compact_at": 0.5,
                "truncate": False,
                "prompt_cache": False,
            },
            "stop_conditions": [
                {"type": "max_rounds", "rounds": 3},
                {"type": "timeout", "seconds": 1.5},
                {"type": "token_budget", "tokens": 10000},
                {"type": "cost_budget", "amount": 2},
                {"type": "consecutive_errors", "count": 2},
                {"type": "stop_on_tool", "tools": ["done*"]},
                {"type": "content_match", "text": "BYE"},
                {"type": "content_match", "pattern": "*bye"},
                {"type": "repeated_calls", "count": 5},
            ],
            "sections": {
                "retry": {
                    "max_retries": 1,
                    "stream_retries": 0,
                    "base_delay": 0.1,
                    "max_delay": 1,
                    "max_retry_after": 5,
                    "deadline": 60,
                    "fallback_models": ["local"],
                },
                "memory": {"rooms": [{"name": "hall", "doors": [1, 2, [3]]}], "a.b": {"c d": True}},
            },
        },
        "partner": {
            "endpoint": {
                "url": "https://there",
                "token": "hidden",
                "timeout": 5,
                "max_bytes": 1000,
                "allow_private": True,
            }
        },
    },
    "models": {
        "gpt": {
            "provider": "openai",
            "model": "gpt-4o",
            "context_window": 9000,
            "max_output_tokens": 900,
            "input_price": 2.5,
            "output_price": 10,
            "cached_input_price": 1.25,
            "config": {"temperature": 0.2, "tags": ["a", "b"], "nested": {"on": True}},
        },
        "local": {"provider": "llama"},
    },
}


def declared(data: dict[str, Any]) -> Declarations:
    """Return what *data* declares, read without any file."""
    return Declarations(
        agents=tuple(
            AgentSpec.from_dict({"id": name, **item}) for name, item in data.get("agents", {}).items()
        ),
        models=tuple(
            ModelSpec.from_dict({"id": name, **item}) for name, item in data.get("models", {}).items()
        ),
    )


def ways(data: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield way
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from ways(value, (*way, key))


texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = texts.filter(lambda text: bool(text.strip()))
# TOML cannot write None.
plain = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
anything = st.dictionaries(names.filter(lambda name: name != "retry"), plain, max_size=3)
declarations = st.fixed_dictionaries(
    {
        "agents": st.dictionaries(
            names,
            st.fixed_dictionaries({"model": names, "system_prompt": texts, "sections": anything}),
            max_size=3,
        ),
        "models": st.dictionaries(
            names, st.fixed_dictionaries({"provider": names, "config": anything}), max_size=3
        ),
    }
)


class TestFormats:
    @every_format
    def test_every_field_can_be_declared(self, form: str) -> None:
        assert load_as(form, FULL) == declared(FULL)

    def test_the_example_leaves_no_field_out(self) -> None:
        specs = declared(FULL)
        helper, partner = specs.agents
        shown: list[tuple[Any, Any]] = [
            (AgentSpec, helper.to_dict() | {"endpoint": partner.endpoint}),
            (ModelSpec, specs.models[0].to_dict()),
            (ContextPolicy, FULL["agents"]["helper"]["context_policy"]),
            (RemoteEndpoint, FULL["agents"]["partner"]["endpoint"]),
            (RetryPolicy, FULL["agents"]["helper"]["sections"]["retry"]),
        ]

        for cls, given_fields in shown:
            assert set(given_fields) == {field.name for field in dataclasses.fields(cls) if field.init}

    @settings(max_examples=25)
    @given(data=declarations)
    def test_whatever_is_declared_comes_back_and_everything_has_its_place(self, data: dict[str, Any]) -> None:
        expected = declared(data)

        for suffix, write in FORMATS.values():
            text = write(data)
            document = _PARSERS[suffix](text)
            assert load_text(text, suffix) == expected
            assert set(ways(document.data)) == set(document.places)

        text = json.dumps(data, indent=1)
        for way, place in parse_json(text).places.items():
            if way and isinstance(way[-1], str):
                assert text.startswith(json.dumps(way[-1]) + ":", place)

    @pytest.mark.parametrize("suffix", [".json", ".yaml", ".toml"])
    def test_a_list_of_declarations_has_the_ids_inside(self, suffix: str) -> None:
        data = {
            kind: [{"id": name, **item} for name, item in section.items()] for kind, section in FULL.items()
        }
        write = next(write for ending, write in FORMATS.values() if ending == suffix)

        assert load_text(write(data), suffix) == declared(FULL)

    @pytest.mark.parametrize("text", ["", "# nothing yet\n"])
    @pytest.mark.parametrize("suffix", [".toml", ".yaml"])
    def test_a_file_may_declare_nothing(self, text: str, suffix: str) -> None:
        assert load_text(text, suffix) == Declarations()

    @every_format
    @pytest.mark.parametrize("change", ["byte order mark", "carriage returns"])
    def test_what_editors_on_windows_write_is_read(self, form: str, change: str) -> None:
        suffix, write = FORMATS[form]
        content = write(FULL).encode()
        content = (
            b"\xef\xbb\xbf" + content if change == "byte order mark" else content.replace(b"\n", b"\r\n")
        )

        assert load_text(content, suffix) == declared(FULL)

    @pytest.mark.parametrize(
        ("text", "suffix"),
        [
            ('[agents."käfer 漢🙂"]\nmodel = "x"', ".toml"),
            ('{"agents": {"käfer 漢🙂": {"model": "x"}}}', ".json"),
            ("agents:\n  käfer 漢🙂:\n    model: x", ".yaml"),
        ],
    )
    def test_every_script_of_the_world_is_read(self, text: str, suffix: str) -> None:
        assert load_text(text, suffix).agents == (AgentSpec("käfer 漢🙂", "x"),)

    def test_toml_can_switch_off_what_other_formats_set_to_null(self) -> None:
        (agent,) = load_text("[agents.a]\nmodel = 'x'\ncontext_policy.compact_at = false\n", ".toml").agents

        assert agent.context_policy == ContextPolicy(compact_at=None)

    def test_the_suffix_may_be_in_capitals(self) -> None:
        assert load_text(json.dumps(FULL), ".JSON") == declared(FULL)

    def test_a_path_may_be_a_text(self, tmp_path: Path) -> None:
        (tmp_path / "specs.json").write_text(json.dumps(FULL))

        assert load_specs(str(tmp_path / "specs.json")) == declared(FULL)


class TestGuide:
    def test_the_printed_example_is_the_one_that_is_run(self) -> None:
        page = (Path(__file__).parents[3] / "docs" / "how-to" / "declare-agents.md").read_text(
            encoding="utf-8"
        )
        shown, run = (
            re.findall(rf"^```{kind}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0] for kind in KINDS
        )

        assert shown in run
        assert [agent.id for agent in load_text(shown, ".toml").agents] == ["assistant", "librarian"]

    def test_loading_the_module_does_not_load_pyyaml(self) -> None:
        code = "import sys, agent_runtime.files, agent_runtime.schema; sys.exit('yaml' in sys.modules)"

        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestPlaces:
    @pytest.mark.parametrize(
        ("text", "way", "line"),
        [
            ("[a.b]\n[a]\n", ("a",), 2),
            ("[a.b]\nc.d.e = 1\nc.d.f = 2", ("a", "b", "c", "d", "f"), 3),
            ("[a.b]\nc.d.e = 1\nc.d.f = 2", ("a", "b", "c", "d"), 2),
            ("[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]\n[[a.b]]\nx = 1", ("a", 0, "b", 1), 3),
            ("[[a]]\n[[a.b]]\n[[a.b]]\n[[a]]\n[[a.b]]\nx = 1", ("a", 1, "b", 0, "x"), 6),
            ("[[a]]\n[a.b]\nx = 1", ("a", 0, "b", "x"), 3),
            ("a = [\n # [[\n {b = 1, c = [\n2]}]", ("a", 0, "c", 0), 4),
            ('a = """\n[b]\n"""""\nb = 1', ("b",), 4),
            ('a = """\\"""\n"""\nb = 1', ("b",), 3),
            ("a = '''\n''x''''\nb = '\"'\nc = 1", ("c",), 4),
            ("a = '\\'\nb = 1", ("b",), 2),
            ('"a.b" . \'c d\' = 1\n"a\\u002eb".e = 1', ("a.b", "e"), 2),
            ("a = 1979-05-27 07:32:00 # ]\nb = 07:32:00\nc = [ 1, ]\nd = +inf", ("d",), 4),
            ("a = {}\nb = []\nc = [[], {}]\n\nd = 1", ("d",), 5),
        ],
    )
    def test_toml_is_walked_as_it_is_parsed(self, text: str, way: tuple[str | int, ...], line: int) -> None:
        document = parse_toml(text)

        assert set(ways(document.data)) == set(document.places)
        assert line_of(text, document.locate(way)) == line

    def test_what_an_alias_repeats_stands_where_it_is_written(self) -> None:
        text = "agents:\n  a: &a\n    model: gpt\n    max_rounds: x\n  b: *a\n"
        document = parse_yaml(text)

        assert line_of(text, document.locate(("agents", "b", "max_rounds"))) == 4

    def test_what_has_no_place_stands_with_what_is_around_it(self) -> None:
        document = Document({}, {(): 0, ("agents",): 5})

        assert document.locate(("agents", "helper", "model")) == 5
        assert document.locate(("models", "gpt")) == 0


def mappings(data: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Find every mapping of a declaration whose fields are known."""
    for found in ways(data, way):
        is_free = found[-1:] == ("sections",) or "memory" in found or "config" in found
        if len(found) > 1 and not is_free and isinstance(follow(data, found), dict):
            yield found


def follow(data: Any, way: tuple[str | int, ...]) -> Any:
    for step in way:
        data = data[step]
    return data


def spelt(way: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)[1:]


MAPPINGS = list(mappings(FULL))
TYPED_FIELDS = [
    (*way, key)
    for way in MAPPINGS
    for key, value in follow(FULL, way).items()
    if not isinstance(value, str) and key not in {"tools", "endpoint"}
]
SEVERAL_LINES = [form for form in FORMATS if form != "json in one line"]


class TestMistakes:
    @pytest.mark.parametrize("form", SEVERAL_LINES)
    def test_an_unknown_field_is_reported_with_its_line(self, form: str) -> None:
        suffix, write = FORMATS[form]
        for way in MAPPINGS:
            data = copy.deepcopy(FULL)
            follow(data, way)["unheard_of"] = 1
            text = write(data)

            error = mistake(text, suffix)

            assert error.field == f"{spelt(way)}.unheard_of"
            assert error.line == text[: text.index("unheard_of")].count("\n") + 1, way
            assert "no field 'unheard_of'" in error.problem, way
            assert str(way[1]) in error.problem

    @pytest.mark.parametrize("form", SEVERAL_LINES)
    def test_a_wrong_type_is_reported_with_its_line(self, form: str) -> None:
        suffix, write = FORMATS[form]
        for way in TYPED_FIELDS:
            data = copy.deepcopy(FULL)
            follow(data, way[:-1])[way[-1]] = "unfit"
            text = write(data)

            error = mistake(text, suffix)

            assert error.field == spelt(way)
            assert error.line == text[: text.index("unfit")].count("\n") + 1, way
            assert f"'{way[1]}'" in error.problem, way

    def test_what_a_condition_refuses_is_reported_with_its_line(self) -> None:
        agent = "[agents.a]\nmodel = 'gpt'\nmax_rounds = 3\n"
        text = agent + "[[agents.a.stop_conditions]]\ntype = 'max_rounds'\nrounds = 0"

        error = mistake(text, ".toml")

        assert error.line == 6
        assert error.field == "agents.a.stop_conditions[0].rounds"
        assert error.problem == "agent 'a': stop_conditions[0].rounds must be at least 1, not 0"

    @pytest.mark.parametrize(
        ("text", "line", "field", "problem"),
        [
            ('{"agents": {\n"a": {}}}', 2, "agents.a.model", "agent 'a' needs a model"),
            ('{"models": {\n"a": {}}}', 2, "models.a.provider", "model 'a' needs the field 'provider'"),
            (
                '{"models": {"a":\n{"provider": "x",\n"model": 3}}}',
                3,
                "models.a.model",
                "model must be a string",
            ),
            ('{"models": {\n"a": 3}}', 2, "models.a", "must be a mapping"),
            ('{"models": [\n3]}', 2, "models[0]", "must be a mapping"),
            ('{"agents": [\n{"model": "x"}]}', 2, "agents[0].id", "needs the field 'id'"),
            ('{"agents": {"a": {\n"id": "a"}}}', 2, "agents.a.id", "has its id from its key"),
            ('{\n"agents": 3}', 2, "agents", "must be a mapping by id, or a list, not int"),
            ('{\n"agnets": {}}', 2, "agnets", "did you mean 'agents'"),
            ("\n[1]", 1, None, "must hold a mapping"),
        ],
    )
    def test_a_mistake_is_reported_with_line_and_field(
        self, text: str, line: int, field: str | None, problem: str
    ) -> None:
        error = mistake(text, ".json")

        assert (error.line, error.field) == (line, field)
        assert problem in error.problem

    @pytest.mark.parametrize(
        ("text", "field", "problem"),
        [
            ('"plugin_ids": [\n3]', "plugin_ids[0]", "must be a string"),
            ('"sections": {\n" ": 3}', "sections[' ']", "must not be empty"),
            ('\n"a.b": 3', "a.b", "no field 'a.b'"),
            ('\n"endpoint": "x"', "endpoint.url", "https://"),
            ('\n"context_policy": 3', "context_policy", "must be a mapping"),
            ('"endpoint": {\n"url": "x"}', "endpoint.url", ": endpoint.url must start with"),
            ('"allowed_tools": ["a",\n"b\\\\"]', "allowed_tools[1]", "ends in a backslash"),
            ('"excluded_tools": [\n"b\\\\"]', "excluded_tools[0]", "ends in a backslash"),
            (
                '"sections": {"retry": {\n"max_retries": 21}}',
                "sections.retry.max_retries",
                "between 0 and 20",
            ),
            ('\n"stop_conditions": 3', "stop_conditions", "must be a list"),
            ('"stop_conditions": [\n3]', "stop_conditions[0]", "must be a mapping with a type"),
            ('"sections": {\n"retry": 3}', "sections.retry", "must be a mapping"),
        ],
    )
    def test_a_mistake_in_an_agent_is_reported_with_line_and_field(
        self, text: str, field: str, problem: str
    ) -> None:
        error = mistake(f'{{"agents": {{"a": {{"model": "x", {text}}}}}}}', ".json")

        assert (error.line, error.field) == (2, f"agents.a.{field}")
        assert error.problem.startswith("agent 'a'") and problem in error.problem

    def test_of_several_mistakes_the_topmost_is_reported(self) -> None:
        text = "models:\n  m: {}\nagents:\n  a: {}\nother: 1\n"

        assert mistake(text, ".yaml").line == 2
        assert mistake(text.replace("m: {}", "m: {provider: x}"), ".yaml").line == 4
        assert (
            mistake("other: 1\n" + text, ".yaml").line == 6
        )  # a key that stands there twice comes before all

    def test_an_error_of_a_file_is_an_error_of_a_declaration(self) -> None:
        assert isinstance(mistake("{", ".json"), SpecError)
        assert isinstance(mistake("{", ".json"), ValueError)

    @pytest.mark.parametrize(
        ("text", "suffix", "first", "second"),
        [
            ('{"agents": {\n"a": {},\n"a": {}}}', ".json", 2, 3),
            ('{"agents": {"a": {"sections": {"x": [\n{"k": 1,\n"k": 2}]}}}}', ".json", 2, 3),
            ('{"agents": {"a":\n{}, "\\u0061":\n{}}}', ".json", 1, 2),
            ("agents:\n  a: {}\n  a: {}\n", ".yaml", 2, 3),
            ("agents:\n  a: {}\n  'a': {}\n", ".yaml", 2, 3),
        ],
    )
    def test_a_key_that_stands_twice_is_reported_with_both_lines(
        self, text: str, suffix: str, first: int, second: int
    ) -> None:
        error = mistake(text, suffix)

        assert error.line == second
        assert f"in line {first} already" in error.problem

    def test_toml_refuses_a_key_that_stands_twice(self) -> None:
        assert mistake("[agents.a]\nmodel = 'x'\nmodel = 'y'\n", ".toml").line == 3

    def test_an_id_that_stands_twice_in_a_list_is_reported_with_both_lines(self) -> None:
        error = mistake(
            "models:\n- {id: a, provider: x}\n- {id: b, provider: x}\n- {id: a, provider: x}\n", ".yaml"
        )

        assert error.line == 4
        assert ":2 already" in error.problem


class TestSyntax:
    @pytest.mark.parametrize(
        ("text", "suffix", "line"),
        [
            ('{"agents": {},\n}', ".json", 2),
            ('{"agents": {}\n\n"models"', ".json", 3),
            ("{'agents': 1}", ".json", 1),
            ('{"agents":\n // no comments\n {}}', ".json", 2),
            ('{"agents": "a\nb"}', ".json", 1),
            ("", ".json", 1),
            ("[agents.a]\nmodel = \n", ".toml", 2),
            ("[agents.a]\n\n[agents", ".toml", 3),
            ("[agents.a]\nmodel = 'x'\n[agents.a]\n", ".toml", 3),
            ("a = [1,\n", ".toml", 2),
            ("a = 1 b = 2", ".toml", 1),
            ("agents:\n  a: b: c\n", ".yaml", 2),
            ("agents:\n\ta: 1\n", ".yaml", 2),
            ("agents: {}\n---\nmodels: {}\n", ".yaml", 2),
            ("agents: *nobody\n", ".yaml", 1),
            ("agents: {a: {\n\n", ".yaml", 3),
        ],
    )
    def test_text_that_is_not_valid_is_reported_with_its_line(
        self, text: str, suffix: str, line: int
    ) -> None:
        error = mistake(text, suffix)

        assert error.line == line
        assert error.problem.startswith(f"is not valid {suffix[1:].upper()}: ")

    @pytest.mark.parametrize("suffix", [".json", ".toml", ".yaml"])
    @given(text=st.text(st.sampled_from("{}[]\",:=.#'\\ab1-\n &*!|>?"), max_size=30))
    def test_whatever_a_file_holds_it_is_read_or_refused(self, suffix: str, text: str) -> None:
        try:
            load_text(text, suffix)
        except SpecFileError as error:
            assert error.line is None or 1 <= error.line <= text.count("\n") + 1  # noqa: PT017

    @pytest.mark.parametrize("suffix", [".json", ".toml", ".yaml"])
    @given(content=st.binary(max_size=20))
    def test_whatever_bytes_a_file_holds_they_are_read_or_refused(self, suffix: str, content: bytes) -> None:
        try:
            load_text(content, suffix)
        except SpecFileError as error:
            assert str(error)  # noqa: PT017

    @pytest.mark.parametrize("suffix", [".json", ".toml", ".yaml"])
    def test_a_file_cut_off_anywhere_is_read_or_refused(self, suffix: str) -> None:
        write = next(write for ending, write in FORMATS.values() if ending == suffix)
        text = write(FULL)

        for length in range(0, len(text), 29):
            try:
                load_text(text[:length], suffix)
            except SpecFileError as error:
                assert error.line is not None  # noqa: PT017


def agent_with(value: str, suffix: str) -> str:
    """Write an agent whose section holds *value*, in line 3."""
    texts_of = {
        ".json": '{"agents": {"a":\n{"model": "x", "sections": {\n"s": %s}}}}',
        ".toml": "[agents.a]\nmodel = 'x'\nsections.s = %s\n",
        ".yaml": "agents:\n  a: {model: x, sections: {\n    s: %s}}\n",
    }
    return texts_of[suffix] % value


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("value", "suffix", "problem"),
        [
            ("NaN", ".json", "finite"),
            ("-Infinity", ".json", "finite"),
            ("1e999", ".json", "finite"),
            ("nan", ".toml", "finite"),
            ("inf", ".toml", "finite"),
            (".nan", ".yaml", "finite"),
            ("9223372036854775808", ".json", "64 bits"),
            ("-9223372036854775809", ".yaml", "64 bits"),
            ("9" * 5000, ".json", "64 bits"),
            ("9" * 5000, ".toml", "64 bits"),
            ("9" * 5000, ".yaml", "64 bits"),
            ("1" + ":59" * 300_000, ".yaml", "64 bits"),
            ("1" + ":59" * 300 + ".0", ".yaml", "as float: "),
            ("1" * 1001 + ".0", ".yaml", "as float: it is too long"),
            ("0x" + "f" * 5000, ".toml", "64 bits"),
            ("0x" + "f" * 5000, ".yaml", "64 bits"),
            ("1979-05-27", ".toml", "put it in quotes"),
            ("07:32:00", ".toml", "put it in quotes"),
            ("1979-05-27", ".yaml", "in quotes"),
            ('"\\ud800"', ".json", "surrogate"),
            ('{"\\udfff": 1}', ".json", "surrogate"),
            ("!!python/object/apply:os.getcwd []", ".yaml", "python/object"),
            ("!!binary aGk=", ".yaml", "binary"),
            ("!!int x", ".yaml", "as int"),
            ("!!bool x", ".yaml", "as bool"),
            ('!!float ""', ".yaml", "as float"),
            ('!!int ""', ".yaml", "as int"),
            ("!!str [x]", ".yaml", "str"),
            ("!!set {x}", ".yaml", "set"),
            ("{1: 2}", ".yaml", "the key '1' is read as int"),
            ("{on: 2}", ".yaml", "the key 'on' is read as bool"),
            ("{[a]: 2}", ".yaml", "cannot be a key"),
            ("{<<: {a: 1}}", ".yaml", "merge key"),
            ("[" * 200 + "]" * 200, ".json", "deeper than 100"),
            ("[" * 100_000, ".json", "deeper than 100"),
            ("[" * 100_000, ".toml", "deeper than 100"),
            ("{a=" * 100_000, ".toml", "deeper than 100"),
            ("1\n" + "a." * 200 + "a = 1", ".toml", "deeper than 100"),
            ("[" * 100_000, ".yaml", "deeper than 100"),
            ("&a [*a, *a]", ".yaml", "deeper than 100"),
            ("[" + "0," * 20_000 + "0]", ".json", "more than 20,000"),
            ("[" + "0," * 20_000 + "0]", ".toml", "more than 20,000"),
            ("\x00", ".json", "not valid JSON"),
            ("'\x00'", ".toml", "not valid TOML"),
            ("\x00", ".yaml", "not valid YAML"),
        ],
        ids=lambda value: value[:30].replace("\x00", "NUL") + ("…" if len(value) > 30 else ""),
    )
    def test_what_no_declaration_needs_is_refused_where_it_stands(
        self, value: str, suffix: str, problem: str
    ) -> None:
        error = mistake(agent_with(value, suffix), suffix)

        assert problem in error.problem
        assert error.line == (4 if value.startswith("1\n") else 3)

    def test_aliases_do_not_grow_without_limit(self) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

        assert "more than 20,000 values" in mistake("\n".join(lines), ".yaml").problem

    def test_yaml_nodes_are_counted_while_they_are_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(documents, "MAX_VALUES", 10)

        assert "more than 10 values" in mistake("agents: [" + "x, " * 20 + "[", ".yaml").problem

    def test_large_and_deep_but_honest_values_are_kept(self) -> None:
        value = "[" * 90 + str(2**63 - 1) + "]" * 90

        for suffix in (".json", ".toml", ".yaml"):
            (agent,) = load_text(agent_with(value, suffix), suffix).agents
            assert json.dumps(agent.sections["s"]) == value

    def test_a_lone_equals_sign_in_yaml_is_a_text(self) -> None:
        (agent,) = load_text(agent_with("{=: =}", ".yaml"), ".yaml").agents

        assert agent.sections["s"] == {"=": "="}


class TestFiles:
    @pytest.mark.parametrize("name", ["specs.ini", "specs", ".toml", "specs.toml.bak"])
    def test_an_unknown_format_is_refused_with_those_that_are_known(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("")

        with pytest.raises(SpecFileError, match=r"use \.toml, \.yaml, \.yml or \.json") as caught:
            load_specs(tmp_path / name)
        assert caught.value.path == str(tmp_path / name) and caught.value.line is None

    @pytest.mark.parametrize("name", ["missing.toml", "no/where.json", "nul\x00.yaml"])
    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(SpecFileError, match="cannot be read") as caught:
            load_specs(tmp_path / name)
        assert caught.value.path == str(tmp_path / name)

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "specs.toml")

        with pytest.raises(SpecFileError, match="no regular file"):
            load_specs(tmp_path / "specs.toml")

    @pytest.mark.parametrize(
        ("content", "line"), [(b"\xff\xfe", 1), (b"# a\n# b\xc3\n", 2), ("ä".encode("utf-16"), 1)]
    )
    def test_another_encoding_is_refused_with_its_line(self, content: bytes, line: int) -> None:
        error = mistake(content, ".toml")

        assert error.line == line and "is not UTF-8" in error.problem

    def test_a_file_that_is_too_large_is_not_read(self) -> None:
        assert "larger than 1,000,000 bytes" in mistake(b"#" * 1_000_001, ".toml").problem

    def test_without_pyyaml_the_error_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "yaml", None)

        assert "pip install 'keelwork-runtime[yaml]'" in mistake("agents: {}", ".yaml").problem
        assert load_text("{}", ".json") == Declarations()


class TestDirectories:
    def test_the_files_of_a_directory_are_read_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        (tmp_path / "b.toml").write_text("[agents.second]\nmodel = 'gpt'\n")
        (tmp_path / "a.yaml").write_text("agents: {first: {model: gpt}}\n")
        (tmp_path / "c.JSON").write_text('{"models": {"gpt": {"provider": "there"}}}')

        specs = load_specs(tmp_path)

        assert [agent.id for agent in specs.agents] == ["first", "second"]
        assert specs.models == (ModelSpec("gpt", "there"),)

    def test_other_files_and_hidden_ones_are_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "specs.json").write_text("{}")
        for name in ("README.md", ".hidden.json", "specs.json~"):
            (tmp_path / name).write_text("no declarations")
        (tmp_path / "more.json").mkdir()

        assert load_specs(tmp_path) == Declarations()

    def test_a_directory_without_declarations_is_a_mistake(self, tmp_path: Path) -> None:
        with pytest.raises(SpecFileError, match="no file of declarations"):
            load_specs(tmp_path)

    def test_a_link_that_leads_nowhere_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "specs.toml").symlink_to(tmp_path / "gone.toml")

        with pytest.raises(SpecFileError, match=r"specs\.toml: cannot be read"):
            load_specs(tmp_path)

    def test_an_id_that_two_files_declare_is_reported_with_both_places(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text("\n[models.gpt]\nprovider = 'x'\n")
        (tmp_path / "b.json").write_text('{"models": {\n\n"gpt": {"provider": "y"}}}')

        with pytest.raises(SpecFileError) as caught:
            load_specs(tmp_path)

        assert (caught.value.path, caught.value.line) == (str(tmp_path / "b.json"), 3)
        assert f"model 'gpt' is declared at {tmp_path / 'a.toml'}:2 already" in caught.value.problem

    def test_an_agent_and_a_model_may_share_an_id(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text("[models.one]\nprovider = 'x'\n[agents.one]\nmodel = 'one'\n")

        specs = load_specs(tmp_path)

        assert specs.agents[0].id == specs.models[0].id == "one"
