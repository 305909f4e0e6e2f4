"""Every check there is, by the kind of plugin that it is made on, in the order in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing.conformance.checks import actions, conversion, hooks, requests, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.testing.conformance.case import Case
    from agent_core.testing.conformance.report import Faults

    Check = Callable[[Case], Faults]

_EVERY_HOOK: tuple[Check, ...] = (
    hooks.it_registers,
    hooks.hooks_answer_the_documented_types,
    hooks.inputs_are_left_alone,
    hooks.enablement_is_pure,
    hooks.settings_and_elements_are_json,
    hooks.answers_are_json,
)
_REQUESTS: tuple[Check, ...] = (
    hooks.transforms_are_deterministic,
    conversion.one_message_converts_as_in_a_batch,
    requests.calls_streams_and_async_twins_agree,
    requests.an_empty_answer_is_finalized,
    requests.closing_early_keeps_a_partial,
    requests.interleaved_requests_stay_apart,
)
_ACTIONS: tuple[Check, ...] = (
    actions.actions_are_well_defined,
    actions.unknown_actions_are_refused,
    actions.actions_run,
    actions.idempotent_actions_change_nothing_twice,
)

CHECKS: Mapping[str, tuple[Check, ...]] = {
    "provider": (
        *_EVERY_HOOK,
        *_REQUESTS,
        conversion.a_round_trip_keeps_messages,
        conversion.a_round_trip_keeps_parts,
        requests.cancelling_an_unknown_request_is_harmless,
    ),
    "extension": (*_EVERY_HOOK, *_REQUESTS, *_ACTIONS),
    "feature": (*_EVERY_HOOK, *_REQUESTS, *_ACTIONS),
    "tool": (
        *_EVERY_HOOK,
        tools.tool_schemas_are_valid,
        tools.tools_answer_to_their_names,
        tools.bad_arguments_are_told,
        tools.previews_are_one_line,
        tools.results_can_be_shown,
    ),
}
