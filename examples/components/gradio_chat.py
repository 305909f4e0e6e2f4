"""A chat in a Gradio page: `python gradio_chat.py`."""

import os
from collections.abc import Iterator

import gradio as gr

from agent_core import Session
from agent_runtime import Agent

agent = Agent(os.environ.get("MODEL", "local"))


def answer(question: str, _history: list, session: Session | None) -> Iterator[tuple[str, Session | None]]:
    stream, said = agent.stream(question, session=session), ""
    for text in stream.text():
        said += text
        yield said, session
    yield said, stream.result.session


page = gr.ChatInterface(answer, additional_inputs=[gr.State()], additional_outputs=[gr.State()])

if __name__ == "__main__":
    page.launch()
