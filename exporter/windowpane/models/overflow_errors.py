"""Classification of provider errors, and the sizes that an overflow error reports.

Providers share no error code for an overflow, so their wordings are listed in one table, each with its source.
The first row that matches decides: throttling and output limits use the same words and come before overflows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.zones import MINIMUM_LIMIT_TOKENS

ErrorKind = Literal["overflow", "malformed", "transient", "unknown"]

MAXIMUM_CHARS: Final = 4_000
MAXIMUM_DIGITS: Final = 20
SIZE: Final = r"(?<![\d,_.])(\d[\d,_]*+)(?:\.0)?(?![km])"
"""A number of tokens; one in thousands is not exact."""

PI: Final = "https://github.com/earendil-works/pi/blob/main/packages/ai/src/utils/overflow.ts"
OPENCODE: Final = "https://github.com/anomalyco/opencode/blob/dev/packages/llm/src/provider-error.ts"
KILO: Final = "https://github.com/Kilo-Org/kilocode/blob/main/packages/opencode/src/provider/error.ts"
LITELLM: Final = (
    "https://github.com/BerriAI/litellm/blob/main/litellm/litellm_core_utils/exception_mapping_utils.py"
)
OPENCLAW: Final = "https://github.com/openclaw/openclaw/blob/main/src/agents/pi-embedded-helpers/errors.ts"
CLINE: Final = (
    "https://github.com/cline/cline/blob/main/src/core/context/context-management/context-error-handling.ts"
)
HERMES: Final = "https://github.com/NousResearch/hermes-agent/blob/main/agent/error_classifier.py"
LETTA: Final = "https://github.com/letta-ai/letta/blob/main/letta/llm_api/error_utils.py"
KIMI: Final = "https://github.com/MoonshotAI/kimi-code/blob/main/packages/kosong/src/errors.ts"
OPENAI: Final = "https://platform.openai.com/docs/guides/error-codes"
ANTHROPIC: Final = "https://docs.claude.com/en/api/errors"
COHERE: Final = "https://docs.cohere.com/reference/errors"
DASHSCOPE: Final = "https://www.alibabacloud.com/help/en/model-studio/error-code"
OPENROUTER: Final = "https://openrouter.ai/docs/api-reference/errors"
SGLANG: Final = "https://github.com/sgl-project/sglang/issues/8096"
TENSORRT: Final = "https://github.com/triton-inference-server/tensorrtllm_backend/issues/141"
VLLM: Final = "https://github.com/vllm-project/vllm/issues/12165"


class Wording(NamedTuple):
    """A row of the table: the kind of the errors whose text the pattern finds."""

    kind: ErrorKind
    pattern: re.Pattern[str]
    source: str
    """Addresses of the lists that have texts of this wording."""


def _row(kind: ErrorKind, pattern: str, source: str) -> Wording:
    return Wording(kind, re.compile(pattern, re.IGNORECASE), source)


_WITHIN: Final = r"[^.;\n]{0,80}?"
"""The words between two parts of one clause."""
_WINDOW: Final = r"context[ _-]?(?:length|window|size|limit)"
_EXCEED: Final = r"exceed(?:s|ed|ing)?"
_MORE: Final = r"(?:longer|larger|greater|more|bigger)"
_OUTPUT: Final = (
    r"max_(?:completion_|output_|new_)?tokens|max tokens must|maxOutputTokens|maximum output"
    rf"|(?:output|completion)[ _-]tokens?|\b(?:output|response|completion) {_EXCEED}"
)

WORDINGS: Final = (
    # Errors that use the words of an overflow, which a smaller window does not help; a code is clear.
    _row(
        "malformed",
        r"json schema|input_schema|invalid (?:type|value|schema)\b|must be (?:an? |of type |one of )"
        r"|expected (?:an? )?(?:integer|int|string|object|array|number|boolean|list|one of)\b"
        r"|(?:unknown|unsupported|unrecognized|unexpected) (?:parameter|field|name|keyword|argument|property|key)"
        r"|extra (?:inputs|fields)|field required|missing (?:required|field|property)"
        r"|is not (?:a valid|permitted|allowed|supported)|not permitted",
        OPENAI,
    ),
    _row("overflow", r"context_length_exceeded|max_tokens must be at least 1, got -\d{2}", f"{OPENAI} {VLLM}"),
    _row(
        "transient",
        r"rate[ _-]?limit|too[ _]many[ _](?:concurrent[ _])?requests|throttl|quota|slow down|wait before"
        r"|rate (?:is |was )?exceeded|concurren|allowance|token budget|\btoday\b"
        r"|this (?:minute|hour|week|month|period)|your per-\w{1,20} limit"
        r"|retry[ -]after|(?:\b|_)per[ _-](?:second|sec|minute|min|hour|day|week|month)\b|tokens/(?:s|min)"
        r"|\b(?:hourly|daily|weekly|monthly)\b|\b(?:[io]?tpm|rpm|tpd|rpd)\b|usage[ _]limit"
        r"|resource[ _]exhausted|overloaded|token_limit_exceeded|too many tokens processed"
        r"|\A\W{0,2}(?:429|529)\b|\b(?:error code|status(?:[ _]code)?|http(?: error)?)\W{1,4}(?:429|529)\b",
        f"{PI} {OPENCODE} {HERMES} {OPENROUTER}",
    ),
    _row(
        "unknown",
        r"\bbilling\b|credit balance|insufficient[ _](?:credit|balance|funds)|\btiers?\b|subscription|\bbeta\b"
        r"|extra usage|upgrade your|\bplan\b|\bapi key\b|\btrial\b"
        r"|\b(?:access|auth\w*|bearer|jwt|refresh|session) tokens?\b"
        r"|\A\W{0,2}40[123]\b|\b(?:error code|status(?:[ _]code)?)\W{1,4}40[123]\b",
        f"{HERMES} {ANTHROPIC}",
    ),
    _row(
        "unknown",
        rf"\A(?![\s\S]*\b(?:inputs?|prompts?|context|messages)(?:\b|_))[\s\S]*(?:{_OUTPUT})|range of max_tokens"
        r"|tokens['\"`]* is too large for|output tokens? limit|output token maximum",
        f"{OPENAI} {COHERE} {DASHSCOPE}",
    ),
    _row(
        "unknown",
        r"\b(?:string|array|list|field|value|name|description|file|image|pdf|video|audio|attachment|batch)s?"
        rf" (?:size |dimensions |input )?(?:is |are )?(?:too (?:long|large|big)|{_EXCEED})"
        r"|(?:string|array)_above_max_length|expected an? (?:string|array) with|\bcharacters\b|\bpixels\b"
        r"|\d ?[km]b\b|too many (?:images|tools|messages|files)",
        f"{OPENAI} {HERMES}",
    ),
    # The input alone, or with the requested output, is larger than the window.
    _row(
        "overflow",
        rf"{_WINDOW}(?: size| limit)?[ _]?(?:is |was |has been )?(?:{_EXCEED}|overflow|reached|full\b)",
        PI,
    ),
    _row("overflow", rf"(?:{_EXCEED}|overflow(?:s|ed)?)_?{_WINDOW}", PI),
    _row(
        "overflow",
        rf"\b(?:{_EXCEED}|{_MORE} than|less than|does not fit){_WITHIN}\b{_WINDOW}|{_WINDOW} of {SIZE} {_EXCEED}"
        rf"|\b(?:{_EXCEED}|does not fit in(?:to)?) (?:the )?(?:(?:model'?s? )?context\b|model'?s? window)",
        f"{PI} {OPENCODE} {LITELLM} {SGLANG}",
    ),
    _row("overflow", r"context[ _-]?overflow|context[ _-]?window[ _-]?overflow", f"{OPENCLAW} {HERMES}"),
    _row("overflow", r"\bmax(?:imum)? context\b", f"{LITELLM} {CLINE}"),
    _row(
        "overflow",
        rf"\b{_WINDOW}\W{{0,3}}(?:is |of )?(?:only |about )?\d[\d,_]*+k? ?tokens"
        r"|\btokens\W{1,3}(?:but )?(?:the )?(?:model'?s? )?context(?: length| window| size)? (?:is|holds)\b",
        f"{KILO} {OPENCLAW}",
    ),
    _row(
        "overflow",
        rf"\bcontext limit is {SIZE}|n_ctx(?:_slot)?\W{{1,4}}\d|slot context:|cannot truncate prompt",
        OPENCLAW,
    ),
    _row(
        "overflow",
        r"(?<![a-z])(?:prompt|input|context|conversation|request|message|tokens in the request)s?"
        r"(?:[ _](?:tokens?|length|size|context|window|history|text|content|body|entity|payload"
        r"|you submitted)){0,3}"
        r"(?: \([^()\n]{1,40}\))?[ _]?(?:is |are |was )?too[ _]?(?:long|large|big)(?:\b|error|exception)",
        f"{ANTHROPIC} {PI} {VLLM} https://docs.z.ai/api-reference/api-code",
    ),
    _row(
        "overflow",
        r"\b(?:request|prompt|content|payload)[ _]too[ _]large\b|content_too_large",
        f"{ANTHROPIC} {KIMI}",
    ),
    _row("overflow", r"\A\W{0,2}(?:error code:? )?4(?:00|13) ?(?:status code)? ?\(no body\)", f"{PI} {OPENCODE}"),
    _row(
        "overflow",
        r"\brequest (?:payload size )?exceeds the (?:maximum (?:size|allowed number of bytes)|limit)"
        r"|too many total text bytes",
        f"{ANTHROPIC} {KIMI}",
    ),
    _row("overflow", rf"\btokens?\b{_WITHIN}\b{_EXCEED}\b", f"{PI} {LITELLM} {OPENCLAW}"),
    _row("overflow", r"(?:prompt|input)_tokens_exceeded|tokens?_(?:quantity_exceeded|limit_reached)", PI),
    _row(
        "overflow",
        r"\btokens? limit\b(?: (?:is |was |has been )?reached| for this model)|status_msg\W{1,5}token limit\b",
        f"{OPENCLAW} {CLINE} {LETTA}",
    ),
    _row(
        "overflow",
        rf"\b{_EXCEED}\b{_WITHIN}\b(?:tokens?|max_model_len|max_seq_len|max_num_tokens)\b",
        f"{PI} {KIMI}",
    ),
    _row(
        "overflow",
        rf"\b(?:prompt|input|request|sequence|conversation|content)s?\b{_WITHIN}\b{_EXCEED}\b"
        r"(?: the)?(?: model'?s?)? (?:length|(?:max(?:imum)?|model|allowed)\b[^.;\n]{0,30}?\blength)",
        f"{PI} {HERMES} {TENSORRT}",
    ),
    _row("overflow", r"conversation length exceeded|reached its conversation limit", KIMI),
    _row(
        "overflow",
        rf"\b(?:prompt|input|context|sequence|tokens in (?:the )?request|total tokens)\b{_WITHIN}\b{_MORE} than\b"
        r"[^.;\n]{0,40}?(?:max|length|limit|tokens|allowed)",
        f"{PI} {OPENCODE} {VLLM}",
    ),
    _row(
        "overflow",
        rf"(?:\b(?:prompt|input)_?(?:tokens?\b|s\b)|sum of){_WITHIN}"
        r"must (?:be|have|not) ?(?:<=?|less|fewer|at most|no more|exceed|smaller)",
        LITELLM,
    ),
    _row(
        "overflow", rf"input tokens?{_WITHIN}\b(?:above|over) the limit|input token count is {SIZE} but", HERMES
    ),
    _row(
        "overflow",
        r"\bmax(?:imum)? (?:allowed |supported )?(?:prompt|input|model|sequence)(?: tokens?)?"
        r" (?:length|limit|tokens|size)\b",
        PI,
    ),
    _row("overflow", r"too many (?:input |prompt |total )?tokens", f"{COHERE} {PI}"),
    _row(
        "overflow",
        r"reduce (?:the (?:length|size) of )?(?:the |your )?(?:messages|input|prompt|conversation|context)\b",
        f"{OPENAI} {PI}",
    ),
    _row(
        "overflow",
        rf"\b(?:prompt|input|sequence|request)s?\b{_WITHIN}\b{_EXCEED} (?:the )?\(?\d[\d,.]*+"
        r"(?! ?(?:m?s|sec\w*|min\w*|hours?)\b)",
        PI,
    ),
    _row("overflow", r"(?:prompt|input|context) ?tokens? ?>=? ?\d|too (?:long|large):? \(?\d[\d,]*+ tokens", PI),
    _row(
        "overflow",
        rf"\b(?:requested|has|contains) \d[\d,]*+ tokens\b{_WITHIN}\bmodel\b[^.;\n]{{0,20}}?\bsupports?\b"
        rf"|\b(?:requested|prompt is) \d[\d,]*+ tokens\b{_WITHIN}\bmax(?:imum)?\b"
        r"|prompt is \d[\d,]*+ tokens long|(?:use|using|provide) a shorter (?:prompt|input)|ran out of room in",
        OPENCLAW,
    ),
    _row("overflow", r"tokens to keep from the initial prompt|to keep the first \d+ tokens|n_keep", PI),
    _row("overflow", r"range of input length should be", DASHSCOPE),
    _row(
        "overflow",
        r"(?:above|over|beyond) the (?:model'?s )?(?:max(?:imum)? )?(?:context|(?:input )?token limit)\b",
        CLINE,
    ),
    _row(
        "overflow",
        r"上下文(?:长度|窗口)?(?:过长|超)|超[出过](?:了)?(?:模型)?(?:的)?最大(?:上下文|长度|输入| ?token)"
        r"|(?:输入|内容)(?:长度|内容)?(?:过长|超)|请求过大|prompt ?超长|超出上下文|token数量超|请压缩上下文",
        f"{OPENCLAW} {HERMES}",
    ),
    _row(
        "transient",
        r"timed? ?out|connection|temporar|unavailable|\b(?:500|502|503|504)\b",
        OPENAI,
    ),
    _row(
        "malformed",
        r"tool_call_id|tool_use_id|must be followed by tool|unexpected role|roles must alternate|invalid_request",
        f"{OPENAI} {ANTHROPIC}",
    ),
)


Size = Literal["limit", "requested", "input", "output"]
MINIMUM: Final[dict[Size, int]] = {"limit": MINIMUM_LIMIT_TOKENS, "requested": 1, "input": 1, "output": 1}


class _Sizes(NamedTuple):
    """The meaning of each group of a pattern, in its order."""

    pattern: re.Pattern[str]
    groups: tuple[Size, ...]


def _sizes(pattern: str, *groups: Size) -> _Sizes:
    return _Sizes(re.compile(pattern.replace("#", SIZE), re.IGNORECASE), groups)


_LONGER: Final = rf"(?:{_EXCEED}|cannot exceed|is (?:longer|greater|larger|more|too long|above)|over|more than)"
SIZES: Final = (
    _sizes(r"# \+ # > #", "input", "output", "limit"),
    _sizes(r"# > # - #", "output", "limit", "input"),
    _sizes(r"#(?: tokens?)? >=? #", "requested", "limit"),
    _sizes(r"(?:given|received):? # \S{1,20} tokens and #", "input", "output"),
    _sizes(r"n_prompt_tokens\W{1,4}#", "requested"),
    _sizes(r"n_ctx(?:_slot)?\W{1,4}#", "limit"),
    _sizes(rf"#(?: tokens?)?\)?,?(?: which)? {_LONGER}\b", "requested"),
    _sizes(r"total of(?: at least)? #", "requested"),
    _sizes(r"requested # output tokens", "output"),
    _sizes(r"tokens['\"`]* is too large: #", "output"),
    _sizes(r"#(?: tokens)? (?:in|for) the (?:completion|output)", "output"),
    _sizes(
        r"(?:resulted in|requested(?: about)?:?|contains(?: at least)?|(?:request|prompt) has|you passed|received"
        r"|given:|current length is|prompt=|token count(?: is|:)|keep the first|initial prompt|prompt_tokens"
        r"|n_keep:|too long:|input tokens?) ?\(?#",
        "requested",
    ),
    _sizes(r"max_(?:num_tokens|model_len|seq_len)\W{1,3}#", "limit"),
    _sizes(r"supports? (?:only )?(?:up to )?#", "limit"),
    _sizes(r"length is just #", "limit"),
    _sizes(r"should be \[\d{1,3}, ?#\]", "limit"),
    _sizes(
        r"\b(?:context|model)['s]{0,2}[ _](?:length|size|window|limit|max(?:imum)?)(?: size| limit)?[\s:(=]{1,3}"
        r"(?:is |of )?(?:only |about )?\(?#",
        "limit",
    ),
    _sizes(
        r"\bmax(?:imum)?(?: allowed| number of| total)?(?: (?:prompt|input|model|sequence|context|message))?"
        r"(?: tokens?)?(?: (?:length|size|limit|allowed))?[\s:(]{1,3}(?:is |of )?\(?#",
        "limit",
    ),
    _sizes(r"# (?:tokens? )?max(?:imum)? context", "limit"),
    _sizes(r"\b(?<!exceeds )limit(?: (?:is|of))?[\s:(]{1,3}#", "limit"),  # MiniMax: "exceeds limit (CODE)"
    _sizes(r"\blimit of #", "limit"),
    _sizes(r"#(?: tokens?)? (?:token )?limit\b", "limit"),
    _sizes(
        r"must (?:be|have) (?:<=|at most|(?:less|fewer|smaller) than(?: or equal to)?) #",
        "limit",
    ),
    _sizes(rf"\b{_EXCEED} \(?#", "limit"),
)
"""The sizes in overflow errors, most specific first: the first pattern that reports a size decides it."""


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The kind of a provider's error; for an overflow the tokens that it reports."""

    kind: ErrorKind
    limit_tokens: int | None = None
    requested_tokens: int | None = None
    """Input and requested output together, if the error reports both."""
    output_tokens: int | None = None
    """Requested output."""


