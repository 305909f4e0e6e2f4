"""Attacks, each on every route of the published description: none has an effect, and none tells anything."""

from __future__ import annotations

import base64
import hmac
import http.client
import itertools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from agent_server import access
from agent_server.access import COOKIE, CSRF_HEADER, OPEN_PATHS, LocalAccess
from agent_server.people.access import TeamAccess
from agent_server.people.accounts import Accounts, digest
from agent_server.people.quota import Allowance, Quota
from agent_server.people.tables import open_tables
from agent_server.people.team import Team
from agent_server.people.vault import Vault
from agent_server.testing import TOKEN, Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_server.testing import Served

SECRET = "a secret of the tests, long enough to be one"
DESCRIBED = json.loads((Path(__file__).parents[3] / "docs/reference/openapi.json").read_text())["paths"]
ROUTES = sorted(
    (method.upper(), path)
    for path, methods in DESCRIBED.items()
    for method in methods
    if path not in OPEN_PATHS
)
UNSAFE = [route for route in ROUTES if route[0] not in ("GET", "HEAD", "OPTIONS")]


@dataclass
class Target:
    """A server with two tenants: what Ada has, and what Bob, of the other one, may try with it."""

    served: Served
    team: Team
    ada: str
    bob: str
    ids: dict[str, str]
    cookie: str
    now: list[float]
    tokens: dict[str, str] = field(default_factory=dict)
    sent: int = 0
    _connection: http.client.HTTPConnection | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.served.url).netloc

    def path(self, route: str) -> str:
        """Return the path of a route with the ids of what Ada has."""
        return re.sub(r"\{(\w+)\}", lambda found: self.ids.get(found[1], "1"), route)

    def ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Send exactly these headers, as a program of an attacker would."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.host, timeout=60)
        self.sent += 1
        body = b"{}" if method in ("POST", "PUT", "PATCH") else b""
        self._connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        given = {"host": self.host, "content-type": "application/json", "content-length": str(len(body))}
        for name, value in {**given, "accept": "application/json", **headers}.items():
            self._connection.putheader(name, value)
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        content = answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def state(self) -> list[Any]:
        """Return everything that Ada has."""
        own = {"authorization": f"Bearer {self.ada}"}
        session = f"/v1/sessions/{self.ids['session_id']}"
        asked = ("", "/messages", "/assets", "/shares", "/inputs", "/labels")
        paths = [
            "/v1/sessions",
            "/v1/people",
            "/v1/me/api-keys",
            "/v1/grants",
            *(f"{session}{path}" for path in asked),
        ]
        answers = [self.ask("GET", path, own) for path in paths]
        assert [status for status, _headers, _body in answers] == [200] * len(paths)
        return [json.loads(body) for _status, _headers, body in answers]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder, now = tmp_path_factory.mktemp("attacked"), [1_800_000_000.0]
    serving = Serving(folder)
    tables = open_tables(f"sqlite:///{folder}/app.db")
    team = Team(
        accounts=Accounts(tables, clock=lambda: now[0]),
        quota=Quota(Allowance(requests=None)),
        vault=Vault(SECRET),
    )
    served = serving(itertools.repeat("hello"), team=team)
    accounts = team.accounts
    keys = {}
    for name, tenant in (("ada", "red"), ("bob", "blue"), ("vic", "red"), ("out", "red")):
        role = "viewer" if name == "vic" else "owner"
        accounts.add(name, tenant=tenant, role=role, email=f"{name}@example.com")
        keys[name] = accounts.new_key(name, name="k", scope="manage", seconds=None)
    reader = accounts.new_key("ada", name="r", scope="read", seconds=None)[1]
    old = accounts.new_key("ada", name="old", scope="manage", seconds=1)[1]
    gone, gone_secret = accounts.new_key("ada", name="gone", scope="manage", seconds=None)
    accounts.revoke_key(gone.id, "ada")
    accounts.change("out", None, role=None, disabled=True)
    now[0] += 10
    served.client.headers["authorization"] = f"Bearer {keys['ada'][1]}"
    session_id = served.new_session()
    asset = served.client.post(
        f"/v1/sessions/{session_id}/assets", params={"name": "a.txt"}, content=b"the words of ada"
    ).raise_for_status()
    share = served.client.post(f"/v1/sessions/{session_id}/shares", json={"email": "x@example.com"}).json()
    grant = served.client.post("/v1/grants", json={"pattern": "the words of ada", "scope": "always"}).json()
    said = {"text": "the words of ada"}
    served.client.post(f"/v1/sessions/{session_id}/runs?wait=true", json=said).raise_for_status()
    (run,) = served.client.get(f"/v1/sessions/{session_id}/runs").json()["items"]
    waiting = served.client.post(f"/v1/sessions/{session_id}/inputs", json={**said, "mode": "queue"}).json()
    links = [accounts.new_link(session_id, "red", made_by="ada", seconds=seconds) for seconds in (None, 1)]
    accounts.revoke_share(links[0][0].id, session_id, "red")
    now[0] += 10
    people = TeamAccess(LocalAccess(TOKEN), accounts, team.vault, team.quota)
    found = accounts.find("ada")
    assert found is not None
    made = Target(
        served, team, keys["ada"][1], keys["bob"][1],
        {"session_id": session_id, "asset_id": asset.json()["id"], "share_id": share["id"],
         "key_id": keys["ada"][0].id, "person_id": "ada", "grant_id": grant["id"], "run_id": run["run_id"],
         "seq": str(waiting["seq"])},
        people.new_cookie(found), now,
        {"viewer": keys["vic"][1], "reader": reader, "expired": old, "revoked": gone_secret,
         "locked out": keys["out"][1], "revoked link": links[0][1], "expired link": links[1][1]},
    )  # fmt: skip
    yield made
    made.close()
    serving.close()
    tables.close()


