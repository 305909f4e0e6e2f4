"""`@tool` as an author meets it."""

import asyncio
import functools
import inspect
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from agent_core.errors import RegistrationError
from agent_core.frozen import FrozenDict, FrozenValueError
from agent_core.functions import FunctionTool, tool


@tool
def search(query: str, limit: int = 5) -> list[str]:
    """Search the documents."""
    return [query] * limit


def test_a_tool_is_still_the_function() -> None:
    assert search("x", limit=2) == ["x", "x"]
    assert search.__name__ == "search"
    assert search.__qualname__ == "search"
    assert search.__module__ == __name__
    assert search.__doc__ == "Search the documents."
    assert str(inspect.signature(search)) == "(query: str, limit: int = 5) -> list[str]"
    assert repr(search) == f"<tool 'search' of {__name__}.search>"


def test_a_tool_is_a_plugin() -> None:
    assert search.name == "search"
    assert search.version == "1"
    assert (search.timeout, search.parallel, search.idempotent, search.tags) == (None, True, False, ())
    assert search.init({}) == {}
    assert search.execute_tool("search", {"query": "x", "limit": 1}, {}) == {"success": True, "result": ["x"]}


def test_options_are_kept() -> None:
    @tool(name="find-it", description="Find.", timeout=30.0, parallel=True, idempotent=True, tags=["web"])
    def find() -> None: ...

    assert (find.name, find.description, find.__name__) == ("find-it", "Find.", "find")
    assert (find.timeout, find.parallel, find.idempotent, find.tags) == (30.0, True, True, ("web",))
    assert tool(len, name="count").name == "count"


def test_a_tool_of_a_tool_is_the_tool() -> None:
    assert tool(search) is search
    with pytest.raises(RegistrationError, match="it is a tool already"):
        tool(search, name="other")


