"""The files in deploy/: what they start exists, with the options that they give it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import httpx2
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from agent_server.application import describe_api
from agent_server.testing import TOKEN, Serving
from agent_terminal_app.commands.group import agent
from agent_terminal_app.testing.command import run_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def check_arguments(arguments: list[str]) -> None:
    """Read arguments as the program does; nothing is run."""
    command: Any = agent
    context = click.Context(command)
    name, *rest = arguments
    found = command.get_command(context, name)
    assert found is not None, f"there is no `agent {name}`"
    found.make_context(name, rest, parent=context, resilient_parsing=False)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_for_port(port: int) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_DATABASE", "postgresql://database/keelwork")


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def deployments() -> list[dict[str, Any]]:
    return [one for one in manifests() if one["kind"] == "Deployment"]


def paths() -> set[str]:
    return set(describe_api().openapi()["paths"])


def test_the_services_of_compose_run_commands_that_there_are() -> None:
    services = compose()["services"]

    assert set(services) == {"database", "server", "worker"}
    for name in ("server", "worker"):
        check_arguments([str(one) for one in services[name]["command"]])
        assert (DEPLOY / services[name]["build"]["context"] / services[name]["build"]["dockerfile"]).is_file()
        volumes = [one.partition(":")[0] for one in services[name]["volumes"]]
        assert set(volumes) <= set(compose()["volumes"])
    assert services["server"]["ports"] == ["127.0.0.1:8421:8421"]


def test_every_variable_of_compose_is_in_the_example() -> None:
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    known = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))

    assert used == known
    assert re.findall(r"^\w+=.+", (DEPLOY / "env.example").read_text(), re.MULTILINE) == []  # no secrets


def test_passwords_as_the_example_makes_them_fit_into_the_address_of_the_database() -> None:
    command = re.search(r"openssl rand \S+ \d+", (DEPLOY / "env.example").read_text())
    address = compose()["services"]["server"]["environment"]["AGENT_DATABASE"]
    assert command is not None
    for _ in range(20):
        password = subprocess.check_output(shlex.split(command[0]), text=True).strip()
        filled = re.sub(r"\$\{.*?\}", password, address)

        assert conninfo_to_dict(filled)["password"] == password


def test_the_image_starts_a_command_that_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    entry, command = (
        yaml.safe_load(re.search(rf"^{word} (\[.*\])$", text, re.MULTILINE)[1])  # type: ignore[index]
        for word in ("ENTRYPOINT", "CMD")
    )
    copied = re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE)

    assert entry == ["agent"]
    check_arguments(command)
    assert all((ROOT / one).exists() for one in copied)
    assert (ROOT / "tools" / "page.py").is_file()
    assert "/readyz" in paths()


def test_the_image_has_what_wheels_of_members_are_built_with() -> None:
    """It builds them without a place of their own to install that in."""
    installed = re.search(r"^RUN pip install (.*?)\\$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert installed is not None
    there = set(shlex.split(installed[1]))
    for file in [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]:
        assert set(tomllib.loads(file.read_text())["build-system"]["requires"]) <= there, file


def test_secrets_and_environments_are_not_copied_into_the_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()

    assert {".git", ".venv", "**/.env", "**/node_modules"} <= set(ignored)


def test_kubernetes_runs_commands_that_there_are_and_asks_paths_that_are_answered() -> None:
    kinds = [one["kind"] for one in manifests()]
    assert sorted(kinds) == ["ConfigMap", "Deployment", "Deployment", "Ingress", "Secret", "Service"]
    for deployment in deployments():
        pod = deployment["spec"]["template"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        (container,) = pod["spec"]["containers"]
        check_arguments(container["args"])
        probes = [container[name] for name in container if name.endswith("Probe")]
        assert {probe["httpGet"]["path"] for probe in probes} <= paths()
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["spec"]["volumes"]
        }
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
    server = deployments()[0]["spec"]["template"]["spec"]["containers"][0]
    assert {name for name in server if name.endswith("Probe")} == {
        "startupProbe", "livenessProbe", "readinessProbe",
    }  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["kubernetes-validate", "--strict", "deploy/kubernetes.yaml"],
        ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"],
    ],
    ids=lambda command: command[0],
)
def test_a_schema_allows_the_file(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}: pip install {command[0]}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_settings_for_kubernetes_are_settings(tmp_path: Path) -> None:
    (settings,) = (one["data"]["config.toml"] for one in manifests() if one["kind"] == "ConfigMap")
    file = tmp_path / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings)
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    done = run_agent("config", "get", "model", environment=environment, folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "there is no setting" not in done.stderr


def test_the_unit_of_systemd_runs_a_command_that_there_is() -> None:
    text = (DEPLOY / "keelwork.service").read_text()
    start = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert start is not None
    program, *arguments = shlex.split(start[1])

    assert program.endswith("/bin/agent")
    check_arguments(arguments)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "keelwork.service").read_text()
    unit = tmp_path / "keelwork.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )

    assert "keelwork.service:" not in done.stderr, done.stderr  # what it says of other units is not ours


def test_the_script_of_the_database_can_be_read() -> None:
    subprocess.run(["sh", "-n", str(DEPLOY / "role.sh")], check=True)
    assert (DEPLOY / "role.sh").stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["Caddyfile", "nginx.conf"])
def test_proxies_lead_to_the_usual_port_and_hold_nothing_back(name: str) -> None:
    text = (DEPLOY / name).read_text()

    assert "127.0.0.1:8421" in text
    assert "flush_interval -1" in text or "proxy_buffering off;" in text
    assert text.count("{") == text.count("}")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    made = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", made[0],
         "-keyout", made[1]],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made


@contextmanager
def nginx(folder: Path, listen: str, url: str) -> Iterator[None]:
    """Run nginx with the `location` that we recommend."""
    location = re.search(
        r"^ +location / \{.*?^ +\}", (DEPLOY / "nginx.conf").read_text(), re.DOTALL | re.MULTILINE
    )
    assert location is not None
    passed_on = location[0].replace("http://127.0.0.1:8421", url)
    folders = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    settings = folder / "nginx.conf"
    settings.write_text(
        f"daemon off; error_log stderr; pid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}"
        f"server {{ {listen}\n{passed_on}\n}}\n}}\n"
    )
    with subprocess.Popen(["nginx", "-c", str(settings), "-p", str(folder)]) as proxy:
        try:
            yield
        finally:
            proxy.terminate()


@contextmanager
def caddy(folder: Path, port: int, url: str, tls: str) -> Iterator[None]:
    """Run Caddy with the file that we recommend, at another port and with a certificate of ours."""
    text = (DEPLOY / "Caddyfile").read_text().replace("127.0.0.1:8421", url.removeprefix("http://"))
    site = f"https://127.0.0.1:{port} {{\n\tbind 127.0.0.1\n\t{tls}"
    settings = folder / "Caddyfile"
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
    settings.write_text(options + text.replace("agents.example.com {", site))
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    arguments = ["caddy", "run", "--adapter", "caddyfile", "--config", str(settings)]
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL) as proxy:
        try:
            yield
        finally:
            proxy.terminate()


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_a_browser_behind_a_proxy_with_tls_gets_a_cookie_for_tls_alone(
    name: str, tmp_path: Path, serving: Serving, certificate: tuple[Path, Path]
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    served, port, (public, key) = serving(), free_port(), certificate
    if name == "nginx":
        listen = f"listen 127.0.0.1:{port} ssl; ssl_certificate {public}; ssl_certificate_key {key};"
        running = nginx(tmp_path, listen, served.url)
    else:
        running = caddy(tmp_path, port, served.url, f"tls {public} {key}")
    link = f"https://127.0.0.1:{port}/login?code={served.access.new_link()}"
    with running:
        wait_for_port(port)
        # A browser's own word does not count: the proxy replaces it.
        answer = httpx2.get(
            link, headers={"x-forwarded-proto": "http"}, verify=ssl.create_default_context(cafile=public)
        )

    assert answer.status_code == 303, answer.text
    assert "secure" in answer.headers["set-cookie"].lower().split("; ")


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx")
def test_a_page_at_another_port_of_nginx_may_use_the_server(tmp_path: Path, serving: Serving) -> None:
    """The page says in its Origin at which port it was opened, so the server has to hear of that port."""
    served, port = serving(["hello"]), free_port()
    own = {"authorization": f"Bearer {TOKEN}", "origin": f"http://127.0.0.1:{port}"}
    with nginx(tmp_path, f"listen 127.0.0.1:{port};", served.url):
        wait_for_port(port)
        made = httpx2.post(f"http://127.0.0.1:{port}/v1/sessions", headers=own, json={}, timeout=60)

    assert made.status_code == 201, made.text
