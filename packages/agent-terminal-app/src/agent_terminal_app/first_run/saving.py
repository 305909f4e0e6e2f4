"""A draft written down: the key to its store, the model to the settings, both or neither.

The settings are checked before anything is written. The key goes first: alone it changes nothing, while a
model without its key would leave the next start broken. If the settings cannot be written then, the key store
is put back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import CommandError
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.settings import Change
from agent_terminal_app.told_windows import keep_windows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_terminal_app.first_run.draft import Draft
    from agent_terminal_app.opening import Opened

_OURS = {"provider", "model", "config"}
_OURS_INSIDE = {"base_url", "api_key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a dialogue came to.

    Attributes:
        model: What the setting `model` says now; empty if the person left and nothing was written.
        label: What that is, for people.
        file: The settings that say it.
        key_at: Where the key was stored, if one was: "keyring", or a path.
        remark: What keeps the setting from counting everywhere; empty if nothing does.
    """

    model: str = ""
    label: str = ""
    file: Path | None = None
    key_at: str = ""
    remark: str = ""

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.model)

    def in_words(self) -> str:
        """Return what was written, for the person."""
        lines = [f'{self.label} answers from now on (model = "{self.model}" in {self.file}).']
        if self.key_at:
            where = "the keyring" if self.key_at == "keyring" else f"{self.key_at}, which only you can read"
            lines.append(f"The key is in {where}.")
        return "\n".join([*lines, *([self.remark] if self.remark else [])])


def save(draft: Draft, opened: Opened) -> Outcome:
    """Write a draft that lacks nothing.

    Raises:
        CommandError: If it cannot be written; everything is as it was then.
    """
    name, values = _settings(draft, opened.settings.values)
    change = Change.of(opened.paths, values)
    if not draft.key:
        file, key_at = change.save(), ""
    else:
        file, key_at = _save_both(change, KeyStore(opened.paths), name, draft.key)
    if draft.connection is not None:
        keep_windows(opened.paths, draft.connection.provider, draft.connection.base_url, draft.models)
    return Outcome(
        model=values["model"],
        label="The embedded model" if draft.embedded else f"{draft.model} of {draft.chosen.label}",
        file=file,
        key_at=key_at,
        remark=_remark(opened, values["model"]),
    )


def _save_both(change: Change, store: KeyStore, name: str, key: str) -> tuple[Path, str]:
    before = store.get(name)
    key_at = store.set(name, key)
    try:
        return change.save(), key_at
    except BaseException:
        if before is None:
            store.remove(name)
        else:
            store.set(name, before)
        raise


def _settings(draft: Draft, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the key, and the settings to write, by their dotted keys."""
    if draft.embedded:
        return "", {"model": "local"}
    connection = draft.chosen
    if not connection.base_url:
        return connection.name, {"model": f"{_spoken(connection.provider)}:{draft.model}"}
    name = _free_name(connection.name, connection.base_url, values.get("models", {}))
    key = f"stored:{name}" if draft.key else draft.reference
    declared = {
        "provider": connection.provider,
        "model": draft.model,
        "config": {"base_url": connection.base_url, "api_key": key},
    }
    return name, {"model": name, f"models.{name}": declared}


def _spoken(provider: str) -> str:
    """Return what people call a provider in settings."""
    from agent_terminal_app.wiring import SHORT_NAMES

    return next((short for short, name in SHORT_NAMES.items() if name == provider), provider)


def _free_name(name: str, base_url: str, models: Mapping[str, Any]) -> str:
    """Return a name for a model: one that is free, or ours already; what people wrote is left alone."""
    free, number = name, 2
    while free in models and not _is_ours(models[free], base_url):
        free, number = f"{name}-{number}", number + 1
    return free


def _is_ours(model: Mapping[str, Any], base_url: str) -> bool:
    config = model.get("config", {})
    return set(model) <= _OURS and set(config) <= _OURS_INSIDE and config.get("base_url") == base_url


def _remark(opened: Opened, model: str) -> str:
    """Say what counts more than what was written just now."""
    try:
        settings = opened.again().settings
    except CommandError as error:
        return str(error)
    if settings.values.get("model") != model:
        return f"Here {settings.values.get('model')} answers all the same, by {settings.origins['model']}."
    own = [name for name, agent in settings.values.get("agents", {}).items() if "model" in agent]
    return f"Agents with a model of their own keep it: {', '.join(own)}." if own else ""
