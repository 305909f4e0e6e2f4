"""What others build on: a change here breaks them, so it must be made here as well, on purpose."""

import ast
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import agent_core
from agent_core import AgentCore, types

Case = Callable[..., AbstractContextManager[None]]

NAMES = [
    "RESPONSE_FINALIZE",
    "STANDARD_LIFECYCLES",
    "ActionCancelledError",
    "ActionError",
    "ActionInputError",
    "ActionNotConfirmedError",
    "ActionTimeoutError",
    "AgentCore",
    "AgentError",
    "ArgumentError",
    "ArgumentTypeError",
    "AsyncEventStream",
    "Batch",
    "Cancellation",
    "CancellationToken",
    "ConfigError",
    "ConfigTypeError",
    "Decision",
    "DisplayReport",
    "DuplicatePluginError",
    "Event",
    "EventStream",
    "File",
    "FinalEvent",
    "FunctionTool",
    "History",
    "InstalledPlugin",
    "Message",
    "MessageEditError",
    "MessageIndexError",
    "MessageRole",
    "ModelDiscoveryCache",
    "ModelNotFoundError",
    "ModelSnapshot",
    "NativeHistoryError",
    "NoProviderError",
    "PartialEvent",
    "PluginError",
    "PluginMutationError",
    "PluginNotFoundError",
    "ProviderError",
    "ProviderNotFoundError",
    "RegistrationError",
    "RequestCancelled",
    "Resolution",
    "ResolveError",
    "Session",
    "SessionError",
    "SessionFormatError",
    "ToolDescriptor",
    "ToolError",
    "ToolIdConflictError",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "ToolReturn",
    "ToolSuspended",
    "UnknownActionError",
    "build_context",
    "find_installed",
    "plugin_config",
    "tool",
    "validate_display",
]

TYPES = [
    "BasePlugin",
    "Batch",
    "FeaturePlugin",
    "Message",
    "MessageRole",
    "ProviderExtensionPlugin",
    "ProviderPlugin",
    "Session",
    "ToolDescriptor",
    "ToolPlugin",
]

# The platform's documented contract.
CONTRACT = {
    "add_message": (
        "(session, role, content, metadata=None, config=None, *, multipart_content=None, after_index=None, "
        "context=None, tool_result=None)"
    ),
    "apply_feature_completion": "(config, text, completion)",
    "check_config": "(config)",
    "core_messages_to_native": "(core_messages, config, *, context=None)",
    "create_session": "(session_id=None)",
    "discover_and_register": "(modules)",
    "execute_lifecycle_actions": "(session, config, trigger, *, context=None)",
    "execute_response_lifecycle_actions": (
        "(session, config, trigger, *, provider, features, state, final_messages, native_messages, "
        "native_final_messages, stream, turn_native_start_index, request_context, extra_context=None)"
    ),
    "execute_session_action": "(session, config, plugin_id, action_id, params, context=None)",
    "execute_tool_calls": "(tool_calls, config, *, context=None)",
    "export_session": "(session, format='json')",
    "extract_tool_calls_from_messages": "(messages)",
    "fork_session": "(session, config=None, *, upto_index, new_session_id=None)",
    "format_tool_call_preview": "(tool_call, config)",
    "format_tool_call_previews": "(tool_calls, config)",
    "get_available_tools": "(config)",
    "get_completions": "(config, text)",
    "get_config_schema": "()",
    "get_plugins_for_config": "(config)",
    "get_session_actions": "(config)",
    "get_tool_schemas": "(config)",
    "get_ui_schema": "(config)",
    "import_session": "(data, format='json')",
    "initialize_action_request": "(native_messages, state, request_runtime, request_context)",
    "iter_tool_messages": "(tool_calls, config, *, cancellation=None, context=None)",
    "join_sessions": "(prefix, suffix, config=None)",
    "modify_message": "(session, index, content, config=None, *, context=None)",
    "patch_native_internal_metadata": "(native_messages, indices, patch)",
    "rebuild_native_history": "(session, config=None, *, start=None, end=None, context=None)",
    "register_feature": "(plugin_class)",
    "register_provider": "(plugin_class, extensions=None)",
    "register_tool": "(plugin_class)",
    "send_request": "(session, config, *, request_id=None, cancellation=None, context=None)",
    "send_request_stream": "(session, config, *, request_id=None, cancellation=None, context=None)",
    "send_request_stream_async": "(session, config, *, request_id=None, cancellation=None, context=None)",
    "slice_session": (
        "(session, config=None, *, start=None, end=None, remove_indices=None, return_removed=False)"
    ),
    "stream_tool_call": "(tool_call, config, *, context=None)",
}

