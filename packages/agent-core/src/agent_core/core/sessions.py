"""Sessions and their native history: create, edit, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload
from uuid import uuid4

from agent_core.core.plugins import CoreBase, check_format, check_list, check_role, check_session
from agent_core.encoding import parse, readable
from agent_core.errors import (
    AgentError,
    ArgumentError,
    ArgumentTypeError,
    MessageEditError,
    MessageIndexError,
    SessionFormatError,
)
from agent_core.frozen import Dicts, JsonObject, thaw
from agent_core.messages import NATIVE_INDICES, Message, MessageRole
from agent_core.native import NATIVE_MESSAGES, patch_internal_metadata
from agent_core.pipeline import edit
from agent_core.session import Session

_EDITABLE_ROLES = ("system", "user", "assistant")


class Sessions(CoreBase):
    """The operations that need no model."""

    def create_session(self, session_id: str | None = None) -> Session:
        """Return an empty session, with a new id unless one is given."""
        if session_id is None:
            session_id = str(uuid4())
        return Session(session_id)

    def add_message(
        self,
        session: Session,
        role: MessageRole,
        content: object,
        metadata: JsonObject | None = None,
        config: JsonObject | None = None,
        *,
        multipart_content: Dicts | None = None,
        after_index: int | None = None,
        context: JsonObject | None = None,
        tool_result: JsonObject | None = None,
    ) -> Session:
        """Return the session with one more message, and native history with its native form.

        Args:
            after_index: Insert behind this message: -1 is the very beginning, lower numbers count
                from the end. By default the message goes to the end.
            config: Says which provider makes the native form. Without it, a message at the end
                waits for the next request to get one.

        Raises:
            MessageIndexError: If `after_index` is outside the session.
        """
        at = _insertion_point(after_index, len(check_session(session).messages))
        _check_kinds(metadata=metadata, multipart_content=multipart_content, tool_result=tool_result)
        message = Message(
            check_role(role),
            content,
            {key: value for key, value in (metadata or {}).items() if key != NATIVE_INDICES},
            multipart_content or None,
            tool_result,
        )
        editor = self._editor("add_message", session, config, context)
        return editor.append(message) if at == len(session.messages) else editor.insert(message, at)

    def append_messages(self, session: Session, messages: Sequence[Message]) -> Session:
        """Return the session with messages at its end; the next request gives them their native form.

        Costs the same at any length of the session, and no plugin is asked.
        """
        for message in messages:
            if not isinstance(message, Message):
                raise ArgumentTypeError(f"messages must be Message objects, not {type(message).__name__}")
        fresh = [message.with_native_indices(None) for message in messages]
        return edit.extend(check_session(session), fresh) if fresh else session

    def modify_message(
        self,
        session: Session,
        index: int,
        content: str,
        config: JsonObject | None = None,
        *,
        context: JsonObject | None = None,
    ) -> Session:
        """Return the session with other words in one message; its role and metadata stay.

        Raises:
            MessageIndexError: If there is no such message.
            MessageEditError: If it is a tool message, whose content belongs to its call.
        """
        check_session(session)
        position = index + len(session.messages) if index < 0 else index
        if not 0 <= position < len(session.messages):
            raise MessageIndexError("index", index, len(session.messages))
        message = session.messages[position]
        if message.role not in _EDITABLE_ROLES:
            raise MessageEditError(f"a {message.role} message cannot be modified: it answers a call")
        edited = replace(message, content=content, multipart_content=_edited_parts(message, content))
        return self._editor("modify_message", session, config, context).modify(position, edited)

    @overload
    def slice_session(
        self,
        session: Session,
        config: JsonObject | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        remove_indices: list[int] | None = None,
        return_removed: Literal[False] = False,
    ) -> Session: ...

    @overload
    def slice_session(
        self,
        session: Session,
        config: JsonObject | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        remove_indices: list[int] | None = None,
        return_removed: Literal[True],
    ) -> tuple[Session, Session]: ...

    def slice_session(
        self,
        session: Session,
        config: JsonObject | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        remove_indices: list[int] | None = None,
        return_removed: bool = False,
    ) -> Session | tuple[Session, Session]:
        """Return the session with a part of its messages, and native history to match.

        Args:
            start: The first message to keep; negative counts from the end.
            end: The first message not to keep; negative counts from the end.
            remove_indices: Messages to leave out; those that do not exist are ignored.
            return_removed: Also return a session of the messages that were left out.
            config: Says which provider's native history is kept. Without it, none is.

        Returns:
            The session, or with `return_removed` a pair of sessions.
        """
        count = len(check_session(session).messages)
        kept, removed = _selection(count, start, end, remove_indices)
        if len(kept) == count:
            if not return_removed:
                return session
            return session, edit.Editor(session, "slice_session").drop([], None)
        editor = self._editor("slice_session", session, config, None, strict=True)
        if not return_removed:
            return editor.select(kept)
        return editor.select(kept), editor.select(removed, unowned=False)

    def fork_session(
        self,
        session: Session,
        config: JsonObject | None = None,
        *,
        upto_index: int,
        new_session_id: str | None = None,
    ) -> Session:
        """Return a session that begins like this one and ends with message *upto_index*.

        Everything up to there is shared, not copied. The id stays unless another is given.
        """
        kept = range(len(check_session(session).messages))[: upto_index + 1]
        editor = self._editor("fork_session", session, config, None, strict=True)
        forked = editor.prefix(len(kept)) if len(kept) < len(session.messages) else session
        return forked if new_session_id is None else forked.with_id(new_session_id)

    def join_sessions(self, prefix: Session, suffix: Session, config: JsonObject | None = None) -> Session:
        """Return *prefix* followed by *suffix*, under the first one's id and metadata.

        Native histories are put one after the other if the configuration's provider made both.
        """
        check_session(prefix)
        check_session(suffix)
        request = None if config is None else self._edit_request("join_sessions", prefix, config, None)
        return edit.join(prefix, suffix, request)

    def export_session(self, session: Session, format: str = "json") -> str:  # noqa: A002
        """Return the session as text.

        Raises:
            ArgumentError: If the format is not "json".
        """
        check_format(format)
        return readable(check_session(session).to_dict())

    def import_session(self, data: str, format: str = "json") -> Session:  # noqa: A002
        """Return the session that `export_session` wrote.

        Raises:
            ArgumentError: If the format is not "json".
            SessionFormatError: If the text is not JSON, or no session.
        """
        check_format(format)
        try:
            return Session.from_dict(parse(data))
        except SessionFormatError:
            raise
        except RecursionError as error:
            raise SessionFormatError("nested too deeply") from error
        except (ValueError, TypeError) as error:
            raise SessionFormatError(f"not JSON: {error}") from error

    def core_messages_to_native(
        self, core_messages: Dicts, config: JsonObject, *, context: JsonObject | None = None
    ) -> Dicts:
        """Return message dicts in the provider's own form, as a request would send them."""
        check_list("core_messages", core_messages)
        messages = [Message.from_dict(message) for message in core_messages]
        request = self._edit_request("core_messages_to_native", self.create_session(), config, context)
        native: Dicts = thaw(edit.convert_messages(request, messages))
        return native

    def rebuild_native_history(
        self,
        session: Session,
        config: JsonObject | None = None,
        *,
        start: int | None = None,
        end: int | None = None,
        context: JsonObject | None = None,
    ) -> Session:
        """Return the session with native history rebuilt from its messages.

        Args:
            start: With `end`: only for these messages; the others keep their native history.

        Raises:
            ArgumentError: If there is no configuration, or `start` and `end` select no message.
            NativeHistoryError: If only a part is to be rebuilt and the rest cannot be kept.
        """
        if config is None:
            raise ArgumentError("config must be given to rebuild native history: it names the provider")
        request = self._edit_request("rebuild_native_history", session, config, context)
        if start is None and end is None:
            return edit.rebuild_all(request)
        return edit.rebuild_range(request, start, end)

    def patch_native_internal_metadata(
        self, native_messages: Dicts, indices: list[int], patch: JsonObject
    ) -> Dicts:
        """Return native messages with *patch* merged into the `_metadata` of some of them.

        `_metadata` is never sent to a provider and survives rebuilds.
        """
        if not indices or not isinstance(patch, Mapping) or not patch:
            return native_messages
        return patch_internal_metadata(native_messages, indices, patch)

    def _editor(
        self,
        operation: str,
        session: Session,
        config: JsonObject | None,
        context: JsonObject | None,
        *,
        strict: bool = False,
    ) -> edit.Editor:
        """Return an editor; plugins are asked for only if there is native history to keep.

        Without a configuration, a lone provider is tried with an empty one, unless *strict*.
        """
        check_session(session)
        if NATIVE_MESSAGES not in session.metadata or (config is None and strict):
            return edit.Editor(session, operation)
        if config is not None:
            return edit.Editor(session, operation, self._edit_request(operation, session, config, context))
        try:
            return edit.Editor(session, operation, self._edit_request(operation, session, {}, context))
        except AgentError:
            return edit.Editor(session, operation)


