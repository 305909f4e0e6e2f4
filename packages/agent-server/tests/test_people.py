"""Several people on one server: tenants, roles, keys, shared sessions, limits, and the record of it all."""

from __future__ import annotations

import itertools
import math
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing.postgres import create_database, shared_server
from agent_core.testing import Reply, ScriptedProvider
from agent_server.people.accounts import Accounts
from agent_server.people.quota import Allowance, ProcessCounts, Quota
from agent_server.people.tables import open_tables
from agent_server.people.team import Team
from agent_server.people.vault import Vault
from agent_server.testing import read_events, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_server.testing import Served, Serving

    Teams = Callable[..., Team]

SECRET = "a secret of the tests, long enough to be one"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/app.db"
    try:
        return create_database(shared_server())
    except StoreUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def team_of(clock: Clock) -> Iterator[Teams]:
    opened = []

    def make(url: str, **allowed: Any) -> Team:
        tables = open_tables(url)
        opened.append(tables)
        allowance = Allowance(**{"requests": None, **allowed})
        return Team(
            accounts=Accounts(tables, clock=clock),
            quota=Quota(allowance, ProcessCounts(clock)),
            vault=Vault(SECRET),
        )

    yield make
    for tables in opened:
        tables.close()


@pytest.fixture
def served(serve_it: Serving, store: str, team_of: Teams) -> Served:
    replies = [f"answer {number}" for number in range(50)]
    return serve_it(replies, store=store, team=team_of(store))


def person(
    served: Served, name: str, tenant: str, role: str = "owner", scope: str = "manage"
) -> httpx2.Client:
    """Add somebody, and return what asks as them."""
    served.client.post(
        "/v1/people", json={"id": name, "tenant": tenant, "role": role, "email": f"{name}@example.com"}
    ).raise_for_status()
    made = served.client.post(
        "/v1/people/api-keys", params={"person_id": name}, json={"scope": scope}
    ).raise_for_status()
    own = {"authorization": f"Bearer {made.json()['secret']}"}
    return httpx2.Client(base_url=served.url, headers=own, timeout=60)


def new_session(client: httpx2.Client) -> str:
    found: str = client.post("/v1/sessions", json={}).raise_for_status().json()["id"]
    return found


def ids(client: httpx2.Client) -> list[str]:
    return [one["id"] for one in client.get("/v1/sessions").raise_for_status().json()["items"]]


