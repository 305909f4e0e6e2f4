"""The sessions and agents of a server, for commands that otherwise use this user's own."""

from __future__ import annotations

import json
import os
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_client import Client
    from agent_terminal_app.paths import Paths

TOKEN_VARIABLE = "AGENT_SERVER_TOKEN"  # noqa: S105 - the name of a variable


class RemoteApplication:
    """Talks to a server like to an application, as far as `agent run` needs that."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def choose_session(self, session: str | None, agent: str | None, model: str | None) -> str:
        """Return the id of the session to use: a new one or a stored one, with agent and model asked for."""
        if session is None:
            return self._client.create_session(agent, model=model).id
        if agent is not None or model is not None:
            self._client.change_session(session, agent_id=agent, model=model)
        return self._client.session(session).id

    @contextmanager
    def chat(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        limits: Mapping[str, Any] | None = None,
    ) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Say something in a session, and give what happens; a lost connection is made again."""
        events = self._client.run(session_id, text, attachments=attachments, limits=limits or None)
        with closing(events):
            yield (event.data for event in events)

    def cancel(self, session_id: str) -> bool:
        """Stop the run of a session."""
        return self._client.cancel(session_id)


@contextmanager
def open_remote(url: str, paths: Paths) -> Iterator[RemoteApplication]:
    """Open a server's application while the block lasts.

    Raises:
        CommandError: If it cannot be reached, or refuses something.
    """
    try:
        from agent_client import Client, ClientError, NotAllowed
    except ImportError as error:
        raise CommandError(
            "the client of servers is not installed",
            code=Exit.NOT_CONFIGURED,
            hint="pip install 'keelwork[server]'",
        ) from error
    try:
        with Client(url, find_token(url, paths)) as client:
            yield RemoteApplication(client)
    except NotAllowed as error:
        hint = f"put the token of the server into {TOKEN_VARIABLE}"
        raise CommandError(f"{url}: {error}", code=Exit.NOT_CONFIGURED, hint=hint) from error
    except ClientError as error:
        raise CommandError(f"{url}: {error}") from error


def find_token(url: str, paths: Paths) -> str | None:
    """Return the token for a server: from the environment, or that of this user's own server."""
    given = os.environ.get(TOKEN_VARIABLE, "").strip()
    if given:
        return given
    try:
        running = json.loads((paths.state / "server.json").read_text(encoding="utf-8"))
        if running["url"] == url.rstrip("/"):
            return Path(running["token_file"]).read_text(encoding="ascii").strip()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
