"""A chat in a Textual program."""

import os

from textual import work
from textual.app import App, ComposeResult
from textual.widgets import Input, RichLog

from agent_runtime import Agent


class Chat(App[None]):
    agent = Agent(os.environ.get("MODEL", "local"))

    def compose(self) -> ComposeResult:
        yield RichLog(wrap=True)
        yield Input(placeholder="Say something")

    @work
    async def on_input_submitted(self, event: Input.Submitted) -> None:
        result = await self.agent.run_async(event.value, session=getattr(self, "session", None))
        self.session = result.session
        self.query_one(RichLog).write(f"> {event.value}\n{result.text}")


if __name__ == "__main__":
    Chat().run()
