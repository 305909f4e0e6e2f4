"""Who may: everything that is tried here must have no effect and tell nothing."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn

from agent_server.access import COOKIE, COOKIE_SECONDS, LINK_SECONDS, LocalAccess, Proxies
from agent_server.application import describe_api
from agent_server.listener import open_socket
from agent_server.testing import TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_server.testing import Served, Serving

OPEN = {"/livez", "/readyz", "/login"}
ROUTES = sorted(
    (method.upper(), path.replace("{", "").replace("}", ""))
    for path, methods in describe_api().openapi()["paths"].items()
    for method in methods
    if path not in OPEN
)


@pytest.fixture
def served(shared: Served) -> Served:
    return shared


def ask(served: Served, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Any:
    """Send exactly these headers, as a program of an attacker would."""
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.body = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def own_host(served: Served) -> str:
    return urlsplit(served.url).netloc


def test_every_route_but_health_needs_a_token(served: Served) -> None:
    with httpx2.Client(base_url=served.url, timeout=60) as stranger:
        for method, path in ROUTES:
            answer = stranger.request(method, path)
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.headers["content-type"] == "application/problem+json"
        assert stranger.get("/").status_code == 401
        assert stranger.get("/openapi.json").status_code == 401
        assert stranger.get("/livez").json() == {"status": "ok"}
        assert stranger.get("/readyz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong-token-of-right-length",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN} {TOKEN}",
        "Bearer \xff\xfe",
        "Bearer " + "a" * 10_000,
        'Bearer {"token": true}',
        "Bearer null",
        f"Bearer%20{TOKEN}",
    ],
)
def test_a_wrong_token_is_refused(served: Served, authorization: str) -> None:
    headers = {"host": own_host(served), "authorization": authorization}

    assert ask(served, "GET", "/v1/sessions", headers).status == 401


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/sessions?token={TOKEN}",
        f"/v1/sessions?access_token={TOKEN}",
        f"/v1/sessions?authorization=Bearer%20{TOKEN}",
        f"/v1/sessions/{TOKEN}",
        "/livez/../v1/sessions",
        "/livez/%2e%2e/v1/sessions",
        "//v1/sessions",
        "/V1/sessions",
        "/v1/sessions/",
        "/login/../v1/sessions",
        "/readyz/v1/sessions",
        "/v1/sessions;/livez",
        "/livez?/v1/sessions",
    ],
)
def test_no_path_leads_around_the_token(served: Served, path: str) -> None:
    answer = ask(served, "GET", path, {"host": own_host(served)})

    assert answer.status in (401, 404) or (answer.status == 200 and answer.body == b'{"status":"ok"}')
    assert b"items" not in answer.body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example/127.0.0.1",
        "127.0.0.1@evil.example",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "127.1",
        "2130706433",
        "",
        "127.0.0.1:80:80",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_is_not_answered(served: Served, host: str) -> None:
    headers = {"host": host, "authorization": f"Bearer {TOKEN}"}

    for path in ("/v1/sessions", "/livez", "/", "/login?code=x"):
        assert ask(served, "GET", path, headers).status in (400, 421)


def test_a_second_host_is_refused(served: Served) -> None:
    connection = http.client.HTTPConnection(own_host(served), timeout=60)
    connection.putrequest("GET", "/livez")
    connection.putheader("host", "evil.example")
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()

    assert status in (400, 421)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
        "file://",
        "HTTP://",
    ],
)
def test_pages_of_other_sites_are_refused_even_with_the_token(served: Served, origin: str) -> None:
    headers = {"host": own_host(served), "authorization": f"Bearer {TOKEN}", "origin": origin}

    answer = ask(served, "POST", "/v1/sessions", headers)

    assert answer.status == 403
    assert answer.getheader("access-control-allow-origin") is None
    assert b"id" not in answer.body.replace(b"request_id", b"")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_browser_that_says_it_comes_from_elsewhere_is_refused(served: Served, site: str) -> None:
    headers = {"host": own_host(served), "authorization": f"Bearer {TOKEN}", "sec-fetch-site": site}

    assert ask(served, "GET", "/v1/sessions", headers).status == 403


def test_a_preflight_of_another_site_gets_no_permission(served: Served) -> None:
    headers = {
        "host": own_host(served),
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }

    answer = ask(served, "OPTIONS", "/v1/sessions", headers)

    assert answer.status == 403
    assert answer.getheader("access-control-allow-origin") is None


def test_a_websocket_of_any_page_is_refused(served: Served) -> None:
    headers = {
        "host": own_host(served),
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }

    assert ask(served, "GET", "/v1/events", headers).status in (400, 401, 403)


def logged_in(served: Served, headers: Mapping[str, str] = MappingProxyType({})) -> str:
    """Use a link, and return the cookie."""
    path = f"/login?code={served.access.new_link()}"
    answer = ask(served, "GET", path, {"host": own_host(served), **headers})
    assert answer.status == 303
    cookie: str = answer.getheader("set-cookie")
    return cookie


def test_a_link_logs_one_browser_in_and_works_once(served: Served) -> None:
    code = served.access.new_link()

    first = ask(served, "GET", f"/login?code={code}", {"host": own_host(served)})
    second = ask(served, "GET", f"/login?code={code}", {"host": own_host(served)})

    cookie = first.getheader("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert first.getheader("referrer-policy") == "no-referrer"
    assert first.getheader("cache-control") == "no-store"
    assert second.status == 401
    assert second.getheader("set-cookie") is None


def is_secure(cookie: str) -> bool:
    return "secure" in [attribute.strip().lower() for attribute in cookie.split(";")]


@pytest.mark.parametrize(
    ("said", "secure"),
    [
        ({}, False),
        ({"x-forwarded-proto": "http"}, False),
        ({"x-forwarded-proto": "https"}, True),
        ({"x-forwarded-proto": "http, HTTPS"}, True),
        ({"x-forwarded-proto": "https, http"}, False),  # the first word may be the browser's own
        ({"forwarded": "proto=https"}, False),
    ],
)
def test_a_proxy_of_this_machine_says_whether_a_cookie_is_for_tls_alone(
    served: Served, said: dict[str, str], secure: bool
) -> None:
    assert is_secure(logged_in(served, said)) is secure


@pytest.mark.parametrize(
    ("proxies", "trusted"), [((), False), (("10.0.0.0/8", "::1"), False), (("127.0.0.0/8",), True)]
)
def test_only_the_proxies_that_were_named_are_believed(
    serve_it: Serving, proxies: tuple[str, ...], trusted: bool
) -> None:
    served = serve_it(proxies=proxies)

    assert is_secure(logged_in(served, {"x-forwarded-proto": "https"})) is trusted


def test_a_proxy_is_known_on_a_socket_for_both_versions_of_addresses() -> None:
    said = {"scheme": "http", "headers": [(b"x-forwarded-proto", b"https")]}

    assert Proxies(["10.0.0.0/8"]).scheme({**said, "client": ("::ffff:10.1.2.3", 1)}) == "https"
    assert Proxies(["10.0.0.0/8"]).scheme({**said, "client": ("::ffff:11.1.2.3", 1)}) == "http"
    assert Proxies(["0.0.0.0/0"]).scheme({**said, "client": None}) == "http"


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("my-proxy", "neither an address nor a network such as 10.0.0.0/8"),
        ("10.0.0.0/33", "neither an address nor a network"),
        ("", "neither an address nor a network"),
        ("10.0.0.1/8", "write 10.0.0.1, or 10.0.0.0/8 for all"),
        ("fd00::1/8", "write fd00::1, or fd00::/8 for all"),
    ],
)
def test_what_is_no_address_of_proxies_is_refused_with_what_to_write(address: str, advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        Proxies([address])


def test_a_cookie_that_came_by_tls_goes_by_tls_alone(serve_it: Serving, tmp_path: Path) -> None:
    served, key, certificate = serve_it(), tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    listening = open_socket("127.0.0.1", 0)
    begun = uvicorn.Server(
        uvicorn.Config(
            served.server, ssl_keyfile=key, ssl_certfile=certificate, lifespan="off", log_config=None
        )
    )
    thread = threading.Thread(target=begun.run, args=([listening],))
    thread.start()
    try:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/login?code={served.access.new_link()}"
        answer = httpx2.get(url, verify=False, timeout=60)  # it signed itself
    finally:
        begun.should_exit = True
        thread.join()

    assert answer.status_code == 303
    assert is_secure(answer.headers["set-cookie"])


def test_a_browser_that_logs_out_is_forgotten(served: Served) -> None:
    with httpx2.Client(base_url=served.url, timeout=60, headers={"sec-fetch-site": "same-origin"}) as browser:
        browser.get(f"/login?code={served.access.new_link()}")
        assert browser.get("/v1/sessions").status_code == 200
        assert browser.post("/logout").status_code == 403  # a form of another site cannot do it

        assert browser.post("/logout", headers={"x-keelwork": "1"}).status_code == 204

        assert not browser.cookies
        assert browser.get("/v1/sessions").status_code == 401
        stranger = browser.get("/", headers={"accept": "text/html,*/*"})
        assert (stranger.status_code, stranger.headers["content-type"].partition(";")[0]) == (
            401,
            "text/html",
        )
        assert "Open the link that" in stranger.text
    assert served.client.get("/v1/sessions").status_code == 200


def test_a_cookie_reads_and_changes_with_the_header_that_forms_cannot_send(served: Served) -> None:
    cookie = logged_in(served).partition(";")[0]
    own = {"host": own_host(served), "cookie": cookie, "sec-fetch-site": "same-origin"}
    body = json.dumps({}).encode()
    own_json = {**own, "content-type": "application/json"}

    assert ask(served, "GET", "/v1/sessions", own).status == 200
    assert ask(served, "POST", "/v1/sessions", own_json, body).status == 403
    assert ask(served, "POST", "/v1/sessions", {**own_json, "x-keelwork": "1"}, body).status == 201
    form = {**own, "content-type": "text/plain"}
    assert ask(served, "POST", "/v1/sessions", form, body).status == 403


@pytest.mark.parametrize(
    "change",
    [
        lambda cookie: cookie[:-1] + ("0" if cookie[-1] != "0" else "1"),
        lambda cookie: "9" + cookie,
        lambda cookie: cookie.split(".", 1)[1],
        lambda cookie: cookie + ".x",
        lambda _cookie: "",
        lambda _cookie: "..",
        lambda _cookie: "9999999999..",
        lambda _cookie: TOKEN,
    ],
)
def test_a_cookie_that_was_changed_is_refused(served: Served, change: Any) -> None:
    value = logged_in(served).partition(";")[0].partition("=")[2]
    headers = {"host": own_host(served), "cookie": f"{COOKIE}={change(value)}"}

    assert ask(served, "GET", "/v1/sessions", headers).status == 401


def test_links_and_cookies_end() -> None:
    now = [1000.0]
    access = LocalAccess(TOKEN, clock=lambda: now[0])
    old, used = access.new_link(), access.new_link()
    cookie = access.use_link(used)
    assert cookie is not None

    assert access.accepts_cookie(cookie)
    now[0] += LINK_SECONDS + 1
    assert access.use_link(old) is None
    now[0] += COOKIE_SECONDS
    assert not access.accepts_cookie(cookie)


def test_a_cookie_survives_a_restart_and_not_another_token() -> None:
    access = LocalAccess(TOKEN)
    cookie = access.use_link(access.new_link())
    assert cookie is not None

    assert LocalAccess(TOKEN).accepts_cookie(cookie)
    assert not LocalAccess("another-token-here").accepts_cookie(cookie)


@pytest.mark.parametrize("token", ["", "short", "with\nline-break-in-it", "ümlautümlautümlaut"])
def test_a_token_that_could_be_guessed_or_sent_wrongly_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        LocalAccess(token)


def test_neither_token_nor_answers_can_be_kept_by_a_cache(served: Served) -> None:
    session_id = served.new_session()

    for path in ("/v1/sessions", f"/v1/sessions/{session_id}", "/", "/v1/keys", "/v1/settings"):
        assert served.client.get(path).headers["cache-control"] == "no-store", path
        assert served.client.get(path).headers["x-content-type-options"] == "nosniff", path


def test_the_page_may_run_nothing_that_is_not_the_servers(served: Served) -> None:
    policy = served.client.get("/").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_the_log_never_has_the_token(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    with httpx2.Client(base_url=served.url, timeout=60) as client:
        client.get(f"/v1/sessions?token={TOKEN}", headers={"authorization": f"Bearer {TOKEN}x"})
        client.post("/v1/sessions", content=b"{", headers={"authorization": f"Bearer {TOKEN}"})

    own = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert TOKEN not in "\n".join(record.getMessage() for record in own)