def _check_kinds(*, metadata: object, multipart_content: Any, tool_result: object) -> None:
    kinds = (("metadata", metadata, dict), ("multipart_content", multipart_content, list))
    for name, value, kind in (*kinds, ("tool_result", tool_result, dict)):
        if value is not None and not isinstance(value, kind):
            raise ArgumentTypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    if not all(isinstance(part, dict) for part in multipart_content or ()):
        raise ArgumentTypeError("multipart_content must be a list of dicts")


def _insertion_point(after_index: int | None, count: int) -> int:
    if after_index is None:
        return count
    if after_index == -1:
        return 0
    position = after_index + count if after_index < 0 else after_index
    if not 0 <= position < count:
        raise MessageIndexError("after_index", after_index, count)
    return position + 1


def _selection(
    count: int, start: int | None, end: int | None, remove_indices: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """Return the positions to keep and those to leave out, by the rules of Python's slices."""
    dropped = {i + count if i < 0 else i for i in remove_indices or () if isinstance(i, int)}
    inside = set(range(count)[slice(start, end)])
    staying = inside - dropped
    return sorted(staying), [position for position in range(count) if position not in staying]


def _edited_parts(message: Message, content: object) -> Dicts | None:
    """Return the parts with the new text in place of the old; images and files stay attached."""
    if message.multipart_content is None:
        return None
    others = [part for part in message.multipart_content if part.get("type") != "text"]
    return [{"type": "text", "text": content}, *others] if others else None