def test_the_schema_is_an_openai_function_and_the_same_frozen_object_every_time() -> None:
    schemas = search.get_tool_schemas({})

    assert schemas == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Search the documents.",
                "parameters": {
                    "type": "object",
                    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}},
                    "required": ["query"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert search.get_tool_schemas({"other": "state"}) is schemas
    assert isinstance(schemas[0], FrozenDict)
    with pytest.raises(FrozenValueError):
        schemas[0]["function"]["parameters"]["properties"]["more"] = {}


# Names


@pytest.mark.parametrize("name", ["", "two words", "ümlaut", "a.b", "x" * 65, "<lambda>", "a\n"])
def test_a_name_that_providers_refuse_is_refused_at_once(name: str) -> None:
    with pytest.raises(RegistrationError, match="choose one with name="):
        tool(name=name)(lambda: None)


@pytest.mark.parametrize("name", ["a", "x" * 64, "snake_case", "kebab-case", "_private", "2nd", "CamelCase"])
def test_a_name_that_providers_accept_is_accepted(name: str) -> None:
    assert tool(name=name)(lambda: None).name == name


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(RegistrationError, match="<lambda>"):
        tool(lambda: None)


@pytest.mark.parametrize("thing", [5, "text", int, FunctionTool])
def test_what_is_no_function_is_refused(thing: Any) -> None:
    with pytest.raises(RegistrationError, match="is not a function"):
        tool(thing)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_timeout_is_above_zero(timeout: float) -> None:
    with pytest.raises(RegistrationError, match="timeout"):
        tool(search.__wrapped__, timeout=timeout)


# Everything that can be called


class Shelf:
    def __init__(self, label: str) -> None:
        self.label = label

    def find(self, title: str) -> str:
        """Find a book."""
        return f"{self.label}: {title}"

    @tool(timeout=3)
    def lend(self, title: str) -> str:
        """Lend a book."""
        return f"{title} from {self.label}"

    @classmethod
    def count(cls, limit: int) -> str:
        return f"{cls.__name__} {limit}"

    @tool
    @staticmethod
    def rules(topic: str) -> str:
        return topic


class HTTPPageFetcher:
    """Fetch a page."""

    def __call__(self, url: str) -> str:
        return url


def result_of(made: FunctionTool[..., Any], **arguments: Any) -> Any:
    answer = made.execute_tool(made.name, arguments, {})
    assert isinstance(answer, dict)
    return answer["result"]


def properties_of(made: FunctionTool[..., Any]) -> list[str]:
    return list(made.get_tool_schemas()[0]["function"]["parameters"]["properties"])


def test_a_bound_method_is_a_tool_without_self() -> None:
    find = tool(Shelf("A").find)

    assert (find.name, find.description) == ("find", "Find a book.")
    assert properties_of(find) == ["title"]
    assert result_of(find, title="T") == "A: T"
    assert result_of(tool(Shelf.count), limit=2) == "Shelf 2"


def test_a_method_decorated_in_its_class_is_a_tool_of_each_instance() -> None:
    one, two = Shelf("A").lend, Shelf("B").lend

    assert one("T") == "T from A"
    assert result_of(two, title="T") == "T from B"
    assert (one.name, one.timeout, one.description) == ("lend", 3, "Lend a book.")
    assert one.get_tool_schemas() is two.get_tool_schemas()
    assert isinstance(Shelf.lend, FunctionTool)


def test_a_method_without_its_object_is_refused_with_the_next_step() -> None:
    with pytest.raises(RegistrationError, match=r"tool\(instance.method\)"):
        tool(Shelf.find).get_tool_schemas()
    with pytest.raises(RegistrationError, match=r"tool\(instance.method\)"):
        Shelf.lend.get_tool_schemas()


def test_a_static_method_is_a_tool() -> None:
    assert result_of(Shelf("A").rules, topic="x") == "x"
    assert result_of(tool(Shelf.rules), topic="x") == "x"


def test_a_tool_kept_on_a_class_is_not_bound_twice() -> None:
    class Holder:
        kept = tool(Shelf("A").find)
        called = tool(HTTPPageFetcher())

    assert Holder().kept is Holder.kept
    assert Holder().called("u") == "u"


def test_an_object_that_can_be_called_is_named_after_its_class() -> None:
    fetch = tool(HTTPPageFetcher())

    assert (fetch.name, fetch.description) == ("http_page_fetcher", "Fetch a page.")
    assert properties_of(fetch) == ["url"]
    assert result_of(fetch, url="u") == "u"
    assert tool(partial(HTTPPageFetcher(), url="u")).name == "http_page_fetcher"


def test_a_partial_of_a_tool_is_a_tool() -> None:
    few = tool(partial(search, limit=1))

    assert properties_of(few) == ["query"]
    assert result_of(few, query="x") == ["x"]


def test_a_wrapped_function_keeps_its_signature_and_the_names_of_its_module() -> None:
    @functools.wraps(search.__wrapped__)
    def logged(*args: Any, **kwargs: Any) -> Any:
        return search(*args, **kwargs)

    assert properties_of(tool(logged)) == ["query", "limit"]
    assert result_of(tool(functools.lru_cache(search.__wrapped__)), query="x", limit=1) == ["x"]


def test_a_built_in_function_is_a_tool() -> None:
    assert result_of(tool(len), obj=[1, 2]) == 2
    with pytest.raises(RegistrationError, match="signature cannot be read"):
        tool(max).get_tool_schemas()


# Laziness


def test_decorating_reads_no_annotation() -> None:
    @tool
    def later(value: "DefinedFurtherDown") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point

    assert later.name == "later"
    with pytest.raises(RegistrationError, match=r"'later'.*'value'.*'DefinedFurtherDown'"):
        later.get_tool_schemas()


def test_importing_and_decorating_loads_nothing_that_is_slow() -> None:
    script = """
import sys
from agent_core.functions import tool
@tool
def search(query: str) -> str: return query
slow = {"asyncio", "pydantic", "agent_core.functions.signature", "agent_core.functions.annotations"}
assert not slow & set(sys.modules), slow & set(sys.modules)
search.get_tool_schemas()
search.execute_tool("search", {"query": "x"})
assert not {"asyncio", "pydantic", "decimal", "pathlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-S", "-c", _with_paths(script)], check=True)


def _with_paths(script: str) -> str:
    return f"import sys; sys.path[:] = {sys.path!r}\n{script}"


def test_two_threads_that_ask_first_get_the_same_schema() -> None:
    barrier = threading.Barrier(8)
    made = tool(search.__wrapped__)
    seen: list[Any] = []

    def ask() -> None:
        barrier.wait()
        seen.append(made.get_tool_schemas())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(seen) == 8
    assert all(schemas is seen[0] for schemas in seen)


# Running


def test_what_the_function_raises_is_not_caught() -> None:
    @tool
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        fail.execute_tool("fail", {})


def test_an_async_function_gives_an_awaitable_of_its_result() -> None:
    @tool
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    async def run() -> Any:
        answer = double.execute_tool("double", {"number": 2}, {})
        assert not isinstance(answer, dict)
        return await answer, await double(3)

    assert asyncio.run(run()) == ({"success": True, "result": 4}, 6)
    assert double.streams is False


class Drawer:
    @tool
    def find(self, title: str) -> str:
        """Find a book."""
        return title

    def count(self) -> int:
        """Count the books."""
        return 0


def test_two_looks_at_one_tool_are_equal() -> None:
    drawer = Drawer()

    assert drawer.find is not drawer.find
    assert drawer.find == drawer.find
    assert hash(drawer.find) == hash(drawer.find)
    assert tool(drawer.count) == tool(drawer.count)
    assert tool(search.__wrapped__, timeout=3) == tool(search.__wrapped__, timeout=3)


def test_tools_of_other_objects_functions_or_options_are_not() -> None:
    drawer = Drawer()

    assert drawer.find != Drawer().find
    assert drawer.find != Drawer.find
    assert tool(drawer.count) != tool(drawer.count, timeout=3)
    assert search != tool(search.__wrapped__, name="look")
    assert search != search.__wrapped__
