"""What the package shows to the outside, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

from agent_core import interop


def test_every_public_name_is_there_and_every_id_is_a_registered_one() -> None:
    registry = interop.ToolInteropRegistry.default()
    known = {*registry.call_formats(), *registry.schema_formats(), *registry.result_formats()}
    named = {getattr(interop, name) for name in interop.__all__ if name.endswith("_FORMAT_ID")}

    assert named == known
    assert interop.TOOL_RESULT_FIELD == "tool_result"


def test_importing_it_loads_no_event_loop_and_no_validator() -> None:
    code = (
        "import sys, agent_core; before = set(sys.modules)\n"
        "import agent_core.interop; print(*sorted(set(sys.modules) - before))"
    )

    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert not loaded & {"asyncio", "pydantic", "jsonschema", "jsonschema_rs"}
