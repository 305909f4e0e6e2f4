"""Packages get into the environment of the program with pip, with uv, and for a moment with neither."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from zipfile import ZipFile

import pytest

from agent_plugin_kit import installer
from agent_plugin_kit.installer import InstallError, fetch, find_installer

UV = Path(sys.prefix) / "bin" / "uv"


def wheel(folder: Path, name: str = "sample_thing") -> Path:
    """Write a wheel with one module."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "WHO = 'me'\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def environment_without_pip(folder: Path) -> Path:
    """Make an environment that has no pip, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def run_there(python: Path, code: str, path: str) -> subprocess.CompletedProcess[str]:
    here = os.pathsep.join(entry for entry in sys.path if entry)
    script = f"import sys; sys.path += {here.split(os.pathsep)!r}\n{textwrap.dedent(code)}"
    hide_pip = (
        "import importlib.util as u; f = u.find_spec\nu.find_spec = lambda n: n != 'pip' and f(n) or None\n"
    )
    return subprocess.run(
        [python, "-c", hide_pip + script],
        env={**os.environ, "PATH": path, "PIP_NO_INDEX": "1", "UV_NO_INDEX": "1", "UV_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_package_is_fetched_without_touching_the_environment(tmp_path: Path) -> None:
    with fetch(str(wheel(tmp_path / "wheels"))) as folder:
        assert (folder / "sample_thing" / "__init__.py").read_text() == "WHO = 'me'\n"

    assert not folder.exists()
    with pytest.raises(ImportError):
        __import__("sample_thing")


def test_a_package_that_cannot_be_fetched_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(InstallError, match="pip could not install"),
        fetch(str(tmp_path / "nothing-1.0-py3-none-any.whl")),
    ):
        pass

    assert "nothing" in capfd.readouterr().err


@pytest.mark.slow
def test_where_there_is_no_pip_a_package_is_fetched_all_the_same(tmp_path: Path) -> None:
    python = environment_without_pip(tmp_path / "bare")
    made = wheel(tmp_path / "wheels")

    done = run_there(
        python,
        f"""
        from agent_plugin_kit.installer import fetch
        with fetch({str(made)!r}) as folder:
            print((folder / "sample_thing" / "__init__.py").read_text())
        """,
        path=os.defpath,
    )

    assert done.returncode == 0, done.stderr
    assert "WHO = 'me'" in done.stdout


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed beside the tests")
def test_uv_installs_and_removes_where_there_is_no_pip(tmp_path: Path) -> None:
    python = environment_without_pip(tmp_path / "bare")
    made = wheel(tmp_path / "wheels")

    done = run_there(
        python,
        f"""
        from agent_plugin_kit.installer import find_installer
        found = find_installer()
        print(found.name)
        found.install("--no-deps", {str(made)!r})
        import sample_thing
        print(sample_thing.WHO)
        found.uninstall("sample-thing")
        """,
        path=os.pathsep.join([str(UV.parent), os.defpath]),
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["uv", "me"]
    assert not list((tmp_path / "bare").rglob("sample_thing"))


def test_without_both_the_error_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(InstallError, match=r"no pip, and uv is not on the PATH"):
        find_installer()
