"""A session gets one prompt cache key and keeps it."""

from __future__ import annotations

from typing import Any

from agent_core import AgentCore, Session
from agent_core.testing import EchoProvider
from agent_testing.conformance import ExtensionConformance
from prompt_cache_extension import PromptCacheExtension


class CachingProvider(EchoProvider):
    """An echo that says that it caches prompts."""

    name = "caching"

    def get_tags(self, config: dict[str, Any]) -> list[str]:
        return [*super().get_tags(config), "prompt_cache"]


def core_with(provider: type) -> AgentCore:
    core = AgentCore()
    core.register_provider(provider, [PromptCacheExtension])
    return core


class TestConformance(ExtensionConformance):
    plugin = PromptCacheExtension


def test_a_new_session_gets_a_key_in_its_overrides() -> None:
    core = core_with(CachingProvider)

    session, results = core.execute_lifecycle_actions(Session("s"), {}, "session_create")

    assert len(session.metadata["overrides"]["prompt_cache_key"]) == 32
    assert results[0]["result"] == {"status": "ok"}


def test_the_key_stays_and_other_overrides_too() -> None:
    core = core_with(CachingProvider)
    old = Session("s", metadata={"overrides": {"temperature": 1}})
    first, _ = core.execute_lifecycle_actions(old, {}, "request_prepare")

    second, results = core.execute_lifecycle_actions(first, {}, "request_prepare")

    assert second.metadata["overrides"] == first.metadata["overrides"]
    assert second.metadata["overrides"]["temperature"] == 1
    assert results[0]["result"] == {"status": "noop"}


def test_two_sessions_have_two_keys() -> None:
    core = core_with(CachingProvider)

    keys = {
        core.execute_lifecycle_actions(Session(name), {}, "session_create")[0].metadata["overrides"][
            "prompt_cache_key"
        ]
        for name in ("a", "b")
    }

    assert len(keys) == 2


def test_a_key_for_all_in_the_configuration_is_enough() -> None:
    core = core_with(CachingProvider)

    session, _ = core.execute_lifecycle_actions(Session("s"), {"prompt_cache_key": "team"}, "session_create")

    assert "overrides" not in session.metadata


def test_it_is_off_where_the_provider_does_not_cache() -> None:
    core = core_with(EchoProvider)

    session, results = core.execute_lifecycle_actions(Session("s"), {}, "session_create")

    assert (session.metadata, results) == ({}, [])
    (decision,) = [d for d in core.explain_plugins({}) if d["plugin"] == "prompt_cache"]
    assert decision["reason"] == "missing_tags"


def test_the_key_of_the_plugins_section_reaches_the_provider() -> None:
    sent: list[Any] = []

    class Noting(CachingProvider):
        def stream_api(self, native_messages: Any, state: Any) -> Any:
            sent.append(state["config"].get("prompt_cache_key"))
            return super().stream_api(native_messages, state)

    core = core_with(Noting)
    config = {"prompt_cache": {"prompt_cache_key": "shared"}}
    session = core.add_message(Session("s"), "user", "hello")

    prepared, _ = core.execute_lifecycle_actions(session, config, "request_prepare")
    core.send_request(prepared, config)
    core.send_request(prepared, {**config, "prompt_cache_key": "its own"})

    assert "overrides" not in prepared.metadata
    assert sent == ["shared", "its own"]
