"""What a profile is made of, what is explained, and the proxy of a sandbox."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ConfigError
from agent_plugin_kit.sandbox import (
    Host,
    NoSandbox,
    Profile,
    Sandbox,
    SandboxSettings,
    describe,
    explain,
    is_on_everywhere,
    is_secret_file,
)
from agent_plugin_kit.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from agent_plugin_kit.sandbox.landlock import Landlock
from agent_plugin_kit.sandbox.network import Proxy
from agent_plugin_kit.sandbox.seatbelt import rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_plugin_kit.sandbox import Confined


@pytest.fixture
def bubblewrap() -> Bubblewrap:
    found = find_bubblewrap()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def guarded(bubblewrap: Bubblewrap) -> Bubblewrap:
    if bubblewrap.guard is None:
        pytest.skip("this machine has no setpriv")
    return bubblewrap


def profile(root: Path, **config: Any) -> Profile:
    return Profile.of(SandboxSettings.read(config), [root], root / "tmp")


def test_settings_are_read_and_checked() -> None:
    assert SandboxSettings.read({}).mode == "workspace"
    assert SandboxSettings.read({"sandbox": "strict"}).mode == "strict"
    with pytest.raises(ConfigError, match="must be strict, workspace or off"):
        SandboxSettings.read({"sandbox": "loose"})
    with pytest.raises(ConfigError, match="not an absolute path"):
        SandboxSettings.read({"sandbox_write": ["build"]})


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        (".env", True), (".env.local", True), (".ENV.production", True), (".envrc", True), ("id_rsa", True),
        ("server.key", True), (".env.example", False), (".environment", False), ("main.py", False),
        ("keys.md", False), ("monkey", False),
    ],
)  # fmt: skip
def test_names_say_whether_a_file_holds_keys(name: str, is_secret: bool) -> None:
    assert is_secret_file(name) is is_secret


def test_what_holds_keys_is_hidden_and_a_setting_shows_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in (".env", "a/.env.local", ".env.example"):
        (tmp_path / name).write_text("")

    assert {tmp_path / ".env", tmp_path / "a/.env.local"} <= set(profile(tmp_path).hidden)
    assert tmp_path / ".env.example" not in profile(tmp_path).hidden
    assert tmp_path / ".env" not in profile(tmp_path, sandbox_show=[".env"]).hidden
    assert tmp_path / "a/.env.local" in profile(tmp_path, sandbox_show=[".env"]).hidden
    assert tmp_path / "a/.env.local" not in profile(tmp_path, sandbox_show=[str(tmp_path / "a")]).hidden


def test_a_link_is_neither_kept_nor_hidden(tmp_path: Path) -> None:
    """It could lead anywhere by the time that it is used."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".vscode").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "work" / ".env").symlink_to(tmp_path / "elsewhere")

    made = profile(tmp_path / "work")

    assert made.kept == ()
    assert tmp_path / "work" / ".env" not in made.hidden


def test_the_programs_own_files_are_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="belongs to the program itself"):
        profile(tmp_path, protected_paths=[str(tmp_path)])


def test_a_strict_sandbox_that_is_not_there_is_an_error_and_another_is_not() -> None:
    nothing = Sandbox("no bubblewrap, no Landlock")

    assert not nothing.confines(SandboxSettings.read({}))
    with pytest.raises(NoSandbox, match="no bubblewrap, no Landlock"):
        nothing.confines(SandboxSettings.read({"sandbox": "strict"}))


def test_one_section_that_switches_it_off_is_enough_for_doubt() -> None:
    assert is_on_everywhere({"config": {"sandbox": "strict"}, "retry": {}})
    assert not is_on_everywhere({"shell_tool": {"sandbox": "off"}, "config": {}})
    assert not is_on_everywhere({"shell_tool": {"sandbox": ["workspace"]}})


def test_it_is_described_in_a_sentence() -> None:
    assert describe(SandboxSettings.read({"sandbox": "off"})) == (
        "The sandbox is off: programs run with your rights."
    )


def test_landlock_reaches_no_host(tmp_path: Path) -> None:
    box = Sandbox(Landlock())

    with pytest.raises(NoSandbox, match="no host can be reached"):
        box.confine(
            ["true"],
            SandboxSettings.read({"sandbox_hosts": ["a.example"]}),
            roots=[tmp_path],
            folder=tmp_path,
            env={},
        )


def test_the_profile_of_macos_names_what_is_written_hidden_and_kept(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".env").write_text("")

    text = rules(profile(tmp_path), 4711)

    assert text.startswith("(version 1)\n(allow default)\n(deny network*)\n(deny file-write*)\n")
    assert f'(allow file-write* (subpath "{tmp_path}")' in text
    assert f'(subpath "{tmp_path}/.env")' in text.partition("(deny file-read* file-write* ")[2]
    assert f'(deny file-write* (subpath "{tmp_path}/.vscode"))' in text
    assert text.endswith('(allow network-outbound (remote ip "localhost:4711"))')


