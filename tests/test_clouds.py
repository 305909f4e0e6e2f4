"""Models at clouds: addresses, versions, signatures and tokens, checked by servers that know the secrets."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_core import ConfigError
from agent_provider_kit import ContextTooLong, KeyMissing, KeyRefused, Overloaded, StreamMalformed
from agent_testing import (
    ScriptedServer,
    Talk,
    anthropic_reply,
    chat_models,
    chat_reply,
    gemini_reply,
    json_reply,
    responses_reply,
)
from agent_testing.clouds import ServiceAccount, amazon_frame, bedrock_reply, signed_by
from agent_testing.fixtures import plain_environment, scripted_server
from anthropic_provider import AnthropicProvider
from gemini_provider import GeminiProvider
from openai_compatible_provider import OpenAICompatibleProvider
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["plain_environment", "scripted_server"]

SECRET = "tea-leaves-and-water-0123456789"
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture(autouse=True)
def no_clouds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the clouds of whoever runs the tests."""
    for name in (
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "GOOGLE_CLOUD_PROJECT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nowhere.json"))


# Azure.


@pytest.mark.parametrize(
    ("provider", "reply", "path"),
    [
        (OpenAICompatibleProvider, chat_reply("Tea."), "/openai/v1/chat/completions"),
        (OpenAIResponsesProvider, responses_reply("Tea."), "/openai/v1/responses"),
    ],
)
def test_azure_gets_its_key_its_version_and_its_address(
    scripted_server: ScriptedServer, provider: Any, reply: Any, path: str
) -> None:
    talk = Talk(scripted_server, provider(), model="my-deployment", api_key="azure-key-123", cloud="azure")
    talk.add("user", "Tea?").call(reply, api_version="2025-04-01-preview", extra_query={"tier": "a b"})

    request = scripted_server.request
    assert request.path == path
    assert dict(request.query) == {"api-version": "2025-04-01-preview", "tier": "a b"}
    assert request.headers["api-key"] == "azure-key-123" and "authorization" not in request.headers


