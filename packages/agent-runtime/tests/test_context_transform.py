"""What is sent of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Cancellation, Message, Session, ToolDescriptor
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.context.records import COMPACTIONS, Record, digest, summary_message, write_records
from agent_runtime.context.window import ContextTransformPlugin
from agent_runtime.env import PluginRegistrar, Prompt
from agent_runtime.errors import SpecError
from agent_runtime.phases import Phase, PhaseView
from agent_runtime.policies import RunStats
from agent_runtime.results import Usage
from agent_runtime.runs import RunInfo
from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec
from agent_runtime.state import State
from agent_runtime.tokens import CALIBRATION, TokenCounter, counter_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.steps import Flow

SYSTEM = Message("system", "Be brief.")
COUNTER = TokenCounter()


def nobody(*_args: Any, **_settings: Any) -> Flow[str]:
    raise AssertionError("a transform asks no model")


def conversation(length: int) -> list[Message]:
    roles = ("user", "assistant")
    return [Message(roles[turn % 2], f"turn {turn} ".ljust(400, "a")) for turn in range(length)]


def looking(
    messages: Sequence[Message],
    *,
    model: ModelSpec | None = None,
    state: dict[str, Any] | None = None,
    answer: Sequence[Message] = (),
    system_prompt: str = "",
) -> PhaseView:
    keys = {key.name: key for key in (COMPACTIONS, CALIBRATION)}
    return PhaseView(
        phase=Phase.AFTER_INFERENCE if answer else Phase.BEFORE_INFERENCE,
        run=RunInfo(
            run_id="r",
            agent_id="a",
            round=1,
            parents=(),
            model=model or ModelSpec("m", "p", context_window=1000),
            tools=(),
            clock=SYSTEM_CLOCK,
            cancellation=Cancellation(),
            ask=nobody,
        ),
        spec=AgentSpec("a", "m", system_prompt=system_prompt),
        session=Session("s", messages),
        state=State(keys, state or {}),
        messages=answer,
        usage=Usage(),
        stats=RunStats(),
    )


def plugin(**policy: Any) -> ContextTransformPlugin:
    settings = {"keep_recent": 2, "reserve_tokens": 100, **policy}
    return ContextTransformPlugin(ContextPolicy(**settings), ModelSpec("m", "p", context_window=1000))


def prompt(messages: Sequence[Message], tools: tuple[ToolDescriptor, ...] = (), **config: Any) -> Prompt:
    return Prompt(messages, tools, config)


def summarised(messages: Sequence[Message], upto: int) -> dict[str, Any]:
    record = Record(upto=upto, digest=digest(messages[:upto]), summary="They talked.")
    return {COMPACTIONS.name: write_records([record])}


def test_what_fits_is_sent_as_it_is() -> None:
    messages = conversation(4)

    assert plugin().transform(prompt(messages), looking(messages)).messages is messages


def test_what_does_not_fit_is_left_out_and_said_to_be() -> None:
    messages = conversation(12)

    sent = plugin().transform(prompt([SYSTEM, *messages]), looking(messages)).messages

    assert sent[0] is SYSTEM
    assert sent[1] == Message(
        "system", "4 earlier messages of this conversation are left out here to save room."
    )
    assert all(one is other for one, other in zip(sent[2:], messages[4:], strict=True))
    assert COUNTER.messages(sent) <= 900


def test_of_a_message_that_is_longer_than_the_window_the_beginning_and_the_end_are_sent() -> None:
    messages = [Message("user", f"FIRST{'a' * 9000}LAST"), Message("assistant", "well")]

    long, answer = plugin().transform(prompt(messages), looking(messages)).messages

    assert answer is messages[1]
    assert long.content.startswith("FIRSTa") and long.content.endswith("aLAST")
    assert "characters are left out here" in long.content
    assert COUNTER.messages([long, answer]) <= 900


def test_a_short_question_stays_whole_if_the_file_with_it_is_too_long() -> None:
    question, file = "What is this?", f"FIRST{'a' * 9000}LAST"
    parts = [{"type": "text", "text": question}, {"type": "text", "text": file}]
    messages = [Message("user", question, {}, parts), Message("assistant", "well")]

    long, _ = plugin().transform(prompt(messages), looking(messages)).messages

    assert long.content == question and long.multipart_content is not None
    first, second = long.multipart_content
    assert first["text"] == question
    assert second["text"].startswith("FIRSTa") and second["text"].endswith("aLAST")
    assert COUNTER.messages([long]) <= 900


def test_results_that_are_too_long_share_the_room_and_keep_their_calls() -> None:
    made = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in "abc"]
    results = [
        Message("tool", one * size, {"tool_call_id": one}, None, {"type": "tool_result", "text": one * size})
        for one, size in (("a", 400), ("b", 9000), ("c", 40_000))
    ]
    messages = [Message("user", "Look."), Message("assistant", "", {"tool_calls": made}), *results]

    sent = plugin(keep_recent=5).transform(prompt(messages), looking(messages)).messages

    assert sent[:3] == tuple(messages[:3])
    assert [message.tool_call_id for message in sent[2:]] == ["a", "b", "c"]
    assert abs(len(sent[3].content) - len(sent[4].content)) < 200
    assert (sent[3].tool_result or {})["text"] == sent[3].content
    assert COUNTER.messages(sent) <= 900


def test_a_policy_that_leaves_nothing_out_shortens_nothing_either() -> None:
    messages = [Message("user", "a" * 9000), Message("assistant", "well")]

    assert plugin(truncate=False).transform(prompt(messages), looking(messages)).messages is messages


def test_a_single_message_is_counted_as_one() -> None:
    messages = conversation(9)

    assert (
        plugin()
        .transform(prompt(messages), looking(messages))
        .messages[0]
        .content.startswith("1 earlier message of")
    )


def test_the_tools_take_their_part_of_the_room() -> None:
    messages = conversation(6)
    tool = ToolDescriptor(name="read", schema={"description": "a" * 2000}, plugin="files")

    assert len(plugin().transform(prompt(messages, (tool,)), looking(messages)).messages) < 6


def test_a_policy_may_say_that_nothing_is_left_out() -> None:
    messages = conversation(12)

    assert plugin(truncate=False).transform(prompt(messages), looking(messages)).messages is messages


def test_nothing_is_left_out_where_no_window_is_known() -> None:
    messages, unknown = conversation(2000), ModelSpec("m", "p")

    assert plugin().transform(prompt(messages), looking(messages, model=unknown)).messages is messages
    limited = plugin(max_tokens=1000).transform(prompt(messages), looking(messages, model=unknown)).messages
    assert len(limited) < 12


def test_the_window_of_a_fallback_counts_while_it_answers() -> None:
    messages = conversation(8)
    small = ModelSpec("small", "p", context_window=600)

    assert len(plugin().transform(prompt(messages), looking(messages)).messages) == 8
    assert len(plugin().transform(prompt(messages), looking(messages, model=small)).messages) < 8


def test_what_a_session_learnt_about_the_model_counts() -> None:
    messages = conversation(6)

    assert len(plugin().transform(prompt(messages), looking(messages)).messages) == 6
    learnt = looking(messages, state={CALIBRATION.name: {"m": 2.0}})
    assert len(plugin().transform(prompt(messages), learnt).messages) < 6


def test_a_summary_is_sent_in_place_of_what_it_covers() -> None:
    messages = conversation(8)

    sent = (
        plugin()
        .transform(prompt([SYSTEM, *messages]), looking(messages, state=summarised(messages, 5)))
        .messages
    )

    assert list(sent) == [SYSTEM, summary_message("They talked."), *messages[5:]]
    assert all(one is other for one, other in zip(sent[2:], messages[5:], strict=True))


def test_a_summary_is_sent_though_the_prompt_has_newer_objects() -> None:
    messages = conversation(8)
    pointed = [message.with_native_indices((place,)) for place, message in enumerate(messages)]

    sent = plugin().transform(prompt(pointed), looking(messages, state=summarised(messages, 5))).messages

    assert list(sent[1:]) == pointed[5:]
    assert sent[1] is pointed[5]


def test_a_summary_of_an_edited_history_is_not_sent() -> None:
    messages = conversation(6)
    edited = [Message("user", "edited"), *messages[1:]]

    view = looking(edited, state=summarised(messages, 3))

    assert plugin().transform(prompt(edited), view).messages is edited


def test_the_summary_itself_is_never_left_out() -> None:
    messages = conversation(20)

    sent = (
        plugin()
        .transform(prompt([SYSTEM, *messages]), looking(messages, state=summarised(messages, 5)))
        .messages
    )

    assert sent[0] is SYSTEM
    assert "left out here" in sent[1].content
    assert sent[2] == summary_message("They talked.")
    assert COUNTER.messages(sent) <= 900


@pytest.mark.parametrize(
    ("policy", "of_model", "given", "sent"),
    [
        (True, {}, {}, {"cache": True}),
        (True, {}, {"cache": "1h"}, {"cache": "1h"}),
        (True, {"cache": "1h"}, {}, {}),
        (False, {"cache": "1h"}, {"prompt_cache_key": "k"}, {"cache": False, "prompt_cache_key": None}),
    ],
)
def test_providers_are_asked_to_cache_as_the_policy_says(
    policy: bool, of_model: dict[str, Any], given: dict[str, Any], sent: dict[str, Any]
) -> None:
    messages, model = conversation(2), ModelSpec("m", "p", config=of_model)
    transform = plugin(prompt_cache=policy).transform

    assert transform(prompt(messages, **given), looking(messages, model=model)).config == sent


def learnt(view: PhaseView, **policy: Any) -> dict[str, float]:
    registrar = PluginRegistrar(view.spec)
    plugin(**policy).register(registrar)
    (tagged,) = registrar.env(()).phase_hooks[Phase.AFTER_INFERENCE]
    command = tagged.hook(view)
    state = view.state
    for update in () if command is None else command.updates:
        state = state.updated(*update)
    return state.read(CALIBRATION)


def answer(**usage: Any) -> Message:
    return Message("assistant", "Yes.", {"usage": usage})


def test_the_provider_teaches_how_the_model_counts() -> None:
    messages, said = conversation(6), answer(input_tokens=1248)

    assert learnt(looking([*messages, said], answer=[said])) == {"m": pytest.approx(1.312)}


def test_a_count_that_was_expected_teaches_nothing() -> None:
    messages = conversation(6)
    said = answer(input_tokens=COUNTER.messages([*messages, Message("system", "Be brief.")]))

    assert learnt(looking([*messages, said], answer=[said], system_prompt="Be brief.")) == {}


def test_what_is_expected_is_what_was_sent_not_what_the_session_holds() -> None:
    messages = conversation(30)
    sent = plugin().transform(prompt(messages), looking(messages, state=summarised(messages, 25))).messages
    said = answer(input_tokens=COUNTER.messages(sent))

    assert learnt(looking([*messages, said], answer=[said], state=summarised(messages, 25))) == {}


@pytest.mark.parametrize("usage", [{}, {"input_tokens": None}, {"input_tokens": 0}, {"input_tokens": "9"}])
def test_an_answer_without_a_count_teaches_nothing(usage: dict[str, Any]) -> None:
    said = answer(**usage)

    assert learnt(looking([*conversation(2), said], answer=[said])) == {}
    assert learnt(looking(conversation(2), answer=[Message("assistant", "Yes.")])) == {}


def test_of_several_messages_the_last_one_has_the_count() -> None:
    first, last = answer(input_tokens=9), answer(input_tokens=1248)

    assert learnt(looking([*conversation(6), first, last], answer=[first, last])) == {
        "m": pytest.approx(1.312)
    }


def test_each_model_has_a_ratio_of_its_own() -> None:
    said = answer(input_tokens=1248)
    view = looking([*conversation(6), said], answer=[said], state={CALIBRATION.name: {"other": 2.0}})

    assert set(learnt(view)) == {"m", "other"}


@pytest.mark.parametrize("saved", [{"m": "2"}, {"m": 99}, {"m": None}, [], {"m": float("nan")}])
def test_a_ratio_that_makes_no_sense_is_ignored(saved: Any) -> None:
    view = looking([], state={CALIBRATION.name: saved})

    assert counter_for(view.state, "m") == COUNTER


def test_a_reserve_that_leaves_no_room_is_refused_when_the_plugin_is_placed() -> None:
    with pytest.raises(SpecError, match="reserve_tokens"):
        plugin(reserve_tokens=1000).register(PluginRegistrar(AgentSpec("a", "m")))
