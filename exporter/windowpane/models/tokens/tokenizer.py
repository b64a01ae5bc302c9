"""The tokenizers that count: tiktoken, and toktok for large amounts of text; both count the same.

toktok loads in the same time and memory as tiktoken and counts nine times as fast, but no other thread of the
process runs while it loads, so that it is not for the process of an agent. It is the extra `bulk`, because its
wheels do not cover every system that tiktoken's do (musl).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from windowpane.models.tokens.encodings import load_encoding

if TYPE_CHECKING:
    from windowpane.models.tokens.encodings import EncodingSpec

_log: Final = logging.getLogger(__name__)

TokenCount = Callable[[str], int]
"""Counts the tokens of a piece of text of moderate length, special tokens as ordinary text."""

CHECKED_TEXT: Final = "It'\u017f 12345 of\n\n  \u6f22\u5b57, na\u00efve <|endoftext|> fooBar_baz/qux.py\r\n"
"""Counted after loading: what counts it differently is another library of the same name, or a changed one."""


def load_for_bulk(spec: EncodingSpec) -> TokenCount:
    """Return the faster installed tokenizer; other threads may stand still for the 0.5 s that it takes.

    Raises `VocabularyError`, only without toktok, for damaged package data.
    """
    return _load_toktok(spec) or load_beside_agent(spec)


def load_beside_agent(spec: EncodingSpec) -> TokenCount:
    """Return the tokenizer that loads beside other threads; takes 0.2 to 0.5 s: not for the agent's thread.

    Raises `VocabularyError` for damaged package data.
    """
    encode = load_encoding(spec).encode_ordinary
    return lambda text: len(encode(text))


def _load_toktok(spec: EncodingSpec) -> TokenCount | None:
    """Return None where toktok is not installed or counts differently.

    Its public function for batches takes 60 microseconds per call, longer than most texts take to count.
    """
    try:
        from toktok import _encoding

        count: TokenCount = _encoding(spec.name).count
        counted = count(CHECKED_TEXT)
    except ImportError:
        return None
    except Exception:  # noqa: BLE001  # tiktoken counts the same
        _log.exception("toktok cannot be used, tiktoken counts")
        return None
    if counted != spec.checked_tokens:
        _log.warning("toktok counts %d tokens instead of %d, tiktoken counts", counted, spec.checked_tokens)
        return None

    def count_any(text: str) -> int:
        try:
            return count(text)
        except UnicodeEncodeError:  # half of a surrogate pair, replaced as tiktoken does
            return count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    return count_any
