"""Declarations: what they keep, what they refuse and under which name, and the schema that describes them."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from agent_runtime import policies as conditions, schema
from agent_runtime.errors import SpecError
from agent_runtime.fields import read
from agent_runtime.policies import CONDITIONS, StopCondition, read_condition
from agent_runtime.schema import agent_schema, described, model_schema, spec_schema
from agent_runtime.specs import (
    HARD_CAP,
    AgentSpec,
    ContextPolicy,
    HandoffSpec,
    ModelSpec,
    RemoteEndpoint,
    RetryPolicy,
)

PUBLISHED = Path(__file__).parents[3] / "docs" / "reference" / "agent-spec.schema.json"

texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = texts.filter(lambda text: bool(text.strip()))
globs = names.filter(lambda text: not text.endswith("\\"))
counts = st.integers(1, 10**9)
amounts = st.floats(0, 1e9)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
settings_of_plugins = st.dictionaries(names.filter(lambda name: name != "retry"), plain, max_size=3)


def lists_of(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


stop_conditions: st.SearchStrategy[StopCondition] = st.one_of(
    st.builds(conditions.MaxRounds, counts),
    st.builds(conditions.Timeout, st.floats(0.001, 1e6)),
    st.builds(conditions.TokenBudget, counts),
    st.builds(conditions.CostBudget, amounts),
    st.builds(conditions.ConsecutiveErrors, counts),
    st.builds(conditions.StopOnTool, lists_of(globs)),
    st.builds(conditions.ContentMatch, text=names),
    st.builds(conditions.ContentMatch, pattern=globs),
    st.builds(conditions.RepeatedCalls, st.integers(2, 100)),
)
context_policies = st.builds(
    ContextPolicy,
    max_tokens=st.none() | st.integers(10**6, 10**7),
    reserve_tokens=st.none() | st.integers(0, 10**5),
    keep_recent=counts,
    compact_at=st.none() | st.floats(0.1, 1),
    truncate=st.booleans(),
    prompt_cache=st.booleans(),
)
endpoints = st.builds(
    RemoteEndpoint,
    texts.map("https://".__add__),
    timeout=st.floats(0.001, 1e6),
    max_bytes=counts,
    allow_private=st.booleans(),
)
handoffs = st.lists(
    st.builds(HandoffSpec, names, description=texts, sees=st.sampled_from(["all", "without_tools"])),
    unique_by=lambda handoff: handoff.agent,
    max_size=3,
).map(tuple)
agents = st.builds(
    AgentSpec,
    names,
    names,
    system_prompt=texts,
    description=texts,
    max_rounds=st.integers(1, HARD_CAP),
    plugin_ids=lists_of(names),
    delegates=lists_of(names),
    handoffs=handoffs,
    allowed_tools=st.none() | lists_of(globs),
    excluded_tools=lists_of(globs),
    context_policy=st.none() | context_policies,
    stop_conditions=lists_of(stop_conditions),
    endpoint=st.none() | endpoints,
    sections=settings_of_plugins,
)
models = st.builds(
    ModelSpec,
    names,
    names,
    texts,
    context_window=st.none() | st.integers(10**6, 10**7),
    max_output_tokens=st.none() | st.integers(1, 10**5),
    input_price=st.none() | amounts,
    output_price=st.none() | amounts,
    cached_input_price=st.none() | amounts,
    config=settings_of_plugins,
)


class TestDictForm:
    @settings(max_examples=25)
    @given(agents)
    def test_an_agent_survives_as_plain_json_that_fits_the_schema(self, agent: AgentSpec) -> None:
        data = agent.to_dict()

        assert AgentSpec.from_dict(data) == agent
        assert json.loads(json.dumps(data)) == data
        assert AGENT_CHECKER.is_valid(data)

    @settings(max_examples=25)
    @given(models)
    def test_a_model_survives_as_plain_json_that_fits_the_schema(self, model: ModelSpec) -> None:
        data = model.to_dict()

        assert ModelSpec.from_dict(data) == model
        assert json.loads(json.dumps(data)) == data
        assert MODEL_CHECKER.is_valid(data)

    @given(stop_conditions)
    def test_a_stop_condition_survives_its_dict_form(self, condition: StopCondition) -> None:
        assert read_condition("here", condition.to_dict()) == condition

    def test_the_dict_form_leaves_out_what_is_so_by_default(self) -> None:
        agent = AgentSpec("helper", "gpt", max_rounds=100, context_policy=ContextPolicy(keep_recent=4))

        assert agent.to_dict() == {"id": "helper", "model": "gpt", "context_policy": {"keep_recent": 4}}

    def test_a_secret_does_not_leave_a_declaration(self) -> None:
        agent = AgentSpec("partner", endpoint=RemoteEndpoint("https://there", token="hidden"))

        assert "hidden" not in json.dumps(agent.to_dict()) + repr(agent)

    def test_a_declaration_does_not_change_with_the_dict_it_was_read_from(self) -> None:
        sections = {"memory": {"rooms": [1]}}
        agent = AgentSpec("helper", "gpt", sections=sections)

        sections["memory"]["rooms"].append(2)

        assert agent.section("memory") == {"rooms": [1]}

    def test_an_endpoint_may_be_written_as_its_address(self) -> None:
        agent = AgentSpec.from_dict({"id": "partner", "endpoint": "https://there"})

        assert agent.endpoint == RemoteEndpoint("https://there")

    def test_one_tool_to_stop_on_need_not_be_a_list(self) -> None:
        assert read_condition("here", {"type": "stop_on_tool", "tools": "done"}) == conditions.StopOnTool(
            ("done",)
        )


Spec = type[Any]
SMALLEST: dict[Spec, dict[str, Any]] = {
    AgentSpec: {"id": "helper", "model": "gpt"},
    ModelSpec: {"id": "gpt", "provider": "there"},
    RetryPolicy: {},
    ContextPolicy: {},
    RemoteEndpoint: {"url": "https://there"},
    HandoffSpec: {"agent": "a"},
    conditions.MaxRounds: {"rounds": 3},
    conditions.Timeout: {"seconds": 3},
    conditions.TokenBudget: {"tokens": 3},
    conditions.CostBudget: {"amount": 3},
    conditions.ConsecutiveErrors: {},
    conditions.StopOnTool: {"tools": ["done"]},
    conditions.ContentMatch: {"text": "done"},
    conditions.RepeatedCalls: {},
}
FIELDS = [
    pytest.param(cls, field.name, id=f"{cls.__name__}.{field.name}")
    for cls in SMALLEST
    for field in dataclasses.fields(cls)
    if field.init
]


class TestMistakes:
    def test_every_kind_of_declaration_is_tried_here(self) -> None:
        assert set(CONDITIONS.values()) < set(SMALLEST)

    @pytest.mark.parametrize(("cls", "name"), FIELDS)
    def test_a_field_of_a_wrong_type_is_named(self, cls: Spec, name: str) -> None:
        with pytest.raises(SpecError) as caught:
            read(cls, {**SMALLEST[cls], name: object()}, where="here")

        assert caught.value.field == f"here.{name}"
        assert str(caught.value).startswith(f"here.{name} must be ")

    @pytest.mark.parametrize("cls", SMALLEST, ids=lambda cls: cls.__name__)
    def test_an_unknown_field_is_named_with_the_nearest_known_one(self, cls: Spec) -> None:
        known = dataclasses.fields(cls)[0].name

        with pytest.raises(SpecError, match=f"did you mean '{known}'") as caught:
            read(cls, {**SMALLEST[cls], f"{known}x": 1}, where="here")

        assert caught.value.field == f"here.{known}x"

    @pytest.mark.parametrize(
        ("cls", "name"),
        [case for case in FIELDS if case.values[1] in SMALLEST[case.values[0]]],  # type: ignore[index]
    )
    def test_a_missing_field_is_named(self, cls: Spec, name: str) -> None:
        smaller = {key: value for key, value in SMALLEST[cls].items() if key != name}

        with pytest.raises(SpecError, match=name) as caught:
            read(cls, smaller, where="here")

        assert caught.value.field == f"here.{name}"

    @pytest.mark.parametrize("data", [None, 3, "text", ["id"], [("id", "x")]])
    def test_what_is_no_mapping_is_no_declaration(self, data: Any) -> None:
        for read_one, kind in ((AgentSpec.from_dict, "agent"), (ModelSpec.from_dict, "model")):
            with pytest.raises(SpecError, match="must be a mapping") as caught:
                read_one(data)
            assert caught.value.field == kind

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ({"plugin_ids": ["a", 3]}, "plugin_ids[1]"),
            ({"delegates": "helper"}, "delegates"),
            ({"stop_conditions": [{"type": "max_rounds", "rounds": 1}, {}]}, "stop_conditions[1]"),
            ({"stop_conditions": [{"type": "timout"}]}, "stop_conditions[0].type"),
            ({"stop_conditions": [{"type": "timeout"}]}, "stop_conditions[0].seconds"),
            ({"context_policy": {"keep": 1}}, "context_policy.keep"),
            ({"endpoint": {"url": "ftp://there"}}, "endpoint.url"),
            ({"endpoint": "ftp://there"}, "endpoint.url"),
            ({"endpoint": {"url": "https://there", "timeout": 0}}, "endpoint.timeout"),
            ({"context_policy": {"keep_recent": 0}}, "context_policy.keep_recent"),
            ({"stop_conditions": [{"type": "timeout", "seconds": 0}]}, "stop_conditions[0].seconds"),
            ({"stop_conditions": [{"type": "max_rounds", "rounds": 0}]}, "stop_conditions[0].rounds"),
            ({"stop_conditions": [{"type": "content_match"}]}, "stop_conditions[0].text"),
            ({"stop_conditions": [{"type": "stop_on_tool", "tools": "a\\"}]}, "stop_conditions[0].tools[0]"),
            (
                {"stop_conditions": [{"type": "content_match", "pattern": "a\\"}]},
                "stop_conditions[0].pattern",
            ),
            ({"allowed_tools": ["a", "b\\"]}, "allowed_tools[1]"),
            ({"excluded_tools": ["a\\"]}, "excluded_tools[0]"),
            ({"max_rounds": HARD_CAP + 1}, "max_rounds"),
            ({"max_rounds": float("nan")}, "max_rounds"),
        ],
    )
    def test_the_path_leads_to_what_is_wrong(self, data: dict[str, Any], field: str) -> None:
        with pytest.raises(SpecError) as caught:
            AgentSpec.from_dict({"id": "helper", "model": "gpt", **data})

        assert caught.value.field == field
        assert str(caught.value).startswith(field.rpartition(".")[0] or field)

    @pytest.mark.parametrize(
        ("problem", "field", "told", "path"),
        [
            ("size must be small", "size", "a.b.size must be small", "a.b.size"),
            ("two do not fit together", "size", "a.b: two do not fit together", "a.b.size"),
            ("nothing fits", None, "a.b: nothing fits", "a.b"),
            ("a.b.size must be small", "a.b.size", "a.b.size must be small", "a.b.size"),
            ("a.b[0] must be small", "a.b[0]", "a.b[0] must be small", "a.b[0]"),
            ("a.b must be small", "a.b", "a.b must be small", "a.b"),
            ("a.bc must be small", "a.bc", "a.b.a.bc must be small", "a.b.a.bc"),
        ],
    )
    def test_the_path_to_a_declaration_is_named_once(
        self, problem: str, field: str | None, told: str, path: str
    ) -> None:
        class Refusing:
            def __init__(self) -> None:
                raise SpecError(problem, field=field)

        with pytest.raises(SpecError) as caught:
            read(dataclasses.dataclass(init=False)(Refusing), {}, where="a.b")

        assert (str(caught.value), caught.value.field) == (told, path)

    @pytest.mark.parametrize(
        ("made", "field"),
        [
            (lambda: RemoteEndpoint("ftp://there"), "url"),
            (lambda: RemoteEndpoint("https://there", timeout=0), "timeout"),
            (lambda: conditions.MaxRounds(0), "rounds"),
            (lambda: conditions.StopOnTool(("a", "b\\")), "tools[1]"),
            (lambda: ContextPolicy(keep_recent=0), "keep_recent"),
            (lambda: RetryPolicy(max_retries=21), "max_retries"),
        ],
    )
    def test_a_declaration_by_itself_names_its_own_fields(
        self, made: Callable[[], object], field: str
    ) -> None:
        with pytest.raises(SpecError) as caught:
            made()

        assert caught.value.field == field
        assert str(caught.value).startswith(field)

    @pytest.mark.parametrize(
        "amount", [float("inf"), float("-inf"), float("nan"), 10**400, 10**5000], ids=type
    )
    def test_a_number_must_be_finite(self, amount: float) -> None:
        with pytest.raises(SpecError, match="must be a number, finite") as caught:
            conditions.CostBudget(amount)

        assert caught.value.field == "amount"

    def test_a_policy_that_never_compacts_may_be_written_with_false(self) -> None:
        policy = read(ContextPolicy, {"compact_at": False}, where="here")

        assert policy.compact_at is None
        assert policy == ContextPolicy(compact_at=None)
        assert policy.to_dict() == {"compact_at": None}

    @pytest.mark.parametrize("share", [True, 0, 0.0])
    def test_nothing_else_stands_for_a_policy_that_never_compacts(self, share: float) -> None:
        with pytest.raises(SpecError, match="compact_at"):
            ContextPolicy(compact_at=share)

    def test_an_answer_must_leave_room_in_the_window(self) -> None:
        with pytest.raises(SpecError, match="below context_window"):
            ModelSpec("gpt", "there", context_window=1000, max_output_tokens=1000)

    def test_what_is_kept_free_must_leave_room_in_the_window(self) -> None:
        with pytest.raises(SpecError, match="below max_tokens"):
            ContextPolicy(max_tokens=1000, reserve_tokens=1000)


def accepts(cls: Spec, data: Any) -> bool:
    try:
        read(cls, data, where="here")
    except SpecError:
        return False
    return True


def schema_of(cls: Spec) -> dict[str, Any]:
    """Return the schema of one class, with what it refers to."""
    whole = spec_schema()
    names_of = {
        AgentSpec: "agent",
        ModelSpec: "model",
        RetryPolicy: "retry",
        ContextPolicy: "context_policy",
        RemoteEndpoint: "endpoint",
        HandoffSpec: "handoff",
    }
    name = names_of.get(cls) or f"{cls.type}_condition"
    return {"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}


def checker_of(cls: Spec) -> Callable[[Any], bool]:
    checker = jsonschema_rs.validator_for(schema_of(cls))
    kind = {"type": cls.type} if issubclass(cls, StopCondition) else {}
    return lambda data: checker.is_valid({**kind, **data})


# None of these is a float that is whole, which JSON Schema takes for an integer and the specs do not.
SAMPLES: list[Any] = [
    *(
        None,
        True,
        False,
        "",
        " ",
        "x",
        "http://x",
        "ftp://x",
        0,
        1,
        2,
        -1,
        0.0005,
        0.05,
        0.5,
        1.5,
        21,
        1001,
        10**9,
    ),
    *(
        [],
        ["x"],
        [""],
        [" "],
        [3],
        [None],
        {},
        {"": 1},
        {"x": 1},
        {"x": {"y": None}},
        {"url": "https://there"},
    ),
    *({"url": 3}, {"keep_recent": 0}, {"keep_recent": 3}, {"retry": {"max_retries": 3}}),
    *([{"type": "timeout", "seconds": 3}], [{"type": "timeout"}], [{"type": "x"}], [{"seconds": 3}]),
]


class TestSchema:
    def test_the_published_schema_is_the_one_of_the_code(self) -> None:
        published = PUBLISHED.read_text(encoding="utf-8")

        assert json.loads(published) == spec_schema(), (
            "regenerate it: python -m agent_runtime.schema > docs/reference/agent-spec.schema.json"
        )

    def test_the_module_prints_what_is_published(self, capsys: pytest.CaptureFixture[str]) -> None:
        schema.main()

        assert capsys.readouterr().out == PUBLISHED.read_text(encoding="utf-8")

    @pytest.mark.parametrize("made", [spec_schema, agent_schema, model_schema])
    def test_a_schema_is_a_schema(self, made: Callable[[], dict[str, Any]]) -> None:
        assert jsonschema_rs.meta.is_valid(made())

    @pytest.mark.parametrize(("cls", "name"), FIELDS)
    def test_every_field_is_described(self, cls: Spec, name: str) -> None:
        definition = spec_schema()["$defs"][schema_of(cls)["$ref"].rpartition("/")[2]]

        assert definition["additionalProperties"] is False
        assert len(definition["properties"][name]["description"]) > 10

    @pytest.mark.parametrize("cls", SMALLEST, ids=lambda cls: cls.__name__)
    def test_descriptions_are_those_of_the_docstring(self, cls: Spec) -> None:
        words = " ".join((cls.__doc__ or "").split())

        assert all(said in words for said in described(cls).values())

    def test_a_description_over_two_lines_is_read_whole(self) -> None:
        assert described(ContextPolicy)["truncate"].endswith("The session keeps them all.")

    @pytest.mark.parametrize(("cls", "name"), FIELDS)
    def test_schema_and_reader_agree_on_every_field(self, cls: Spec, name: str) -> None:
        fits = checker_of(cls)

        for value in SAMPLES:
            data = {**SMALLEST[cls], name: value}
            assert fits(data) == accepts(cls, data), value

    @pytest.mark.parametrize("cls", SMALLEST, ids=lambda cls: cls.__name__)
    def test_schema_and_reader_agree_on_missing_and_unknown_fields(self, cls: Spec) -> None:
        fits = checker_of(cls)

        for data in ({}, SMALLEST[cls], {**SMALLEST[cls], "other": 1}):
            assert fits(data) == accepts(cls, data), data

    @pytest.mark.parametrize("text", [{}, {"text": ""}, {"text": "a"}])
    @pytest.mark.parametrize("pattern", [{}, {"pattern": ""}, {"pattern": "a"}])
    def test_schema_and_reader_agree_that_content_match_has_one_of_two_fields(
        self, text: dict[str, str], pattern: dict[str, str]
    ) -> None:
        data = {**text, **pattern}

        assert checker_of(conditions.ContentMatch)(data) == accepts(conditions.ContentMatch, data)

    def test_the_schema_knows_the_retry_section(self) -> None:
        fits = checker_of(AgentSpec)

        assert fits({**SMALLEST[AgentSpec], "sections": {"retry": {"max_retries": 3}, "other": 3}})
        assert not fits({**SMALLEST[AgentSpec], "sections": {"retry": {"max_retries": "x"}}})

    @pytest.mark.parametrize("shape", [dict, list])
    def test_a_file_holds_mappings_or_lists(self, shape: type) -> None:
        agent, model = {"model": "gpt"}, {"provider": "there"}
        by_id = {"agents": {"helper": agent}, "models": {"gpt": model}}
        listed = {"agents": [{"id": "helper", **agent}], "models": [{"id": "gpt", **model}]}

        assert FILE_CHECKER.is_valid(by_id if shape is dict else listed)
        assert not FILE_CHECKER.is_valid({"agents": {"helper": {"id": "helper", **agent}}})
        assert not FILE_CHECKER.is_valid({"agents": [agent]})
        assert not FILE_CHECKER.is_valid({"agnets": {}})


AGENT_CHECKER = jsonschema_rs.validator_for(agent_schema())
MODEL_CHECKER = jsonschema_rs.validator_for(model_schema())
FILE_CHECKER = jsonschema_rs.validator_for(spec_schema())
