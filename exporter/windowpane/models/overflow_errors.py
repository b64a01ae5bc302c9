"""Classification of provider errors, and the sizes that an overflow error states."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.limits import MAXIMUM_TOKENS

ErrorKind = Literal["overflow", "malformed", "transient", "unknown"]

_OVERFLOW: Final = re.compile(
    r"context[ _](?:length|window)[ _]?(?:exceeded|is exceeded)?|maximum context length|prompt is too long"
    r"|input is too long|exceeds? the (?:model's )?(?:context|maximum number of tokens)"
    r"|too many (?:input )?tokens"
    r"|input token count .{0,40}exceeds|reduce the length of the (?:messages|input)|exceed_context_size",
    re.IGNORECASE,
)
_MALFORMED: Final = re.compile(
    r"tool_call_id|tool_use_id|must be followed by tool|unexpected role|roles must alternate|invalid_request",
    re.IGNORECASE,
)
_TRANSIENT: Final = re.compile(
    r"rate.?limit|overloaded|timed? ?out|connection|temporar|unavailable|\b(?:429|500|502|503|504|529)\b",
    re.IGNORECASE,
)
MAXIMUM_DIGITS: Final = 20
_NUMBER: Final = r"(?<![\d,_])(\d[\d,_]*+)"
_PAIRS: Final = (
    re.compile(rf"{_NUMBER} tokens? > {_NUMBER} maximum"),
    re.compile(rf"{_NUMBER}\D{{1,40}}exceeds\D{{1,80}}{_NUMBER}", re.IGNORECASE),
)
"""Requested tokens, then the limit."""
_LIMIT: Final = re.compile(rf"maximum context length (?:is|of) {_NUMBER}", re.IGNORECASE)
_REQUESTED: Final = re.compile(rf"(?:resulted in|requested|you passed) {_NUMBER}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The kind of a provider's error; for an overflow the tokens that it states."""

    kind: ErrorKind
    limit_tokens: int | None = None
    requested_tokens: int | None = None


def classify_error(error: object) -> ProviderError:
    """Classify a provider's error; None means an overflow that the caller detected itself."""
    if error is None:
        return ProviderError("overflow")
    text = f"{getattr(error, 'code', '') or ''} {error}"[:4_000]
    if _OVERFLOW.search(text):
        return _sizes(text)
    if isinstance(error, TimeoutError | ConnectionError) or _TRANSIENT.search(text):
        return ProviderError("transient")
    return ProviderError("malformed" if _MALFORMED.search(text) else "unknown")


def _sizes(text: str) -> ProviderError:
    for pattern in _PAIRS:
        pair = pattern.search(text)
        if pair:
            return ProviderError("overflow", _int(pair[2]), _int(pair[1]))
    limit, requested = _LIMIT.search(text), _REQUESTED.search(text)
    return ProviderError("overflow", _int(limit[1]) if limit else None, _int(requested[1]) if requested else None)


def _int(digits: str) -> int | None:
    plain = digits.replace(",", "").replace("_", "")
    value = int(plain) if len(plain) <= MAXIMUM_DIGITS else 0
    return value if 1_000 <= value <= MAXIMUM_TOKENS else None
