"""A provider is asked for its models: that shows whether the key, the address and the network are right."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app.context_windows import context_window
from agent_core.plugin.discovery import find_installed
from agent_terminal_app import __version__
from agent_terminal_app.errors import CommandError, Exit, category_code
from agent_terminal_app.keys import KeyLookup, KeyStore, with_keys
from agent_terminal_app.logs import hide, note_failure
from agent_terminal_app.output import short_count
from agent_terminal_app.settings.secrets import read_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.draft import Draft

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
    # Before the clock runs: loading the plugin may be slow, and that is not the provider's fault.
    provider = await asyncio.to_thread(_provider, draft.chosen.provider)
    try:
        models = await _within(patience, lambda: provider.get_models(settings))
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
    lookup = KeyLookup(KeyStore(opened.paths))
    own = with_keys(opened.settings.values.get("plugins", {}).get(draft.chosen.provider, {}), lookup)
    address = {"base_url": draft.chosen.base_url} if draft.chosen.base_url else {}
    stages = ("connect_timeout", "first_byte_timeout", "idle_timeout", "content_timeout")
    timeouts = dict.fromkeys(stages, 2 * patience)  # longer than `_within`, so that one clock decides
    return {**own, **address, **timeouts, **_key(draft, lookup), "discover_models": True}


def _key(draft: Draft, lookup: Any) -> Mapping[str, str]:
    reference = read_reference(draft.reference)
    if draft.key is None and reference is not None:
        found = lookup.find(reference)
        return {"api_key": found.value, "api_key_origin": found.origin}
    if draft.key:
        hide(draft.key)
    return {"api_key": draft.key or "", "api_key_origin": "what you typed" if draft.key else "nowhere"}


def _provider(name: str) -> Any:
    for found in find_installed(kinds=["providers"]):
        if found.name == name and not found.problem:
            return found.plugin() if isinstance(found.plugin, type) else found.plugin
    raise not_installed(name)


def not_installed(provider: str) -> CommandError:
    """Return the error for a provider of ours whose plugin is missing; it names what to install."""
    return CommandError(
        f"the plugin of the provider {provider!r} is not installed",
        code=Exit.NOT_CONFIGURED,
        hint=f"run: pip install {distribution_of(provider)}=={__version__}",
    )


def distribution_of(provider: str) -> str:
    """Return the distribution that brings a provider of ours."""
    return f"keelwork-{provider.replace('_', '-')}-provider"


def _failure(error: Exception, key: str) -> CheckFailedError:
    reason = str(getattr(error, "problem", "") or error) or type(error).__name__
    safe = reason.replace(key, "[key]") if key else reason
    return CheckFailedError(safe, str(getattr(error, "category", "")), getattr(error, "status", None))


async def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of blocking work, or abandon it when the time is over.

    The program would wait at its end for a thread of the event loop's own pool.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def hand_over(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None only with an error

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except BaseException as error:  # it is raised again where it is awaited
            failed = error
        with suppress(RuntimeError):  # the loop is closed: the answer is not needed any more
            loop.call_soon_threadsafe(hand_over, result, failed)

    threading.Thread(target=run, name="check", daemon=True).start()
    return await asyncio.wait_for(done, seconds)


def described(model: Mapping[str, Any], *, recommended: bool) -> str:
    """Return a model as a line of a list: its name, and what is known about it."""
    about = ["recommended"] if recommended else []
    if (window := context_window(model)) is not None:
        about.append(f"{short_count(window)} context")
    return f"{model['id']!s}  ({', '.join(about)})" if about else str(model["id"])