# The network


@pytest.mark.parametrize("text", ["", "*", "*.*", "http://a.example", "a.example/path"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        Host.read(text)


def test_a_rule_is_for_a_name_and_a_port() -> None:
    assert Host.read("api.example.com").fits("api.example.com", 443)
    assert not Host.read("api.example.com").fits("api.example.com", 22)
    assert not Host.read("api.example.com").fits("api.example.com.evil.example", 443)
    assert Host.read("*.example.com").fits("a.example.com", 80)
    assert not Host.read("*.example.com").fits("example.com", 80)
    assert Host.read("localhost:5432") == Host("localhost", 5432)
    assert Host.read("[::1]:80") == Host("::1", 80)


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} {self.headers.get('Proxy-Authorization')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[int]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made.server_address[1]
    made.shutdown()
    made.server_close()


def ask(proxy: Proxy, request: str) -> str:
    with socket.create_connection(("127.0.0.1", proxy.port or 0), timeout=30) as client:
        client.sendall(request.encode())
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65_536), b"")).decode()


@pytest.fixture
def proxy_for() -> Iterator[Any]:
    made: list[Proxy] = []

    def make(*hosts: str) -> Proxy:
        made.append(Proxy(None, hosts))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_an_allowed_host_is_reached(server: int, proxy_for: Any) -> None:
    proxy = proxy_for(f"localhost:{server}")

    plain = ask(
        proxy, f"GET http://localhost:{server}/a?b HTTP/1.1\r\nHost: x\r\nProxy-Authorization: secret\r\n\r\n"
    )
    tunnel = ask(
        proxy,
        f"CONNECT localhost:{server} HTTP/1.1\r\n\r\n"
        "GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )

    assert plain.endswith("/a?b None")
    assert tunnel.startswith("HTTP/1.1 200 Connected\r\n\r\n")
    assert tunnel.endswith("/in None")
    assert proxy.refused == {}


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT other.example:443 HTTP/1.1",
        "CONNECT localhost:1 HTTP/1.1",
        "GET http://other.example/ HTTP/1.1",
        "GET http://localhost@other.example/ HTTP/1.1",
        "GET /no/proxy HTTP/1.1",
        "CONNECT * HTTP/1.1",
        "GET ftp://localhost/ HTTP/1.1",
    ],
)
def test_everything_else_is_refused(server: int, proxy_for: Any, request_line: str) -> None:
    answer = ask(proxy_for(f"localhost:{server}"), f"{request_line}\r\nHost: x\r\n\r\n")

    assert answer.startswith("HTTP/1.1 403 ")


def test_an_allowed_name_that_leads_to_this_machine_opens_nothing(proxy_for: Any) -> None:
    """Whoever owns the name could let it lead here; only a rule with a port means a local place."""
    proxy = proxy_for("localhost")

    assert ask(proxy, "CONNECT localhost:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 403 ")
    assert proxy.refused == {"localhost:443": "it leads to a loopback address"}


def test_a_command_reaches_the_host_that_it_asked_for_and_learns_of_the_other(
    house: Any, server: int
) -> None:
    if isinstance(find_bubblewrap(), str):
        pytest.skip(str(find_bubblewrap()))
    box = house.sandbox
    confined = box.confine(
        ["bash", "-c", f"curl -sS http://localhost:{server}/yes; curl -sS http://other.example/ >&2; exit 1"],
        SandboxSettings.read({"sandbox_requests": True}),
        roots=[house.work],
        folder=house.work,
        env=house.variables,
        hosts=[f"localhost:{server}"],
    )

    printed = house.start(confined)

    assert "/yes None" in printed
    assert explain(confined, printed) == [
        (
            "the sandbox refused a connection to other.example:80: it is not among the allowed hosts. "
            'Call again with hosts: ["other.example"] to ask for it; the setting '
            'sandbox_hosts = ["other.example"] '
            "allows it for good"
        )
    ]


# What is explained


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo x > /etc/new", 'The setting sandbox_write = ["FOLDER"] allows another folder'),
        (
            "cat ~/.ssh/id_ed25519",
            ".ssh is hidden in the sandbox, since it may hold keys. The setting sandbox_show",
        ),
        ("cat .env", ".env is hidden in the sandbox"),
        ("echo x > .git/hooks/a", "is read-only in the sandbox, since other programs obey it"),
        ("curl -sS https://pypi.example/", 'the setting sandbox_hosts = ["pypi.example"] allows it for good'),
    ],
)
def test_what_is_refused_is_explained_with_the_rule(house: Any, command: str, words: str) -> None:
    if isinstance(find_bubblewrap(), str):
        pytest.skip(str(find_bubblewrap()))
    confined = house.sandbox.confine(
        ["bash", "-c", command],
        SandboxSettings.read({"sandbox_requests": True}),
        roots=[house.work],
        folder=house.work,
        env=house.variables,
    )

    [said] = explain(confined, house.start(confined))

    assert words in said


