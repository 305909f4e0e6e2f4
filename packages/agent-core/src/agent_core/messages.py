"""One message of a conversation, and its dict form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.errors import SessionFormatError
from agent_core.frozen import EMPTY, Dicts, FrozenDict, FrozenList, JsonObject, freeze, thaw

MessageRole = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = ("system", "user", "assistant", "tool")
NATIVE_INDICES = "native_indices"
TOOL_CALLS, TOOL_CALL_ID, TOOL_NAME = "tool_calls", "tool_call_id", "tool_name"
USAGE, INTERRUPTED = "usage", "interrupted"
_FIELDS = frozenset({"role", "content", "metadata", "multipartContent", "tool_result"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message, frozen all the way down.

    Attributes:
        role: Who speaks: "system", "user", "assistant" or "tool".
        content: What is said, usually text.
        metadata: What the platform and plugins know about it; `native_indices` is the core's.
        multipart_content: The parts, where the content is more than text (images, files).
        tool_result: The structured result behind a tool message.
    """

    role: str
    content: Any
    metadata: JsonObject = field(default_factory=lambda: EMPTY)
    multipart_content: Dicts | None = None
    tool_result: JsonObject | None = None
    _dict: FrozenDict | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The only writes ever made to a message: its containers become frozen ones.
        for name in ("content", "metadata", "multipart_content", "tool_result"):
            value = getattr(self, name)
            frozen = freeze(value)
            if frozen is not value:
                object.__setattr__(self, name, frozen)

    # What the platform knows about a message is written into its metadata by whoever makes it, and read
    # here: the names of the keys are the reference's.

    @property
    def tool_calls(self) -> Sequence[JsonObject]:
        """The calls that the model makes with an answer, as it sent them."""
        calls = self.metadata.get(TOOL_CALLS) if self.role == "assistant" else None
        return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else ()

    @property
    def tool_call_id(self) -> str | None:
        """Which call a tool message answers."""
        found = self.metadata.get(TOOL_CALL_ID) if self.role == "tool" else None
        return None if found is None else str(found)

    @property
    def usage(self) -> JsonObject | None:
        """What the provider counted for an answer, in its own words made common ones."""
        found = self.metadata.get(USAGE)
        return found if isinstance(found, dict) else None

    @property
    def is_interrupted(self) -> bool:
        """Whether an answer ended before the model was done."""
        return INTERRUPTED in self.metadata

    @property
    def native_indices(self) -> tuple[int, ...] | None:
        """Where this message stands in native history, or None when that is not known."""
        found = self.metadata.get(NATIVE_INDICES)
        if not isinstance(found, list):
            return None
        for index in found:
            if type(index) is not int or index < 0:
                return None  # it may come from a file that somebody edited
        return tuple(found)

    def with_native_indices(self, indices: tuple[int, ...] | None) -> Message:
        """Return this message standing at other places of native history."""
        if indices == self.native_indices and (indices is not None or NATIVE_INDICES not in self.metadata):
            return self
        metadata = {key: value for key, value in self.metadata.items() if key != NATIVE_INDICES}
        if indices is not None:
            metadata[NATIVE_INDICES] = FrozenList(indices)
        kept = FrozenDict(metadata)  # its values are frozen already
        return Message(self.role, self.content, kept, self.multipart_content, self.tool_result)

    def __copy__(self) -> Message:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Message:
        return self  # a copy could only be the same, and its containers would be plain ones

    def frozen_dict(self) -> FrozenDict:
        """Return the dict form for lending to plugins; made once."""
        if self._dict is None:
            object.__setattr__(self, "_dict", freeze(self._fields()))
        assert self._dict is not None
        return self._dict

    def to_dict(self) -> JsonObject:
        """Return the dict form as plain data that the caller may change."""
        plain: JsonObject = thaw(self._fields())
        return plain

    def _fields(self) -> JsonObject:
        fields = {"role": self.role, "content": self.content, "metadata": self.metadata}
        if self.multipart_content is not None:
            fields["multipartContent"] = self.multipart_content
        if self.tool_result is not None:
            fields["tool_result"] = self.tool_result
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read the dict form.

        Raises:
            SessionFormatError: If a field is missing, foreign or of the wrong type.
        """
        check_message_dict(data)
        return cls(
            role=data["role"],
            content=data.get("content"),
            metadata=data.get("metadata") or EMPTY,
            multipart_content=data.get("multipartContent"),
            tool_result=data.get("tool_result"),
        )


def check_message_dict(data: object) -> None:
    """Raise `SessionFormatError` unless *data* is a message's dict form."""
    if not isinstance(data, Mapping):
        raise SessionFormatError(f"a message must be a dict, not {type(data).__name__}", field="messages")
    if not data.keys() <= _FIELDS:
        foreign = min(str(key) for key in data if key not in _FIELDS)
        raise SessionFormatError(f"a message has no such field; known are {sorted(_FIELDS)}", field=foreign)
    if "role" not in data or "content" not in data:
        raise SessionFormatError("missing", field="role" if "role" not in data else "content")
    if data["role"] not in ROLES:
        raise SessionFormatError(f"must be one of {list(ROLES)}, not {data['role']!r}", field="role")
    _check_containers(data)


def _check_containers(data: Mapping[str, Any]) -> None:
    for name, kind in (("metadata", dict), ("multipartContent", list), ("tool_result", dict)):
        value = data.get(name)
        if value is not None and not isinstance(value, kind):
            raise SessionFormatError(f"must be a {kind.__name__}, not {type(value).__name__}", field=name)
    for part in data.get("multipartContent") or ():
        if not isinstance(part, dict):
            raise SessionFormatError("must be a list of dicts", field="multipartContent")


def fold_foreign_fields(data: Mapping[str, object]) -> JsonObject:
    """Return a plugin's message dict with the fields that a message lacks moved into its metadata."""
    if data.keys() <= _FIELDS and "content" in data:
        return dict(data)
    foreign = {key: value for key, value in data.items() if key not in _FIELDS}
    known = {key: value for key, value in data.items() if key in _FIELDS}
    metadata = known.get("metadata") or {}
    if foreign and isinstance(metadata, Mapping):
        known["metadata"] = {**foreign, **metadata}
    known.setdefault("content", None)
    return known
