"""A chat in a Textual program: `python textual_chat.py`."""

from textual import app, widgets

from agent_runtime import Agent


class Chat(app.App):
    chat = Agent("local").chat()

    def compose(self):
        yield from (widgets.Input(placeholder="Say something"), widgets.TextArea(read_only=True))

    def on_input_submitted(self, event):
        self.query_one(widgets.TextArea).insert(f"\n> {event.value}\n")
        self.run_worker(self.chat.run_async(event.value, on_text=self.query_one(widgets.TextArea).insert))


Chat().run()
