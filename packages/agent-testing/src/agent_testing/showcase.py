"""Two plugins that use every word of the vocabulary of front ends, for tests of front ends.

`Showcase` is a feature: buttons for a session, a message and the composer, a form with every widget, a
question, cards of every variant and presentation with every kind of choice, an error, and completions.
`ShowcaseDesk` is an application plugin: a button for each session of a list, and every effect.
"""

from __future__ import annotations

from typing import Any, Final

from agent_core.display.elements import EFFECTS, WIDGETS
from agent_core.display.payload import PRESENTATIONS, VARIANTS

_Dict = dict[str, Any]
_TYPES: Final = {"number": "integer", "checkbox": "boolean"}
_MORE: Final[dict[str, _Dict]] = {"number": {"default": 3}, "select": {"options": ["warm", "cold"]}}
_EFFECTS: Final[dict[str, _Dict]] = {
    "toast": {"text": "a toast", "variant": "success"},
    "reload": {"what": "sessions"},
    "navigate": {"to": "plugins"},
    "open_url": {"url": "https://example.test/page"},
    "set_input": {"text": "a text to send"},
}


class Showcase:
    """A feature with an action for every place, presentation, variant and widget, and with completions.

    Attributes:
        calls: The actions that were run, with their parameters.
    """

    name = "showcase"
    version = "1"

    def __init__(self) -> None:
        self.calls: list[tuple[str, _Dict]] = []

    def get_actions(self) -> list[_Dict]:
        """Return the actions; those that no element places are offered for the session."""
        inputs = {f"the_{name}": {"type": _TYPES.get(name, "string")} for name in WIDGETS}
        shown = [*PRESENTATIONS, *(f"variant_{one}" for one in VARIANTS), "card", "error"]
        return [
            {"id": "form", "label": "Form", "inputs": inputs},
            {"id": "wipe", "label": "Wipe", "confirm": "Really wipe it?", "inputs": {}},
            {"id": "look", "label": "Look", "inputs": {"message_index": {"type": "integer"}}},
            {"id": "polish", "label": "Polish", "inputs": {"text": {"type": "string"}}},
            {"id": "shelf", "label": "Shelf", "inputs": {}},
            {"id": "dust", "label": "Dust", "inputs": {"item_id": {"type": "string", "required": True}}},
            *({"id": one, "label": f"Show {one}", "inputs": {}} for one in shown),
        ]

    def get_ui_elements(self, config: Any, tags: Any, models: Any) -> list[_Dict]:
        """Return the elements: a setting, a form, buttons at messages and in the composer, a collection."""
        asked = [
            {"name": f"the_{name}", "label": f"The {name}", "widget": name, **_MORE.get(name, {})}
            for name in WIDGETS
        ]
        dialog = {"kind": "form", "title": "All widgets", "body": "Fill in.", "inputs": asked}
        return [
            {"ui_type": "config", "key": "showcase", "label": "Showcase"},
            {"ui_type": "session_action", "action_id": "form", "label": "All inputs", "dialog": dialog},
            {"ui_type": "message_action", "action_id": "look", "label": "Look closer"},
            {"ui_type": "composer_action", "action_id": "polish", "label": "Polish it"},
            {"ui_type": "collection", "action_id": "shelf", "label": "Shelf", "item_actions": ["dust"]},
        ]

    def execute_action(self, action_id: str, session: Any, native_messages: Any, params: _Dict) -> _Dict:
        """Note the call, and answer as the action is called."""
        self.calls.append((action_id, dict(params)))
        if action_id == "error":
            return {"error": {"message": "the pen is broken"}}
        if action_id == "shelf":
            vase = {"id": "vase", "title": "A vase", "text": "of blue glass"}
            return {"items": [vase], "display": {"body": "a vase of blue glass", "title": "Shelf"}}
        if (display := self._display(action_id)) is not None:
            return {"display": display}
        return {"message": f"{action_id} {sorted(params)}"}

    def _display(self, action_id: str) -> _Dict | None:
        kind, _, variant = action_id.partition("_")
        if kind == "variant":
            return {"body": f"of variant {variant}", "variant": variant, "display_id": "variant"}
        if action_id in PRESENTATIONS:
            return {"body": f"shown as {action_id}", "presentation": action_id, "title": "News"}
        if action_id == "wipe":
            return {"body": "wiped", "variant": "success", "display_id": "card"}
        if action_id != "card":
            return None
        run = {"plugin": self.name, "action_id": "wipe"}
        choices = [
            {"kind": "open_url", "id": "o", "label": "Look", "url": "https://example.test/x"},
            {"kind": "copy_text", "id": "c", "label": "Copy it", "text": "the text"},
            {"kind": "run_action", "id": "r", "label": "Wipe now", **run},
        ]
        body = {"body": "**bold**", "format": "markdown", "title": "A card"}
        return {**body, "display_id": "card", "actions": choices}

    def get_completions(self, config: Any, text: str) -> list[_Dict]:
        """Suggest two words for a text that ends with /col."""
        if not text.endswith("/col"):
            return []
        names = ("colour", "collect")
        return [
            {"replacement": f"/{one}", "start": -4, "display": one, "display_meta": "a word"} for one in names
        ]

    def apply_completion(self, config: Any, text: str, completion: _Dict) -> str:
        """Return a snippet with a place to fill in."""
        return f"{completion['replacement']} ${{1:red}} "


class ShowcaseDesk:
    """An application plugin with a button for each session of a list, and an action for every effect."""

    name = "showcase_desk"

    def get_actions(self) -> list[_Dict]:
        """Return the actions; one wants an effect that no front end knows."""
        session = {"session_id": {"type": "string", "required": True}}
        effects = [*(one for one in EFFECTS if one != "open_session"), "strange"]
        return [
            {"id": "stamp", "label": "Stamp", "inputs": session},
            *({"id": one, "label": f"Do {one}", "inputs": {}} for one in effects),
        ]

    def get_ui_elements(self, app_config: Any) -> list[_Dict]:
        """Return a button for each session of a list, and one for the whole application."""
        return [
            {"ui_type": "session_list_action", "action_id": "stamp", "label": "Stamp it"},
            {"ui_type": "application_action", "action_id": "toast", "label": "Do toast"},
        ]

    def execute_action(self, app: Any, action_id: str, params: _Dict, context: Any, state: Any) -> _Dict:
        """Want the effect that the action is called after; a stamp opens its session."""
        if action_id == "stamp":
            return {"ui_effects": [{"type": "open_session", "session_id": params.get("session_id")}]}
        return {"ui_effects": [{"type": action_id, **_EFFECTS.get(action_id, {})}]}
