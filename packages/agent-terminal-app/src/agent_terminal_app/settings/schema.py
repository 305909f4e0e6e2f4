"""The rules of a configuration file as JSON Schema, for editors; made from the runtime's own schemas."""

from __future__ import annotations

from typing import Any

from agent_terminal_app.settings.faults import SECTIONS, THEMES


def settings_schema() -> dict[str, Any]:
    """Return the schema of a configuration file."""
    from agent_runtime.permissions import PermissionsPlugin
    from agent_runtime.schema import DIALECT, spec_schema

    parts = spec_schema()["$defs"]
    parts = {name: part for name, part in parts.items() if name not in {"agent", "model"}}
    parts["named_agent"].pop("anyOf", None)  # an agent that names no model has the usual one
    [(_, permissions)] = PermissionsPlugin.config_schemas()
    return {
        "$schema": DIALECT,
        "title": "Settings of the agent command",
        "type": "object",
        "properties": {name: {"description": said} | _section(name) for name, said in SECTIONS.items()}
        | {"permissions": {"description": SECTIONS["permissions"], **permissions}},
        "additionalProperties": False,
        "$defs": parts,
    }


def _section(name: str) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {
        "tools": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
        "agents": _by_name({"$ref": "#/$defs/named_agent"}),
        "models": _by_name({"$ref": "#/$defs/named_model"}),
        "plugins": _by_name({"type": "object"}),
        "ui": {
            "type": "object",
            "properties": {
                "plain": {
                    "type": "boolean",
                    "default": False,
                    "description": "No colours, no boxes, nothing that moves.",
                },
                "theme": {"enum": list(THEMES), "default": "auto", "description": "The colours."},
            },
            "additionalProperties": False,
        },
    }
    return sections.get(name, {"type": "string", "pattern": r"\S"})


def _by_name(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"pattern": r"\S"}, "additionalProperties": entry}
