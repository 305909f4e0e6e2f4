"""A run that waits overnight for an approval: the program ends, and another process goes on next morning.

python overnight.py evening      # begins, and ends at the question
python overnight.py morning      # says yes, and finishes
"""

import os
import sys
from pathlib import Path
from typing import Any

from agent_app import AgentApplication, open_store

SENT: list[str] = []


class Mail:
    """A tool with an effect; the file stands for a mail server."""

    name = "mail"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [{"name": "send_mail", "description": "Send a mail to all customers.", "input_schema": text}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        SENT.append(arguments["text"])
        return "sent"


def open_app(database: Path, model: dict[str, Any], providers: list[Any]) -> AgentApplication:
    config = {
        "agents": {"writer": {"model": "main", "permissions": {"ask": ["send_mail"]}}},
        "models": {"main": model},
        "permissions": {"default": "allow", "ask": ["send_mail"]},
    }
    plugins = {"providers": providers, "tools": [Mail]}
    return AgentApplication(
        config, store=open_store(f"sqlite:///{database.absolute()}"), plugins=plugins, installed=not providers
    )


def evening(app: AgentApplication, task: str) -> str:
    """Begin the work; return the session, which waits for an answer."""
    session = app.create_session().session_id
    list(app.chat(session, task))
    return session


def morning(app: AgentApplication, session: str) -> str:
    """Answer every question, and let the run go on where it stopped."""
    for approval in app.approvals(session):
        app.decide(approval.id, {"approved": True})
    *_, final = app.chat(session)
    return final["messages"][-1]["content"]


if __name__ == "__main__":
    provider, _, name = os.environ.get("MODEL", "local_llama").partition(":")
    with open_app(Path("overnight.db"), {"provider": provider, "model": name}, []) as app:
        if sys.argv[1] == "evening":
            print(evening(app, "Tell all customers about our new tea."))
        else:
            print(morning(app, app.list_sessions().sessions[0].id))