def bearer(token: str) -> Callable[[Target], dict[str, str]]:
    return lambda _target: {"authorization": f"Bearer {token}"}


def known(name: str) -> Callable[[Target], dict[str, str]]:
    return lambda target: {"authorization": f"Bearer {target.tokens[name]}"}


def cookie(change: Callable[[str], str]) -> Callable[[Target], dict[str, str]]:
    return lambda target: {"cookie": f"{COOKIE}={change(target.cookie)}", CSRF_HEADER: "1"}


def with_key(**headers: str) -> Callable[[Target], dict[str, str]]:
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda target: {"authorization": f"Bearer {target.ada}", **own}


def unsigned(claims: dict[str, Any]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=")
        for one in ({"alg": "none"}, claims)
    ]
    return ".".join([*parts, ""])


STRANGERS: dict[str, Callable[[Target], dict[str, str]]] = {
    "no token": lambda _target: {},
    "an empty header": lambda _target: {"authorization": ""},
    "a scheme alone": lambda _target: {"authorization": "Bearer"},
    "a wrong token": bearer("wrong-token-of-some-length"),
    "the beginning of the token": bearer(TOKEN[:-1]),
    "the token and more": bearer(f"{TOKEN}x"),
    "the token in capitals": bearer(TOKEN.upper()),
    "two tokens": bearer(f"{TOKEN} {TOKEN}"),
    "a very long token": bearer("a" * 8_000),
    "bytes": bearer("\xff\xfe"),
    "basic": lambda _target: {"authorization": f"Basic {TOKEN}"},
    "another scheme": lambda _target: {"authorization": f"Token {TOKEN}"},
    "no scheme": lambda _target: {"authorization": TOKEN},
    "another header": lambda _target: {"x-api-key": TOKEN},
    "a name from a proxy": lambda _target: {"x-forwarded-user": "ada", "x-remote-user": "ada"},
    "another address from a proxy": lambda _target: {"x-original-url": "/livez", "x-rewrite-url": "/livez"},
    "another method from a proxy": lambda _target: {"x-http-method-override": "GET"},
    "an address of this machine": lambda _target: {"x-forwarded-for": "127.0.0.1"},
    "an unknown key": bearer("kw_" + "a" * 43),
    "what is kept of a key": lambda target: {"authorization": f"Bearer {digest(target.ada)}"},
    "the same with the mark of keys": lambda target: {"authorization": f"Bearer kw_{digest(target.ada)}"},
    "the beginning of a key": lambda target: {"authorization": f"Bearer {target.ada[:-1]}"},
    "a key that ended": known("expired"),
    "a key that was revoked": known("revoked"),
    "a key of somebody locked out": known("locked out"),
    "a link that was revoked": known("revoked link"),
    "a link that ended": known("expired link"),
    "an unknown link": bearer("kwl_" + "a" * 43),
    "an unsigned token": bearer(unsigned({"sub": "ada", "aud": "keelwork"})),
    "a wildcard": bearer("%"),
    "a quote": bearer("kw_' OR '1'='1"),
    "the token as a cookie": lambda _target: {"cookie": f"{COOKIE}={TOKEN}", CSRF_HEADER: "1"},
    "a cookie without a signature": cookie(lambda value: value.rpartition(".")[0] + "."),
    "a cookie with another signature": cookie(lambda value: value[:-4] + "0000"),
    "a cookie with a later end": cookie(lambda value: f"9{value}"),
    "a cookie of another name": lambda target: {"cookie": f"other={target.cookie}", CSRF_HEADER: "1"},
    "two cookies": lambda target: {"cookie": f"{COOKIE}=x; a=b", "Cookie": f"{COOKIE}={target.cookie}"},
    "a cookie that ended": cookie(lambda value: f"1.{value.partition('.')[2]}"),
}
FORGED: dict[str, tuple[int, Callable[[Target], dict[str, str]]]] = {
    **{
        f"the name {host!r}": (421, with_key(host=host))
        for host in (
            "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0",
            "127.0.0.1@evil.example", "[::ffff:127.0.0.1]", "2130706433", "127.1", "",
        )
    },
    **{
        f"the origin {origin!r}": (403, with_key(origin=origin))
        for origin in (
            "https://evil.example", "null", "http://127.0.0.1.evil.example", "http://localhost:1", "file://",
            "http://127.0.0.1", "chrome-extension://abc", "",
        )
    },
    "a page of another site": (403, with_key(sec_fetch_site="cross-site", sec_fetch_mode="cors")),
    "a page of the same site": (403, with_key(sec_fetch_site="same-site")),
}  # fmt: skip
PATHS: dict[str, Callable[[str], str]] = {
    "the token in the address": lambda path: f"{path}?token={TOKEN}",
    "the same by the name of OAuth": lambda path: f"{path}?access_token={TOKEN}",
    "a header in the address": lambda path: f"{path}?authorization=Bearer%20{TOKEN}",
    "up from an open path": lambda path: f"/livez/..{path}",
    "the same, encoded": lambda path: f"/livez/%2e%2e{path}",
    "the same, encoded twice": lambda path: f"/livez/%252e%252e{path}",
    "up from the login": lambda path: f"/login/..{path}",
    "two slashes": lambda path: f"/{path}",
    "a slash at the end": lambda path: f"{path}/",
    "capitals": str.upper,
    "a parameter of the path": lambda path: f"{path};/livez",
    "a fragment": lambda path: f"{path}%23/livez",
    "a backslash": lambda path: f"/livez\\..{path}",
}


