"""What providers say when they refuse, and what each wording means.

Providers use one status for many things, so their words decide. Every wording has one row here, with an
example and with who uses it: a page of the provider's, or a report by somebody who met it. The first row that
fits decides, so the order of the groups matters.

To add a wording, add a row with a real example. The tests read every row: the example must be understood as
the row says, whatever the rows before it match.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_provider_kit.failures import (
    ContextTooLong,
    KeyRefused,
    LimitReached,
    Overloaded,
    ProviderFailure,
    RequestRefused,
)


class Wording(NamedTuple):
    """One way to refuse.

    Attributes:
        means: The failure that it stands for.
        pattern: A regular expression; code and message are searched for it in lower case.
        example: Code, if there is one, and message as they were seen.
        source: Who says so, and where that is documented or reported.
    """

    means: type[ProviderFailure]
    pattern: str
    example: str
    source: str


WORDINGS: tuple[Wording, ...] = (
    # Refused for good, although the words invite to try again.
    Wording(
        RequestRefused,
        r"\binvalid_prompt\b|prompt was flagged",
        "invalid_prompt Invalid prompt: your prompt was flagged as potentially violating our usage policy. "
        "Please try again with a different prompt",
        "OpenAI: github.com/openai/codex/issues/38849",
    ),
    # The conversation does not fit. Only these are answered by compaction.
    Wording(
        ContextTooLong,
        r"context_length_exceeded",
        "context_length_exceeded Your input exceeds the context window of this model.",
        "OpenAI: developers.openai.com/api/docs/guides/error-codes; others use the code, too",
    ),
    Wording(
        ContextTooLong,
        r"maximum context length",
        "This model's maximum context length is 4096 tokens. However, you requested 4104 tokens.",
        "OpenAI, vLLM, DeepSeek, OpenRouter, Mistral: github.com/langchain-ai/langchain/issues/11001",
    ),
    Wording(
        ContextTooLong,
        r"exceeds? (?:the |this model's )?context window|context window exceeds|context_?window_?exceeded",
        "invalid params, context window exceeds limit (2013)",
        "MiniMax, z.ai and LiteLLM: docs.litellm.ai/docs/exception_mapping",
    ),
    Wording(
        ContextTooLong,
        r"input length and `?max_tokens`? exceed context limit",
        "invalid_request_error input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, "
        "decrease input length or `max_tokens` and try again",
        "Anthropic: github.com/anthropics/claude-code/issues/4951",
    ),
    Wording(
        ContextTooLong,
        r"prompt is too long|prompt too long",
        "invalid_request_error prompt is too long: 202128 tokens > 200000 maximum",
        "Anthropic: github.com/stackblitz/bolt.new/issues/1748; Ollama says 'prompt too long; exceeded …'",
    ),
    Wording(
        ContextTooLong,
        r"request_too_large|request exceeds the maximum size",
        "request_too_large Request exceeds the maximum size",
        "Anthropic: platform.claude.com/docs/en/api/errors",
    ),
    Wording(
        ContextTooLong,
        r"required for long context requests",
        "rate_limit_error Extra usage is required for long context requests.",
        "Anthropic, with status 429: github.com/anthropics/claude-code/issues/39948",
    ),
    Wording(
        ContextTooLong,
        r"maximum prompt length is \d+",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        "xAI: github.com/cline/cline/issues/3120",
    ),
    Wording(
        ContextTooLong,
        r"greater than the context length|tokens when context the overflows|n_keep.{1,20}n_ctx",
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to "
        "load the model with a larger context length, or provide a shorter input",
        "LM Studio: github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546, anomalyco/opencode#11141",
    ),
    Wording(
        ContextTooLong,
        r"exceeded model token limit",
        "invalid_request_error Invalid request: Your request exceeded model token limit: 262144 "
        "(requested: 310000)",
        "Kimi (Moonshot): platform.moonshot.ai/docs/api/chat",
    ),
    Wording(
        ContextTooLong,
        r"is longer than the model'?s context length",
        "The input (300000 tokens) is longer than the model's context length (262144 tokens).",
        "Together: docs.together.ai/docs/error-codes",
    ),
    Wording(
        ContextTooLong,
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be|`?inputs`? must have less than \d+ tokens",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` "
        "tokens and 4096 `max_new_tokens`",
        "Together, Hugging Face: github.com/BerriAI/litellm/issues/4934",
    ),
    Wording(
        ContextTooLong,
        r"model_max_prompt_tokens_exceeded|prompt token count of \d+ exceeds the limit",
        "model_max_prompt_tokens_exceeded prompt token count of 138898 exceeds the limit of 64000",
        "GitHub Copilot: github.com/microsoft/vscode/issues/289514",
    ),
    Wording(
        ContextTooLong,
        r"input is too long for requested model",
        "validationException Input is too long for requested model.",
        "Amazon Bedrock: github.com/aws-samples/bedrock-chat/issues/95",
    ),
    Wording(
        ContextTooLong,
        r"number of input tokens exceeds maximum length|too many input tokens\. max input tokens",
        "validationException Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please "
        "update the input to try again.",
        "Amazon Bedrock, in the middle of a reply: docs.aws.amazon.com/nova, for Nova; Titan has the second",
    ),
    Wording(
        ContextTooLong,
        # An id or a name that is too long is a fault of the request: compaction would not help.
        r"'(?:messages|input|instructions)(?:\[\d+\])?(?:\.(?:content|output|text|arguments)[^']*)?': "
        r"string too long",
        "string_above_max_length Invalid 'messages[1].content': string too long. Expected a string with "
        "maximum length 1048576, but got a string with length 1540821 instead.",
        "OpenAI: developers.openai.com/api/docs/guides/error-codes",
    ),
    Wording(
        ContextTooLong,
        r"request payload size exceeds",
        "INVALID_ARGUMENT Request payload size exceeds the limit: 20971520 bytes.",
        "Gemini: github.com/google-gemini/deprecated-generative-ai-android/issues/26",
    ),
    Wording(
        ContextTooLong,
        r"input token count.*exceeds the maximum",
        "INVALID_ARGUMENT The input token count (1196265) exceeds the maximum number of tokens allowed "
        "(1048575).",
        "Gemini: github.com/google-gemini/gemini-cli/issues/4692",
    ),
    Wording(
        ContextTooLong,
        r"input token count is \d+ but (?:the )?model only supports",
        "INVALID_ARGUMENT Unable to submit request because the input token count is 1251952 but model only "
        "supports up to 1048576. Reduce the input token count and try again.",
        "Vertex AI: github.com/google-gemini/gemini-cli/issues/19727",
    ),
    Wording(
        ContextTooLong,
        r"request too large for|must be reduced in order to run successfully",
        "rate_limit_exceeded Request too large for gpt-4o in organization org-x on tokens per min (TPM): "
        "Limit 30000, Requested 61337. The input or output tokens must be reduced in order to run "
        "successfully.",
        "OpenAI and Groq, with status 429 or 413: github.com/continuedev/continue/issues/10602",
    ),
    Wording(
        ContextTooLong,
        r"exceeds the available context size|exceed_context_size",
        "exceed_context_size_error the request exceeds the available context size, try increasing it",
        "llama.cpp: github.com/ggml-org/llama.cpp, tools/server",
    ),
    Wording(
        ContextTooLong,
        r"reduce the length of the (?:messages|input|prompt)",
        "Please reduce the length of the messages or completion.",
        "Groq and Cerebras: console.groq.com/docs/errors",
    ),
    Wording(
        ContextTooLong,
        r"range of input length should be",
        "InvalidParameter Range of input length should be [1, 30720]",
        "DashScope (Qwen): help.aliyun.com/zh/model-studio/error-code",
    ),
    Wording(
        ContextTooLong,
        r"too many tokens: (?:size limit|total number)|string value length \(\d+\) exceeds the maximum",
        "too many tokens: size limit exceeded by 7326 tokens. Try using shorter or fewer inputs",
        "Cohere: docs.cohere.com/docs/errors; the second is Qwen's: github.com/QwenLM/qwen-code/issues/747",
    ),
    Wording(
        ContextTooLong,
        r"longer than the maximum model length",
        "The decoder prompt (length 66501) is longer than the maximum model length of 65536. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        "vLLM and Xinference: github.com/langchain-ai/deepagents/issues/468",
    ),
    Wording(
        ContextTooLong,
        r"input length(?: \d+)? exceeds (?:the )?(?:maximum (?:input )?length|context length)",
        "Requested input length 99009 exceeds maximum input length 8192",
        "DeepInfra: github.com/langchain-ai/langchain/pull/25671; Volcengine, LM Studio and Ollama vary it",
    ),
    Wording(
        ContextTooLong,
        r"prompt exceeds max length",
        "1261 Prompt exceeds max length",
        "z.ai: github.com/zeroclaw-labs/zeroclaw/issues/4124",
    ),
    Wording(
        ContextTooLong,
        r"exceed max message tokens",
        "InvalidParameter Total tokens of image and text exceed max message tokens. Request id: 0217",
        "Volcengine (Doubao): www.volcengine.com/docs/82379",
    ),
    Wording(
        ContextTooLong,
        r"exceeded this model context window limit",
        "AiError: The estimated number of input and maximum output tokens (35000) exceeded this model "
        "context window limit (24000).",
        "Cloudflare Workers AI: github.com/UKGovernmentBEIS/inspect_ai/pull/1665",
    ),
    Wording(
        ContextTooLong,
        r"number of input tokens \d+ cannot exceed",
        "invalid_input_argument Invalid input argument for Model 'x': the number of input tokens 4098 cannot "
        "exceed the total tokens limit 4096 for this model",
        "watsonx.ai: cloud.ibm.com/apidocs/watsonx-ai",
    ),
    Wording(
        ContextTooLong,
        r"maximum request body size|request entity too large",
        "Maximum request body size 1048576 exceeded, actual body size 1056562",
        "gateways: github.com/google-gemini/gemini-cli/issues/13776",
    ),
    # Money or quota is used up.
    Wording(
        LimitReached,
        r"insufficient_quota",
        "insufficient_quota You exceeded your current quota, please check your plan and billing details.",
        "OpenAI: developers.openai.com/api/docs/guides/error-codes",
    ),
    Wording(
        LimitReached,
        r"billing_hard_limit_reached|billing_not_active|billing_error",
        "billing_hard_limit_reached Billing hard limit has been reached",
        "OpenAI: developers.openai.com/api/docs/guides/error-codes; Anthropic's type is billing_error",
    ),
    Wording(
        LimitReached,
        r"credit balance|credits? (?:are|is|have been) depleted|insufficient[_ ](?:balance|funds)|"
        r"doesn't have any credits",
        "invalid_request_error Your credit balance is too low to access the Anthropic API.",
        "Anthropic: platform.claude.com/docs/en/api/errors; DeepSeek says 'Insufficient Balance', and xAI "
        "that a new team has no credits: github.com/continuedev/continue/issues/12670",
    ),
    Wording(
        LimitReached,
        r"specified (?:workspace )?api usage limits|usage[_ ]limit[_ ](?:has been )?(?:reached|exceeded)",
        "invalid_request_error You have reached your specified API usage limits. You will regain access on "
        "2026-04-01 at 00:00 UTC.",
        "Anthropic, with status 400: github.com/anthropics/claude-code/issues/38035",
    ),
    Wording(
        LimitReached,
        r"spend(?:ing)? (?:limit|cap)",
        "RESOURCE_EXHAUSTED Your project has exceeded its monthly spending cap.",
        "Gemini: ai.google.dev/gemini-api/docs/billing",
    ),
    Wording(
        LimitReached,
        r"limit: 0(?![\d.])",
        "RESOURCE_EXHAUSTED Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, "
        "model: gemini-3-pro",
        "Gemini, for models without a free tier: ai.google.dev/gemini-api/docs/rate-limits",
    ),
    Wording(
        LimitReached,
        r"exceeded_current_quota|free-models-per-day",
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
        "OpenRouter: github.com/Gitlawb/openclaude/issues/936; the code is Kimi's",
    ),
    # Later it may work. With an HTTP status the status says so; these words count where there is none.
    Wording(
        Overloaded,
        r"overloaded|slow_down|unavailable|\bbusy\b|at capacity",
        "overloaded_error Overloaded",
        "Anthropic: platform.claude.com/docs/en/api/errors; OpenAI says slow_down, Google UNAVAILABLE",
    ),
    Wording(
        Overloaded,
        r"rate[_ ]limit|throttling|too many (?:requests|tokens)|resource_exhausted",
        "throttlingException Too many tokens, please wait before trying again.",
        "Amazon Bedrock: docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html",
    ),
    Wording(
        Overloaded,
        r"server_?error|internal_?(?:server)?_?(?:error|exception)|api_error|upstream_error|timeout|"
        r"timed out|try again|retry your request",
        "server_error An error occurred while processing your request. You can retry your request.",
        "OpenAI: developers.openai.com/api/docs/guides/error-codes",
    ),
    # The key.
    Wording(
        KeyRefused,
        r"invalid_api_key|authentication_?error|permission_?error|api[ _]key[ _](?:not valid|invalid|expired)"
        r"|accessdenied|unrecognizedclient|expiredtoken|invalidsignature",
        "INVALID_ARGUMENT API key not valid. Please pass a valid API key.",
        "Gemini, with status 400: ai.google.dev/gemini-api/docs/troubleshooting; OpenAI and AWS have codes",
    ),
)

_COMPILED = tuple((wording.means, re.compile(wording.pattern)) for wording in WORDINGS)


def meaning_of(words: str) -> type[ProviderFailure] | None:
    """Return the failure that a provider's code and message stand for; None if no wording is known."""
    lowered = words.lower()
    return next((means for means, pattern in _COMPILED if pattern.search(lowered)), None)