def test_a_deployment_of_the_older_azure_api_is_an_address(
    scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-123")
    provider = OpenAICompatibleProvider()
    talk = Talk(
        scripted_server, provider, path="/openai/deployments/tea", cloud="azure", api_version="2024-10-21"
    )
    talk.add("user", "Tea?").stream(chat_reply("Tea."))

    request = scripted_server.request
    assert request.target == "/openai/deployments/tea/chat/completions?api-version=2024-10-21"
    scripted_server.play(chat_models("a", "b"))
    assert [model["id"] for model in provider.get_models({**talk.config, "discover_models": True})] == [
        "a",
        "b",
    ]
    assert scripted_server.request.query["api-version"] == "2024-10-21"


def test_azure_without_a_key_or_an_address_says_what_is_missing() -> None:
    provider = OpenAICompatibleProvider()

    with pytest.raises(ConfigError, match="base_url, or AZURE_OPENAI_ENDPOINT"):
        provider.missing_key({"cloud": "azure"})
    missing = provider.missing_key({"cloud": "azure", "base_url": "https://tea.openai.azure.com"})
    assert isinstance(missing, KeyMissing) and "AZURE_OPENAI_API_KEY" in str(missing)
    with pytest.raises(
        ConfigError, match="cloud 'bedrock' is unknown to openai_compatible: it knows 'azure'"
    ):
        provider.missing_key({"cloud": "bedrock"})


def test_parameters_go_along_with_every_request(scripted_server: ScriptedServer) -> None:
    talk = Talk(scripted_server, GeminiProvider(), model="gemini-3-pro", api_key="a secret key")
    talk.add("user", "Tea?").stream(gemini_reply("Tea."), extra_query={"tag": "x"})

    assert dict(scripted_server.request.query) == {"alt": "sse", "tag": "x"}


# Bedrock.


@pytest.fixture
def at_bedrock(scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-token-123456")
    talk = Talk(scripted_server, AnthropicProvider(), model=CLAUDE, cloud="bedrock", region="eu-west-1")
    return talk.add("system", "Be brief.").add("user", "Tea?")


def test_a_call_to_bedrock_is_signed_and_has_its_form(at_bedrock: Talk) -> None:
    at_bedrock.call(anthropic_reply("Tea."), betas=["context-1m-2025-08-07"])

    request = at_bedrock.server.request
    assert request.target == f"/model/{CLAUDE}/invoke"
    who, _date, *scope = signed_by(request, SECRET).split("/")
    assert (who, scope) == ("AKIATEA", ["eu-west-1", "bedrock", "aws4_request"])
    assert request.headers["x-amz-security-token"] == "session-token-123456"
    assert "x-api-key" not in request.headers and "anthropic-beta" not in request.headers
    assert at_bedrock.sent == {
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07"],
        "max_tokens": 8192,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Tea?"}],
    }
    assert at_bedrock.last["content"] == "Tea."


@pytest.mark.parametrize("piece", [None, 1, 7])
def test_a_stream_of_bedrock_is_read_from_its_binary_form(at_bedrock: Talk, piece: int | None) -> None:
    reply = bedrock_reply(anthropic_reply("Tea is a drink.", reasoning="Hm."))
    at_bedrock.stream(reply if piece is None else reply.in_pieces(piece))

    assert at_bedrock.server.request.path == f"/model/{CLAUDE}/invoke-with-response-stream"
    signed_by(at_bedrock.server.request, SECRET)
    assert "stream" not in at_bedrock.sent and "model" not in at_bedrock.sent
    assert at_bedrock.last["content"] == "Tea is a drink."
    assert at_bedrock.about["reasoning"] == "Hm." and at_bedrock.about["ending"] == "complete"
    assert "".join(partial["content"] for partial in at_bedrock.partials) == "Tea is a drink."


def test_a_model_by_its_resource_name_is_signed_as_it_is_sent(at_bedrock: Talk) -> None:
    arn = "arn:aws:bedrock:eu-west-1:123:inference-profile/eu.claude"
    at_bedrock.call(anthropic_reply("Tea."), model=arn)

    assert at_bedrock.server.request.target == f"/model/{arn.replace('/', '%2F')}/invoke"
    signed_by(at_bedrock.server.request, SECRET)


@pytest.mark.parametrize(
    ("exception", "message", "expected"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", Overloaded),
        ("validationException", "Input is too long for requested model.", ContextTooLong),
        ("modelStreamErrorException", "Internal server error: timeout", Overloaded),
    ],
)
def test_an_exception_in_a_stream_is_the_failure_that_it_is(
    at_bedrock: Talk, exception: str, message: str, expected: type[Exception]
) -> None:
    frame = amazon_frame({"message": message}, exception)
    begun = bedrock_reply(anthropic_reply("Tea is a drink.").without_end())
    stream = (begun.stream or b"")[:600]
    frames = stream[: _whole_frames(stream)] + frame

    with pytest.raises(expected, match=exception):
        at_bedrock.stream(bedrock_reply(json_reply({}), then=frames))


def _whole_frames(stream: bytes) -> int:
    at = 0
    while at + 4 <= len(stream) and at + int.from_bytes(stream[at : at + 4]) <= len(stream):
        at += int.from_bytes(stream[at : at + 4])
    return at


def test_a_damaged_stream_of_bedrock_is_no_answer(at_bedrock: Talk) -> None:
    good = bedrock_reply(anthropic_reply("Tea is a drink."))
    stream = bytearray(good.stream or b"")
    stream[len(stream) // 2] ^= 0xFF

    with pytest.raises(StreamMalformed, match="the event stream cannot be read"):
        at_bedrock.stream(bedrock_reply(json_reply({}), then=bytes(stream)))


def test_a_refusal_of_bedrock_is_understood_by_its_header(at_bedrock: Talk) -> None:
    headers = {"x-amzn-ErrorType": "UnrecognizedClientException:http://x", "x-amzn-RequestId": "r-1"}
    reply = json_reply({"message": f"not {SECRET}"}, 403, headers)

    with pytest.raises(KeyRefused) as caught:
        at_bedrock.call(reply)
    assert caught.value.request_id == "r-1" and SECRET not in str(caught.value)
    assert "the AWS credentials of AKIA" in caught.value.next_step


def test_a_key_of_bedrock_is_sent_instead_of_a_signature(at_bedrock: Talk) -> None:
    at_bedrock.call(anthropic_reply("Tea."), api_key="bedrock-api-key-1")

    assert at_bedrock.server.request.headers["authorization"] == "Bearer bedrock-api-key-1"


def test_a_profile_names_the_credentials(scripted_server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        f"[tea]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = {SECRET}\n"
    )
    settings = {"cloud": "bedrock", "region": "us-east-1", "profile": "tea"}
    talk = Talk(scripted_server, AnthropicProvider(), model=CLAUDE, **settings)
    talk.add("user", "Tea?").call(anthropic_reply("Tea."))

    assert signed_by(scripted_server.request, SECRET).startswith("AKIAPROFILE/")


def test_bedrock_without_credentials_or_region_says_what_is_missing(scripted_server: ScriptedServer) -> None:
    talk = Talk(scripted_server, AnthropicProvider(), model=CLAUDE, cloud="bedrock").add("user", "Tea?")

    with pytest.raises(ConfigError, match="set region, or AWS_REGION"):
        talk.call(base_url=None)
    with pytest.raises(KeyRefused, match="there are no AWS credentials"):
        talk.call(region="us-east-1")
    assert not scripted_server.requests


# Vertex.


@pytest.fixture
def account() -> ServiceAccount:
    return ServiceAccount()


@pytest.mark.parametrize(
    ("provider", "model", "reply", "path"),
    [
        (
            AnthropicProvider,
            "claude-sonnet-4-5@20250929",
            anthropic_reply("Tea."),
            "anthropic/models/{}:rawPredict",
        ),
        (GeminiProvider, "gemini-3-flash", gemini_reply("Tea."), "google/models/{}:generateContent"),
    ],
)
def test_vertex_gets_a_token_that_google_gave_to_the_account(
    scripted_server: ScriptedServer,
    tmp_path: Path,
    account: ServiceAccount,
    provider: Any,
    model: str,
    reply: Any,
    path: str,
) -> None:
    with ScriptedServer(account.grant("ya29.first-token")) as google:
        file = account.write(tmp_path / "account.json", f"{google.url}/token")
        settings = {"cloud": "vertex", "region": "europe-west1", "credentials_file": str(file)}
        talk = Talk(scripted_server, provider(), model=model, **settings).add("user", "Tea?")
        talk.call(reply)
        talk.add("user", "More?").stream(reply)

    first, second = scripted_server.requests
    project = "/v1/projects/tea-project/locations/europe-west1/publishers/"
    assert first.path == project + path.format(model)
    assert first.headers["authorization"] == second.headers["authorization"] == "Bearer ya29.first-token"
    assert account.asked == 1 and talk.last["content"] == "Tea."
    if provider is AnthropicProvider:
        assert first.json["anthropic_version"] == "vertex-2023-10-16" and "model" not in first.json
        assert second.path.endswith(":streamRawPredict") and second.json["stream"] is True
    else:
        assert second.target.endswith(":streamGenerateContent?alt=sse")


def test_credentials_that_google_refuses_are_named(
    scripted_server: ScriptedServer, tmp_path: Path, account: ServiceAccount
) -> None:
    stranger = ServiceAccount("coffee@project.test")
    with ScriptedServer(json_reply({"error": "invalid_grant"}, 400)) as google:
        file = stranger.write(tmp_path / "account.json", f"{google.url}/token")
        talk = Talk(scripted_server, GeminiProvider(), model="m", cloud="vertex", credentials_file=str(file))
        with pytest.raises(KeyRefused, match=r"Google's credentials cannot be used.*invalid_grant"):
            talk.add("user", "Tea?").call()
    assert not scripted_server.requests


def test_vertex_without_credentials_or_project_says_what_is_missing(scripted_server: ScriptedServer) -> None:
    talk = Talk(scripted_server, GeminiProvider(), model="gemini-3-flash", cloud="vertex").add("user", "Tea?")

    with pytest.raises(ConfigError, match="set project, or GOOGLE_CLOUD_PROJECT"):
        talk.call()
    with pytest.raises(KeyRefused, match="gcloud auth application-default login"):
        talk.call(project="tea-project")
    with pytest.raises(ConfigError, match="discover_models: vertex has no list"):
        talk.provider.get_models({**talk.config, "project": "p", "discover_models": True})


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
    ],
)
def test_each_region_of_vertex_has_its_address(region: str, host: str) -> None:
    exchange = GeminiProvider()._exchange({"cloud": "vertex", "region": region}, "call_api")

    assert exchange.url == f"https://{host}"


# Counting, and what a good reply says about itself.


@pytest.mark.parametrize(
    ("provider", "settings", "path", "reply"),
    [
        (AnthropicProvider, {}, "/v1/messages/count_tokens", {"input_tokens": 14}),
        (GeminiProvider, {}, "/v1beta/models/m:countTokens", {"totalTokens": 14}),
        (OpenAIResponsesProvider, {}, "/responses/input_tokens", {"input_tokens": 14, "object": "x"}),
        (
            AnthropicProvider,
            {"cloud": "vertex", "project": "p", "region": "us-east5"},
            "/v1/projects/p/locations/us-east5/publishers/anthropic/models/count-tokens:rawPredict",
            {"input_tokens": 14},
        ),
        (
            GeminiProvider,
            {"cloud": "vertex", "project": "p", "region": "us-east5"},
            "/v1/projects/p/locations/us-east5/publishers/google/models/m:countTokens",
            {"totalTokens": 14},
        ),
        (
            AnthropicProvider,
            {"cloud": "bedrock", "region": "us-east-1"},
            "/model/m/count-tokens",
            {"inputTokens": 14},
        ),
    ],
)
def test_tokens_are_counted_where_the_api_can(
    scripted_server: ScriptedServer, provider: Any, settings: dict[str, Any], path: str, reply: dict[str, Any]
) -> None:
    talk = Talk(scripted_server, provider(), model="m", api_key="a secret key", **settings)
    scripted_server.play(json_reply(reply))
    items = talk.provider.to_native_messages([{"role": "user", "content": "Tea?", "metadata": {}}])

    assert talk.provider.count_tokens(items, talk.config) == 14
    sent = scripted_server.request
    assert (sent.method, sent.path) == ("POST", path)
    body = sent.json
    if settings.get("cloud") == "bedrock":
        body = orjson.loads(b64decode(body["input"]["invokeModel"]["body"]))
    assert "Tea?" in str(body) and "max_tokens" not in (body if not settings else {})


def test_an_api_that_cannot_count_says_so() -> None:
    with pytest.raises(Exception, match="the API has no request that counts tokens"):
        OpenAICompatibleProvider().count_tokens([], {"model": "m"})


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("provider", "reply"),
    [
        (OpenAICompatibleProvider, chat_reply("Tea.")),
        (OpenAIResponsesProvider, responses_reply("Tea.")),
        (AnthropicProvider, anthropic_reply("Tea.")),
        (GeminiProvider, gemini_reply("Tea.")),
    ],
)
def test_the_id_of_a_request_and_what_is_left_of_limits_are_kept(
    scripted_server: ScriptedServer, provider: Any, reply: Any, streamed: bool
) -> None:
    from dataclasses import replace

    limits = {"x-ratelimit-remaining-requests": "59", "anthropic-ratelimit-tokens-reset": "soon"}
    reply = replace(reply, headers={"X-Request-Id": "req_7", **limits, "server": "x"})
    talk = Talk(scripted_server, provider(), model="m", api_key="a secret key").add("user", "Tea?")
    talk.stream(reply) if streamed else talk.call(reply)

    assert talk.about["request_id"] == "req_7"
    assert talk.about["rate_limits"] == limits
    assert "req_7" not in str(talk.add("user", "More?").call(reply).sent)
