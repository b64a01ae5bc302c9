"""Judges and compressors for `windowpane fidelity`: any callable that takes a system and a user prompt.

windowpane fidelity examples/fidelity/suite.yaml --judge examples/fidelity/judges.py:offline
windowpane fidelity examples/fidelity/suite.yaml --judge examples/fidelity/judges.py:openai
"""

from __future__ import annotations

from functools import cache

from windowpane import AnyLanguageModel, openai_model, string_match


def offline(system: str, user: str) -> str:
    """Judge by matching strings: shows that the suite works, without measuring recall."""
    return string_match(system, user)


offline.name = "string-match (no model)"  # type: ignore[attr-defined]  # what the report calls it


def openai(system: str, user: str) -> object:
    """Judge by a model; use another one than the compressor, which would judge its own summaries."""
    return _model()(system, user)


@cache
def _model() -> AnyLanguageModel:
    return openai_model(model="gpt-5-mini")
