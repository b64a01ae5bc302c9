"""Estimates for models whose tokenizer is not public: Claude, Gemini and all others.

o200k counts times a ratio a model family and kind of content. The ratios are unofficial, from
reconstructions of the vocabularies, so every count is labelled `estimate`; calibration against the
provider's usage corrects what is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowpane.models.tokens.characters import estimate_by_characters, looks_like_code

if TYPE_CHECKING:
    from windowpane.core.vocabulary import CountSource
    from windowpane.models.tokens.tiktoken_counter import Vocabulary


@dataclass(frozen=True, slots=True)
class Family:
    """Models that share a tokenizer, relative to o200k."""

    name: str
    prose_ratio: float
    """Tokens a token of o200k, in English prose."""
    code_ratio: float
    """The same in code, JSON and paths."""


CLAUDE = Family("claude", prose_ratio=1.10, code_ratio=1.23)
"""Claude up to 4.6."""
CLAUDE_4_7 = Family("claude-4.7", prose_ratio=1.46, code_ratio=1.58)
"""Claude 4.7 and later."""
GEMINI = Family("gemini", prose_ratio=1.05, code_ratio=1.16)
"""Gemini and Gemma, by the published vocabulary of Gemma 3."""
OTHER = Family("other", prose_ratio=1.0, code_ratio=1.0)
"""Everything else: no measurement, so o200k's own count."""

_CLAUDE = re.compile(r"(?<![a-z0-9])(?:claude|sonnet|opus|haiku)(?![a-z])")
_GEMINI = re.compile(r"(?<![a-z0-9])(?:gemini|gemma)(?![a-z])")
_VERSION = re.compile(r"(?<![0-9.])(\d{1,2})(?:[-.](\d{1,2}))?(?![0-9.])")
"""`4-5` in `claude-sonnet-4-5-20250929`, `5` in `claude-opus-5`; a date has too many digits."""


def family_of(model: str) -> Family:
    """The family of *model* by its name; `OTHER` when the name tells none."""
    name = model.lower()
    if _CLAUDE.search(name):
        version = _VERSION.search(name)
        newer = version is not None and (int(version[1]), int(version[2] or 0)) >= (4, 7)
        return CLAUDE_4_7 if newer else CLAUDE
    return GEMINI if _GEMINI.search(name) else OTHER


class HeuristicCounter:
    """Estimated counts for one model family."""

    def __init__(self, family: Family, vocabulary: Vocabulary) -> None:
        self.family = family
        self._vocabulary = vocabulary

    @property
    def source(self) -> CountSource:
        """Always `estimate`."""
        return "estimate"

    def ready(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the estimate rests on o200k instead of characters, at most *timeout_seconds*."""
        return self._vocabulary.wait(timeout_seconds)

    def count(self, text: str) -> int:
        """Tokens of *text*, estimated; 0 for the empty string only."""
        if not text:
            return 0
        base = self._vocabulary.count(text)
        if base is None:
            base = estimate_by_characters(text)
        ratio = self.family.code_ratio if looks_like_code(text) else self.family.prose_ratio
        return max(1, round(base * ratio))