def test_a_failure_of_the_command_itself_is_not_explained(house: Any) -> None:
    confined = house.sandbox.confine(
        ["bash", "-c", "ls missing; exit 3"],
        SandboxSettings.read({}),
        roots=[house.work],
        folder=house.work,
        env={},
    )

    assert explain(confined, house.start(confined)) == []


def test_what_is_hidden_below_what_is_hidden_does_not_keep_a_command_from_starting(
    house: Any, bubblewrap: Bubblewrap
) -> None:
    own = house.home / "own"
    own.mkdir()
    (own / "app.db").write_text(house.secret)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(own / "service.sock"))
        listener.listen()
        box = Sandbox(bubblewrap)
        confined = box.confine(
            ["sh", "-c", f"echo begun; cat {own}/app.db 2>/dev/null"],
            SandboxSettings.read({"protected_paths": [str(own), str(own / "app.db")]}),
            roots=[house.work],
            folder=house.work,
            env=house.variables,
        )

        assert run_with_input(confined, house.work, b"") == (1, b"begun\n", b"")


def test_a_socket_behind_a_linked_folder_is_covered_and_does_not_keep_a_command_from_starting(
    house: Any, bubblewrap: Bubblewrap
) -> None:
    real, link = house.home / "run", house.home / "linked-run"
    real.mkdir()
    link.symlink_to(real.name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(link / "service.sock"))  # as PostgreSQL does it in /var/run
        listener.listen()
        box = Sandbox(bubblewrap)
        confined = box.confine(
            ["sh", "-c", f"echo begun; test -S {real}/service.sock"],
            SandboxSettings.read({}),
            roots=[house.work],
            folder=house.work,
            env=house.variables,
        )

        assert run_with_input(confined, house.work, b"") == (1, b"begun\n", b"")


@pytest.mark.parametrize("setpriv", ["there", "missing"])
def test_a_socket_that_vanishes_before_it_is_covered_does_not_keep_a_command_from_starting(
    house: Any, guarded: Bubblewrap, setpriv: str
) -> None:
    folder = house.home / "vanishing"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "service.sock"))
        listener.listen()
        box = Sandbox(guarded if setpriv == "there" else replace(guarded, guard=None))
        confined = box.confine(
            ["sh", "-c", "cat; echo seen >&2; exit 3"],
            SandboxSettings.read({}),
            roots=[house.work],
            folder=house.work,
            env=house.variables,
        )
        assert str(folder / "service.sock") in confined.command
        shutil.rmtree(folder)

        assert run_with_input(confined, house.work, b"read once") == (3, b"read once", b"seen\n")


def test_a_socket_that_vanishes_while_bubblewrap_starts_is_left_out_the_next_time(
    house: Any, guarded: Bubblewrap
) -> None:
    folder, program = house.home / "vanishing-later", house.home / "bwrap"
    folder.mkdir()
    steps = [f"echo begun >> {house.home}/starts", f"rm -rf {folder}", f'exec {guarded.program} "$@"']
    program.write_text("\n".join(["#!/bin/sh", *steps, ""]))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "service.sock"))
        listener.listen()
        box = Sandbox(replace(guarded, program=str(program)))
        confined = box.confine(
            ["sh", "-c", "cat; echo seen >&2; exit 3"],
            SandboxSettings.read({}),
            roots=[house.work],
            folder=house.work,
            env=house.variables,
        )

        assert run_with_input(confined, house.work, b"read once") == (3, b"read once", b"seen\n")
        assert (house.home / "starts").read_text().count("begun") == 2


def test_a_bubblewrap_that_never_starts_says_why(house: Any, bubblewrap: Bubblewrap) -> None:
    program = house.home / "broken-bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: no room' >&2\nexit 1\n")
    program.chmod(0o755)
    box = Sandbox(replace(bubblewrap, program=str(program)))
    confined = box.confine(
        ["true"], SandboxSettings.read({}), roots=[house.work], folder=house.work, env=house.variables
    )

    assert run_with_input(confined, house.work, b"") == (1, b"", b"bwrap: no room\n")


def run_with_input(confined: Confined, folder: Path, said: bytes) -> tuple[int, bytes, bytes]:
    try:
        done = subprocess.run(
            confined.command,
            input=said,
            capture_output=True,
            env=confined.env,
            pass_fds=confined.descriptors,
            cwd=folder,
            timeout=60,
            check=False,
        )
    finally:
        confined.started()
        confined.ended()
    return done.returncode, done.stdout, done.stderr
