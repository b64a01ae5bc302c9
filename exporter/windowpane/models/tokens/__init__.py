"""Token counts: exact for OpenAI's models, labelled estimates for all others, never over a network."""

from __future__ import annotations

from windowpane.models.tokens.counters import ModelCounter, counter_for
from windowpane.models.tokens.media import image_tokens

__all__ = ["ModelCounter", "counter_for", "image_tokens"]
