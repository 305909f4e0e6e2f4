"""A provider extension as the pipeline sees it."""

from __future__ import annotations

from typing import ClassVar

from agent_core.plugin.hooks import HookSpec
from agent_core.plugin.native_side import NATIVE_SIDE_HOOKS, NativeSideWrapper


class ExtensionWrapper(NativeSideWrapper):
    """A plugin that stands right beside its provider, on the hot path too."""

    kind = "extension"
    owner = "provider_extension"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *NATIVE_SIDE_HOOKS,
        HookSpec("process_chunk", ("chunk", "partials", "finals", "native_messages", "state"), 5),
    )
