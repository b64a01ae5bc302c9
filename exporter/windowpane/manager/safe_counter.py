"""A token counter that may be anyone's: what it raises or gets wrong costs accuracy, never content."""

from __future__ import annotations

import logging
import math

from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import CountSource

BYTES_PER_TOKEN = 4
_log = logging.getLogger(__name__)


class ContainedCounter:
    """Counts with another counter while that works, and by the text's size where it does not."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._failed = False

    @property
    def source(self) -> CountSource:
        """As the counter says; an estimate once it has failed."""
        return "estimate" if self._failed else self._counter.source

    def count(self, text: str) -> int:
        """Tokens of *text*, whole and never negative."""
        try:
            return _whole(self._counter.count(text))
        except Exception:  # noqa: BLE001 (a tokenizer may be the user's code, and ask a server)
            if not self._failed:
                self._failed = True
                _log.exception("the token counter failed; counting %d bytes a token instead", BYTES_PER_TOKEN)
            return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def _whole(tokens: float) -> int:
    """A count as it may be used; some counters give fractions. Raises `ValueError` for one below zero."""
    if tokens < 0:
        raise ValueError(f"a count of {tokens} tokens")
    return math.ceil(tokens)
