"""HTTPS: a name is reached at a pinned address, and the certificate must still be that of the name."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from web_tool import WebTool, fetch as connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conftest import Reading, Site, Sites

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="makes its certificate with openssl")
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nsafe"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    pem = folder / "server.pem"
    subject = ["-subj", "/CN=good.example", "-addext", "subjectAltName=DNS:good.example"]
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    newkey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = [str(OPENSSL), "req", "-x509", *newkey, "-days", "2", *subject, *made]
    subprocess.run(command, check=True, capture_output=True)
    pem.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return pem


@pytest.fixture
def site(certificate: Path, serve: Sites) -> Site:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return serve({"*": PAGE}, tls=context)


@pytest.fixture
def trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trust the certificate, in TLS contexts that are made from now on."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    connection._tls.cache_clear()
    yield
    connection._tls.cache_clear()


async def here(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.mark.usefixtures("trusting")
def test_the_certificate_of_the_name_is_good(site: Site, read: Reading) -> None:
    result = read(f"https://good.example:{site.port}/", tool=WebTool(here))

    assert "\nsafe\n" in result["result"]


@pytest.mark.usefixtures("trusting")
def test_the_certificate_of_another_name_is_not(site: Site, read: Reading) -> None:
    result = read(f"https://evil.example:{site.port}/", tool=WebTool(here))

    assert result["success"] is False
    assert "evil.example cannot be read: its certificate is not good" in result["error"]
    assert site.requests == []


def test_a_certificate_that_nobody_vouches_for_is_not(site: Site, read: Reading) -> None:
    connection._tls.cache_clear()

    result = read(f"https://good.example:{site.port}/", tool=WebTool(here))

    assert "its certificate is not good" in result["error"]
    assert site.requests == []
