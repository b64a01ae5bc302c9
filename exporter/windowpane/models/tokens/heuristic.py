"""Estimates for models whose tokenizer is not public: Claude, Gemini and all others.

An estimate is the o200k count times a ratio per tokenizer family and kind of content. The ratios are unofficial,
from reconstructions of the vocabularies, so every count is labeled `estimate`; calibration against the provider's
usage corrects the rest. Images have a flat cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowpane.models.tokens.characters import estimate_by_characters, looks_like_code
from windowpane.models.tokens.encodings import encoding_of

if TYPE_CHECKING:
    from windowpane.core.vocabulary import CountSource
    from windowpane.models.tokens.exact_counter import Vocabulary


@dataclass(frozen=True, slots=True)
class TokenizerFamily:
    """Models with the same tokenizer, relative to o200k."""

    name: str
    prose_ratio: float
    """Tokens per o200k token in English prose."""
    code_ratio: float
    """Tokens per o200k token in code, JSON and paths."""


CLAUDE = TokenizerFamily("claude", prose_ratio=1.10, code_ratio=1.23)
"""Claude up to 4.6."""
CLAUDE_4_7 = TokenizerFamily("claude-4.7", prose_ratio=1.46, code_ratio=1.58)
"""Claude 4.7 and later."""
GEMINI = TokenizerFamily("gemini", prose_ratio=1.05, code_ratio=1.16)
"""Gemini and Gemma, by the published vocabulary of Gemma 3."""
OTHER = TokenizerFamily("other", prose_ratio=1.0, code_ratio=1.0)
"""All other models: not measured, so the o200k count."""

_CLAUDE = re.compile(r"(?<![a-z0-9])(?:claude|sonnet|opus|haiku)(?![a-z])")
_GEMINI = re.compile(r"(?<![a-z0-9])(?:gemini|gemma)(?![a-z])")
_VERSION = re.compile(r"(?<![0-9.])(\d{1,2})(?:[-.](\d{1,2}))?(?![0-9.])")
"""`4-5` in `claude-sonnet-4-5-20250929`, `5` in `claude-opus-5`; a date has too many digits."""


def family_of(model: str) -> TokenizerFamily:
    """Return the family of *model* by its name, by default `OTHER`."""
    name = model.lower()
    if _CLAUDE.search(name):
        version = _VERSION.search(name)
        newer = version is not None and (int(version[1]), int(version[2] or 0)) >= (4, 7)
        return CLAUDE_4_7 if newer else CLAUDE
    return GEMINI if _GEMINI.search(name) else OTHER


class HeuristicCounter:
    """Estimated counts for one tokenizer family."""

    def __init__(self, family: TokenizerFamily, vocabulary: Vocabulary) -> None:
        self.family = family
        self._vocabulary = vocabulary

    @property
    def source(self) -> CountSource:
        """Always `estimate`."""
        return "estimate"

    def ready(self, timeout_seconds: float | None = None) -> bool:
        """Wait at most *timeout_seconds* until estimates are based on o200k instead of characters."""
        return self._vocabulary.wait(timeout_seconds)

    def count(self, text: str) -> int:
        """Return the estimated tokens of *text*; 0 only for the empty string."""
        if not text:
            return 0
        base = self._vocabulary.count(text)
        if base is None:
            base = estimate_by_characters(text)
        ratio = self.family.code_ratio if looks_like_code(text) else self.family.prose_ratio
        return max(1, round(base * ratio))


IMAGE_TOKENS_CLAUDE = 1_600
"""Anthropic's vision guide: an image is scaled down to about 1,600 tokens at most (width × height / 750)."""
IMAGE_TOKENS_OPENAI = 765
"""A 1024 × 1024 image at high detail: 85 + 4 tiles × 170; OpenAI's images and vision guide, GPT-4o."""
IMAGE_TOKENS_GEMINI = 258
"""One tile of up to 768 × 768 pixels; Google's guide to tokens."""
IMAGE_TOKENS_OTHER = 1_000
"""Value that several agents assume; no provider states it."""


def image_tokens(model: str) -> int:
    """Return the flat cost in tokens of one image sent to *model*.

    Recordings seldom contain an image's size, so each counts as full-size: rather too many tokens than too few.
    The bytes of an image (base64) are never counted as text.
    """
    if encoding_of(model) is not None:
        return IMAGE_TOKENS_OPENAI
    family = family_of(model)
    if family in (CLAUDE, CLAUDE_4_7):
        return IMAGE_TOKENS_CLAUDE
    return IMAGE_TOKENS_GEMINI if family is GEMINI else IMAGE_TOKENS_OTHER
