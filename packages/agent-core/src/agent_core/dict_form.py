"""Values that other libraries take in their dict form, wherever they find them: pydantic, FastAPI, `dict()`.

FastAPI asks pydantic about values whose type a route declares, and its own encoder about all others. That
one takes dataclasses apart, field by field, which for a session would be another form, with caches in it.
So these classes are dataclasses for us alone: they hide it (`whole`), and `dict(value)` is what is found.

pydantic is not needed here: whoever asks for its part has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import KeysView
    from dataclasses import Field, replace as replace  # noqa: PLC0414 - others import it from here

    from agent_core.frozen import JsonObject

T = TypeVar("T")


class _Serializer:
    """The serializer that pydantic looks for on values of no declared type; made when it first asks."""

    def __get__(self, value: object, owner: Any) -> Any:
        from pydantic_core import SchemaSerializer

        return SchemaSerializer(owner.__get_pydantic_core_schema__(owner, None))


class DictForm:
    """A base for classes that have `to_dict`; those with `from_dict` are read from it, too."""

    __slots__ = ()

    __pydantic_serializer__ = _Serializer()
    __iter__ = None  # with `[]` alone, Python would try numbers: "for message in session" is a mistake

    def to_dict(self) -> JsonObject:
        """Return the dict form as plain data that the caller may change."""
        raise NotImplementedError

    def keys(self) -> KeysView[str]:
        """Return the names in the dict form; with `[]`, this is what `dict(value)` needs."""
        return self.to_dict().keys()

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        from pydantic_core import core_schema

        def read(value: Any) -> Any:
            if isinstance(value, cls):
                return value
            if not hasattr(cls, "from_dict"):
                raise ValueError(f"must be a {cls.__name__}, not a {type(value).__name__}")
            return cls.from_dict(value)

        form = core_schema.plain_serializer_function_ser_schema(_chosen, info_arg=True)
        return core_schema.no_info_plain_validator_function(read, serialization=form)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        return {"type": "object", "title": cls.__name__}


def _chosen(value: DictForm, asked: Any) -> Any:
    """Return the dict form with what pydantic is asked for, such as `response_model_exclude` of a route."""
    data = value.to_dict()
    if asked.include is None and asked.exclude is None:
        return data
    from pydantic_core import SchemaSerializer, core_schema

    chosen = SchemaSerializer(core_schema.any_schema())
    return chosen.to_python(data, include=asked.include, exclude=asked.exclude)


class _OnInstances:
    """The fields of a dataclass, found on its instances and not on the class, where others look."""

    def __init__(self, fields: dict[str, Field[Any]]) -> None:
        self._fields = fields

    def __get__(self, value: object | None, owner: type) -> dict[str, Field[Any]]:
        if value is None:
            raise AttributeError(name="__dataclass_fields__", obj=owner)
        return self._fields


def whole(cls: type[T]) -> type[T]:
    """Hide that a class is a dataclass, so that nobody takes its values apart (`dataclasses.asdict`)."""
    cls.__dataclass_fields__ = _OnInstances(cls.__dataclass_fields__)  # type: ignore[attr-defined]
    return cls


if not TYPE_CHECKING:  # type checkers know what `dataclasses.replace` does

    def replace(value: T, **changes: Any) -> T:
        """Do what `dataclasses.replace` does, for values that hide that they are dataclasses too."""
        kept = {name: getattr(value, name) for name, one in value.__dataclass_fields__.items() if one.init}
        return type(value)(**{**kept, **changes})
