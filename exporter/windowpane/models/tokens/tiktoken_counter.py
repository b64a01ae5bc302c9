"""Token counts by OpenAI's own tokenizer, loaded in the background.

Loading costs 0.2 to 0.4 s, which an agent's first hook must not pay. So it starts on a daemon thread, and
until it is done the counter estimates from characters and says so (`source`). Whoever needs the same number
on every run (an importer) waits first.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING

from windowpane.models.tokens.cache import CountCache, content_key
from windowpane.models.tokens.characters import estimate_by_characters
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_encoding
from windowpane.models.tokens.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    import tiktoken

    from windowpane.core.vocabulary import CountSource

_log = logging.getLogger(__name__)


class Vocabulary:
    """One encoding, shared by all counters of the process that need it."""

    def __init__(
        self, spec: EncodingSpec, *, load: Callable[[EncodingSpec], tiktoken.Encoding] = load_encoding
    ) -> None:
        self._spec = spec
        self._load = load
        self._encoding: tiktoken.Encoding | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        """Guards `_thread`, which is set only once it runs: whoever sees it may join it."""
        self._cache = CountCache()

    @property
    def loaded(self) -> bool:
        """Whether counts are exact now."""
        return self._encoding is not None

    def start(self) -> None:
        """Load on a daemon thread unless that is done, under way or has failed."""
        with self._starting:
            if self.loaded or self._error or (self._thread and self._thread.is_alive()):
                return
            # tiktoken imports this, and it registers fork hooks: not while a fork waits for the loading to end.
            import concurrent.futures.thread  # noqa: F401

            thread = threading.Thread(target=self._load_quietly, name="windowpane-vocabulary", daemon=True)
            _started.add(self)
            thread.start()
            self._thread = thread

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Start loading and wait for it, at most *timeout_seconds*; True when counts are exact."""
        self.start()
        if self._thread and not self.loaded:
            self._thread.join(timeout_seconds)
        return self.loaded

    def require(self) -> None:
        """Wait until loaded. Raises what loading raised, such as `VocabularyError`."""
        if not self.wait() and self._error:
            raise self._error

    def count(self, text: str) -> int | None:
        """Tokens of *text* with special tokens as ordinary text; None while not loaded."""
        encoding = self._encoding
        if encoding is None:
            return None
        key = content_key(text)
        count = self._cache.get(key)
        if count is None:
            count = sum(len(encoding.encode_ordinary(piece)) for piece in pieces(text))
            self._cache.put(key, count)
        return count

    def after_fork(self) -> None:
        """In a child: another thread may have held the lock when it was made."""
        self._starting = threading.Lock()

    def _load_quietly(self) -> None:
        try:
            self._encoding = self._load(self._spec)
        except Exception as error:  # noqa: BLE001 (whatever went wrong, the agent goes on with estimates)
            self._error = error
            _log.exception("token counts stay estimates: %s could not be loaded", self._spec.name)


_started: weakref.WeakSet[Vocabulary] = weakref.WeakSet()
_FORK_WAIT_SECONDS = 2.0


def _finish_loading() -> None:
    """Let loading end before a fork: a child would inherit a half imported tokenizer and no thread to finish it.

    Afterwards the children share the vocabulary's memory.
    """
    for vocabulary in tuple(_started):
        vocabulary.wait(_FORK_WAIT_SECONDS)


def _release() -> None:
    for vocabulary in tuple(_started):
        vocabulary.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_loading, after_in_child=_release)


@cache
def o200k() -> Vocabulary:
    """The process's o200k_base."""
    return Vocabulary(O200K)


@cache
def cl100k() -> Vocabulary:
    """The process's cl100k_base."""
    return Vocabulary(CL100K)


class TiktokenCounter:
    """Counts for a model whose tokenizer is known: exact once the vocabulary is loaded.

    Read `source` before `count`: loading may end between the two, and then an exact count is only labelled
    an estimate, never the other way round.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def source(self) -> CountSource:
        """`exact` when the vocabulary is loaded, before that `estimate`."""
        return "exact" if self._vocabulary.loaded else "estimate"

    def ready(self, timeout_seconds: float | None = None) -> bool:
        """Wait until counts are exact, at most *timeout_seconds*; False when they are not."""
        return self._vocabulary.wait(timeout_seconds)

    def count(self, text: str) -> int:
        """Tokens of *text*; 0 for the empty string."""
        if not text:
            return 0
        exact = self._vocabulary.count(text)
        return estimate_by_characters(text) if exact is None else exact
