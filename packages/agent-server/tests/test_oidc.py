"""Logging in with an OpenID provider, which is a real server here, with keys that change."""

from __future__ import annotations

import base64
import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from joserfc.jwk import RSAKey
from openid_provider import CLIENT, OpenIdProvider

from agent_core.product import USER_AGENT
from agent_server.people.accounts import Accounts
from agent_server.people.oidc import OidcProvider, OidcSettings
from agent_server.people.quota import Allowance, Quota
from agent_server.people.tables import open_tables
from agent_server.people.team import Team
from agent_server.people.vault import Vault
from agent_server.testing import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_server.testing import Served, Serving

SECRET = "a secret of the tests, long enough to be one"


class Now:
    """The time of the server, which a test can move."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with OpenIdProvider() as running:
        yield running


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def served(serve_it: Serving, provider: OpenIdProvider, tmp_path: Path, now: Now) -> Iterator[Served]:
    settings = OidcSettings(
        issuer=provider.url, client_id=CLIENT, public_url="http://server.example", tenant_claim="org"
    )
    with closing(open_tables(f"sqlite:///{tmp_path}/app.db")) as tables:
        team = Team(
            accounts=Accounts(tables),
            quota=Quota(Allowance()),
            vault=Vault(SECRET),
            provider=OidcProvider(settings, clock=now),
        )
        yield serve_it(["hello"], team=team)


def ask(served: Served, token: str) -> httpx2.Response:
    return httpx2.get(f"{served.url}/v1/me", headers={"authorization": f"Bearer {token}"}, timeout=60)


def test_tokens_of_the_provider_say_who_one_is(served: Served, provider: OpenIdProvider) -> None:
    own = ask(served, provider.token()).json()
    team = ask(served, provider.token(sub="bob", org="acme")).json()

    assert own["id"] == f"{provider.url}#ada"
    assert own["level"] == "manage"  # of a tenant of her own
    assert (team["tenant"], team["level"]) == ("acme", "write")


def test_keys_are_asked_for_once_and_again_when_they_change(
    served: Served, provider: OpenIdProvider, now: Now
) -> None:
    before = provider.asked.count("/keys")
    for _ in range(3):
        assert ask(served, provider.token()).status_code == 200
    assert provider.asked.count("/keys") == before + 1

    old = provider.keys[0]
    provider.new_key(elliptic=True)
    now.ahead += 10
    assert ask(served, provider.token()).status_code == 200
    assert provider.asked.count("/keys") == before + 2
    assert ask(served, provider.token(key=old)).status_code == 401  # it was withdrawn
    for _ in range(5):  # whoever invents keys does not have the provider asked each time
        ask(served, provider.token(header={"kid": "made up"}))
    assert provider.asked.count("/keys") <= before + 3
    provider.new_key()


def without_signature(provider: OpenIdProvider) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{head}.{provider.token().split('.')[1]}."


def changed(provider: OpenIdProvider) -> str:
    head, body, signature = provider.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["sub"] = "root"
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


FORGERIES: dict[str, Callable[[OpenIdProvider], str]] = {
    "too old": lambda provider: provider.token(exp=int(time.time()) - 3600),
    "no end": lambda provider: provider.token(exp=None),
    "for another server": lambda provider: provider.token(aud="another"),
    "for nobody": lambda provider: provider.token(aud=None),
    "of another issuer": lambda provider: provider.token(iss="https://elsewhere.example"),
    "about nobody": lambda provider: provider.token(sub=None),
    "not yet": lambda provider: provider.token(nbf=int(time.time()) + 3600),
    "without a signature": without_signature,
    "changed": changed,
    "signed with the public key": lambda provider: provider.shared_secret_token(),
    "signed by somebody else": lambda provider: provider.token(
        key=RSAKey.generate_key(2048, {"kid": provider.keys[0].kid})
    ),
    "no token": lambda _provider: "a.b.c",
    "very long": lambda provider: provider.token(name="x" * 50_000),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_other_tokens_are_refused(served: Served, provider: OpenIdProvider, what: str) -> None:
    answer = ask(served, FORGERIES[what](provider))

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Traceback" not in answer.text


def test_an_address_that_is_not_confirmed_opens_no_shared_session(
    served: Served, provider: OpenIdProvider
) -> None:
    def as_one(**claims: Any) -> httpx2.Client:
        own = {"authorization": f"Bearer {provider.token(**claims)}"}
        return httpx2.Client(base_url=served.url, headers=own, timeout=60)

    with (
        as_one() as ada,
        as_one(sub="eve", email="guest@example.com", email_verified=False) as eve,
        as_one(sub="guest", email="guest@example.com") as guest,
    ):
        session_id = ada.post("/v1/sessions", json={}).json()["id"]
        ada.post(f"/v1/sessions/{session_id}/shares", json={"email": "guest@example.com"})

        assert eve.get(f"/v1/sessions/{session_id}").status_code == 404
        assert guest.get(f"/v1/sessions/{session_id}").status_code == 200


def test_the_address_of_a_person_is_what_the_provider_says_now(
    served: Served, provider: OpenIdProvider
) -> None:
    def me(**claims: Any) -> tuple[str, str]:
        own = {"authorization": f"Bearer {provider.token(**claims)}"}
        httpx2.get(f"{served.url}/v1/me", headers=own, timeout=60).raise_for_status()
        people = served.client.get("/v1/people").json()["items"]
        (found,) = (one for one in people if one["id"].endswith("#ada"))
        return found["name"], found["email"]

    assert me() == ("Ada", "ada@example.com")
    assert me(name="Ada King", email="Ada@new.example") == ("Ada King", "ada@new.example")
    assert me(name="Ada King", email="boss@new.example", email_verified=False) == ("Ada King", "")
    assert me() == ("Ada", "ada@example.com")


def test_a_browser_logs_in(served: Served, provider: OpenIdProvider) -> None:
    with httpx2.Client(base_url=served.url, follow_redirects=False, timeout=60) as browser:
        stranger = browser.get("/", headers={"accept": "text/html"})
        begun = browser.get("/login/oidc")
        back = httpx2.get(begun.headers["location"], follow_redirects=False, timeout=60).headers["location"]
        assert back.startswith("http://server.example/login/oidc/callback?")
        query = back.partition("?")[2]
        logged_in = browser.get(f"/login/oidc/callback?{query}", headers={"sec-fetch-site": "cross-site"})
        me = browser.get("/v1/me")
        again = browser.get(f"/login/oidc/callback?{query}")
        forged = browser.post("/v1/sessions", json={})
        made = browser.post("/v1/sessions", json={}, headers={"x-keelwork": "1"})

    assert stranger.status_code == 401
    assert '<a href="/login/oidc">' in stranger.text
    assert begun.status_code == 303
    assert logged_in.status_code == 200, logged_in.text
    assert "samesite=strict" in logged_in.headers["set-cookie"].lower()
    assert "httponly" in logged_in.headers["set-cookie"].lower()
    assert provider.visitors == {USER_AGENT}
    assert me.json()["id"] == f"{provider.url}#ada"
    assert again.status_code == 401
    assert (forged.status_code, made.status_code) == (403, 201)


def test_a_login_that_was_begun_elsewhere_is_refused(served: Served) -> None:
    with httpx2.Client(base_url=served.url, follow_redirects=False, timeout=60) as mine:
        location = mine.get("/login/oidc").headers["location"]
    query = httpx2.get(location, follow_redirects=False, timeout=60).headers["location"].partition("?")[2]
    with httpx2.Client(base_url=served.url, follow_redirects=False, timeout=60) as another:
        without = another.get(f"/login/oidc/callback?{query}")
        another.get("/login/oidc")
        with_its_own = another.get(f"/login/oidc/callback?{query}")

    assert (without.status_code, with_its_own.status_code) == (401, 401)


def test_the_operator_keeps_the_token(served: Served) -> None:
    assert ask(served, TOKEN).json()["level"] == "operate"


def test_a_provider_without_tls_is_refused() -> None:
    settings = OidcSettings(issuer="http://login.example", client_id="x", public_url="https://x.example")
    with pytest.raises(ValueError, match="https"):
        OidcProvider(settings)
