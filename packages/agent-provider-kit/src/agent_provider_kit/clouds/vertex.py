"""Vertex AI of Google Cloud: access tokens by google-auth, addresses that name a project and a region."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from agent_core import ConfigError, lazy
from agent_provider_kit.clouds.cloud import Cloud
from agent_provider_kit.failures import KeyRefused, Unreachable
from agent_provider_kit.keys import ApiKey

if TYPE_CHECKING:
    from agent_provider_kit.failures import Exchange
    from agent_provider_kit.transport import HttpRequest
    from agent_provider_kit.wire import Config, JsonObject

VERTEX_SETTINGS: dict[str, JsonObject] = {
    "cloud": {
        "type": "string",
        "enum": ["vertex"],
        "description": "Who runs the model, if not the provider.",
    },
    "project": {"type": "string", "description": "The Google Cloud project; else GOOGLE_CLOUD_PROJECT."},
    "region": {
        "type": "string",
        "description": "Where the cloud runs the model; else what its variables say.",
    },
    "credentials_file": {
        "type": "string",
        "description": "The key file of a service account; else the application default credentials.",
    },
}
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT")
_REGIONS = ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION", "GOOGLE_CLOUD_REGION")
_SEVERAL = {"global": "aiplatform.googleapis.com", "us": "aiplatform.us.rep.googleapis.com",
            "eu": "aiplatform.eu.rep.googleapis.com"}  # fmt: skip
_ADVICE = "run `gcloud auth application-default login`, or set credentials_file"


class Vertex(Cloud):
    """Vertex AI. Without an `api_key`, which would be an access token, google-auth finds the credentials."""

    def base_url(self, config: Config) -> str:
        """Return the address of a region."""
        where = region(config)
        return f"https://{_SEVERAL.get(where) or f'{where}-aiplatform.googleapis.com'}"

    async def authorize(
        self, request: HttpRequest, config: Config, exchange: Exchange
    ) -> tuple[HttpRequest, Exchange]:
        """Add an access token; an old one is renewed in a thread, since the library waits for the network."""
        if exchange.key.value:
            return request, exchange
        file = config.get("credentials_file")
        token = await lazy.asyncio.to_thread(
            _CREDENTIALS.token, None if file is None else str(file), exchange
        )
        origin = f"the credentials in {file}" if file else "the application default credentials"
        headers = {**request.headers, "Authorization": f"Bearer {token}"}
        return request._replace(headers=headers), exchange._replace(key=ApiKey(token, origin))


def location(config: Config) -> str:
    """Return the part of an address that names project and region.

    Raises:
        ConfigError: If nothing names the project.
    """
    return f"/v1/projects/{_project(config)}/locations/{region(config)}"


def region(config: Config) -> str:
    """Return where the model runs; everywhere, if nothing says so."""
    found = (os.environ.get(name) for name in _REGIONS)
    return str(config.get("region") or next(filter(None, found), "global"))


def _project(config: Config) -> str:
    file = config.get("credentials_file") or os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    named = config.get("project") or next(filter(None, map(os.environ.get, _PROJECTS)), None)
    found = named or _project_in(file)
    if not found:
        raise ConfigError(
            "cloud 'vertex' needs a Google Cloud project: set project, or GOOGLE_CLOUD_PROJECT",
            field="project",
        )
    return str(found)


def _project_in(file: str | None) -> Any:
    try:
        content = orjson.loads(Path(file).expanduser().read_bytes()) if file else None
    except (OSError, ValueError):
        return None  # google-auth says what is wrong with it
    return (
        (content.get("project_id") or content.get("quota_project_id")) if isinstance(content, dict) else None
    )


def _google_auth(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            "cloud 'vertex' needs google-auth: pip install keelwork-provider-kit[vertex]",
            field="cloud",
        ) from error


class _Credentials:
    """The credentials of this process, by file; google-auth keeps their tokens and knows when they end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str | None, str | None], Any] = {}

    def token(self, file: str | None, exchange: Exchange) -> str:
        """Return an access token that is still valid.

        Raises:
            KeyRefused: If there are no credentials, or Google does not take them.
            Unreachable: If Google cannot be asked.
            ConfigError: If google-auth is not installed.
        """
        exceptions = _google_auth("google.auth.exceptions")
        try:
            with self._lock:
                credentials = self._find(file)
                if not credentials.valid:
                    credentials.refresh(_google_auth("google.auth.transport.requests").Request())
        except exceptions.TransportError as error:
            raise Unreachable(exchange, f"Google's token server cannot be reached: {error}") from error
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise KeyRefused(exchange, f"Google's credentials cannot be used: {error}; {_ADVICE}") from error
        return str(credentials.token)

    def _find(self, file: str | None) -> Any:
        key = (file, os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
        if key not in self._known and file is None:
            self._known[key] = _google_auth("google.auth").default(scopes=[_SCOPE])[0]
        elif key not in self._known:
            account = _google_auth("google.oauth2.service_account").Credentials
            self._known[key] = account.from_service_account_file(
                str(Path(file or "").expanduser()), scopes=[_SCOPE]
            )
        return self._known[key]


_CREDENTIALS = _Credentials()
