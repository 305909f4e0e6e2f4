"""A plugin's settings: one frozen dataclass gives their JSON schema, their defaults and their reader.

>>> @dataclass(frozen=True, slots=True, kw_only=True)
... class Settings:
...     bash: str = setting("bash", "The bash that runs commands.", key="shell_bash")
...     timeout: float = setting(120.0, "Seconds for a command.", key="shell_timeout", above=0)
>>> settings_schema(Settings)["shell_timeout"]["default"]
120.0
>>> read_settings(Settings, {"shell_timeout": 5}).timeout
5

The annotation says what JSON is expected: `str`, `int`, `float`, `bool`, `tuple[str, ...]`,
`frozenset[int]`, `Mapping[str, str]`, and each of them with `| None`. A field of any other type names the
JSON it is made from (`reads`) and how (`convert`). A setting that is missing or null has its default. A
field without `setting()` is not a setting: nobody can write it into a configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from agent_core import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")
_KEY = "agent_plugin_kit.setting"
_UNLIMITED = float("inf")
_KINDS = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int, ...]": tuple[int, ...],
    "frozenset[str]": frozenset[str],
    "frozenset[int]": frozenset[int],
    "Mapping[str, str]": Mapping[str, str],
}
_OTHER_WORDS: dict[object, str] = {bool: "true or false", Mapping[str, str]: "an object of names and texts"}
_PRIMITIVES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def setting(
    default: Any,
    description: str,
    *,
    key: str | None = None,
    reads: Any = None,
    convert: Callable[[Any], Any] | None = None,
    says: str | None = None,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    empty: bool = False,
    pattern: str | None = None,
    shown_default: Any = MISSING,
) -> Any:
    """Declare a field of a dataclass as a setting.

    Args:
        default: What it is where the configuration says nothing; None for "not set". It is converted as
            well, each time anew; an empty `{}` is fine.
        description: What it does, for the people who set it. Ends with a full stop.
        key: Its name in the configuration, if that is not the field's.
        reads: The type of the JSON, if it is not the annotation.
        convert: Makes the field's value of the JSON; a `ValueError` says what is wrong, such as
            "is not a network".
        says: What a value must be, for an error, if the type does not say enough: "a folder's path".
        at_least: The lowest number; of a list, of each item.
        above: What a number must exceed.
        at_most: The highest number.
        empty: Whether an empty text may be given; in a list too.
        pattern: What each text must match, as in JSON Schema. Only the schema has it: a host checks that.
        shown_default: The default that the schema names, if it is not *default*.
    """
    if isinstance(default, (list, set)) or (isinstance(default, dict) and default):
        raise TypeError("the default of a setting must not be mutable: use a tuple or a frozenset")
    about = _Declared(
        key,
        default,
        description,
        reads,
        convert,
        says,
        at_least,
        above,
        at_most,
        empty,
        pattern,
        shown_default,
    )
    if default is None or (convert is None and not isinstance(default, dict)):
        return field(default=default, metadata={_KEY: about})
    return field(default_factory=about.make_default, metadata={_KEY: about})


def settings_schema(settings: type[DataclassInstance]) -> dict[str, Any]:
    """Return the JSON schema of each setting by its key, as `get_config_schema` returns it."""
    return {one.key: dict(one.schema) for one in _declarations(settings)}


def section_schema(settings: type[DataclassInstance]) -> dict[str, Any]:
    """Return the JSON schema of a section that has these settings and no others, for `config_schemas`."""
    return {"type": "object", "additionalProperties": False, "properties": settings_schema(settings)}


def read_settings(settings: type[S], config: Mapping[str, Any], **others: Any) -> S:
    """Return the settings of a configuration.

    Args:
        settings: The dataclass.
        config: What people and programs configured; keys that are not settings are ignored.
        others: Fields that are not settings.

    Raises:
        ConfigError: If one cannot be used; `field` names it, and the text says what it must be.
    """
    values = {one.field: one.read(config.get(one.key)) for one in _declarations(settings)}
    return settings(**values, **others)


@dataclass(frozen=True, slots=True)
class _Declared:
    """What `setting()` was called with."""

    key: str | None
    default: Any
    description: str
    reads: Any
    convert: Callable[[Any], Any] | None
    says: str | None
    at_least: float | None
    above: float | None
    at_most: float | None
    empty: bool
    pattern: str | None
    shown_default: Any

    def make_default(self) -> Any:
        return dict(self.default) if self.convert is None else self.convert(self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """A setting: its place in the dataclass, its schema, and how its JSON is read."""

    field: str
    key: str
    kind: Any
    default: Any
    declared: _Declared
    schema: dict[str, Any]

    def read(self, value: Any) -> Any:
        if value is None:
            value = self.default
            if value is None:
                return None
        elif not _fits(self.kind, value, self.declared):
            raise ConfigError(
                f"config[{self.key!r}] must be {self.declared.says or _words(self.kind, self.declared)}, "
                f"not {value!r:.80}",
                field=self.key,
            )
        if self.declared.convert is None:
            return _frozen(self.kind, value)
        try:
            return self.declared.convert(value)
        except ValueError as error:
            raise ConfigError(f"config[{self.key!r}] {error}", field=self.key) from None


@lru_cache(maxsize=64)
def _declarations(settings: type[DataclassInstance]) -> tuple[_Setting, ...]:
    return tuple(_declaration(one) for one in fields(settings) if _KEY in one.metadata)


def _declaration(one: Field[Any]) -> _Setting:
    declared: _Declared = one.metadata[_KEY]
    kind = declared.reads or _KINDS.get(_annotation(one))
    if kind is None:
        raise TypeError(f"the setting {one.name!r} is {one.type}: name the JSON that it reads with reads=")
    return _Setting(
        field=one.name,
        key=declared.key or one.name,
        kind=kind,
        default=declared.default,
        declared=declared,
        schema=_schema(kind, declared),
    )


def _annotation(one: Field[Any]) -> str:
    """Return a field's annotation as text.

    Names are not looked up: a module may import its types for type checkers only.
    """
    if isinstance(one.type, str):
        text = one.type
    else:  # a module without `from __future__ import annotations`
        text = str(one.type) if get_args(one.type) else one.type.__name__
    return text.removesuffix(" | None").removeprefix("collections.abc.")


def _schema(kind: Any, declared: _Declared) -> dict[str, Any]:
    schema = _type_schema(kind, declared)
    shown = declared.default if declared.shown_default is MISSING else declared.shown_default
    if shown is not None:
        schema["default"] = _json(shown)
    schema["description"] = declared.description
    return schema


def _type_schema(kind: Any, declared: _Declared) -> dict[str, Any]:
    item = _item_of(kind)
    if item is not None:
        return {"type": "array", "items": _type_schema(item, declared)}
    if get_origin(kind) is Mapping:
        return {"type": "object"}
    schema: dict[str, Any] = {"type": _PRIMITIVES[kind]}
    limits: dict[str, float | str | None]
    if kind is str:
        limits = {"minLength": None if declared.empty else 1, "pattern": declared.pattern}
    else:
        limits = {
            "minimum": declared.at_least,
            "exclusiveMinimum": declared.above,
            "maximum": declared.at_most,
        }
    return schema | {name: limit for name, limit in limits.items() if limit is not None}


def _item_of(kind: Any) -> Any:
    """Return the type of a list's items; None for what is not a list."""
    return get_args(kind)[0] if get_origin(kind) in (tuple, frozenset) else None


