"""A dataclass gives the schema, the defaults and the reader of a plugin's settings."""

from __future__ import annotations

from collections import abc
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_core import ConfigError
from agent_plugin_kit.settings import read_settings, section_schema, setting, settings_schema

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_port(value: int) -> str:
    if value == 22:
        raise ValueError("has 22, which is for shells: name another port")
    return f":{value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    name: str = setting("bash", "A name.", key="tea_name")
    note: str = setting("", "A note.", empty=True)
    count: int = setting(3, "A count.", at_least=1)
    seconds: float = setting(1.5, "A time.", above=0, at_most=60)
    share: float = setting(0.5, "A share.")
    level: int = setting(0, "A level.", at_most=9)
    strict: bool = setting(False, "A switch.")
    words: tuple[str, ...] = setting((), "Words.")
    ports: frozenset[int] = setting(frozenset({443, 80}), "Ports.", at_least=1, at_most=65_535)
    env: Mapping[str, str] = setting({}, "Variables.", shown_default=None)
    agent: str | None = setting(None, "An agent.", says="the name of an agent")
    folder: Path = setting("~", "A folder.", reads=str, convert=Path, shown_default=None)
    door: str = setting(443, "A door.", reads=int, convert=as_port)
    made: int = 5


def test_the_schema_has_types_limits_defaults_and_descriptions() -> None:
    schema = settings_schema(Settings)

    assert schema["tea_name"] == {
        "type": "string",
        "minLength": 1,
        "default": "bash",
        "description": "A name.",
    }
    assert schema["note"] == {"type": "string", "default": "", "description": "A note."}
    assert schema["count"]["minimum"] == 1
    assert (schema["seconds"]["exclusiveMinimum"], schema["seconds"]["maximum"]) == (0, 60)
    assert schema["words"] == {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "default": [],
        "description": "Words.",
    }
    assert schema["ports"]["default"] == [80, 443]
    assert schema["env"] == {"type": "object", "description": "Variables."}
    assert "default" not in schema["agent"] and "default" not in schema["folder"]
    assert schema["door"]["type"] == "integer"
    assert "made" not in schema and "name" not in schema
    assert section_schema(Settings)["additionalProperties"] is False


def test_what_is_missing_or_null_has_its_default() -> None:
    settings = read_settings(Settings, {})

    assert settings == Settings() == read_settings(Settings, dict.fromkeys(settings_schema(Settings)))
    assert (settings.name, settings.count, settings.env, settings.door) == ("bash", 3, {}, ":443")
    assert settings.ports == {80, 443}


def test_what_is_given_is_kept_frozen_and_converted() -> None:
    given = {
        "tea_name": "oolong",
        "words": ["a"],
        "ports": [1],
        "env": {"A": "b"},
        "folder": "/x",
        "seconds": 2,
    }

    settings = read_settings(Settings, given | {"made": 9, "door": 80}, made=7)

    assert (settings.name, settings.words, settings.ports) == ("oolong", ("a",), frozenset({1}))
    assert (settings.env, settings.folder, settings.seconds) == ({"A": "b"}, Path("/x"), 2)
    assert (settings.made, settings.door) == (7, ":80")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("tea_name", "", "must be a text that is not empty, not ''"),
        ("note", 5, "must be a text, not 5"),
        ("count", 0, "must be a whole number from 1 on, not 0"),
        ("count", True, "must be a whole number from 1 on, not True"),
        ("count", 1.5, "must be a whole number from 1 on, not 1.5"),
        ("seconds", 0, "must be a number above 0 and up to 60, not 0"),
        ("seconds", float("nan"), "must be a number above 0 and up to 60, not nan"),
        ("share", float("inf"), "must be a number, not inf"),
        ("level", 10, "must be a whole number up to 9, not 10"),
        ("strict", 1, "must be true or false, not 1"),
        ("words", "a", "must be a list of texts that are not empty, not 'a'"),
        ("words", [""], "must be a list of texts that are not empty, not ['']"),
        ("ports", [0], "must be a list of whole numbers from 1 to 65535, not [0]"),
        ("env", {"A": 1}, "must be an object of names and texts, not {'A': 1}"),
        ("agent", 5, "must be the name of an agent, not 5"),
        ("door", 22, "has 22, which is for shells: name another port"),
    ],
)
def test_an_error_names_the_setting_and_what_it_must_be(key: str, value: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(Settings, {key: value})

    assert str(caught.value) == f"config[{key!r}] {problem}"
    assert caught.value.field == key


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(settings_schema(Settings))), JSON)
def test_whatever_is_configured_is_read_or_refused(key: str, value: Any) -> None:
    with suppress(ConfigError):
        assert isinstance(read_settings(Settings, {key: value}), Settings)


def test_a_default_that_could_be_changed_is_refused() -> None:
    with pytest.raises(TypeError, match="mutable"):
        setting([], "A list.")


def test_a_type_that_json_does_not_have_must_name_what_it_reads() -> None:
    @dataclass(frozen=True)
    class Wrong:
        folder: Path = setting("x", "A folder.")

    with pytest.raises(TypeError, match="the setting 'folder' is Path: name the JSON that it reads"):
        settings_schema(Wrong)


def test_annotations_that_are_types_are_understood_too() -> None:
    """A module without `from __future__ import annotations` has types where others have texts."""
    made = make_dataclass(
        "Made",
        [
            ("words", tuple[str, ...], setting((), "Words.")),
            ("agent", str | None, setting(None, "An agent.")),
            ("env", abc.Mapping[str, str], setting({}, "Variables.")),
            ("count", int, setting(3, "A count.")),
        ],
        frozen=True,
    )

    assert [one["type"] for one in settings_schema(made).values()] == ["array", "string", "object", "integer"]
