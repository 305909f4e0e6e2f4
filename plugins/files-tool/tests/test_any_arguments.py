"""Whatever a model sends, there is a result, a line and something to see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from files_tool.schemas import SCHEMAS

if TYPE_CHECKING:
    from conftest import Files

SPECS = {schema["function"]["name"]: schema["function"]["parameters"] for schema in SCHEMAS}
WORDS = [
    *("a.txt", "d", "d/b.txt", "..", "/", "~", "*", "**", "[", "(", "\\", "\n", "\0", "\r\n", "--- ", "+++ "),
    *("@@", "-", "+", " ", "/dev/null", "one", "{", "}", ",", "|", "?", "$", "^", "\ud800", "\udc80", "é"),
    *("\ufeff", "9" * 30),
]
TEXTS = st.one_of(st.lists(st.sampled_from(WORDS), max_size=8).map("".join), st.text(max_size=20))


def value_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema["type"] == "string":
        return TEXTS
    if schema["type"] == "boolean":
        return st.booleans()
    return st.integers(schema["minimum"], schema.get("maximum", 10**12))


def arguments_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    properties = {key: value_of(schema) for key, schema in SPECS[name]["properties"].items()}
    required = {key: properties.pop(key) for key in SPECS[name]["required"]}
    return st.fixed_dictionaries(required, optional=properties)


@pytest.mark.parametrize("name", SPECS)
@given(data=st.data())
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_arguments_give_a_result(files: Files, name: str, data: st.DataObject) -> None:
    files.put("a.txt", "one\ntwo\n")
    files.put("d/b.txt", "one\n")
    outside = sorted(path.name for path in files.root.parent.iterdir())
    arguments = data.draw(arguments_of(name))

    line = files.tool.format_tool_call_preview(name, arguments)
    display = files.display(name, **arguments)
    subjects = files.tool.permission_subjects(name, arguments)
    files.tool.permission_suggestions(name, arguments)
    result = files.run(name, **arguments)

    assert len(line.splitlines()) == 1
    assert isinstance(subjects, list)
    assert result["success"] in (True, False)
    assert json.dumps([line, display, result], ensure_ascii=False).encode()  # no half of a character in it
    assert {*outside, "journal"} >= {path.name for path in files.root.parent.iterdir()}
