"""Settings: their defaults, their checks, and that each is documented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core import ConfigError
from web_tool.settings import SCHEMA, VERSION, Settings


def test_every_setting_has_a_default_that_fits_and_a_description() -> None:
    settings = Settings.read({})

    assert Settings.read({key: rule["default"] for key, rule in SCHEMA.items()}) == settings
    assert all(rule["description"].endswith(".") for rule in SCHEMA.values())
    assert settings.ports == {80, 443, 8080, 8443}
    assert (settings.max_bytes, settings.timeout, settings.use_proxy) == (5_000_000, 30, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("web_allow_hosts", "example.com"),
        ("web_allow_hosts", [""]),
        ("web_deny_hosts", [1]),
        ("web_allow_private", ["10.0.0.0/99"]),
        ("web_allow_private", ["http://localhost/"]),
        ("web_ports", ["80"]),
        ("web_ports", [0]),
        ("web_ports", [True]),
        ("web_ports", 80),
        ("web_content_types", {"text/*": 1}),
        ("web_max_bytes", 0),
        ("web_max_bytes", 1.5),
        ("web_max_bytes", "1"),
        ("web_max_characters", 99),
        ("web_timeout", 0),
        ("web_timeout", -1),
        ("web_timeout", float("nan")),
        ("web_timeout", float("inf")),
        ("web_timeout", True),
        ("web_idle_timeout", "5"),
        ("web_max_redirects", 21),
        ("web_user_agent", ""),
        ("web_user_agent", "a\r\nX: y"),
        ("web_use_proxy", 1),
    ],
)
def test_a_setting_that_does_not_fit_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        Settings.read({key: value})

    assert error.value.field == key
    assert key in str(error.value)


def test_none_counts_as_not_set() -> None:
    assert Settings.read(dict.fromkeys(SCHEMA)) == Settings.read({})


def test_private_places_are_networks_or_hosts() -> None:
    settings = Settings.read(
        {"web_allow_private": ["10.1.2.3/8", "::1", "[fe80::1]", "LocalHost", "*.bücher.de"]}
    )

    assert [str(network) for network in settings.private.networks] == ["10.0.0.0/8", "::1/128", "fe80::1/128"]
    assert settings.private.hosts == ("localhost", "*.xn--bcher-kva.de")


def test_the_page_about_the_tool_lists_every_setting_with_its_default() -> None:
    page = Path(__file__).parents[3] / "docs/how-to/web-tool.md"
    table = (
        page.read_text(encoding="utf-8").partition("<!-- table: settings -->")[2].partition("<!-- end -->")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.strip().splitlines()[2:]
    ]

    assert [row[0] for row in rows] == [f"`{key}`" for key in SCHEMA]
    for name, default, meaning in rows:
        rule = SCHEMA[name.strip("`")]
        assert meaning == rule["description"]
        told = str(rule["default"]).replace(f"/{VERSION} ", "/VERSION ")
        assert default == f"`{told}`" or name == "`web_content_types`"
