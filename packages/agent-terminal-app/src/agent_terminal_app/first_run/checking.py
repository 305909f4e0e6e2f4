"""Asking a provider for its models: whether the key is right, the address, and the network between."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.exits import category_code
from agent_terminal_app.logs import hide, note_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_terminal_app.first_run.draft import Draft
    from agent_terminal_app.opening import Opened

PATIENCE = 5.0
"""How many seconds a provider has for its list."""
_NOT_FOUND = 404

T = TypeVar("T")


class CheckFailedError(CommandError):
    """A provider did not give its list of models.

    Attributes:
        category: What kind of failure it was, as the provider's errors say it.
        status: The HTTP status, if there was an answer.
    """

    def __init__(self, problem: str, category: str = "", status: int | None = None) -> None:
        self.category = category
        self.status = status
        super().__init__(problem, code=category_code(category))

    @property
    def is_about_the_key(self) -> bool:
        """Whether the key is missing or wrong."""
        return self.category == "auth"

    @property
    def is_about_the_address(self) -> bool:
        """Whether something else than a list of models is at the address."""
        return self.status == _NOT_FOUND


async def offered_models(
    draft: Draft, opened: Opened, patience: float = PATIENCE
) -> tuple[dict[str, Any], ...]:
    """Return the models that the provider lists, by the plugin's own discovery.

    Raises:
        CheckFailedError: With the exact reason, if it lists none within the time.
    """
    label, settings = draft.chosen.label, _settings(draft, opened, patience)
    try:
        models = await _within(patience, lambda: _provider(draft.chosen.provider).get_models(settings))
    except TimeoutError:
        where = draft.chosen.base_url or label
        raise CheckFailedError(f"{where} did not answer within {patience:g} seconds", "transport") from None
    except CommandError:
        raise
    except Exception as error:
        note_failure("check_failed", error, connection=draft.chosen.name)
        raise _failure(error, settings["api_key"]) from error
    found = tuple(dict(model) for model in models if model.get("id"))
    if not found:
        raise CheckFailedError(f"{label} answers, but offers no model: load one there first")
    return found


def _settings(draft: Draft, opened: Opened, patience: float) -> dict[str, Any]:
    """Return the settings that the provider would have, with less patience."""
    from agent_terminal_app.key_lookup import KeyLookup, with_keys
    from agent_terminal_app.keys import KeyStore

    lookup = KeyLookup(KeyStore(opened.paths))
    own = with_keys(opened.settings.values.get("plugins", {}).get(draft.chosen.provider, {}), lookup)
    address = {"base_url": draft.chosen.base_url} if draft.chosen.base_url else {}
    timeouts = dict.fromkeys(("connect_timeout", "first_byte_timeout", "idle_timeout"), patience)
    return {**own, **address, **timeouts, **_key(draft, lookup), "discover_models": True}


def _key(draft: Draft, lookup: Any) -> Mapping[str, str]:
    from agent_terminal_app.settings.secrets import read_reference

    reference = read_reference(draft.reference)
    if draft.key is None and reference is not None:
        found = lookup.find(reference)
        return {"api_key": found.value, "api_key_origin": found.origin}
    if draft.key:
        hide(draft.key)
    return {"api_key": draft.key or "", "api_key_origin": "what you typed" if draft.key else "nowhere"}


def _provider(name: str) -> Any:
    from agent_core.plugin.discovery import find_installed

    for found in find_installed(kinds=["providers"]):
        if found.name == name and not found.problem:
            return found.plugin() if isinstance(found.plugin, type) else found.plugin
    raise CommandError(
        f"the plugin of the provider {name!r} is not installed",
        code=Exit.NOT_CONFIGURED,
        hint=f"run: pip install {name.replace('_', '-')}-provider",
    )


def _failure(error: Exception, key: str) -> CheckFailedError:
    reason = str(getattr(error, "problem", "") or error) or type(error).__name__
    safe = reason.replace(key, "[key]") if key else reason
    return CheckFailedError(safe, str(getattr(error, "category", "")), getattr(error, "status", None))


async def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of blocking work, or leave it behind when the time is over.

    A thread of the event loop's own pool would be waited for at the end of the program.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def hand_over(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None only beside an error

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is awaited
            failed = error
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(hand_over, result, failed)

    threading.Thread(target=run, name="check", daemon=True).start()
    return await asyncio.wait_for(done, seconds)
