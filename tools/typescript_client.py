"""Write the TypeScript client's operations from the description of the API: ``make client``.

One method for each operation, with the types of its parameters and of its answer. What is the same for all of
them (requests, problems, streams that resume) is written by hand, in transport.ts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DESCRIPTION = ROOT / "docs" / "reference" / "openapi.json"
TARGET = ROOT / "clients" / "typescript" / "src" / "operations.ts"
STREAMS = ("follow_session", "follow_all")
"""What transport.ts has by hand: the events as they come."""
_HEAD = """\
// Written by tools/typescript_client.py from docs/reference/openapi.json: change those, and run it again.

import { Transport, type Json } from "./transport";

"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_WORD = re.compile(r"[^A-Za-z0-9]+")


def main() -> None:
    """Write the file."""
    TARGET.write_text(generated(json.loads(DESCRIPTION.read_text(encoding="utf-8"))), encoding="utf-8")


def generated(described: dict[str, Any]) -> str:
    """Return the text of operations.ts."""
    schemas = described["components"]["schemas"]
    types = [_interface(name, schemas[name]) for name in sorted(schemas)]
    methods = []
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if operation["operationId"] not in STREAMS:
                methods.append(_method(method.upper(), path, operation))
    body = "\n".join(methods)
    return f"{_HEAD}{''.join(types)}export class Operations extends Transport {{\n{body}}}\n"


def _interface(name: str, schema: dict[str, Any]) -> str:
    about = f"/** {_comment(schema['description'])} */\n" if schema.get("description") else ""
    if "properties" not in schema:
        return f"{about}export type {name} = {_type(schema)};\n\n"
    required = set(schema.get("required", ()))
    lines = []
    for field, described in schema["properties"].items():
        if described.get("description"):
            lines.append(f"  /** {_comment(described['description'])} */")
        lines.append(f"  {_key(field)}{'' if field in required else '?'}: {_type(described)};")
    return f"{about}export interface {name} {{\n" + "\n".join(lines) + "\n}\n\n"


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a value that fits a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if values := [schema["const"]] if "const" in schema else schema.get("enum"):
        return " | ".join(json.dumps(value) for value in values)
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(one) for one in several))
    kind = schema.get("type")
    if kind == "array":
        items = _type(schema.get("items", {}))
        return f"({items})[]" if "|" in items else f"{items}[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"{{ [name: string]: {_type(values) if isinstance(values, dict) else 'Json'} }}"
    return _PLAIN.get(str(kind), "Json")


def _method(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = operation.get("parameters", [])
    in_path = [one for one in parameters if one["in"] == "path"]
    others = [one for one in parameters if one["in"] in ("query", "header")]
    arguments = [f"{_camel(one['name'])}: {_type(one['schema'])}" for one in in_path]
    content = operation.get("requestBody", {}).get("content", {})
    given = []
    if "application/json" in content:
        optional = "" if operation["requestBody"].get("required") else "?"
        arguments.append(f"body{optional}: {_type(content['application/json']['schema'])}")
        given.append("body")
    elif content or operation["operationId"] == "import_session":
        arguments.append("data: BodyInit")
        given.append("data")
    if others:
        fields = "; ".join(
            f"{_camel(one['name'])}{'' if one.get('required') else '?'}: {_type(one['schema'])}"
            for one in others
        )
        default = "" if any(one.get("required") for one in others) else " = {}"
        arguments.append(f"options: {{ {fields} }}{default}")
        for place in ("query", "header"):
            here = [one["name"] for one in others if one["in"] == place]
            if here:
                pairs = ", ".join(f"{json.dumps(name)}: options.{_camel(name)}" for name in here)
                given.append(f"{'query' if place == 'query' else 'headers'}: {{ {pairs} }}")
    answer, reader = _answer(operation)
    address = re.sub(r"\{(\w+)\}", lambda found: "${this.step(" + _camel(found[1]) + ")}", path)
    more = f", {{ {', '.join(given)} }}" if given else ""
    about = _comment(operation.get("description") or operation.get("summary") or "")
    return (
        f"  /** {about} */\n"
        f"  async {_camel(operation['operationId'])}({', '.join(arguments)}): Promise<{answer}> {{\n"
        f'    return this.{reader}("{method}", `{address}`{more});\n'
        "  }\n"
    )


def _answer(operation: dict[str, Any]) -> tuple[str, str]:
    """Return the type of what an operation answers, and which method of the transport reads it."""
    found = {}
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            found[status] = response.get("content", {})
    kinds = [kind for content in found.values() for kind in content]
    if not kinds:
        return "void", "nothing"
    if "application/json" not in kinds or "application/zip" in kinds:  # a file, whatever is in it
        return "Response", "request"
    types = [
        _type(content["application/json"].get("schema", {}))
        for content in found.values()
        if "application/json" in content
    ]
    return " | ".join(dict.fromkeys(types)), "json"


def _camel(name: str) -> str:
    first, *rest = _WORD.sub("_", name).strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def _comment(text: str) -> str:
    return " ".join(text.replace("*/", "*").split())


if __name__ == "__main__":
    main()
