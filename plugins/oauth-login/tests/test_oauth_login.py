"""Logins against a real server: slow approval, denial, expiry, lost answers, two processes at once."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from agent_app import AgentApplication
from agent_app.testing import ApplicationConformance
from agent_core import AgentCore, ConfigError
from agent_core.product import USER_AGENT
from agent_core.testing import ScriptedProvider
from agent_plugin_kit.credentials import NoCredential, look_up
from agent_provider_kit import find_key
from agent_testing import ScriptedServer, chat_reply
from oauth_login import LoginFailed, LoginNeeded, Logins, OAuthLogin, TokenStore
from oauth_login.servers import read_servers
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from pathlib import Path


def config(url: str, **more: Any) -> dict[str, Any]:
    house = {"client_id": "keelwork", "issuer": url, **more}
    return {
        "agents": {"helper": {"model": "small"}},
        "models": {"small": {"provider": "scripted"}},
        "plugins": {"oauth_login": {"oauth_servers": {"house": house}}},
    }


class TestContract(ApplicationConformance):
    plugin = OAuthLogin
    action_params = dict.fromkeys(("login", "check_status", "logout"))


def open_app(url: str, plugin: OAuthLogin, **more: Any) -> AgentApplication:
    plugins: dict[str, list[Any]] = {"providers": [ScriptedProvider([])], "applications": [plugin]}
    return AgentApplication(config(url, **more), plugins=plugins, installed=False)


def test_a_login_shows_a_card_waits_for_approval_and_keeps_the_token(
    authority: Any, store: TokenStore, clock: Any
) -> None:
    plugin = OAuthLogin(store)
    plugin._logins = Logins(store, clock)
    with open_app(authority.url, plugin) as app:

        def act(action: str) -> dict[str, Any]:
            return app.execute_application_action("oauth_login", action, {"server": "house"})

        card = act("login")["display"]
        assert re.search(r"`[A-Z]{4}-[A-Z]{4}`", card["body"])
        assert [one["kind"] for one in card["actions"]] == ["open_url", "copy_text", "run_action"]
        assert card["actions"][2]["action_id"] == "check_status"
        assert act("check_status")["status"] == "waiting"
        assert act("check_status")["status"] == "waiting"
        assert authority.polls == 1  # not more often than the server wants

        authority.approved = True
        clock.now += 6
        assert act("check_status")["status"] == "done"
        assert look_up("oauth:house") == store.get("house")["access_token"]  # type: ignore[index]
        assert act("logout")["status"] == "done"

    assert authority.visitors == {USER_AGENT}
    assert len(authority.revoked) == 1
    assert store.get("house") is None
    with pytest.raises(LoginNeeded, match=r"/oauth_login\.login server=house"):
        look_up("oauth:house")


def test_a_server_that_wants_to_be_asked_less_often_is(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    authority.slow_down = 1
    logins = Logins(store, clock)
    pending = logins.begin(server)
    assert logins.check("house") == "waiting"
    clock.now += 6
    assert logins.check("house") == "waiting"

    assert (authority.polls, pending.interval) == (1, 10)
    clock.now += 10
    logins.check("house")
    assert authority.polls == 2


def test_a_denied_login_says_so(authority: Any, store: TokenStore, clock: Any, server: Any) -> None:
    logins = Logins(store, clock)
    logins.begin(server)
    authority.denied = True

    with pytest.raises(LoginFailed, match="it was denied"):
        logins.check("house")
    assert logins.check("house") == "none"


def test_a_login_that_nobody_finishes_ends(store: TokenStore, clock: Any, server: Any) -> None:
    logins = Logins(store, clock)
    logins.begin(server)
    clock.now += 601

    with pytest.raises(LoginFailed, match="took too long"):
        logins.check("house")


def test_a_code_that_has_ended_at_the_server_is_one_that_took_too_long(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    logins = Logins(store, clock)
    logins.begin(server)
    [credential] = authority.device_codes.values()
    credential["expires_at"] = 1  # the server's clock is ahead of ours

    with pytest.raises(LoginFailed, match="took too long: begin another one"):
        logins.check("house")


def test_a_login_that_is_denied_in_the_browser_says_so(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    authority.denied = True
    logins = Logins(store, clock)
    pending = logins.begin(replace(server, flow="browser"))

    httpx2.get(pending.url, follow_redirects=True, timeout=60)

    with pytest.raises(LoginFailed, match="it was denied"):
        logins.check("house")


def test_a_login_in_a_browser_proves_that_it_is_ours(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    logins = Logins(store, clock)
    pending = logins.begin(replace(server, flow="browser"))
    assert logins.check("house") == "waiting"
    assert "code_challenge_method=S256" in pending.url

    httpx2.get(pending.url, follow_redirects=True, timeout=60)  # what the browser does

    assert logins.check("house") == "done"
    assert store.get("house") is not None


def test_a_code_that_another_page_brings_is_refused(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    logins = Logins(store, clock)
    pending = logins.begin(replace(server, flow="browser"))
    assert pending.landing is not None

    httpx2.get(pending.landing.address, params={"code": "stolen", "state": "guessed"}, timeout=60)

    with pytest.raises(LoginFailed, match="belongs to another login"):
        logins.check("house")


def test_a_token_is_refreshed_before_it_ends_by_our_clock(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    store.set("house", authority.token())
    first = store.access_token(server)

    assert store.access_token(server) == first
    clock.now += 3600 - 59
    second = store.access_token(server)

    assert (second != first, authority.refreshes) == (True, 1)
    assert store.access_token(server) == second


def test_a_refresh_whose_answer_is_lost_is_asked_for_again(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    store.set("house", authority.token())
    clock.now += 3600
    authority.drop_requests = 1

    assert store.access_token(server)
    clock.now += 3600
    authority.drop_requests = 5
    with pytest.raises(NoCredential, match="cannot be refreshed now"):
        store.access_token(server)
    assert store.get("house") is not None  # the network may come back


def test_a_refresh_that_the_server_did_and_whose_answer_is_lost_needs_a_login(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    """The old refresh token was good for one use, and nobody has the new one."""
    store.set("house", authority.token())
    clock.now += 3600
    authority.drop_answers = 1

    with pytest.raises(LoginNeeded, match="invalid_grant"):
        store.access_token(server)
    assert authority.refreshes == 2


def test_a_token_that_the_server_no_longer_refreshes_needs_a_login(
    authority: Any, store: TokenStore, clock: Any, server: Any
) -> None:
    store.set("house", authority.token())
    authority.refresh_tokens.clear()
    clock.now += 3600

    with pytest.raises(LoginNeeded, match="invalid_grant"):
        store.access_token(server)
    assert store.get("house") is None


def test_many_threads_refresh_once(authority: Any, store: TokenStore, clock: Any, server: Any) -> None:
    store.set("house", authority.token())
    clock.now += 3600
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(store.access_token(server))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(tokens), len(set(tokens)), authority.refreshes) == (8, 1, 1)


def test_two_processes_refresh_once(authority: Any, store: TokenStore, clock: Any, tmp_path: Path) -> None:
    store.set("house", {**authority.token(), "expires_in": 1})
    code = (
        "import sys; from pathlib import Path; from oauth_login.servers import Server; "
        "from oauth_login import TokenStore; "
        "s = Server(name='house', client_id='keelwork', issuer=sys.argv[1]); "
        "print(TokenStore(Path(sys.argv[2])).access_token(s))"
    )
    command = [sys.executable, "-c", code, authority.url, str(tmp_path / "oauth")]
    env = {**os.environ, "AGENT_KEYRING": "off"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(3)]
    said = {process.communicate(timeout=120)[0].strip() for process in running}

    assert (len(said), authority.refreshes) == (1, 1)


def test_tokens_in_files_are_for_the_user_alone(authority: Any, store: TokenStore, tmp_path: Path) -> None:
    store.set("house", authority.token())

    file = tmp_path / "oauth" / "house.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_provider_sends_the_token_of_a_login(authority: Any, store: TokenStore) -> None:
    plugin = OAuthLogin(store)
    plugin.init(config(authority.url))
    store.set("house", {"access_token": "fresh-token"})
    core = AgentCore()
    core.register_provider(OpenAICompatibleProvider)
    session = core.add_message(core.create_session(), "user", "Hello")

    with ScriptedServer(chat_reply("Hi.")) as model:
        core.send_request(session, {"base_url": model.url, "model": "m", "api_key": "oauth:house"})
        assert model.requests[0].headers["authorization"] == "Bearer fresh-token"
    store.remove("house")
    assert "/oauth_login.login server=house" in find_key({"api_key": "oauth:house"}).reason


def test_settings_that_cannot_be_used_are_named(authority: Any) -> None:
    for wrong, problem in (
        ({"client_id": ""}, "client_id is missing"),
        ({"client": "x"}, "there is no setting 'client'"),
        ({"flow": "magic"}, "flow must be device or browser"),
    ):
        with pytest.raises(ConfigError, match=problem):
            read_servers(config(authority.url, **wrong))
    [server] = read_servers(config("http://somewhere.invalid")).values()
    with pytest.raises(ConfigError, match="must begin with https"):
        server.complete()


def test_nothing_secret_is_in_a_result(authority: Any, store: TokenStore) -> None:
    plugin = OAuthLogin(store)
    authority.approved = True
    with open_app(authority.url, plugin) as app:
        results = [
            app.execute_application_action("oauth_login", action, {"server": "house"})
            for action in ("login", "check_status")
        ]
        results.append(app.execute_application_action("oauth_login", "status", {}))
    token = store.get("house")
    assert token is not None

    assert token["access_token"] not in json.dumps(results)
    assert token["refresh_token"] not in json.dumps(results)
