"""`AgentCore` in the peers' benchmark: one request at a time, and the loop around it written by hand.

The harness that runs it beside other frameworks is not part of this repository; it imports this file
and provides `_common`. Run it with `make bench-peers`.
"""

# mypy: ignore-errors
# The harness's `_common` has no types, and is not here when this is checked.

from __future__ import annotations

from typing import Any

from _common import KEY, SYSTEM, USER, Bench, history_texts, main, make_tools


class B(Bench):
    NAME = "ours_core"
    IMPORT = "from agent_core import AgentCore"
    DIST = ("keelwork-core", "keelwork-provider-kit", "keelwork-openai-compatible-provider")

    async def start(self) -> None:
        from agent_core import AgentCore
        from openai_compatible_provider import OpenAICompatibleProvider

        self._functions = make_tools()
        self._new_core = AgentCore
        self._provider = OpenAICompatibleProvider
        self.core = AgentCore()
        self.core.register_provider(OpenAICompatibleProvider)
        self.with_tools = self.build()

    def build(self) -> Any:
        core = self._new_core()
        core.register_provider(self._provider)
        for function in self._functions:
            core.register_tool(function)
        return core

    def config(self, model: str) -> dict[str, Any]:
        return {"provider": "openai_compatible", "model": model, "base_url": self.base_url, "api_key": KEY}

    def begin(self, core: Any) -> Any:
        session = core.add_message(core.create_session("bench"), "system", SYSTEM)
        return core.add_message(session, "user", USER)

    async def oneshot(self, model: str) -> str:
        _, messages = await self.core.send_request_async(self.begin(self.core), self.config(model))
        return messages[-1]["content"]

    async def stream(self, model: str) -> int:
        count = 0
        async for event in self.core.send_request_stream_async(self.begin(self.core), self.config(model)):
            if event["type"] == "partial" and event["message"]["content"]:
                count += 1
        return count

    async def toolloop(self, model: str) -> str:
        core, config = self.with_tools, self.config(model)
        session = self.begin(core)
        for _ in range(200):
            session, messages = await core.send_request_async(session, config)
            calls = core.extract_tool_calls_from_messages(messages)
            if not calls:
                return messages[-1]["content"]
            for done in await core.execute_tool_calls_async(calls, config):
                about, result = done["metadata"], done["tool_result"]
                session = core.add_message(
                    session, "tool", done["content"], about, config, tool_result=result
                )
        raise RuntimeError("the loop did not end")

    async def history_prepare(self) -> None:
        session = self.core.create_session("history")
        for role, text in history_texts():
            session = self.core.add_message(session, role, text)
        self.history = self.core.rebuild_native_history(session, self.config("mock"))

    async def history_call(self, model: str) -> str:
        config = self.config(model)
        session = self.core.add_message(self.history, "user", USER, config=config)
        _, messages = await self.core.send_request_async(session, config)
        return messages[-1]["content"]


if __name__ == "__main__":
    main(B)
