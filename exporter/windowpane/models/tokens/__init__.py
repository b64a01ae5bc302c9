"""Token counts: exact for OpenAI's models, labeled estimates for all others, never over a network."""

from __future__ import annotations

from windowpane.models.tokens.encodings import CL100K, encoding_of
from windowpane.models.tokens.exact_counter import ExactCounter, Vocabulary, cl100k, o200k
from windowpane.models.tokens.heuristic import HeuristicCounter, family_of, image_tokens

__all__ = ["ModelCounter", "counter_for", "image_tokens", "load_for_bulk", "o200k"]

ModelCounter = ExactCounter | HeuristicCounter
"""A `TokenCounter` with `ready`, which waits until its vocabulary is loaded."""


def load_for_bulk() -> None:
    """Start to load the vocabulary of most models for bulk: in a process that no agent runs in."""
    o200k().start(for_bulk=True)


def counter_for(model: str, *, wait: bool = False) -> ModelCounter:
    """Return a counter for *model*; the vocabulary it needs starts to load in the background.

    Until it is loaded, counts are estimated from characters. With *wait* the vocabulary is loaded first, so the
    same text has the same count on every run, which imports depend on. Raises `VocabularyError`, only with
    *wait*, for damaged package data.
    """
    spec = encoding_of(model)
    vocabulary: Vocabulary = cl100k() if spec is CL100K else o200k()
    if wait:
        vocabulary.require()
    else:
        vocabulary.start()
    return HeuristicCounter(family_of(model), vocabulary) if spec is None else ExactCounter(vocabulary)
