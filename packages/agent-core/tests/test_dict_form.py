"""Sessions as other libraries see them: one value with a dict form, and no dataclass."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import pytest
from pydantic import TypeAdapter

from agent_core import Message, Session
from agent_core.dict_form import replace

SESSION = Session("s", [Message("user", "Hello.")], {"kept": {"a": 1}}, {"later": True})


def test_dict_is_the_dict_form() -> None:
    assert dict(SESSION) == SESSION.to_dict()
    assert SESSION["session_id"] == "s"


def test_nobody_takes_a_session_apart() -> None:
    assert not dataclasses.is_dataclass(SESSION)
    assert not dataclasses.is_dataclass(Session)


def test_a_session_is_not_gone_through_by_mistake() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        list(SESSION)  # type: ignore[call-overload]


def test_replace_changes_the_fields_that_are_named() -> None:
    changed = replace(SESSION, session_id="t")

    assert (changed.session_id, SESSION.session_id) == ("t", "s")
    assert changed == Session("t", SESSION.messages, SESSION.metadata, SESSION.extra)


def test_copies_are_equal() -> None:
    assert copy.copy(SESSION) == SESSION
    assert pickle.loads(pickle.dumps(SESSION)) == SESSION


def test_pydantic_leaves_out_what_it_is_asked_to_leave_out() -> None:
    session = TypeAdapter(Session)

    assert session.dump_python(SESSION, include={"session_id"}) == {"session_id": "s"}
    assert "messages" not in session.dump_python(SESSION, exclude={"messages"})
    assert json.loads(session.dump_json(SESSION, include={"session_id"})) == {"session_id": "s"}


def test_pydantic_reads_what_it_wrote() -> None:
    sessions = TypeAdapter(list[Session])

    assert sessions.validate_json(sessions.dump_json([SESSION])) == [SESSION]