def test_tenants_see_their_own_sessions_and_events(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        of_ada, of_bob = new_session(ada), new_session(bob)
        ada.post(f"/v1/sessions/{of_ada}/runs?wait=true", json={"text": "hi"}).raise_for_status()
        events = bob.get("/v1/events", headers={"accept": "application/json"}).json()["items"]

        assert (ids(ada), ids(bob)) == ([of_ada], [of_bob])
        assert {event["session_id"] for event in events} == {of_bob}
        assert sorted(ids(served.client)) == sorted([of_ada, of_bob])
        assert ada.get("/v1/me").json()["tenant"] == "red"


def test_the_stream_of_all_events_has_those_of_the_tenant(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        headers = {"accept": "text/event-stream"}
        with ada.stream("GET", "/v1/events", headers=headers) as answer:
            lines = answer.iter_lines()
            new_session(bob)
            mine = new_session(ada)
            seen = next(line for line in lines if line.startswith('data: {"type"'))

    assert mine in seen


PATHS = [
    ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/state"), ("GET", "/labels"),
    ("GET", "/messages"), ("GET", "/branches"), ("GET", "/next-request"),
    ("GET", "/usage"), ("GET", "/export"), ("GET", "/events"), ("GET", "/inputs"), ("POST", "/inputs"),
    ("PUT", "/inputs/1"), ("DELETE", "/inputs/1"), ("POST", "/runs"), ("POST", "/cancel"),
    ("POST", "/interrupt"), ("POST", "/fork"), ("POST", "/messages/0/edit"),
    ("POST", "/messages/0/regenerate"), ("GET", "/actions"), ("POST", "/actions/plugin/action"),
    ("GET", "/config-schema"), ("POST", "/completions"), ("GET", "/assets"), ("POST", "/assets?name=x"),
    ("GET", "/assets/x"), ("DELETE", "/assets/x"), ("GET", "/shares"), ("POST", "/shares"),
    ("POST", "/links"), ("DELETE", "/shares/x"), ("GET", "/messages/0/edit-plan"),
    ("GET", "/messages/0/request"), ("GET", "/runs"), ("GET", "/runs/x/trace"),
]  # fmt: skip
BODIES = {
    "/inputs": {"text": "x"}, "/inputs/1": {"text": "x"}, "/runs": {"text": "x"}, "/fork": {"upto_index": 0},
    "/messages/0/edit": {"content": "x"}, "/actions/plugin/action": {"params": {}},
    "/completions": {"text": "x"}, "/shares": {"email": "x@example.com"}, "/links": {},
    "": {"title": "taken"},
}  # fmt: skip


def test_every_route_of_a_session_says_that_another_tenants_is_not_there(
    serve_it: Serving, tmp_path: Path, team_of: Teams
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    served = serve_it(["never"], team=team_of(url))
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        session_id = new_session(ada)
        before = ada.get(f"/v1/sessions/{session_id}").json()
        answers = {}
        for method, path in PATHS:
            body = BODIES.get(path) if method in ("POST", "PUT", "PATCH") else None
            answers[method, path] = bob.request(method, f"/v1/sessions/{session_id}{path}", json=body)
        known = bob.get("/openapi.json").json()["paths"]

        assert {key: answer.status_code for key, answer in answers.items()} == dict.fromkeys(answers, 404)
        assert ada.get(f"/v1/sessions/{session_id}").json() == before
    described = {
        (method.upper(), path.removeprefix("/v1/sessions/{session_id}"))
        for path, methods in known.items()
        for method in methods
        if path.startswith("/v1/sessions/{session_id}")
    }
    assert len(described) == len(PATHS)  # a new route of a session belongs into the list above


def test_roles_and_scopes_say_what_one_may(served: Served) -> None:
    with (
        person(served, "ada", "red") as owner,
        person(served, "eve", "red", "editor") as editor,
        person(served, "vic", "red", "viewer") as viewer,
        person(served, "ron", "red", "owner", scope="read") as reader,
    ):
        session_id = new_session(editor)
        path = f"/v1/sessions/{session_id}"

        assert [client.get(path).status_code for client in (owner, editor, viewer, reader)] == [200] * 4
        assert [client.patch(path, json={"title": "x"}).status_code for client in (viewer, reader)] == [
            403
        ] * 2
        assert editor.patch(path, json={"title": "x"}).status_code == 200
        assert [client.get("/v1/people").status_code for client in (owner, editor, viewer)] == [200, 403, 403]
        assert [client.get("/v1/audit").status_code for client in (owner, reader)] == [200, 403]
        for denied in ("/v1/settings", "/v1/keys", "/v1/doctor"):
            assert owner.get(denied).status_code == 403  # these are the operator's
            assert served.client.get(denied).status_code == 200
        made = editor.post("/v1/me/api-keys", json={"scope": "manage"})
        assert made.status_code == 403


def test_keys_end_are_revoked_and_are_kept_as_hashes(served: Served, clock: Clock, tmp_path: Path) -> None:
    with person(served, "ada", "red") as ada:
        made = ada.post("/v1/me/api-keys", json={"name": "ci", "scope": "read", "seconds": 100}).json()
        own = {"authorization": f"Bearer {made['secret']}"}

        assert httpx2.get(f"{served.url}/v1/me", headers=own, timeout=60).json()["level"] == "read"
        clock.now += 101
        assert httpx2.get(f"{served.url}/v1/me", headers=own, timeout=60).status_code == 401
        second = ada.post("/v1/me/api-keys", json={"scope": "read"}).json()
        own = {"authorization": f"Bearer {second['secret']}"}
        assert httpx2.get(f"{served.url}/v1/me", headers=own, timeout=60).status_code == 200
        assert ada.delete(f"/v1/me/api-keys/{second['id']}").status_code == 204
        assert httpx2.get(f"{served.url}/v1/me", headers=own, timeout=60).status_code == 401
        assert all("secret" not in key for key in ada.get("/v1/me/api-keys").json()["items"])
        served.client.patch("/v1/people/ada", json={"disabled": True}).raise_for_status()
        assert ada.get("/v1/me").status_code == 401
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(made["secret"].encode() in data for data in files)


def test_a_session_is_shared_by_invitation(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        session_id = new_session(ada)
        path = f"/v1/sessions/{session_id}"
        assert bob.get(path).status_code == 404

        shared = ada.post(f"{path}/shares", json={"email": "BOB@example.com", "role": "viewer"}).json()
        assert bob.get(path).status_code == 200
        assert bob.post(f"{path}/runs", json={"text": "hi"}).status_code == 403
        assert [one["session"] for one in bob.get("/v1/me/shared").json()["items"]] == [session_id]
        assert ids(bob) == []
        ada.post(f"{path}/shares", json={"email": "bob@example.com", "role": "editor"})
        answered = bob.post(f"{path}/runs?wait=true", json={"text": "hi"})
        assert answered.status_code == 200, answered.text
        for share in ada.get(f"{path}/shares").json()["items"]:
            assert ada.delete(f"{path}/shares/{share['id']}").status_code == 204
        assert bob.get(path).status_code == 404

    assert shared["kind"] == "invitation"


def test_an_owner_gives_nobody_an_address_or_the_id_of_a_provider(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "mallory", "evil") as mallory:
        session_id = new_session(ada)
        ada.post(f"/v1/sessions/{session_id}/shares", json={"email": "bob@example.com", "role": "viewer"})

        claimed = mallory.post("/v1/people", json={"id": "fake", "email": "bob@example.com"})
        squatted = mallory.post("/v1/people", json={"id": "https://login.example#bob"})
        plain = mallory.post("/v1/people", json={"id": "fake"})

        assert [claimed.status_code, squatted.status_code, plain.status_code] == [403, 403, 201]
        assert claimed.json()["type"] == "urn:keelwork:not-allowed"
        made = mallory.post(
            "/v1/people/api-keys", params={"person_id": "fake"}, json={"scope": "write"}
        ).json()
        own = {"authorization": f"Bearer {made['secret']}"}
        found = httpx2.get(f"{served.url}/v1/sessions/{session_id}", headers=own, timeout=60)
        assert found.status_code == 404


def test_whoever_may_only_read_does_not_see_with_whom_a_session_is_shared(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        path = f"/v1/sessions/{new_session(ada)}"
        ada.post(f"{path}/shares", json={"email": "bob@example.com", "role": "viewer"})
        link = {"authorization": f"Bearer {ada.post(f'{path}/links').json()['secret']}"}

        assert ada.get(f"{path}/shares").status_code == 200
        assert bob.get(f"{path}/shares").status_code == 403
        with httpx2.Client(base_url=served.url, headers=link, timeout=60) as anybody:
            for behind in (
                "shares", "next-request", "config-schema", "actions", "messages/0/request",
                "export", "export?form=json", "export?form=zip&redact=false&events=true",
            ):  # fmt: skip
                assert anybody.get(f"{path}/{behind}").status_code == 403, behind
            for shown in ("state", "messages", "usage", "assets", "export?form=md", "export?form=html"):
                assert anybody.get(f"{path}/{shown}").status_code == 200, shown


def test_a_guest_may_use_the_branches_that_they_make_until_the_invitation_ends(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        first = new_session(ada)
        path = f"/v1/sessions/{first}"
        ada.post(f"{path}/runs?wait=true", json={"text": "hi"}).raise_for_status()
        own = ada.post(f"{path}/fork", json={"upto_index": -1}).json()["id"]
        share = ada.post(f"{path}/shares", json={"email": "bob@example.com", "role": "editor"}).json()
        fork = bob.post(f"{path}/fork", json={"upto_index": -1}).json()["id"]
        edit = bob.post(f"/v1/sessions/{fork}/messages/0/edit", json={"content": "hello"}).json()["id"]
        again = bob.post(f"{path}/messages/1/regenerate").json()["id"]
        branches = [f"/v1/sessions/{branch}" for branch in (fork, edit, again)]

        assert [bob.get(branch).status_code for branch in branches] == [200] * 3
        assert [ada.get(branch).status_code for branch in branches] == [200] * 3
        assert bob.post(f"{branches[1]}/runs?wait=true", json={}).status_code == 200
        assert bob.get(f"/v1/sessions/{own}").status_code == 404  # made by somebody else
        ada.delete(f"{path}/shares/{share['id']}").raise_for_status()
        assert [bob.get(branch).status_code for branch in [path, *branches]] == [404] * 4


def test_the_models_that_somebody_asks_for_are_not_shown_to_other_tenants(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        (provider,) = {one["provider"] for one in served.client.get("/v1/models").json()["items"]}
        mine = f"{provider}:the-secret-project"
        chosen = ada.patch(f"/v1/sessions/{new_session(ada)}", json={"model": mine})
        unknown = bob.patch(f"/v1/sessions/{new_session(bob)}", json={"model": "the-secret"})

        assert chosen.status_code == 200, chosen.text
        assert unknown.status_code == 422
        assert "project" not in unknown.text
        for client, shown in ((bob, False), (served.client, True)):
            assert (mine in [one["id"] for one in client.get("/v1/models").json()["items"]]) is shown


def test_a_guest_who_may_write_does_not_delete(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        path = f"/v1/sessions/{new_session(ada)}"
        ada.post(f"{path}/shares", json={"email": "bob@example.com", "role": "editor"}).raise_for_status()

        assert bob.patch(path, json={"title": "ours"}).status_code == 200
        assert bob.delete(path).status_code == 403
        assert ada.delete(path).status_code == 204


@pytest.mark.parametrize("taken_back", ["link", "invitation", "key", "person"])
def test_whoever_is_locked_out_hears_nothing_more_of_an_open_stream(served: Served, taken_back: str) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        path = f"/v1/sessions/{new_session(ada)}"
        invited = ada.post(f"{path}/shares", json={"email": "bob@example.com", "role": "viewer"}).json()
        link = ada.post(f"{path}/links").json()
        key = bob.post("/v1/me/api-keys", json={"scope": "read"}).json()
        secret = link["secret"] if taken_back == "link" else key["secret"]
        own = {"authorization": f"Bearer {secret}", "accept": "text/event-stream"}
        with httpx2.stream("GET", f"{served.url}{path}/events", headers=own, timeout=60) as answer:
            events = read_events(answer.iter_lines())
            ada.post(f"{path}/runs?wait=true", json={"text": "before"}).raise_for_status()
            until(events, "final")

            if taken_back == "key":
                bob.delete(f"/v1/me/api-keys/{key['id']}").raise_for_status()
            elif taken_back == "person":
                served.client.patch("/v1/people/bob", json={"disabled": True}).raise_for_status()
            else:
                share = link if taken_back == "link" else invited
                ada.delete(f"{path}/shares/{share['id']}").raise_for_status()
            ada.post(f"{path}/runs?wait=true", json={"text": "afterwards"}).raise_for_status()

            heard = list(events)
        assert heard[-1].name == "reconnect"
        assert "afterwards" not in str(heard)


def test_what_ends_by_itself_or_elsewhere_ends_a_stream_with_the_next_heartbeat(
    serve_it: Serving, store: str, team_of: Teams, clock: Clock
) -> None:
    served = serve_it(["answer"], store=store, team=team_of(store), heartbeat=0.2)
    with person(served, "ada", "red") as ada:
        path = f"/v1/sessions/{new_session(ada)}"
        link = ada.post(f"{path}/links", json={"seconds": 100}).json()
        own = {"authorization": f"Bearer {link['secret']}", "accept": "text/event-stream"}
        with httpx2.stream("GET", f"{served.url}{path}/events", headers=own, timeout=60) as answer:
            events = read_events(answer.iter_lines())
            until(events, "heartbeat")
            clock.now += 101

            until(events, "reconnect")


def test_a_viewer_logs_out(served: Served) -> None:
    with person(served, "vi", "red", role="viewer", scope="read") as viewer:
        assert viewer.post("/logout").status_code == 204


def test_a_character_that_no_database_keeps_is_refused(served: Served) -> None:
    with person(served, "ada", "red") as ada:
        path = f"/v1/sessions/{new_session(ada)}"
        refused = [
            ada.post("/v1/people", json={"id": "a\0b"}),
            ada.post("/v1/people", json={"id": "pn", "name": "\0"}),
            ada.post("/v1/people/api-keys", params={"person_id": "\0"}, json={}),
            ada.post("/v1/me/api-keys", json={"name": "\0"}),
            ada.post(f"{path}/shares", json={"email": "a\0@example.com", "role": "viewer"}),
        ]

        assert [one.status_code for one in refused] == [422] * len(refused)
        assert ada.get("/v1/approvals", params={"session_id": "\0"}).status_code in (404, 422)


@pytest.mark.parametrize("name", ["local", "link 1"])
def test_nobody_gets_the_id_of_the_operator_or_of_a_link(served: Served, name: str) -> None:
    refused = served.client.post("/v1/people", json={"id": name, "tenant": "red"})

    assert refused.status_code == 422


class Maintenance:
    """An application plugin: what it does, it does for everybody."""

    name = "maintenance"
    version = "1"
    kind = "application"

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [{"id": "restart", "label": "Restart"}]

    def execute_action(self, app: Any, action_id: str, params: Any, context: Any) -> dict[str, Any]:
        return {"message": "done"}


def test_what_acts_for_all_tenants_is_the_operators(serve_it: Serving, store: str, team_of: Teams) -> None:
    served = serve_it([], store=store, team=team_of(store), plugins=[Maintenance])
    with person(served, "ada", "red") as ada:
        session = f"/v1/sessions/{new_session(ada)}"
        for start in ("/v1", session):
            assert ada.get(f"{start}/actions").json()["items"] == []
            refused = ada.post(f"{start}/actions/maintenance/restart", json={})
            assert refused.status_code == 403, refused.text

    assert [one["id"] for one in served.client.get("/v1/actions").json()["items"]] == ["restart"]
    done = served.client.post("/v1/actions/maintenance/restart", json={})
    assert done.status_code == 200, done.text


def test_a_link_reads_one_session_until_it_is_revoked(served: Served, clock: Clock) -> None:
    with person(served, "ada", "red") as ada:
        session_id, other = new_session(ada), new_session(ada)
        path = f"/v1/sessions/{session_id}"
        link = ada.post(f"{path}/links", json={"seconds": 100}).json()
        own = {"authorization": f"Bearer {link['secret']}"}
        with httpx2.Client(base_url=served.url, headers=own, timeout=60) as anybody:
            assert anybody.get(path).status_code == 200
            assert anybody.get(f"{path}/messages").status_code == 200
            assert anybody.patch(path, json={"title": "x"}).status_code == 403
            assert anybody.get(f"/v1/sessions/{other}").status_code == 403
            assert anybody.get("/v1/sessions").status_code == 403
            assert anybody.get("/v1/events").status_code == 403
            clock.now += 101
            assert anybody.get(path).status_code == 401
        second = ada.post(f"{path}/links").json()
        own = {"authorization": f"Bearer {second['secret']}"}
        assert httpx2.get(f"{served.url}{path}", headers=own, timeout=60).status_code == 200
        ada.delete(f"{path}/shares/{second['id']}")
        assert httpx2.get(f"{served.url}{path}", headers=own, timeout=60).status_code == 401


def test_a_browser_reads_the_session_of_a_link_and_keeps_its_own_login(served: Served) -> None:
    with person(served, "ada", "red") as ada:
        session_id, other = new_session(ada), new_session(ada)
        path = f"/v1/sessions/{session_id}"
        link = ada.post(f"{path}/links", json={}).json()
        with httpx2.Client(base_url=served.url, timeout=60) as browser:
            opened = browser.get("/login", params={"link": link["secret"]})
            assert f"/#read={session_id}" in opened.text
            assert "samesite=strict" in opened.headers["set-cookie"].lower()
            assert browser.get("/").status_code == 200
            assert browser.get(f"{path}/messages").status_code == 200
            assert browser.get(f"/v1/sessions/{other}").status_code == 403
            sent = browser.post(f"{path}/runs", json={"text": "hi"}, headers={"x-keelwork": "1"})
            assert sent.status_code == 403
            ada.delete(f"{path}/shares/{link['id']}")
            assert browser.get(f"{path}/messages").status_code == 401
            assert browser.get("/login", params={"link": link["secret"]}).status_code == 401
        with httpx2.Client(base_url=served.url, timeout=60) as operator:
            operator.get("/login", params={"code": served.access.new_link()})
            again = ada.post(f"{path}/links", json={}).json()
            assert "set-cookie" not in operator.get("/login", params={"link": again["secret"]}).headers


def test_a_shared_session_does_not_show_its_other_branches(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        first = new_session(ada)
        ada.post(f"/v1/sessions/{first}/runs?wait=true", json={"text": "hi"}).raise_for_status()
        forks = [
            ada.post(f"/v1/sessions/{first}/fork", json={"upto_index": 1}).json()["id"] for _ in range(2)
        ]
        for session_id in (first, forks[0]):
            ada.post(
                f"/v1/sessions/{session_id}/shares", json={"email": "bob@example.com"}
            ).raise_for_status()
        path = f"/v1/sessions/{first}/branches"
        link = ada.post(f"/v1/sessions/{first}/links", json={}).json()["secret"]
        by_link = httpx2.get(served.url + path, headers={"authorization": f"Bearer {link}"}, timeout=60)

        assert {one["id"] for one in ada.get(path).json()["items"]} == {first, *forks}
        assert [one["id"] for one in by_link.json()["items"]] == [first]
        assert {one["id"] for one in bob.get(path).json()["items"]} == {first, forks[0]}


def test_labels_of_other_tenants_are_not_listed_nor_their_sessions_exported(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        session_id = new_session(ada)
        ada.patch(f"/v1/sessions/{session_id}", json={"folder": "Secret plans"}).raise_for_status()
        new_session(bob)

        assert [one["name"] for one in ada.get("/v1/sessions/labels").json()["folders"]] == ["Secret plans"]
        assert bob.get("/v1/sessions/labels").json() == {"folders": [], "tags": [], "archived": 0}
        assert ada.get("/v1/sessions/export", params={"id": session_id}).status_code == 200
        assert bob.get("/v1/sessions/export", params={"id": session_id}).status_code == 404


def test_people_may_not_send_the_keys_of_the_server_elsewhere(served: Served) -> None:
    with person(served, "ada", "red") as ada:
        session_id = new_session(ada)
        path = f"/v1/sessions/{session_id}/runs"
        refused = [
            ada.post(path, json={"text": "x", "overrides": {"base_url": "http://elsewhere.example"}}),
            ada.post(path, json={"text": "x", "overrides": {"headers": {}}}),
            ada.post("/v1/sessions", json={"metadata": {"overrides": {"base_url": "http://elsewhere"}}}),
            ada.post("/v1/sessions", json={"metadata": {"workspace_roots": ["/"]}}),
        ]
        accepted = ada.post(f"{path}?wait=true", json={"text": "x", "overrides": {"temperature": 0.1}})

    assert [answer.status_code for answer in refused] == [403] * 4
    assert accepted.status_code == 200


def test_limits_of_a_person_are_those_of_that_person(
    serve_it: Serving, tmp_path: Path, team_of: Teams
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    team = team_of(url, requests=5, runs=1, tokens=100)
    served = serve_it([Reply(text="a", delay=math.inf), "b"], team=team)
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        first, second = new_session(ada), new_session(ada)
        begun = ada.post(f"/v1/sessions/{first}/runs", json={"text": "x"})
        one_more = ada.post(f"/v1/sessions/{second}/runs", json={"text": "x"})
        statuses = [ada.get("/v1/me").status_code for _ in range(3)]
        too_many = ada.get("/v1/me")

        assert (begun.status_code, one_more.status_code) == (202, 429)
        assert statuses[-1] == 429
        assert int(too_many.headers["retry-after"]) >= 1
        assert bob.get("/v1/me").status_code == 200
        team.accounts.add_usage("bob", tokens=100)
        used_up = bob.post(f"/v1/sessions/{new_session(bob)}/runs", json={"text": "x"})
        assert used_up.status_code == 429
        assert "tokens" in used_up.json()["detail"]
    served.client.post(f"/v1/sessions/{first}/cancel")


def test_what_a_run_used_is_counted(served: Served) -> None:
    with person(served, "ada", "red") as ada:
        session_id = new_session(ada)
        ada.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "hi"}).raise_for_status()
        with ada.stream("GET", "/v1/events", params={"after": "0"}, headers={"accept": "text/event-stream"}):
            pass
        for _ in range(200):
            if ada.get("/v1/me").json()["used"]["runs"]:
                break
        assert ada.get("/v1/me").json()["used"]["runs"] == 1


def test_what_is_done_and_refused_is_written_down(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue", "viewer") as bob:
        session_id = new_session(ada)
        bob.post("/v1/sessions", json={})
        httpx2.get(f"{served.url}/v1/sessions", headers={"authorization": "Bearer kw_wrong"}, timeout=60)
        mine = ada.get("/v1/audit").json()["items"]
        everything = served.client.get("/v1/audit").json()["items"]

    assert [(one["person"], one["action"], one["target"], one["outcome"]) for one in mine] == [
        ("ada", "POST", "/v1/sessions", "201")
    ]
    outcomes = {(one["person"], one["target"], one["outcome"]) for one in everything}
    assert ("bob", "/v1/sessions", "403") in outcomes
    assert ("", "/v1/sessions", "401") in outcomes
    assert session_id not in str(mine)
    assert "kw_" not in str(everything)


def test_a_persons_own_key_is_encrypted_and_used_for_their_runs(
    serve_it: Serving, tmp_path: Path, team_of: Teams
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    provider = Remembering()
    served = serve_it(provider=provider, team=team_of(url))
    secret = "sk-the-key-of-ada-which-nobody-else-sees"
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        kept = ada.put("/v1/me/provider-keys/scripted", json={"key": secret, "test": False})
        for client in (ada, bob):
            client.post(f"/v1/sessions/{new_session(client)}/runs?wait=true", json={"text": "x"})
        listed = ada.get("/v1/me/provider-keys").json()["items"]
        assert bob.get("/v1/me/provider-keys").json()["items"] == []
        assert ada.delete("/v1/me/provider-keys/scripted").status_code == 204

    assert kept.status_code == 204, kept.text
    assert provider.keys == [secret, None]
    assert [one["provider"] for one in listed] == ["scripted"]
    assert secret not in str(listed)
    with closing(sqlite3.connect(f"{tmp_path}/app.db.people")) as file:
        assert secret not in "\n".join(file.iterdump())
    stored = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(secret.encode() in data for data in stored)


class Remembering(ScriptedProvider):
    """A provider that remembers with which keys it was asked."""

    def __init__(self) -> None:
        super().__init__(itertools.repeat("fine"))
        self.keys: list[str | None] = []

    def init(self, config: Any) -> Any:
        self.keys.append(config.get("api_key"))
        return super().init(config)


def test_a_vault_opens_for_its_person_alone() -> None:
    vault = Vault(SECRET)
    sealed = vault.seal("secret", whose="ada")

    assert vault.open(sealed, whose="ada") == "secret"
    assert vault.open(sealed, whose="bob") is None
    assert Vault("another secret of the server, long enough").open(sealed, whose="ada") is None
    with pytest.raises(ValueError, match="32"):
        Vault("short")


def test_people_need_a_server_for_several(shared: Served) -> None:
    assert shared.client.get("/v1/people").status_code == 409
    assert shared.client.get("/v1/me").json() == {
        "id": "local", "tenant": None, "level": "operate",
    }  # fmt: skip


def test_events_of_a_shared_run_reach_the_invited(served: Served) -> None:
    with person(served, "ada", "red") as ada, person(served, "bob", "blue") as bob:
        session_id = new_session(ada)
        ada.post(f"/v1/sessions/{session_id}/shares", json={"email": "bob@example.com"})
        headers = {"accept": "text/event-stream"}
        path = f"/v1/sessions/{session_id}/events"
        with bob.stream("GET", path, headers=headers) as answer:
            events = read_events(answer.iter_lines())
            ada.post(f"/v1/sessions/{session_id}/runs", json={"text": "hi"}).raise_for_status()
            assert until(events, "final")[-1].data["text"].startswith("answer")
