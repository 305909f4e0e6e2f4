"""One spelling per URL, and none for those about which there is any doubt."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings, strategies as st

from web_tool.urls import MAX_URL, UrlRefusedError, join_url, read_url

SPELLINGS = {
    "http://example.com": "http://example.com/",
    "HTTPS://EXAMPLE.com/Path": "https://example.com/Path",
    "http://example.com:80/": "http://example.com/",
    "https://example.com:443": "https://example.com/",
    "https://example.com:/x": "https://example.com/x",
    "http://example.com:443/": "http://example.com:443/",
    "https://example.com./x": "https://example.com/x",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://faß.de/": "https://xn--fa-hia.de/",
    "https://аpple.com/": "https://xn--pple-43d.com/",  # noqa: RUF001 - the first letter is Cyrillic
    "https://ＥＸＡＭＰＬＥ.com/": "https://example.com/",  # noqa: RUF001 - wide letters
    "https://example.com/#part": "https://example.com/",
    "https://example.com/?#": "https://example.com/?",
    "https://example.com?a=b": "https://example.com/?a=b",
    "https://example.com/a/./b/../c": "https://example.com/a/c",
    "https://example.com/../../x": "https://example.com/x",
    "https://example.com/a/..": "https://example.com/",
    "https://example.com/a/.": "https://example.com/a/",
    "https://example.com/%2e%2E/x": "https://example.com/x",
    "https://example.com/a//b": "https://example.com/a//b",
    "https://example.com/%7euser/%41": "https://example.com/~user/A",
    "https://example.com/%c3%a9?q=%c3%a9": "https://example.com/%C3%A9?q=%C3%A9",
    "https://example.com/é?ü=ß": "https://example.com/%C3%A9?%C3%BC=%C3%9F",
    "https://example.com/100%": "https://example.com/100%25",
    "https://example.com/%252e%252e/x": "https://example.com/%252e%252e/x",
    "https://example.com/a%2Fb": "https://example.com/a%2Fb",
    'https://example.com/"<>"': "https://example.com/%22%3C%3E%22",
    "https://example.com/?a=../b&c=[]": "https://example.com/?a=../b&c=%5B%5D",
    "https://example.com/?u=http://user@127.0.0.1/": "https://example.com/?u=http://user@127.0.0.1/",
    "https://example.com/@name": "https://example.com/@name",
    "http://192.0.2.1/x": "http://192.0.2.1/x",
    "http://192.0.2.1./x": "http://192.0.2.1/x",
    "http://１９２.0.2.1/": "http://192.0.2.1/",  # noqa: RUF001 - wide digits
    "http://127。0。0。1/": "http://127.0.0.1/",
    "http://①②⑦.0.0.1/": "http://127.0.0.1/",
    "http://[2001:DB8::0001]/": "http://[2001:db8::1]/",
    "http://[::ffff:127.0.0.1]:8080/": "http://[::ffff:7f00:1]:8080/",
    "http://under_score.example/": "http://under_score.example/",
    "http://localhost": "http://localhost/",
    "http://1e100.net/": "http://1e100.net/",
    "http://0x.example/": "http://0x.example/",
}

REFUSED = [
    "",
    "example.com",
    "//example.com/",
    "/path",
    "ftp://example.com/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,hi",
    "gopher://127.0.0.1:70/",
    "view-source:http://example.com/",
    "http:example.com",
    "http:/example.com",
    "http:///example.com/",
    "http://",
    "http://?x",
    "http://#x",
    "http://:80/",
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1#@example.com/@x@y".replace("#", "@"),
    "http://example.com\\@127.0.0.1/",
    "http:\\\\example.com\\",
    "http://example.com\\.evil.example/",
    "http://exa\tmple.com/",
    "http://exa\nmple.com/",
    "http://exa\rmple.com/",
    "http://example.com/\r\nHost: evil.example",
    "http://example.com/ x",
    " http://example.com/",
    "http://example.com/ ",
    "http://example.com/\x00",
    "http://example.com/\x7f",
    "http://example.com/\u202e",
    "http://exam\u200bple.com/",
    "http://exam\u00adple.com/",
    "http://example.com/\ud800",
    "\u3000http://example.com/",
    "http://%31%32%37.0.0.1/",
    "http://example%2ecom/",
    "http://example.com%00.evil.example/",
    "http://exa mple.com/",
    "http://a..b/",
    "http://.example.com/",
    "http://example.com../",
    f"http://{'a' * 64}.example/",
    f"http://{'a.' * 130}example/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:99999999/",
    "http://example.com:-80/",
    "http://example.com:8o/",
    "http://example.com:٨٠/",
    "http://example.com:80:80/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.01/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1.1/",
    "http://127.0.0.256/",
    "http://0/",
    "http://0x/",
    "http://0x7f.1/",
    "http://1.2.3.4.5/",
    "http://example.0x7f/",
    "http://example.123/",
    "http://２１３０７０６４３３/",  # noqa: RUF001 - wide digits
    "http://0X7F000001/",
    "http://[127.0.0.1]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]x/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::g]/",
    "http://[]/",
    "http://[v1.x]/",
    "http://💩.la\u200d/",
    "http://xn--\u00e9.example\u2024/",
    "http://example.com/a/..%2fsecret",
    "http://example.com/a/%2e%2e%2fsecret",
    "http://example.com/a/..%5csecret",
    "http://example.com/a%2f../secret",
    "http://example.com/..%2F..%2Fetc/passwd",
    f"http://example.com/{'a' * MAX_URL}",
    f"http://example.com/{'é' * (MAX_URL // 2)}",
]


def test_there_are_many_of_them() -> None:
    assert len(set(SPELLINGS) | set(REFUSED)) >= 120


@pytest.mark.parametrize("given_url", SPELLINGS, ids=ascii)
def test_a_url_has_one_plain_spelling(given_url: str) -> None:
    plain = str(read_url(given_url))

    assert plain == SPELLINGS[given_url]
    assert str(read_url(plain)) == plain


@pytest.mark.parametrize("given_url", REFUSED, ids=lambda url: ascii(url)[:60])
def test_a_url_in_doubt_is_refused(given_url: str) -> None:
    with pytest.raises(UrlRefusedError) as refused:
        read_url(given_url)

    assert str(refused.value).isprintable()


def test_the_parts_of_a_url_are_told_apart() -> None:
    url = read_url("https://[::1]:8443/a?b#c")

    assert (url.scheme, url.host, url.port, url.target) == ("https", "::1", 8443, "/a?b")
    assert str(url.address) == "::1"
    assert read_url("https://example.com/").address is None


@pytest.mark.parametrize(
    ("reference", "leads_to"),
    [
        ("next", "https://a.example/x/next"),
        ("../up?q", "https://a.example/up?q"),
        ("/root", "https://a.example/root"),
        ("?q=1", "https://a.example/x/y?q=1"),
        ("", "https://a.example/x/y"),
        ("//b.example/z", "https://b.example/z"),
        ("http://b.example", "http://b.example/"),
        ("#part", "https://a.example/x/y"),
    ],
)
def test_a_reference_is_read_as_seen_from_its_page(reference: str, leads_to: str) -> None:
    assert str(join_url(read_url("https://a.example/x/y"), reference)) == leads_to


@pytest.mark.parametrize(
    "reference",
    ["\\\\evil.example", "java\nscript:x", "javascript:alert(1)", "http://[", "//u@b.example", "mailto:a@b"],
)
def test_a_reference_in_doubt_is_refused(reference: str) -> None:
    with pytest.raises(UrlRefusedError):
        join_url(read_url("https://a.example/x/y"), reference)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://a.example/y", True),
        ("http://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "http://a.example/x", False),
        ("http://a.example:8080/", "https://a.example/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "https://www.a.example/", False),
        ("https://a.example/", "https://a.example.evil.example/", False),
    ],
)
def test_a_server_is_a_host_and_a_port(one: str, other: str, same: bool) -> None:
    assert read_url(one).is_same_place(read_url(other)) is same


url_like = st.text(
    alphabet=st.sampled_from('aé1.%2eF/\\?#@:[]& \t\u202e\u3002-_~+"<>') | st.characters(), max_size=40
)


@settings(max_examples=500)
@given(url_like)
def test_a_plain_spelling_is_plain_ascii_and_spelling_it_again_changes_nothing(rest: str) -> None:
    try:
        url = read_url(f"https://h.example/{rest}")
    except UrlRefusedError:
        return

    text = str(url)
    assert re.fullmatch(r"[!-~]+", text)
    assert not re.search(r'[\\"<>#\s]', text)
    assert read_url(text) == url
    parts = urlsplit(text)
    assert (parts.hostname, parts.username, parts.fragment) == ("h.example", None, "")
    assert ".." not in parts.path.split("/")


@settings(max_examples=500)
@given(url_like)
def test_whatever_is_taken_for_a_host_is_the_same_host_for_other_readers(host: str) -> None:
    try:
        url = read_url(f"http://{host}/path")
    except UrlRefusedError:
        return

    from yarl import URL

    assert urlsplit(str(url)).hostname == url.host
    assert URL(str(url), encoded=True).raw_host == url.host
