"""What several test files share."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_provider_kit import ApiKey, Exchange
from agent_testing.fixtures import plain_environment, scripted_server

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parent))  # for raw_server

__all__ = ["plain_environment", "scripted_server"]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """An event loop that is closed in order after the test."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def exchange() -> Exchange:
    """A conversation with a provider, for errors to speak of."""
    return Exchange("acme", "stream_api", "https://api.acme.test/v1", ApiKey("sk-very-secret", "a drawer"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that it signed itself, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes its certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    pem = folder / "server.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    newkey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = [openssl, "req", "-x509", *newkey, "-days", "2", *subject, *made]
    subprocess.run(command, check=True, capture_output=True)
    pem.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return pem
