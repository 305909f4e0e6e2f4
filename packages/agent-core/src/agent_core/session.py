"""A conversation as a frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.dict_form import DictForm, replace, whole
from agent_core.encoding import plain
from agent_core.errors import ArgumentTypeError, SessionFormatError
from agent_core.frozen import EMPTY, FrozenDict, FrozenList, JsonObject, State
from agent_core.history import History
from agent_core.messages import Message, check_data

_FIELDS: dict[str, type] = {"session_id": str, "messages": Sequence, "metadata": Mapping}
_NATIVE = "native_messages"
_SEALED = frozenset({_NATIVE, "native_messages_integrity"})


@whole
@dataclass(frozen=True, slots=True)
class Session(DictForm):
    """A conversation: its messages, and metadata that includes provider-native history.

    Nothing about a session ever changes; every operation returns another one, which shares what
    did not change. `messages` reads like a list.

    Attributes:
        extra: Fields of the dict form that this version does not know; they are kept.

    Raises:
        ArgumentTypeError: If an argument has the wrong type.
        SessionFormatError: If something in the metadata is not JSON data.
    """

    session_id: str
    messages: Sequence[Message] = ()
    metadata: JsonObject = field(default_factory=lambda: EMPTY)
    extra: JsonObject = field(default_factory=lambda: EMPTY, repr=False)
    # Set by `agent_core.native` on sessions whose integrity it has made or checked itself, so that
    # it need not be checked again. A session made in any other way has none.
    _seal: object | None = field(default=None, init=False, repr=False, compare=False)
    # The native history as `agent_core.native` read or wrote it, so that it need not be read again.
    _native: object | None = field(default=None, init=False, repr=False, compare=False)
    # Set by a layer that stores sessions, to know which version of a session another one was made of.
    _origin: object | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.session_id, str):
            raise ArgumentTypeError(f"session_id must be a string, not {type(self.session_id).__name__}")
        # Most sessions are made of another one, whose parts need no second look.
        if self.messages.__class__ is not History:
            object.__setattr__(self, "messages", _history(self.messages))
        if self.metadata.__class__ is not FrozenDict or _NATIVE in self.metadata:
            object.__setattr__(self, "metadata", _frozen_metadata(self.metadata))
        if self.extra.__class__ is not FrozenDict:
            object.__setattr__(self, "extra", check_data("extra", self.extra))

    @property
    def seal(self) -> object | None:
        """The links by which `agent_core.native` knows this session's integrity, if it does already."""
        return self._seal

    def sealed(self, seal: object | None) -> Session:
        """Return this session, newly made, with its integrity known."""
        object.__setattr__(self, "_seal", seal)
        return self

    @property
    def native(self) -> object | None:
        """What `agent_core.native` has read of this session, or of the one that it was made of."""
        return self._native

    def with_native(self, native: object) -> Session:
        """Return this session itself, with its native history noted."""
        object.__setattr__(self, "_native", native)
        return self

    @property
    def memory(self) -> State | None:
        """What somebody found out about this conversation and need not find out again; never stored.

        All versions of a conversation share the dict, forks too, so what is found in it must be compared
        with the messages before it is believed. None as long as there is no native history.
        """
        return getattr(self._seal, "memory", None)

    @property
    def origin(self) -> object | None:
        """What a layer that stores sessions noted about this one, or about that which it was made of."""
        return self._origin

    def with_origin(self, origin: object | None) -> Session:
        """Return this session itself, with its origin noted."""
        object.__setattr__(self, "_origin", origin)
        return self

    @property
    def history(self) -> History[Message]:
        """The messages as the structure-sharing sequence that they are."""
        assert isinstance(self.messages, History)
        return self.messages

    def __copy__(self) -> Session:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Session:
        return self  # a copy could only be the same, and its containers would be plain ones

    def with_messages(
        self, messages: History[Message], metadata: JsonObject | None = None, seal: object | None = None
    ) -> Session:
        """Return this session with other messages and perhaps other metadata; its origin is the same.

        Args:
            seal: What is known of the integrity of the result.
        """
        changed = Session(
            self.session_id, messages, self.metadata if metadata is None else metadata, self.extra
        )
        if self._origin is not None:
            object.__setattr__(changed, "_origin", self._origin)
        if seal is not None:
            object.__setattr__(changed, "_seal", seal)
            object.__setattr__(changed, "_native", self._native)
        return changed

    def with_metadata(self, patch: Mapping[str, object]) -> Session:
        """Return this session with *patch* merged into its metadata."""
        changed = replace(self, metadata={**self.metadata, **patch}).with_origin(self._origin)
        return changed if _SEALED.intersection(patch) else changed.sealed(self._seal)

    def with_id(self, session_id: str) -> Session:
        """Return this session under another id."""
        return replace(self, session_id=session_id).sealed(self._seal)

    def frozen_dict(self) -> FrozenDict:
        """Return the dict form for lending to plugins, sharing what is shared."""
        return FrozenDict(
            {
                **self.extra,
                "session_id": self.session_id,
                "messages": FrozenList([message.frozen_dict() for message in self.messages]),
                "metadata": _with_real_list(self.metadata),
            }
        )

    def to_dict(self) -> JsonObject:
        """Return the dict form as plain data that the caller may change."""
        return {
            **plain(self.extra),
            "session_id": self.session_id,
            "messages": [message.to_dict() for message in self.messages],
            "metadata": plain(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Session:
        """Read the dict form. Fields that a newer version may have written are kept in `extra`.

        Raises:
            SessionFormatError: If a field is missing or of the wrong type.
        """
        _check_session_dict(data)
        messages = [_read_message(index, item) for index, item in enumerate(data["messages"])]
        foreign = {key: value for key, value in data.items() if key not in _FIELDS}
        return cls(data["session_id"], messages, data.get("metadata") or EMPTY, foreign)


def _history(messages: Sequence[Message]) -> History[Message]:
    if isinstance(messages, History):
        return messages
    if messages == ():
        return History()
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise ArgumentTypeError(f"messages must be a list of messages, not {type(messages).__name__}")
    for message in messages:
        if not isinstance(message, Message):
            raise ArgumentTypeError(f"messages must be Message objects, not {type(message).__name__}")
    return History.of(messages)


def _frozen_metadata(metadata: Mapping[str, object]) -> FrozenDict:
    if not isinstance(metadata, (dict, Mapping)):  # `dict` first: asking an abstract class is slow
        raise ArgumentTypeError(f"metadata must be a dict, not {type(metadata).__name__}")
    frozen: FrozenDict = (
        metadata if metadata.__class__ is FrozenDict else check_data("metadata", dict(metadata))
    )
    native = frozen.get(_NATIVE)
    if isinstance(native, FrozenList):
        # From here on it shares structure, like the messages do.
        frozen = FrozenDict({**frozen, _NATIVE: History(native)})
    return frozen


def _with_real_list(metadata: JsonObject) -> FrozenDict:
    """Return the metadata with native history as a list, as plugins and JSON encoders expect it."""
    native = metadata.get(_NATIVE)
    listed = {_NATIVE: FrozenList(native)} if isinstance(native, History) else {}
    return FrozenDict({**metadata, **listed})


def _check_session_dict(data: object) -> None:
    if not isinstance(data, Mapping):
        raise SessionFormatError(f"a session must be a dict, not {type(data).__name__}")
    for name, kind in _FIELDS.items():
        value = data.get(name, EMPTY if name == "metadata" else None)
        if name not in data and name != "metadata":
            raise SessionFormatError("missing", field=name)
        if not isinstance(value, kind) or (kind is Sequence and isinstance(value, str)):
            raise SessionFormatError(
                f"must be a {kind.__name__.lower()}, not {type(value).__name__}", field=name
            )


def _read_message(index: int, data: Any) -> Message:
    try:
        return Message.from_dict(data)
    except SessionFormatError as error:
        raise SessionFormatError(str(error), field=f"messages[{index}]") from error
