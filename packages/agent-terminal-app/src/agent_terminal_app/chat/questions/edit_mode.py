"""The mode: whether the agent asks before it edits files, and before commands in the sandbox.

Only a key of the user changes it: from asking to edits that are allowed, on to auto, and back to asking. In
auto mode, commands that stay inside the sandbox run without approval as well; where there is no sandbox,
there is no such mode.

The mode is not a state of its own. That edits are allowed means that the session has a grant for each tool
that edits files, as if the user had said "yes, for this session" to each. So a rule that denies or always
asks keeps its effect, `/permissions` lists the grants, and every process that continues the session knows
them. Before the first message there is no session to grant anything for; the mode waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_runtime.permissions import SANDBOXED, CallPattern, is_contained
from agent_runtime.phases import CallView
from agent_terminal_app.chat.agent import agent_of_stored

if TYPE_CHECKING:
    from agent_app import AgentApplication, Grant

EDITING = ("write_file", "edit_file", "apply_patch")
"""The tools that change files of the workspace, and nothing else; commands are not among them."""
COMMANDS = "shell"
"""The tool that runs commands."""


class EditMode:
    """The mode of one conversation.

    Attributes:
        allowed: Whether edits run without being asked about.
        auto: Whether commands in the sandbox do as well.
    """

    def __init__(self, app: AgentApplication) -> None:
        self.allowed = False
        self.auto = False
        self._app = app

    @property
    def label(self) -> str:
        """The mode in a few words; empty if everything is asked about."""
        return "auto" if self.auto else "edits allowed" if self.allowed else ""

    def look(self, session_id: str | None) -> None:
        """Find out how it is in a session, since a grant can be revoked anywhere. Called in a thread."""
        if session_id is None:
            return
        granted = {grant.pattern for grant in self._given(session_id)}
        self.auto = SANDBOXED in granted
        granted.discard(SANDBOXED)
        try:
            self.allowed = bool(granted) and granted >= set(self._tools(session_id))
        except AgentError:  # an agent that cannot run edits nothing; what was granted counts all the same
            self.allowed = bool(granted)

    def turn(self, session_id: str | None) -> str:
        """Switch to the other mode, and return what that means. Called in a thread.

        Raises:
            AgentError: If the agent has no tool that edits files.
        """
        tools = self._tools(session_id)
        if self.auto or (self.allowed and not self._is_confined(session_id)):
            return self._ask_again(session_id)
        if not tools and not self._is_confined(session_id):
            raise AgentError("this agent has no tool that edits files: there is nothing to allow")
        self.auto = self.allowed or not tools
        self.allowed = bool(tools)
        if session_id is not None:
            self.begin(session_id)
        if self.auto:
            return (
                "Auto: the agent also runs commands in the sandbox without asking in this chat. It asks "
                "before it uses the network or leaves the sandbox; rules that deny or always ask still apply."
            )
        return (
            f"The agent edits files without asking in this chat: {', '.join(tools)}. Rules that deny or "
            "always ask still apply; it asks before commands as before."
        )

    def begin(self, session_id: str) -> None:
        """Grant what the mode allows to a session, which may be new. Called in a thread."""
        patterns = [*(self._tools(session_id) if self.allowed else ()), *([SANDBOXED] if self.auto else ())]
        given = {grant.pattern for grant in self._given(session_id)}
        for pattern in patterns:
            if pattern not in given:
                self._app.grant(pattern, scope="session", session_id=session_id)

    def _ask_again(self, session_id: str | None) -> str:
        for grant in self._given(session_id):
            self._app.revoke(grant.id)
        self.allowed = self.auto = False
        left = self._left(session_id)
        but = f", except for other grants: {', '.join(left)} (/permissions)" if left else ""
        return f"The agent asks before it edits again{but}."

    def _given(self, session_id: str | None) -> list[Grant]:
        """Return the grants that are the mode."""
        found = () if session_id is None else self._app.grants(session_id)
        ours = (*EDITING, SANDBOXED)
        return [one for one in found if one.scope == "session" and _allows(one) and one.pattern in ours]

    def _left(self, session_id: str | None) -> list[str]:
        """Return what else was granted that lets edits run."""
        found = () if session_id is None else self._app.grants(session_id)
        patterns = [CallPattern.parse(grant.pattern) for grant in found if _allows(grant)]
        return [one.text for one in patterns if any(one.name.matches(name) for name in EDITING)]

    def _tools(self, session_id: str | None) -> list[str]:
        """Return the tools of the session's agent that edit files."""
        agent = self._app.runtime.resolve(agent_of_stored(self._app, session_id))
        return [name for name in EDITING if name in agent.tools]

    def _is_confined(self, session_id: str | None) -> bool:
        """Say whether the commands of the session's agent run in a sandbox."""
        agent = self._app.runtime.resolve(agent_of_stored(self._app, session_id))
        call = CallView(
            id="", name=COMMANDS, arguments={"command": "true"}, raw={}, tool=agent.tools.get(COMMANDS)
        )
        return is_contained(call, agent.spec)


def _allows(grant: Grant) -> bool:
    return grant.effect == "allow"
