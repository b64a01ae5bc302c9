"""The counter for a model."""

from __future__ import annotations

from windowpane.models.tokens.encodings import CL100K
from windowpane.models.tokens.heuristic import HeuristicCounter, family_of
from windowpane.models.tokens.openai_names import encoding_of
from windowpane.models.tokens.tiktoken_counter import TiktokenCounter, Vocabulary, cl100k, o200k

ModelCounter = TiktokenCounter | HeuristicCounter
"""A `TokenCounter` that can also be waited for."""


def counter_for(model: str, *, wait: bool = False) -> ModelCounter:
    """A counter for *model*; the vocabulary it needs starts loading in the background.

    Until that is done counts come from characters. With *wait* they never do: the same text then has the
    same count on every run, which imports depend on. Raises `VocabularyError` only with *wait*, when the
    package's data is damaged.
    """
    spec = encoding_of(model)
    vocabulary: Vocabulary = cl100k() if spec is CL100K else o200k()
    if wait:
        vocabulary.require()
    else:
        vocabulary.start()
    return HeuristicCounter(family_of(model), vocabulary) if spec is None else TiktokenCounter(vocabulary)
