"""The declarations of a document: its sections, and what stands in them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_runtime import fields
from agent_runtime.errors import nearest
from agent_runtime.files.problems import Wrong
from agent_runtime.files.reader import Reader
from agent_runtime.files.values import unusable
from agent_runtime.files.ways import Way, spell
from agent_runtime.policies.conditions import read_condition
from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_runtime.files.documents import Document

T = TypeVar("T")


def entries(document: Document) -> list[tuple[str, AgentSpec | ModelSpec, int | None]]:
    """Return every declaration with its kind and place; of several problems the topmost is raised."""
    for way, problem in unusable(document.data):
        raise Wrong(document.locate(way), f"{spell(way)} {problem}".lstrip(), spell(way) or None)
    found: list[tuple[str, AgentSpec | ModelSpec, int | None]] = []
    problems: list[Wrong] = []
    for kind, way, item in _items(document, problems):
        try:
            spec = _READERS[kind](Reader(document, way, item))
        except Wrong as wrong:
            problems.append(wrong)
        else:
            found.append((kind, spec, document.locate(way)))
    if problems:
        raise min(problems, key=lambda wrong: wrong.at or 0)
    return found


def _items(document: Document, problems: list[Wrong]) -> Iterator[tuple[str, Way, Any]]:
    """Find what is declared; a section that cannot be read joins the problems."""
    if document.data is None:  # YAML with nothing but comments
        return
    if not isinstance(document.data, dict):
        raise Wrong(document.locate(()), "must hold a mapping with agents and models")
    for kind, section in document.data.items():
        if kind not in _READERS:
            problem = f"there is no section {kind!r}: {nearest(kind, _READERS)}"
            problems.append(Wrong(document.locate((kind,)), problem, kind))
        elif not isinstance(section, (dict, list)):
            problem = f"{kind} must be a mapping by id, or a list, not {type(section).__name__}"
            problems.append(Wrong(document.locate((kind,)), problem, kind))
        else:
            for key, item in section.items() if isinstance(section, dict) else enumerate(section):
                yield kind, (kind, key), item


def _read_agent(reader: Reader) -> AgentSpec:
    """Read an agent: first its parts, each by itself, so that the place of each is known, then the rest."""
    data = reader.fields()
    if isinstance(data, dict):
        if data.get("context_policy") is not None:
            data["context_policy"] = reader.read(partial(_read_policy, ContextPolicy), "context_policy")
        if isinstance(data.get("stop_conditions"), list):
            places = range(len(data["stop_conditions"]))
            data["stop_conditions"] = [
                reader.read(read_condition, "stop_conditions", place) for place in places
            ]
    agent = reader.read(lambda _where, _item: AgentSpec.from_dict(data))
    if "retry" in agent.sections:  # kept as it is; whoever resolves the agent reads it again
        reader.read(partial(_read_policy, RetryPolicy), "sections", "retry")
    return agent


def _read_model(reader: Reader) -> ModelSpec:
    data = reader.fields()
    return reader.read(lambda _where, _item: ModelSpec.from_dict(data))


def _read_policy(cls: type[T], where: str, data: Any) -> T:
    return fields.read(cls, data, where=where)


_READERS: dict[str, Callable[[Reader], AgentSpec | ModelSpec]] = {
    "agents": _read_agent,
    "models": _read_model,
}