# What this project adds to it.
ADDITIONS = {
    "execute_lifecycle_actions_async": "(session, config, trigger, *, context=None)",
    "execute_session_action_async": "(session, config, plugin_id, action_id, params, context=None)",
    "execute_tool_calls_async": "(tool_calls, config, *, context=None)",
    "explain_plugins": "(config)",
    "get_plugin_problems": "(config)",
    "get_template": "(config)",
    "iter_tool_messages_async": "(tool_calls, config, *, cancellation=None, context=None)",
    "append_messages": "(session, messages)",
    "lifecycle_flow": "(session, config, trigger, *, context=None, describe=None)",
    "register_installed": "(names=None, *, kinds=('providers', 'features', 'tools'))",
    "register_wrapped": "(*wrappers)",
    "request_flow": "(session, config, *, stream, request_id=None, cancellation=None, context=None, "
    "transform=None)",
    "resolve": "(config, *, required=())",
    "send_request_async": "(session, config, *, request_id=None, cancellation=None, context=None)",
    "session_action_flow": (
        "(session, config, plugin_id, action_id, params, context=None, *, confirmed=False, cancellation=None)"
    ),
    "stream_request": "(session, config, *, request_id=None, cancellation=None, context=None)",
    "stream_tool_call_async": "(tool_call, config, *, context=None)",
    "tool_host": "(config, context=None)",
    "tool_calls_flow": "(tool_calls, config, *, cancellation=None, context=None)",
}

FUNCTIONS: dict[Callable[..., Any], str] = {
    AgentCore: "(model_cache=None)",
    agent_core.ModelDiscoveryCache: "(lifetime=3600.0, *, size=256, clock=<built-in function monotonic>)",
    agent_core.find_installed: "(names=None, kinds=None)",
    agent_core.build_context: "(owned, extra=None)",
}


def signature_of(function: Callable[..., Any], *, skip: int = 0) -> str:
    """Return names, kinds and defaults of the parameters; types are another tool's business."""
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return str(
        inspect.Signature([parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters])
    )


def public_members(of: object) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(of) if not name.startswith("_")}


def test_the_package_offers_these_names_and_no_others() -> None:
    assert sorted(agent_core.__all__) == sorted(NAMES)
    assert sorted(types.__all__) == sorted(TYPES)


def test_every_name_can_be_used(case: Case) -> None:
    for name in NAMES:
        with case(name):
            assert name in dir(agent_core)
            assert getattr(agent_core, name) is not None


def test_names_have_one_home_for_type_checkers_and_for_python() -> None:
    source = Path(agent_core.__file__).read_text(encoding="utf-8")
    seen_by_type_checkers = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("agent_core.")
        for alias in node.names
    }

    assert seen_by_type_checkers == agent_core._HOME_OF
    assert sorted(seen_by_type_checkers) == sorted(NAMES)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agent_core' has no attribute 'AgentCrew'"):
        _ = agent_core.AgentCrew


def test_the_core_has_these_methods_with_these_signatures() -> None:
    found = {name: signature_of(method, skip=1) for name, method in public_members(AgentCore).items()}

    assert found == {**CONTRACT, **ADDITIONS}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(function.__name__))
def test_functions_and_constructors_have_these_signatures(function: Callable[..., Any]) -> None:
    assert signature_of(function) == FUNCTIONS[function]


@pytest.mark.parametrize(
    "name", [name for name in ADDITIONS if name.endswith("_async") and name[:-6] in CONTRACT | ADDITIONS]
)
def test_an_async_twin_takes_what_its_sibling_takes(name: str) -> None:
    assert ADDITIONS[name] == (CONTRACT | ADDITIONS)[name[:-6]]


def test_every_public_name_has_a_docstring_and_so_have_its_methods(case: Case) -> None:
    cases: list[str] = [
        name for name in NAMES if callable(getattr(agent_core, name)) and name != "MessageRole"
    ]
    for name in cases:
        with case(name):
            value = getattr(agent_core, name)
            members = {f"{name}.{member}": found for member, found in public_members(value).items()}
            described = {
                member: bool(inspect.getdoc(found))
                for member, found in {name: value, **members}.items()
                if inspect.isroutine(found) or isinstance(found, (type, property))
            }

            assert [member for member, has in described.items() if not has] == []
