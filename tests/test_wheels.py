"""`make test-wheels` tries what it says: the lowest versions that are declared, and no stranger's package."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("wheels_tool", ROOT / "tools" / "wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, name: str, *metadata: str) -> Path:
    """Write a wheel that has nothing but its metadata."""
    file = folder / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 0.1.0", *metadata, ""])
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name.replace('-', '_')}-0.1.0.dist-info/METADATA", text)
    return file


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    return [
        wheel(
            tmp_path,
            "keelwork",
            "Provides-Extra: local",
            "Provides-Extra: team",
            "Requires-Dist: keelwork-core==0.1.0",
            "Requires-Dist: keelwork-core[model]==0.1.0; extra == 'local'",
            "Requires-Dist: joserfc>=1.6; extra == 'team'",
        ),
        wheel(
            tmp_path,
            "keelwork-core",
            "Provides-Extra: model",
            "Requires-Dist: aiohttp>=3.14",
            "Requires-Dist: nothing>=1; sys_platform == 'elsewhere'",
            "Requires-Dist: xllamacpp>=2026.10; extra == 'model'",
        ),
    ]


def test_the_lowest_versions_are_those_of_everything_that_our_wheels_ask_for(
    tool: Any, wheels: list[Path]
) -> None:
    """uv would take the newest of what is not named."""
    words = [str(word) for word in tool.requirements(wheels, "local", "lowest-direct")]

    assert {"lowest-direct", "aiohttp>=3.14", "xllamacpp>=2026.10"} <= set(words)
    assert not [word for word in words if word.startswith(("nothing", "joserfc"))]
    assert words[-1] == f"keelwork[local] @ {wheels[0].as_uri()}"


def test_the_newest_versions_are_left_to_the_installer(tool: Any, wheels: list[Path]) -> None:
    assert len(tool.requirements(wheels, "local", "highest")) == len(wheels)


def test_every_extra_of_every_distribution_is_looked_at(tool: Any, wheels: list[Path]) -> None:
    main, core = (wheel.as_uri() for wheel in wheels)

    assert tool.choices(wheels) == {
        "keelwork": [f"keelwork @ {main}", f"keelwork[local] @ {main}", f"keelwork[team] @ {main}"],
        "keelwork-core": [f"keelwork-core @ {core}", f"keelwork-core[model] @ {core}"],
    }


def test_a_package_of_our_name_from_a_registry_is_a_stranger(tool: Any) -> None:
    """uv writes a file in one way if it knows the version, and in another if it does not yet."""
    files = (
        " + keelwork-core @ file:///wheels/core.whl\n + keelwork-kit==0.1.0 (from file:///wheels/kit.whl)\n"
    )
    said = f"{files} + aiohttp==3.14.1\n + keelwork-app==9.9\n + odd==1\n"

    assert tool.found_strangers(said, {"aiohttp"}) == ["keelwork-app", "odd"]


def test_what_is_tested_with_other_interpreters_is_there(tool: Any) -> None:
    assert [place for place in (*tool.TESTED, *tool.WITH_FRAMEWORKS) if not (ROOT / place).exists()] == []
