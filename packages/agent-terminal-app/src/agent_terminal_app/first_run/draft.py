"""What a user has chosen to connect, and how it is saved: the key in its store, the model in the settings.

The settings are checked before anything is written. The key goes first: alone it changes nothing, while a
model without its key would leave the next start broken. If the settings cannot be written then, the key
store is put back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_app.context_windows import WindowCache
from agent_app.defaults import short_name
from agent_terminal_app.errors import CommandError
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.settings import Change

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.connections import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A choice in the making; nothing of it is written anywhere yet.

    Attributes:
        embedded: Whether it is the embedded model.
        wants_address: Whether it is a server whose address must be asked for.
        connection: The provider, service or server to connect.
        key: A key that was typed; empty to send none, None if that is not decided yet.
        reference: Where a key is that is there already, as settings refer to it.
        checked: Whether the provider was asked, or the user wants no check.
        models: What it offers.
        model: The one that was chosen.
    """

    embedded: bool = False
    wants_address: bool = False
    connection: Connection | None = None
    key: str | None = field(default=None, repr=False)
    reference: str = ""
    checked: bool = False
    models: tuple[Mapping[str, Any], ...] = ()
    model: str = ""

    @property
    def chosen(self) -> Connection:
        """The connection, once it is known."""
        assert self.connection is not None
        return self.connection


_OURS = {"provider", "model", "config"}
_OURS_INSIDE = {"base_url", "api_key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a dialogue came to.

    Attributes:
        model: What the setting `model` says now; empty if the user left and nothing was written.
        label: The same in words.
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
        """Return what was written, for the user to read."""
        lines = [f'{self.label} answers from now on (model = "{self.model}" in {self.file}).']
        if self.key_at:
            where = "the keyring" if self.key_at == "keyring" else f"{self.key_at}, which only you can read"
            lines.append(f"The key is in {where}.")
        return "\n".join([*lines, *([self.remark] if self.remark else [])])


def save(draft: Draft, opened: Opened) -> Outcome:
    """Write a draft that lacks nothing.

    Raises:
        CommandError: If it cannot be written; nothing is changed then.
    """
    name, values = _settings(draft, opened.settings.values)
    change = Change.of(opened.paths, values)
    if not draft.key:
        file, key_at = change.save(), ""
    else:
        file, key_at = _save_both(change, KeyStore(opened.paths), name, draft.key)
    if draft.connection is not None:
        WindowCache(opened.paths.windows).keep(
            draft.connection.provider, draft.connection.base_url, draft.models
        )
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
        return connection.name, {"model": f"{short_name(connection.provider)}:{draft.model}"}
    name = _free_name(connection.name, connection.base_url, values.get("models", {}))
    key = f"stored:{name}" if draft.key else draft.reference
    declared = {
        "provider": connection.provider,
        "model": draft.model,
        "config": {"base_url": connection.base_url, "api_key": key},
    }
    return name, {"model": name, f"models.{name}": declared}


def _free_name(name: str, base_url: str, models: Mapping[str, Any]) -> str:
    """Return a name for a model: a free one, or one that we wrote; what users wrote is left alone."""
    free, number = name, 2
    while free in models and not _is_ours(models[free], base_url):
        free, number = f"{name}-{number}", number + 1
    return free


def _is_ours(model: Mapping[str, Any], base_url: str) -> bool:
    config = model.get("config", {})
    return set(model) <= _OURS and set(config) <= _OURS_INSIDE and config.get("base_url") == base_url


def _remark(opened: Opened, model: str) -> str:
    """Say what overrides the setting that was just written."""
    try:
        settings = opened.again().settings
    except CommandError as error:
        return str(error)
    if settings.values.get("model") != model:
        return f"Here {settings.values.get('model')} still answers, because of {settings.origins['model']}."
    own = [name for name, agent in settings.values.get("agents", {}).items() if "model" in agent]
    return f"Agents with a model of their own keep it: {', '.join(own)}." if own else ""