def classify_error(error: object) -> ProviderError:
    """Classify a provider's error; None means an overflow that the caller detected itself."""
    if error is None:
        return ProviderError("overflow")
    text = _text_of(error)
    kind: ErrorKind = next((wording.kind for wording in WORDINGS if wording.pattern.search(text)), "unknown")
    if kind == "overflow":
        return _overflow(text)
    if isinstance(error, TimeoutError | ConnectionError):
        return ProviderError("transient")
    return ProviderError(kind)


def _text_of(error: object) -> str:
    """Return the message of an error, then its class, status and code."""
    message = str(error)[:MAXIMUM_CHARS]
    if not isinstance(error, BaseException):
        return message
    status, code = getattr(error, "status_code", None), getattr(error, "code", None)
    return f"{message} ({type(error).__name__}, status {status}, code {code})"


def _overflow(text: str) -> ProviderError:
    text = re.sub(r"\A\W{0,2}[45]\d\d\b", "", text)  # the status is not a size
    reported: dict[Size, int] = {}
    if "bytes" not in text:
        for pattern, groups in SIZES:
            if match := pattern.search(text):
                sizes = zip(groups, map(_int, match.groups()), strict=True)
                reported = {**{group: size for group, size in sizes if size >= MINIMUM[group]}, **reported}
    limit, output = reported.get("limit"), reported.get("output")
    if limit and output and output >= limit:
        return ProviderError("unknown")  # a smaller window does not help: the output alone does not fit
    requested = reported.get("requested")
    if "input" in reported:
        requested = reported["input"] + (output or 0)
    if limit and requested and requested <= limit:
        requested = None
    return ProviderError("overflow", limit, requested, output)


def _int(digits: str) -> int:
    """Return the number, or 0 if it is out of range."""
    plain = digits.replace(",", "").replace("_", "")
    value = int(plain) if len(plain) <= MAXIMUM_DIGITS else 0
    return value if value <= MAXIMUM_TOKENS else 0
