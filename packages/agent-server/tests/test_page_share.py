"""A session that is shared by a link, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_server.access import COOKIE
from agent_server.people.access import TeamAccess
from agent_server.people.accounts import Accounts
from agent_server.people.quota import Allowance, Quota
from agent_server.people.tables import open_tables
from agent_server.people.team import Team
from agent_server.people.vault import Vault
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings_in_both_themes, say, wait

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


def test_a_session_is_read_by_a_link_until_that_is_taken_back(
    serve_it: Serving, browser: Browser, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/team.db"
    tables = open_tables(store)
    team = Team(
        accounts=Accounts(tables),
        quota=Quota(Allowance(requests=None)),
        vault=Vault("a secret of the tests" * 2),
    )
    served = serve_it(["the first answer", "the second answer"], store=store, team=team)
    ada = team.accounts.add("ada", tenant="red", role="owner", email="ada@example.com")
    cookie = TeamAccess(served.access, team.accounts, team.vault, team.quota).new_cookie(ada)
    own = browser.new_context()
    own.add_cookies([{"name": COOKIE, "value": cookie, "url": served.url}])
    anybody = browser.new_context(viewport={"width": 390, "height": 844})
    page, reader = own.new_page(), anybody.new_page()
    complaints: list[str] = []
    reader.on(
        "console", lambda line: complaints.extend([f"{line.text} {line.location}"] * (line.type == "error"))
    )
    try:
        page.goto(served.url)
        say(page, "hello")
        is_over(page)
        page.click(".share")
        page.click("dialog >> text=Make a link")
        page.wait_for_selector("dialog li >> text=A link until")
        link = page.input_value("dialog .address")
        no_findings_in_both_themes(page)
        page.click("dialog >> text=Close")

        reader.goto(link)
        reader.wait_for_selector(".answer >> text=the first answer")
        say(page, "go on")
        reader.wait_for_selector(".answer >> text=the second answer")
        reader.wait_for_selector(".working", state="detached")
        wait(lambda: reader.locator(".answer").count() == 2)
        assert reader.locator("textarea, .tools, nav").count() == 0
        no_findings_in_both_themes(reader)
        assert complaints == []

        page.click(".share")
        page.click("dialog >> text=Take back")
        page.wait_for_selector("dialog li", state="detached")
        again = reader.goto(link)
        assert again is not None
        assert again.status == 401
    finally:
        own.close()
        anybody.close()
        tables.close()
