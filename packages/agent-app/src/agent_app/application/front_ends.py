"""What a front end shows besides conversations: agents, models, files, elements and suggestions of plugins.

Everything is returned as plain data, ready for JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import overview, previews, trace
from agent_app.services import ApplicationBase
from agent_core.drivers import call, call_async

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO


class FrontEnds(ApplicationBase):
    """What front ends ask for."""

    def session_state(self, session_id: str) -> dict[str, Any]:
        """Return what is known of a session: its info, who holds it, whether it runs, and what waits there.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        return call(overview.state(self._services, session_id))

    async def session_state_async(self, session_id: str) -> dict[str, Any]:
        """Do what `session_state` does, on the running event loop."""
        return await call_async(overview.state(self._services, session_id))

    def session_usage(self, session_id: str) -> dict[str, Any]:
        """Return the tokens and the cost of a session, by model and in total; the last model asked is last.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        return call(overview.usage(self._services, session_id))

    async def session_usage_async(self, session_id: str) -> dict[str, Any]:
        """Do what `session_usage` does, on the running event loop."""
        return await call_async(overview.usage(self._services, session_id))

    def next_request(self, session_id: str) -> dict[str, Any]:
        """Return what the next request of a session would send: messages and tools, with estimated tokens.

        Raises:
            SessionNotFound: If there is none of that id.
            AgentError: If its agent cannot run.
        """
        return call(overview.next_request(self._services, session_id))

    async def next_request_async(self, session_id: str) -> dict[str, Any]:
        """Do what `next_request` does, on the running event loop."""
        return await call_async(overview.next_request(self._services, session_id))

    def sent_request(self, session_id: str, index: int) -> dict[str, Any]:
        """Return the request that an answer of the model was the answer to, as far as it can be rebuilt.

        It has the messages before the answer as the agent would send them now, secrets left out, and from
        the log `model`, `at` and `usage` of then, if that is still there.

        Raises:
            SessionNotFound: If there is none of that id.
            MessageIndexError: If there is no such message.
            ArgumentError: If it is not an answer of the model.
            AgentError: If its agent cannot run.
        """
        return call(previews.sent_request(self._services, session_id, index))

    async def sent_request_async(self, session_id: str, index: int) -> dict[str, Any]:
        """Do what `sent_request` does, on the running event loop."""
        return await call_async(previews.sent_request(self._services, session_id, index))

    def edit_plan(self, session_id: str, index: int) -> dict[str, Any]:
        """Return what a branch would keep that begins with another version of a message.

        `kept_messages` and `kept_tokens` come before it and are sent as they were; `other_messages` stay in
        this session alone; `rebuilt_items` of the provider's own history would be made anew.

        Raises:
            SessionNotFound: If there is none of that id.
            MessageIndexError: If there is no such message.
            AgentError: If its agent cannot run.
        """
        return call(previews.edit_plan(self._services, session_id, index))

    async def edit_plan_async(self, session_id: str, index: int) -> dict[str, Any]:
        """Do what `edit_plan` does, on the running event loop."""
        return await call_async(previews.edit_plan(self._services, session_id, index))

    def list_runs(self, session_id: str, before: int | None = None, limit: int = 50) -> dict[str, Any]:
        """Return the last runs of a session, the latest first.

        Each of the `items` has its `run_id`, `agent_id`, `model`, `at` and `seq` of its beginning, and the
        `reason` of its end; None while it goes on. With `before` of the answer, unless that is None, the
        runs before them are asked for.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        return call(trace.list_runs(self._services, session_id, before, limit))

    async def list_runs_async(
        self, session_id: str, before: int | None = None, limit: int = 50
    ) -> dict[str, Any]:
        """Do what `list_runs` does, on the running event loop."""
        return await call_async(trace.list_runs(self._services, session_id, before, limit))

    def trace(self, session_id: str, run_id: str) -> dict[str, Any] | None:
        """Return what a run did when: its steps, answers and calls as `parts`; None if no log has its times.

        Raises:
            SessionNotFound: If there is no session of that id.
        """
        return call(trace.read_trace(self._services, session_id, run_id))

    async def trace_async(self, session_id: str, run_id: str) -> dict[str, Any] | None:
        """Do what `trace` does, on the running event loop."""
        return await call_async(trace.read_trace(self._services, session_id, run_id))

    def list_agents(self) -> list[dict[str, Any]]:
        """Return the declared agents, without their settings."""
        return overview.agents(self._services)

    async def list_agents_async(self) -> list[dict[str, Any]]:
        """Do what `list_agents` does, which never waits."""
        return overview.agents(self._services)

    def list_models(self) -> list[dict[str, Any]]:
        """Return the declared models, each with the agents that use it."""
        return overview.models(self._services)

    async def list_models_async(self) -> list[dict[str, Any]]:
        """Do what `list_models` does, which never waits."""
        return overview.models(self._services)

    def list_assets(self, session_id: str) -> list[dict[str, Any]]:
        """Return the files of a session, oldest first; none where the application has no place for them."""
        return call(overview.assets(self._services, session_id))

    async def list_assets_async(self, session_id: str) -> list[dict[str, Any]]:
        """Do what `list_assets` does, on the running event loop."""
        return await call_async(overview.assets(self._services, session_id))

    def add_asset(
        self, session_id: str, data: bytes | BinaryIO, *, name: str, media_type: str | None = None
    ) -> dict[str, Any]:
        """Keep a file for a session; `chat` takes it as an attachment, by its id.

        Raises:
            AssetRefused: If it is too large, or of a type that is not accepted.
            ArgumentError: If the application has no place for files.
        """
        return call(overview.add_asset(self._services, session_id, data, name, media_type))

    async def add_asset_async(
        self, session_id: str, data: bytes | BinaryIO, *, name: str, media_type: str | None = None
    ) -> dict[str, Any]:
        """Do what `add_asset` does, on the running event loop."""
        return await call_async(overview.add_asset(self._services, session_id, data, name, media_type))

    def read_asset(self, session_id: str, asset_id: str) -> tuple[dict[str, Any], bytes]:
        """Return a file of a session: what is known of it, and its content.

        Raises:
            AssetNotFound: If the session has none of that id.
        """
        return call(overview.read_asset(self._services, session_id, asset_id))

    async def read_asset_async(self, session_id: str, asset_id: str) -> tuple[dict[str, Any], bytes]:
        """Do what `read_asset` does, on the running event loop."""
        return await call_async(overview.read_asset(self._services, session_id, asset_id))

    def remove_asset(self, session_id: str, asset_id: str) -> bool:
        """Take a file from a session; False if it has none of that id."""
        return call(overview.remove_asset(self._services, session_id, asset_id))

    async def remove_asset_async(self, session_id: str, asset_id: str) -> bool:
        """Do what `remove_asset` does, on the running event loop."""
        return await call_async(overview.remove_asset(self._services, session_id, asset_id))

    def get_ui_schema(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Return what plugins want shown: those of the application and, for a session, of its agent."""
        return call(overview.ui_schema(self._services, session_id))

    async def get_ui_schema_async(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Do what `get_ui_schema` does, on the running event loop."""
        return await call_async(overview.ui_schema(self._services, session_id))

    def get_completions(self, session_id: str, text: str) -> list[dict[str, Any]]:
        """Return suggestions of the session's agent for the text before the cursor."""
        return call(overview.completions(self._services, session_id, text))

    async def get_completions_async(self, session_id: str, text: str) -> list[dict[str, Any]]:
        """Do what `get_completions` does, on the running event loop."""
        return await call_async(overview.completions(self._services, session_id, text))

    def apply_completion(self, session_id: str, text: str, completion: Mapping[str, Any]) -> str:
        """Return the text to insert for an accepted suggestion; empty if it is used as it is."""
        return call(overview.apply_completion(self._services, session_id, text, completion))

    async def apply_completion_async(self, session_id: str, text: str, completion: Mapping[str, Any]) -> str:
        """Do what `apply_completion` does, on the running event loop."""
        return await call_async(overview.apply_completion(self._services, session_id, text, completion))

    def get_config_schema(self, session_id: str) -> list[dict[str, Any]]:
        """Return the settings that the plugins of the session's agent read, as `AgentCore` lists them."""
        return call(overview.config_schema(self._services, session_id))

    async def get_config_schema_async(self, session_id: str) -> list[dict[str, Any]]:
        """Do what `get_config_schema` does, on the running event loop."""
        return await call_async(overview.config_schema(self._services, session_id))
