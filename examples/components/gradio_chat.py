"""A chat in a Gradio page: `python gradio_chat.py`."""

from itertools import accumulate

import gradio

from agent_runtime import Agent


def answer(message, _history, chat):
    yield from accumulate(chat.say(message))  # Gradio wants all the words so far


chat = gradio.State(Agent("local").chat())  # every visitor gets a copy
page = gradio.ChatInterface(answer, additional_inputs=[chat])
if __name__ == "__main__":
    page.launch()
