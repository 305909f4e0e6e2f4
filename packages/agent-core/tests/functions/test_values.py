"""What the platform receives for the function's result."""

from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import pytest

from agent_core.frozen import freeze
from agent_core.functions import tool


class Color(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Odd(Enum):
    PAIR = (1, 2)


@dataclass
class Point:
    x: int
    color: Color


@dataclass
class Custom:
    secret: str

    def to_dict(self) -> dict[str, Any]:
        return {"shown": True}


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"when": datetime(2024, 1, 1, tzinfo=UTC)}


class Pair(NamedTuple):
    left: int
    right: Color


class Unknown:
    def __str__(self) -> str:
        return "something"


class Shouting(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.5, 1.5),
        (float("inf"), "inf"),
        ("text", "text"),
        (Shouting("text"), "text"),
        (Color.RED, "red"),
        (Word.YES, "yes"),
        (Odd.PAIR, [1, 2]),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00+00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (PurePosixPath("a/b"), "a/b"),
        ({3, 1, 2}, [1, 2, 3]),
        ({"a", 1, None}, ["a", 1, None]),
        (frozenset({Color.RED}), ["red"]),
        ((1, "a"), [1, "a"]),
        (deque([1]), [1]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "a", Color.RED: "b", None: "c"}, {"1": "a", "red": "b", "None": "c"}),
        (freeze({"a": [1]}), {"a": [1]}),
        (Point(1, Color.RED), {"x": 1, "color": "red"}),
        ([Point(1, Color.RED)], [{"x": 1, "color": "red"}]),
        (Pair(1, Color.RED), {"left": 1, "right": "red"}),
        (Custom("s"), {"shown": True}),
        (Model(), {"when": "2024-01-01T00:00:00+00:00"}),
        (b"\x00\xff", {"encoding": "base64", "data": "AP8="}),
        (bytearray(b"a"), {"encoding": "base64", "data": "YQ=="}),
        (Unknown(), "something"),
        (Point, str(Point)),
        (ValueError("no"), "no"),
    ],
)
def test_a_result_becomes_json(value: Any, expected: Any) -> None:
    @tool
    def give() -> Any:
        return value

    answer = give.execute_tool("give", {})

    assert isinstance(answer, dict)
    assert answer["success"] is True
    result = answer["result"]
    assert (
        sorted(result, key=str) == sorted(expected, key=str) if isinstance(value, set) else result == expected
    )
    orjson.dumps(answer)


def test_a_set_without_natural_order_still_has_one_order() -> None:
    @tool
    def give(values: list[Any]) -> Any:
        return set(values)

    one = give.execute_tool("give", {"values": ["a", 1, None]})
    two = give.execute_tool("give", {"values": [None, 1, "a"]})

    assert one == two


def test_a_plain_function_may_return_a_dict_that_mentions_success() -> None:
    @tool
    def give() -> dict[str, Any]:
        return {"success": False}

    assert give.execute_tool("give", {}) == {"success": True, "result": {"success": False}}