CONTROLS = ("%0a", "%0d%0a", "%00", "%e2%80%a8")
"""What a pattern may leave out at the end of a path, or not see in its middle."""


def check(answer: tuple[int, dict[str, str], bytes], statuses: set[int], what: object) -> None:
    """Check that an attack was refused, in a way that no cache keeps and that tells nothing."""
    status, headers, body = answer
    assert status in statuses, (what, status, body)
    assert headers["content-type"] == "application/problem+json", what
    assert headers["cache-control"] == "no-store", what
    assert headers["x-content-type-options"] == "nosniff", what
    assert "access-control-allow-origin" not in headers, what
    assert b"the words of ada" not in body, what
    assert b"Traceback" not in body, what
    assert TOKEN.encode() not in body, what


def test_there_are_at_least_sixty_attacks() -> None:
    assert len(STRANGERS) + len(FORGED) + len(PATHS) >= 60
    assert len(ROUTES) >= 60


@pytest.mark.parametrize("name", STRANGERS)
def test_whoever_has_no_token_is_refused_by_every_route(target: Target, name: str) -> None:
    headers = STRANGERS[name](target)

    for method, route in ROUTES:
        answer = target.ask(method, target.path(route), headers)
        check(answer, {401}, (name, method, route))
        assert answer[1]["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_host_or_origin_is_refused_by_every_route_even_with_a_key(target: Target, name: str) -> None:
    status, headers = FORGED[name]

    for method, route in ROUTES:
        check(target.ask(method, target.path(route), headers(target)), {status}, (name, method, route))


@pytest.mark.parametrize("name", PATHS)
def test_no_spelling_of_a_path_leads_around_the_token(target: Target, name: str) -> None:
    for method, route in ROUTES:
        path = PATHS[name](target.path(route))
        check(target.ask(method, path, {}), {401}, (name, method, path))


@pytest.mark.parametrize("control", CONTROLS)
def test_no_control_character_leads_around_a_role(target: Target, control: str) -> None:
    before = target.state()

    for method, route in ROUTES:
        path = target.path(route)
        for one in (f"{path}{control}", f"{path[:-1]}{control}{path[-1]}"):
            check(target.ask(method, one, known("viewer")(target)), {400}, (method, one))
    assert target.state() == before


def test_a_browser_changes_nothing_without_the_header_that_forms_cannot_send(target: Target) -> None:
    for method, route in UNSAFE:
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            headers = {"cookie": f"{COOKIE}={target.cookie}", "content-type": kind}
            check(target.ask(method, target.path(route), headers), {403}, (method, route, kind))


def test_whoever_may_read_changes_nothing(target: Target) -> None:
    before = target.state()

    for method, route in UNSAFE:
        if route.startswith("/v1/me/"):
            continue  # one's own things
        for name in ("viewer", "reader"):
            check(target.ask(method, target.path(route), known(name)(target)), {403}, (name, method, route))
    assert target.state() == before


def test_the_ids_of_another_tenant_are_nobodys_on_every_route(target: Target) -> None:
    before, own = target.state(), {"authorization": f"Bearer {target.bob}"}
    seen = {}

    for method, route in ROUTES:
        if "{" not in route:
            continue
        status, _headers, body = target.ask(method, target.path(route), own)
        seen[method, route] = status
        assert b"the words of ada" not in body
    of_sessions = {key: status for key, status in seen.items() if "{session_id}" in key[1]}
    taken = [key for key, status in seen.items() if status < 400]
    assert set(of_sessions.values()) <= {404, 422}, of_sessions  # 422: what was sent does not fit either way
    assert taken == []
    assert target.state() == before


def test_the_ids_of_another_tenant_are_nobodys_as_parameters_either(target: Target) -> None:
    before, own = target.state(), {"authorization": f"Bearer {target.bob}"}
    named = {"session_id": target.ids["session_id"], "id": target.ids["session_id"], "person_id": "ada"}
    seen = {}

    for method, route in ROUTES:
        names = {one["name"] for one in DESCRIBED[route][method.lower()].get("parameters", ())
                 if one["in"] == "query"}  # fmt: skip
        for name in names & named.keys():
            path = f"{target.path(route)}?{name}={named[name]}"
            seen[method, route], _headers, body = target.ask(method, path, own)
            assert b"the words of ada" not in body
    assert len(seen) >= 6
    assert [key for key, status in seen.items() if status < 400] == []
    assert target.state() == before


def test_neither_log_nor_record_has_a_secret(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    for name in ("the token in the address", "a header in the address"):
        for method, route in ROUTES:
            target.ask(method, PATHS[name](target.path(route)), {"authorization": f"Bearer {target.ada}x"})

    own = [one for one in caplog.records if not one.name.startswith(("httpx", "httpcore"))]
    written = "\n".join(record.getMessage() for record in own)
    record = json.dumps(target.team.accounts.noted(None, limit=100_000))
    for secret in (TOKEN, target.ada, target.bob, target.cookie, *target.tokens.values()):
        assert secret not in written
        assert secret not in record


def test_secrets_are_compared_as_digests_of_one_length_and_in_constant_time(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    def note(first: bytes, second: bytes) -> bool:
        compared.append((len(first), len(second)))
        return hmac.compare_digest(first, second)

    class Noting:
        compare_digest = staticmethod(note)
        new = staticmethod(hmac.new)

    monkeypatch.setattr(access, "hmac", Noting)
    for token in ("", "a", TOKEN[:-1], TOKEN, "b" * 5000):
        target.ask("GET", "/v1/sessions", {"authorization": f"Bearer {token}"})

    assert compared == [(32, 32)] * 5
