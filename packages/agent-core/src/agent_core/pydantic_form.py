"""What pydantic, and so FastAPI, makes of our values wherever they stand: their dict form.

pydantic is not needed here: whoever asks for these has it.
"""

from __future__ import annotations

from typing import Any


def pydantic_schema(cls: Any, _source: object, _handler: object) -> Any:
    """Return how pydantic treats a class with a dict form: `__get_pydantic_core_schema__` of that class."""
    from pydantic_core import core_schema

    def read(value: Any) -> Any:
        return value if isinstance(value, cls) else cls.from_dict(value)

    form = core_schema.plain_serializer_function_ser_schema(
        lambda value: value.to_dict(), return_schema=core_schema.any_schema()
    )
    return core_schema.no_info_plain_validator_function(read, serialization=form)


def json_schema(cls: Any, _schema: object, _handler: object) -> dict[str, Any]:
    """Return how the description of an API names it: `__get_pydantic_json_schema__` of that class."""
    return {"type": "object", "title": cls.__name__}


class ByDictForm:
    """The serializer that pydantic looks for on values of no declared type; made when it first asks."""

    def __get__(self, value: object, owner: type) -> Any:
        from pydantic_core import SchemaSerializer

        return SchemaSerializer(pydantic_schema(owner, owner, None))
