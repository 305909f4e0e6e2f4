"""The page for browsers, and the link that logs one in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.responses import HTMLResponse, RedirectResponse

from agent_server.access import COOKIE, COOKIE_SECONDS
from agent_server.problem import Problem
from agent_server.services import Served

router = APIRouter(include_in_schema=False)
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
PAGE_HEADERS = {
    "content-security-policy": CSP,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_NO_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Keelwork</title>
<h1>The server is running</h1>
<p>There is no page here yet: it has not been built. Programs can use the API, which
<a href="/openapi.json">openapi.json</a> describes.</p></html>
"""


@router.get("/")
async def page() -> Response:
    """Return the page, or say that there is none."""
    return HTMLResponse(_NO_PAGE, headers=PAGE_HEADERS)


@router.get("/login")
async def log_in(services: Served, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Log a browser in that was given a link, which works once."""
    cookie = services.access.use_link(code)
    if cookie is None:
        raise Problem(
            401,
            "link-used",
            "This link cannot be used any more",
            "It works once, for ten minutes. Start `agent serve` again for another.",
        )
    answer = RedirectResponse("/", 303, PAGE_HEADERS)
    answer.set_cookie(COOKIE, cookie, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", path="/")
    return answer
