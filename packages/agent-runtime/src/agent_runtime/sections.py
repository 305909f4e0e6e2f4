"""The sections of an agent: who claims which, and whether what stands there fits.

A section belongs to a plugin that declares a schema for it, to a core plugin of that id (its settings),
or to the runtime itself: `config`, `retry`, `tools`. One that nobody claims is most likely a typing
mistake, so it is a warning with the nearest name; it may also belong to a layer above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields as dataclass_fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent_core import ConfigError
from agent_core.config import read_config
from agent_core.encoding import canonical, parse
from agent_core.errors import nearest
from agent_core.frozen import freeze, thaw
from agent_core.json_schema import compile_schema
from agent_runtime import fields
from agent_runtime.errors import EnvBuildError, InvalidPluginConfig, SpecError
from agent_runtime.specs import AgentSpec, RetryPolicy, ToolSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_runtime.registries import PluginEntry

T = TypeVar("T")
RUNTIME_SECTIONS = ("config", "retry", "tools")
_NOT_FOR_PLUGINS = (*RUNTIME_SECTIONS, "permissions", "results")
_RUNTIME = "runtime"


class Claim(NamedTuple):
    """A section, the plugin that it belongs to, and the JSON Schema that it must fit."""

    plugin: str
    section: str
    schema: Mapping[str, Any]


def retry_policy(spec: AgentSpec) -> RetryPolicy | None:
    """Return the agent's retry policy, or None if it has none or one that never does anything."""
    if "retry" not in spec.sections:
        return None
    policy = _read(spec, "retry", lambda data: fields.read(RetryPolicy, data, where="retry"), stage="lookup")
    return policy if policy.does_something else None


def tool_settings(spec: AgentSpec) -> ToolSettings:
    """Return how the agent's tools run."""
    if "tools" not in spec.sections:
        return ToolSettings()
    return _read(spec, "tools", lambda data: fields.read(ToolSettings, data, where="tools"))


def core_settings(spec: AgentSpec, plugins: Iterable[PluginEntry]) -> dict[str, Any]:
    """Return the settings that the sections hold for the core and its plugins.

    The section of a plugin stays one, under its name, so that settings of two plugins never meet: the core
    shows each plugin its own.

    Raises:
        InvalidPluginConfig: If one is of the wrong kind, or unknown.
    """
    for entry in plugins:
        if entry.id in spec.sections:
            # A plugin that cannot say which settings it has: the core's resolution warns of it.
            known = entry.wrapper.get_config_schema([])
            _read(spec, entry.id, partial(_check_keys, known), entry.id)
    settings = {name: thaw(value) for name, value in spec.sections.items() if name not in _NOT_FOR_PLUGINS}
    return settings | _read(spec, "config", _config)


def _config(data: object) -> dict[str, Any]:
    settings: dict[str, Any] = thaw(read_config(fields.mapping("config", data)))
    return settings


def read_claims(spec: AgentSpec, plugins: Sequence[PluginEntry]) -> tuple[Claim, ...]:
    """Return the sections that plugins declare a schema for; of no interest if there are no sections.

    Raises:
        EnvBuildError: If a plugin cannot say.
    """
    return tuple(claim for entry in plugins for claim in _claims(spec.id, entry)) if spec.sections else ()


def check_sections(spec: AgentSpec, plugins: Sequence[PluginEntry], claims: Sequence[Claim]) -> list[str]:
    """Check every section that a plugin declares a schema for, and return warnings for unclaimed ones.

    Raises:
        InvalidPluginConfig: If a section does not fit.
        EnvBuildError: If a plugin's schema is not a schema.
    """
    for claim in claims:
        if claim.section in spec.sections:
            _check(spec, claim)
    known = {*RUNTIME_SECTIONS, "permissions", "results", *(claim.section for claim in claims)}
    known |= {entry.id for entry in plugins if entry.wrapper.has("get_config_schema")}
    return [
        f"section {name!r} of agent {spec.id!r} belongs to no plugin: {nearest(name, sorted(known))}"
        for name in spec.sections
        if name not in known
    ]


def _claims(agent_id: str, entry: PluginEntry) -> list[Claim]:
    declare = getattr(entry.plugin, "config_schemas", None)
    if declare is None:
        return []
    try:
        declared = declare()
        several = isinstance(declared, Iterable) and not isinstance(declared, (str, Mapping))
        pairs = list(declared) if several else [declared]
    except Exception as error:
        raise EnvBuildError(agent_id, entry.id, f"config_schemas failed: {error}") from error
    for pair in pairs:
        if not _is_claim(pair):
            wrong = f"config_schemas must return a list of (section, JSON Schema), not {declared!r:.80}"
            raise EnvBuildError(agent_id, entry.id, wrong)
    # A copy: a plugin may keep the schema and change it, and then it is to be checked again.
    return [Claim(entry.id, section, freeze(schema)) for section, schema in pairs]


def _is_claim(pair: object) -> bool:
    """Say whether something is a pair of a section and a schema; a text of two letters unpacks like one."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:  # noqa: PLR2004 - a pair
        return False
    section, schema = pair
    return isinstance(section, str) and bool(section) and isinstance(schema, (Mapping, bool))


def _check(spec: AgentSpec, claim: Claim) -> None:
    try:
        validator = _validator(canonical(claim.schema))
    except (ValueError, TypeError) as error:
        wrong = f"its schema for section {claim.section!r} is not valid: {error}"
        raise EnvBuildError(spec.id, claim.plugin, wrong) from error
    problem = next(iter(validator.iter_errors(thaw(spec.sections[claim.section]))), None)
    if problem is not None:
        path = ".".join(str(part) for part in problem.instance_path)
        place = f"{claim.section}.{path}" if path else claim.section
        raise InvalidPluginConfig(spec.id, claim.plugin, claim.section, f"{place}: {problem.message}")


@lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    return compile_schema(parse(schema))


def _read(
    spec: AgentSpec,
    section: str,
    read: Callable[[object], T],
    plugin: str = _RUNTIME,
    stage: str | None = None,
) -> T:
    try:
        return read(spec.sections.get(section, {}))
    except ConfigError as error:
        raise InvalidPluginConfig(spec.id, plugin, section, str(error), stage=stage) from error


def _check_keys(known: Mapping[str, Any], data: object) -> None:
    """Refuse what is not a setting of a core plugin; one that describes none may have any."""
    for key in fields.mapping("section", data):
        if known and key not in known:
            raise SpecError(f"there is no setting {key!r}: {nearest(key, known)}", field=key)


SECTION_FIELDS = {
    "retry": tuple(field.name for field in dataclass_fields(RetryPolicy)),
    "tools": tuple(field.name for field in dataclass_fields(ToolSettings)),
}
"""The fields of the runtime's own sections, for documentation and completion."""
