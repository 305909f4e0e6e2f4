"""One message of a conversation, and its dict form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_core.encoding import plain
from agent_core.errors import ArgumentError, ArgumentTypeError, SessionFormatError
from agent_core.frozen import (
    EMPTY,
    Dicts,
    FrozenDict,
    FrozenList,
    JsonObject,
    NotData,
    freeze_data,
)

MessageRole = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = ("system", "user", "assistant", "tool")
NATIVE_INDICES = "native_indices"
TOOL_CALLS, TOOL_CALL_ID, TOOL_NAME = "tool_calls", "tool_call_id", "tool_name"
USAGE, INTERRUPTED = "usage", "interrupted"
_FIELDS = frozenset({"role", "content", "metadata", "multipartContent", "tool_result"})
_NONE = type(None)
# The classes that a message's fields have in the end; a value of any other is looked at.
_KINDS: dict[str, tuple[type, ...]] = {
    "content": (str, FrozenList, FrozenDict, _NONE),
    "metadata": (FrozenDict,),
    "multipart_content": (_NONE, FrozenList),
    "tool_result": (_NONE, FrozenDict),
    "extra": (FrozenDict,),
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message, frozen all the way down.

    Attributes:
        role: Who speaks: "system", "user", "assistant" or "tool".
        content: What is said, usually text.
        metadata: What the platform and plugins know about it; `native_indices` is the core's.
        multipart_content: The parts, where the content is more than text (images, files).
        tool_result: The structured result behind a tool message.
        extra: Fields of the dict form that this version does not know; they are kept.

    Raises:
        ArgumentError: If the role is unknown, or an argument has the wrong type.
        SessionFormatError: If something in it is not JSON data.
    """

    role: str
    content: Any
    metadata: JsonObject = field(default_factory=lambda: EMPTY)
    multipart_content: Dicts | None = None
    tool_result: JsonObject | None = None
    extra: JsonObject = field(default_factory=lambda: EMPTY, repr=False)
    _dict: FrozenDict | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ArgumentError(f"role must be one of {list(ROLES)}, not {self.role!r:.80}")
        # The only writes ever made to a message: its containers become frozen ones.
        # Text with frozen metadata, as most messages are that come from another one, needs no look at all.
        if self.content.__class__ is not str or not (
            self.metadata.__class__ is FrozenDict is self.extra.__class__
        ):
            self._freeze("content", "metadata", "extra")
        if self.tool_result is not None:
            self._freeze("tool_result")
        if self.multipart_content is not None:
            self._freeze("multipart_content")
            for part in self.multipart_content:
                if not isinstance(part, dict):
                    raise ArgumentTypeError("multipart_content must be a list of dicts")

    def _freeze(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value.__class__ not in _KINDS[name]:
                object.__setattr__(self, name, _checked(name, value, _KINDS[name]))

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
        if NATIVE_INDICES not in self.metadata:
            if indices is None:
                return self
            metadata = dict(self.metadata)
        elif indices is not None and indices == self.native_indices:
            return self
        else:
            metadata = {key: value for key, value in self.metadata.items() if key != NATIVE_INDICES}
        if indices is not None:
            metadata[NATIVE_INDICES] = FrozenList(indices)
        kept = FrozenDict(metadata)  # its values are frozen already
        return Message(self.role, self.content, kept, self.multipart_content, self.tool_result, self.extra)

    def __copy__(self) -> Message:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Message:
        return self  # a copy could only be the same, and its containers would be plain ones

    def frozen_dict(self, *, keep: bool = True) -> FrozenDict:
        """Return the dict form for lending to plugins.

        Args:
            keep: Whether the message keeps it for the next time.
        """
        made = self._dict
        if made is None:
            made = FrozenDict(self.fields())
            if keep:
                object.__setattr__(self, "_dict", made)
        return made

    def to_dict(self) -> JsonObject:
        """Return the dict form as plain data that the caller may change."""
        fields: JsonObject = plain(self.fields())
        return fields

    def fields(self) -> JsonObject:
        """Return the fields of the dict form; their values are the message's own."""
        fields = {**self.extra, "role": self.role, "content": self.content, "metadata": self.metadata}
        if self.multipart_content is not None:
            fields["multipartContent"] = self.multipart_content
        if self.tool_result is not None:
            fields["tool_result"] = self.tool_result
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read the dict form. Fields that a newer version may have written are kept in `extra`.

        Raises:
            SessionFormatError: If a field is missing or of the wrong type.
        """
        check_message_dict(data)
        known = data.keys() <= _FIELDS
        return cls(
            role=data["role"],
            content=data.get("content"),
            metadata=data.get("metadata") or EMPTY,
            multipart_content=data.get("multipartContent"),
            tool_result=data.get("tool_result"),
            extra=EMPTY if known else {key: value for key, value in data.items() if key not in _FIELDS},
        )


def _checked(name: str, value: object, kinds: tuple[type, ...]) -> Any:
    """Return what becomes of a field's value.

    Raises:
        ArgumentTypeError: If the field cannot have such a value.
    """
    frozen = check_data(name, value) if name == "content" or isinstance(value, (dict, list, tuple)) else value
    if name != "content" and not isinstance(frozen, kinds):
        wanted = "list of dicts" if FrozenList in kinds else "dict"
        raise ArgumentTypeError(f"{name} must be a {wanted}, not {type(value).__name__}")
    return frozen


def check_data(name: str, value: object) -> Any:
    """Return *value* frozen.

    Raises:
        SessionFormatError: If it is not JSON data; the field that is not is named.
    """
    try:
        return freeze_data(value, name)
    except NotData as error:
        raise SessionFormatError(str(error), field=error.path) from None
    except RecursionError:
        raise SessionFormatError("nested too deeply", field=name) from None


def check_message_dict(data: object) -> None:
    """Raise `SessionFormatError` unless *data* is a message's dict form."""
    if not isinstance(data, (dict, Mapping)):
        raise SessionFormatError(f"a message must be a dict, not {type(data).__name__}", field="messages")
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