def _json(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _fits(kind: Any, value: Any, declared: _Declared) -> bool:
    item = _item_of(kind)
    if item is not None:
        return isinstance(value, (list, tuple)) and all(_fits(item, one, declared) for one in value)
    if get_origin(kind) is Mapping:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and name and isinstance(text, str) for name, text in value.items()
        )
    if kind is bool:
        return isinstance(value, bool)
    if kind is str:
        return isinstance(value, str) and (declared.empty or bool(value))
    numbers = (int,) if kind is int else (int, float)
    return isinstance(value, numbers) and not isinstance(value, bool) and _in_range(value, declared)


def _in_range(value: float, declared: _Declared) -> bool:
    if declared.above is not None and not value > declared.above:
        return False
    if declared.at_least is not None and not value >= declared.at_least:
        return False
    return value <= declared.at_most if declared.at_most is not None else -_UNLIMITED < value < _UNLIMITED


def _words(kind: Any, declared: _Declared, plural: str = "") -> str:
    """Return what a value must be, as it stands behind "must be" in an error."""
    item = _item_of(kind)
    if item is not None:
        return f"a list of {_words(item, declared, 's').removeprefix('a ')}"
    if kind in _OTHER_WORDS:
        return _OTHER_WORDS[kind]
    if kind is str and not declared.empty:
        return f"a text{plural} that {'are' if plural else 'is'} not empty"
    if kind is str:
        return f"a text{plural}"
    return f"{'a whole number' if kind is int else 'a number'}{plural}{_range(declared)}"


def _range(declared: _Declared) -> str:
    low, high = declared.at_least, declared.at_most
    if declared.above is not None:
        return f" above {declared.above:g}" + ("" if high is None else f" and up to {high:g}")
    if low is not None:
        return f" from {low} on" if high is None else f" from {low} to {high}"
    return "" if high is None else f" up to {high}"


def _frozen(kind: Any, value: Any) -> Any:
    """Return a value that fits as the field keeps it: lists as tuples or sets, objects as plain ones."""
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        return origin(value)
    return dict(value) if origin is Mapping else value
