"""`Agent` and the application in the peers' benchmark, written as a user writes them.

The harness that runs it beside other frameworks is not part of this repository; it imports this file
and provides `_common`. Run it with `make bench-peers`. `driver_core.py` measures the layer below.
"""

# mypy: ignore-errors
# The harness's `_common` has no types, and is not here when this is checked.

from __future__ import annotations

from typing import Any

from _common import KEY, SYSTEM, USER, Bench, history_texts, main, make_tools


class B(Bench):
    NAME = "ours"
    IMPORT = "from agent_runtime import Agent"
    DIST = (
        *("keelwork-core", "keelwork-provider-kit", "keelwork-openai-compatible-provider"),
        *("keelwork-runtime", "keelwork-app"),
    )

    async def start(self) -> None:
        from agent_core import AgentCore, Message
        from agent_runtime import Agent
        from openai_compatible_provider import OpenAICompatibleProvider

        self._functions = make_tools()
        self._agent = Agent
        self._message = Message
        self._provider = OpenAICompatibleProvider
        self._core = AgentCore()
        self._core.register_provider(OpenAICompatibleProvider)
        self._agents: dict[tuple[str, bool], Any] = {}

    def build(self) -> Any:
        return self.agent("mock", tools=self._functions)

    def agent(self, model: str, tools: Any = ()) -> Any:
        config = {"base_url": self.base_url, "api_key": KEY}
        return self._agent(
            f"openai_compatible:{model}", system_prompt=SYSTEM, tools=tools, config=config, max_rounds=50
        )

    def agent_for(self, model: str, *, tools: bool = False) -> Any:
        """Return an agent that was built before, as a program has it."""
        if (model, tools) not in self._agents:
            self._agents[model, tools] = self.agent(model, self._functions if tools else ())
        return self._agents[model, tools]

    async def oneshot(self, model: str) -> str:
        return (await self.agent_for(model).run_async(USER)).text

    async def stream(self, model: str) -> int:
        count = 0
        async for event in self.agent_for(model).stream_async(USER):
            if event["type"] == "text":
                count += 1
        return count

    async def toolloop(self, model: str) -> str:
        return (await self.agent_for(model, tools=True).run_async(USER)).text

    def long_session(self, session: Any) -> Any:
        """Return a session as it is after many turns: the provider's own form of each message is known."""
        for role, text in history_texts():
            session = self._core.add_message(session, role, text)
        config = {"provider": "openai_compatible", "base_url": self.base_url, "api_key": KEY, "model": "mock"}
        return self._core.rebuild_native_history(session, config)

    async def history_prepare(self) -> None:
        self._history = self.long_session(self._core.create_session("history"))

    async def history_call(self, model: str) -> str:
        return (await self.agent_for(model).run_async(USER, session=self._history)).text

    async def store_prepare(self) -> None:
        from agent_app import AgentApplication

        config = {
            "agents": {"a": {"model": "m"}},
            "models": {"m": {"provider": "openai_compatible", "model": "mock-c20"}},
            "plugins": {"openai_compatible": {"base_url": self.base_url, "api_key": KEY}},
        }
        self.app = AgentApplication(
            config, store=f"sqlite:///{self.tmp}/app.db", plugins=[self._provider], installed=False
        )
        session = await self.app.create_session_async(session_id="a")
        await self.app.save_session_async(self.long_session(session))

    async def store_append(self) -> None:
        session = await self.app.load_session_async("a")
        await self.app.save_session_async(self._core.append_messages(session, [self._message("user", USER)]))

    async def store_turn(self, model: str) -> str:
        text = ""
        async for event in self.app.chat_async("a", USER, stream=False, overrides={"model": model}):
            text = event.get("text", text)
        return text

    async def app_stream(self, model: str) -> int:
        """Stream an answer through the application, stored; return the number of text events."""
        session, count = await self.app.create_session_async(), 0
        async for event in self.app.chat_async(session.session_id, USER, overrides={"model": model}):
            count += event["type"] == "text"
        return count


if __name__ == "__main__":
    main(B)
