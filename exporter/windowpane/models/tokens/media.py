"""Flat token costs of content that is not text.

A recording seldom keeps an image's size, so each counts as a full-size one: too much rather than too little,
and calibration corrects it. The bytes of an image (base64) are never counted as text.
"""

from __future__ import annotations

from windowpane.models.tokens.heuristic import CLAUDE, CLAUDE_4_7, GEMINI, family_of
from windowpane.models.tokens.openai_names import encoding_of

IMAGE_TOKENS_CLAUDE = 1_600
"""Anthropic scales an image down to about 1,600 tokens at most (width × height / 750); its vision guide."""
IMAGE_TOKENS_OPENAI = 765
"""A 1024 × 1024 image at high detail: 85 + 4 tiles × 170; OpenAI's images and vision guide, GPT-4o."""
IMAGE_TOKENS_GEMINI = 258
"""One tile of up to 768 × 768 pixels; Google's guide to tokens."""
IMAGE_TOKENS_OTHER = 1_000
"""No provider's figure: what several agents assume."""


def image_tokens(model: str) -> int:
    """Flat tokens of one image sent to *model*."""
    if encoding_of(model) is not None:
        return IMAGE_TOKENS_OPENAI
    family = family_of(model)
    if family in (CLAUDE, CLAUDE_4_7):
        return IMAGE_TOKENS_CLAUDE
    return IMAGE_TOKENS_GEMINI if family is GEMINI else IMAGE_TOKENS_OTHER
