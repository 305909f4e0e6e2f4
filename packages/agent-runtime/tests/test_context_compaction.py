"""When old messages are summarised, and what becomes of the summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentError, Cancellation, Message, RequestCancelled, Session, ToolDescriptor
from agent_core.drivers import EventStream
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.context.compaction import FAILURES, SECTION, CompactionPlugin
from agent_runtime.context.records import COMPACTIONS, Record, compacted, digest, read_records, write_records
from agent_runtime.env import PluginRegistrar
from agent_runtime.errors import SpecError
from agent_runtime.phases import Phase, PhaseView
from agent_runtime.policies import RunStats
from agent_runtime.results import Usage
from agent_runtime.runs import RunInfo
from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec
from agent_runtime.state import State
from agent_runtime.tokens import CALIBRATION, TokenCounter

if TYPE_CHECKING:
    from agent_core.steps import Flow
    from agent_runtime.commands import Command

Answer = Callable[[list[Message]], str]
COUNTER = TokenCounter()


class Asked:
    """Answers what a hook asks outside the conversation, and remembers it."""

    def __init__(self, answer: str | Exception | BaseException = "They talked.") -> None:
        self.answer = answer
        self.requests: list[tuple[list[Message], str | None]] = []

    def __call__(self, messages: Sequence[Message], *, model: str | None, config: Any) -> Flow[str]:
        self.requests.append((list(messages), model))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer
        yield  # a flow, though it asks for nothing


def conversation(length: int) -> list[Message]:
    roles = ("user", "assistant")
    return [Message(roles[turn % 2], f"turn {turn} ".ljust(400, "a")) for turn in range(length)]


def looking(
    messages: Sequence[Message],
    asked: Asked,
    *,
    window: int | None = 1000,
    state: dict[str, Any] | None = None,
    section: dict[str, Any] | None = None,
    system_prompt: str = "",
    tools: tuple[ToolDescriptor, ...] = (),
) -> PhaseView:
    keys = {key.name: key for key in (COMPACTIONS, FAILURES, CALIBRATION)}
    return PhaseView(
        phase=Phase.BEFORE_INFERENCE,
        run=RunInfo(
            run_id="r",
            agent_id="a",
            round=3,
            parents=(),
            model=ModelSpec("m", "p", context_window=window, max_output_tokens=None),
            tools=tools,
            clock=SYSTEM_CLOCK,
            cancellation=Cancellation(),
            ask=asked,
        ),
        spec=AgentSpec("a", "m", system_prompt=system_prompt, sections={SECTION: section or {}}),
        session=Session("s", messages),
        state=State(keys, state or {}),
        usage=Usage(),
        stats=RunStats(),
    )


def plugin(**policy: Any) -> CompactionPlugin:
    settings = {"keep_recent": 2, "reserve_tokens": 100, **policy}
    return CompactionPlugin(ContextPolicy(**settings), ModelSpec("m", "p"))


def driven(flow: Flow[Command | None]) -> tuple[Command | None, list[dict[str, Any]]]:
    stream = EventStream(flow)
    events = list(stream)
    return stream.result, events


def after(command: Command | None, state: State) -> State:
    for update in () if command is None else command.updates:
        state = state.updated(*update)
    return state


def newest(command: Command | None, view: PhaseView) -> Record:
    return read_records(after(command, view.state).read(COMPACTIONS))[-1]


def test_a_conversation_with_room_left_is_left_alone() -> None:
    asked = Asked()

    assert driven(plugin().before_inference(looking(conversation(4), asked))) == (None, [])
    assert asked.requests == []


def test_a_conversation_that_nears_the_window_is_summarised() -> None:
    asked, messages = Asked(), conversation(9)
    view = looking(messages, asked)

    command, events = driven(plugin().before_inference(view))

    record = newest(command, view)
    assert (record.upto, record.summary, record.model, record.at_round) == (7, "They talked.", "m", 3)
    assert record.tokens_before == COUNTER.messages(messages)
    assert record.tokens_after == COUNTER.messages(compacted(messages, 7, "They talked."))
    assert events == [
        {
            "type": "compaction",
            "messages": 7,
            "tokens_before": record.tokens_before,
            "tokens_after": record.tokens_after,
        }
    ]


def test_the_model_reads_what_is_summarised_and_not_what_is_kept() -> None:
    asked = Asked()
    driven(plugin().before_inference(looking(conversation(9), asked)))

    [(request, model)] = asked.requests
    assert model is None
    assert "turn 6" in request[1].content
    assert "turn 7" not in request[1].content


@pytest.mark.parametrize(
    ("policy", "summarised"),
    [({"compact_at": 0.5}, True), ({"compact_at": 1}, False), ({"compact_at": None}, False)],
)
def test_the_share_of_the_window_is_that_of_the_policy(policy: dict[str, Any], summarised: bool) -> None:
    asked = Asked()
    driven(plugin(**policy).before_inference(looking(conversation(6), asked)))

    assert bool(asked.requests) is summarised


def test_system_prompt_and_tools_count() -> None:
    schema = {"description": "a" * 2000}
    tool = ToolDescriptor(name="read", schema=schema, plugin="files")

    for around in ({"system_prompt": "a" * 2000}, {"tools": (tool,)}):
        asked = Asked()
        driven(plugin().before_inference(looking(conversation(4), asked, **around)))
        assert asked.requests, around


def test_a_model_that_counts_more_is_summarised_for_earlier() -> None:
    asked = Asked()
    view = looking(conversation(5), asked, state={CALIBRATION.name: {"m": 2.0}})
    driven(plugin().before_inference(view))

    assert asked.requests


def test_nothing_is_summarised_unasked_where_no_window_is_known() -> None:
    asked = Asked()

    assert driven(plugin().before_inference(looking(conversation(1300), asked, window=None))) == (None, [])


def test_a_call_is_never_parted_from_its_result() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    pair = [Message("assistant", "", {"tool_calls": [call]}), Message("tool", "done", {"tool_call_id": "c"})]
    view = looking([*conversation(8), *pair], Asked())

    command, _events = driven(plugin(keep_recent=1).before_inference(view))

    assert newest(command, view).upto == 8


def test_a_later_summary_includes_the_earlier_one() -> None:
    asked, messages = Asked(), conversation(20)
    view = looking(messages, asked, window=10_000)
    first, _events = driven(plugin().before_inference(looking(messages[:9], Asked("They began."))))
    state = dict(after(first, view.state))

    command, _events = driven(
        plugin(compact_at=0.1).before_inference(looking(messages, asked, window=10_000, state=state))
    )

    quoted = asked.requests[0][0][1].content
    assert "They began." in quoted
    assert "turn 6 " not in quoted
    assert "turn 7 " in quoted
    assert "turn 17 " in quoted
    assert "turn 18 " not in quoted
    assert [record.upto for record in read_records(after(command, view.state).read(COMPACTIONS))] == [7, 18]


def test_what_is_summarised_already_does_not_count_again() -> None:
    messages, asked = conversation(9), Asked()
    view = looking(messages, asked)
    command, _events = driven(plugin().before_inference(view))
    asked.requests.clear()

    again = looking(messages, asked, state=dict(after(command, view.state)))

    assert driven(plugin().before_inference(again)) == (None, [])
    assert asked.requests == []


def test_a_summary_alone_is_not_summarised_again() -> None:
    messages, asked = conversation(9), Asked()
    record = Record(upto=7, digest=digest(messages[:7]), summary="a" * 2000)
    view = looking(messages, asked, state={COMPACTIONS.name: write_records([record])})

    assert driven(plugin().before_inference(view)) == (None, [])
    assert asked.requests == []


def test_request_and_summary_fit_into_the_window_together() -> None:
    asked = Asked()
    driven(plugin(reserve_tokens=0).before_inference(looking(conversation(60), asked, window=2000)))

    assert COUNTER.messages(asked.requests[0][0]) + 2000 // 4 <= 2000


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("a" * 1800, "saves 2"),
        ("", "is empty"),
        ("a" * 9000, "has about 2250 tokens, where 250 were asked for"),
        (AgentError("no connection"), "failed with AgentError: no connection"),
    ],
)
def test_a_summary_that_is_no_help_is_reported_and_counted(answer: str | Exception, problem: str) -> None:
    view = looking(conversation(9), Asked(answer))

    command, [event] = driven(plugin().before_inference(view))

    assert event["type"] == "warning"
    assert event["plugin"] == "context_compaction"
    assert problem in event["message"]
    assert after(command, view.state).read(FAILURES) == 1
    assert after(command, view.state).read(COMPACTIONS) == []


def test_after_two_failures_a_run_tries_no_more() -> None:
    asked = Asked("")
    view = looking(conversation(9), asked, state={FAILURES.name: 2})

    assert driven(plugin().before_inference(view)) == (None, [])
    assert driven(plugin().compact({"force": True}, view)) == (None, [])
    assert asked.requests == []


def test_a_run_that_is_cancelled_at_the_same_time_is_cancelled() -> None:
    view = looking(conversation(9), Asked(RequestCancelled()))

    with pytest.raises(RequestCancelled):
        driven(plugin().before_inference(view))


def test_no_model_is_asked_where_no_summary_could_save_enough() -> None:
    asked = Asked()
    view = looking(conversation(9), asked)

    assert driven(plugin(keep_recent=7).before_inference(view)) == (None, [])
    assert asked.requests == []


def test_every_setting_of_the_section_counts() -> None:
    def tried(**section: Any) -> tuple[Asked, PhaseView, Command | None]:
        asked = Asked("a" * 400)
        view = looking(conversation(9), asked, section=section)
        return asked, view, driven(plugin().before_inference(view))[0]

    asked, view, command = tried(model="small", prompt="List it.", keep_recent=4)
    assert asked.requests[0][1] == newest(command, view).model == "small"
    assert asked.requests[0][0][0].content.startswith("List it.")
    assert newest(command, view).upto == 5

    _asked, view, command = tried(min_saving=0.9)
    assert command is None  # not even an empty summary could save as much
    _asked, view, command = tried(min_saving=0.65)
    assert after(command, view.state).read(FAILURES) == 1
    _asked, view, command = tried(max_summary_tokens=16)
    assert after(command, view.state).read(FAILURES) == 1


def test_forced_it_is_done_whatever_the_estimate() -> None:
    for window in (100_000, None):
        view = looking(conversation(9), Asked(), window=window)

        command, [event] = driven(plugin().compact({"force": True}, view))

        assert event["type"] == "compaction"
        assert newest(command, view).upto == 7


def test_unforced_the_action_heeds_the_estimate() -> None:
    assert driven(plugin().compact(None, looking(conversation(4), Asked()))) == (None, [])
    assert driven(plugin().compact({}, looking(conversation(9), Asked())))[0] is not None


def test_forced_even_recent_messages_are_summarised_if_nothing_else_is_left() -> None:
    view = looking(conversation(5), Asked(), window=None)

    command, _events = driven(plugin(keep_recent=10).compact({"force": True}, view))

    assert newest(command, view).upto == 4


def test_forced_the_request_for_a_summary_is_much_shorter_than_what_was_refused() -> None:
    messages, asked = conversation(60), Asked()
    driven(plugin().compact({"force": True}, looking(messages, asked, window=None)))

    assert COUNTER.messages(asked.requests[0][0]) <= COUNTER.messages(messages) / 2


def test_a_policy_without_summaries_is_not_overruled() -> None:
    asked = Asked()
    command, [event] = driven(
        plugin(compact_at=None).compact({"force": True}, looking(conversation(9), asked))
    )

    assert (command, asked.requests) == (None, [])
    assert "compact_at" in event["message"]


def test_a_summary_of_an_edited_history_is_forgotten_with_one_warning() -> None:
    messages = conversation(9)
    view = looking(messages, Asked())
    state = after(driven(plugin().before_inference(view))[0], view.state)
    edited = [Message("user", "edited"), *messages[1:4]]

    command, [event] = driven(plugin().before_inference(looking(edited, Asked(), state=dict(state))))

    assert event["type"] == "warning"
    assert "edited" in event["message"]
    left = after(command, state)
    assert left.read(COMPACTIONS) == []
    assert driven(plugin().before_inference(looking(edited, Asked(), state=dict(left)))) == (None, [])


@pytest.mark.parametrize("saved", [None, "text", [3], {"upto": 1}])
def test_what_stands_in_the_session_instead_of_records_does_no_harm(saved: Any) -> None:
    view = looking(conversation(4), Asked(), state={COMPACTIONS.name: saved})

    command, [event] = driven(plugin().before_inference(view))

    assert event["type"] == "warning"
    assert after(command, view.state).read(COMPACTIONS) == []
    assert plugin().undo(None, view) is None


def test_an_edited_history_can_be_summarised_anew_at_once() -> None:
    messages = conversation(9)
    stale = [Record(upto=7, digest="other", summary="Untrue.")]
    view = looking(messages, Asked("True."), state={COMPACTIONS.name: write_records(stale)})

    command, events = driven(plugin().before_inference(view))

    assert [event["type"] for event in events] == ["warning", "compaction"]
    records = read_records(after(command, view.state).read(COMPACTIONS))
    assert [record.summary for record in records] == ["True."]


def test_undoing_takes_the_newest_summary_back() -> None:
    view = looking(conversation(9), Asked())
    done = after(driven(plugin().before_inference(view))[0], view.state)

    command = plugin().undo(None, looking(conversation(9), Asked(), state=dict(done)))

    assert after(command, done).read(COMPACTIONS) == []
    assert plugin().undo(None, view) is None


def test_what_is_kept_of_a_summary_is_plain_data() -> None:
    view = looking(conversation(9), Asked())
    state = after(driven(plugin().before_inference(view))[0], view.state)
    keys = {key.name: key for key in (COMPACTIONS, FAILURES, CALIBRATION)}

    assert State.restored(keys, state.saved("session")).read(COMPACTIONS) == state.read(COMPACTIONS)
    assert FAILURES.name not in state.saved("session")


def test_the_plugin_places_its_hook_actions_and_keys_and_claims_its_section() -> None:
    registrar = PluginRegistrar(AgentSpec("a", "m"))
    registrar.plugin = "context_compaction"
    plugin().register(registrar)
    env = registrar.env(())

    assert list(env.phase_hooks) == [Phase.BEFORE_INFERENCE]
    assert set(env.scheduled_action_handlers) == {"compact", "undo_compaction"}
    assert set(env.keys) == {COMPACTIONS.name, FAILURES.name}
    assert [section for section, _schema in plugin().config_schemas()] == ["compaction"]


def test_a_section_with_a_wrong_field_is_refused_when_the_plugin_is_placed() -> None:
    spec = AgentSpec("a", "m", sections={SECTION: {"keep_recentt": 3}})

    with pytest.raises(SpecError, match="keep_recent"):
        plugin().register(PluginRegistrar(spec))
