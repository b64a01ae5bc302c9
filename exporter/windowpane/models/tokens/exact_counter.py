"""Exact token counts of OpenAI's encodings, whose vocabularies are loaded in the background.

Loading takes 0.2 to 0.5 s, too long for an agent's first hook. So it runs on a daemon thread, and until it is
done the counter estimates from characters and labels the count an estimate (`source`). A caller that needs the
same count on every run, such as an importer, waits first.

tiktoken counts, and toktok large amounts of text; both count the same. toktok loads in the same time and memory
and counts nine times as fast, but no other thread of the process runs while it loads, so that it is not for the
process of an agent. It is the extra `bulk`, because it has no wheels for some systems that tiktoken has (musl).
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from windowpane.effects.forks import FORK_SECONDS, follow_forks
from windowpane.models.tokens.characters import estimate_by_characters
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, load_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowpane.core.vocabulary import CountSource

_log = logging.getLogger(__name__)

PIECE_CHARACTERS = 65_536
"""Longest text passed to tiktoken at once.

It splits text with a backtracking regular expression whose stack overflows, as a panic that no `except
Exception` catches, on a run of about a million blanks (500,000 work); and merging a run of many million letters
takes seconds.
"""

_SAFE_CUT = re.compile(r"\n(?=[A-Za-z0-9])")
"""Both encodings end a token after a line feed that a letter or digit follows: no pattern that matches letters or
digits matches a line feed before them."""


TokenCount = Callable[[str], int]
"""Counts the tokens of a piece of text of moderate length, special tokens as ordinary text."""

CHECKED_TEXT = "It'\u017f 12345 of\n\n  \u6f22\u5b57, na\u00efve <|endoftext|> fooBar_baz/qux.py\r\n"
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


class CountCache:
    """Token counts by hash of the content, bounded in entries, so a block that stays is tokenized once.

    Two generations approximate a least-recently-used order: a hit in the old one moves to the young one, and a
    full young one becomes the old. No lock is needed, so a fork cannot inherit a held one: every step is one
    dict operation, and a race costs at most a count made twice.
    """

    def __init__(self, *, max_entries: int = 65_536) -> None:
        self._generation_size = max(1, max_entries // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: int) -> int | None:
        """Return the count stored under *key*, or None."""
        count = self._young.get(key)
        if count is None:
            count = self._old.get(key)
            if count is not None:
                self.put(key, count)
        return count

    def put(self, key: int, count: int) -> None:
        """Store *count*; the least recently used entries are removed first."""
        young = self._young
        if len(young) >= self._generation_size:
            self._old, young = young, {}
            self._young = young
        young[key] = count


def split_text(text: str) -> Iterator[str]:
    """Yield *text* in order, in pieces of at most `PIECE_CHARACTERS`.

    Each cut is where every tokenization ends a token, if the second half of a piece has such a position. A piece
    without one is cut at its end, which can change the sum by a few tokens per cut.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = start + PIECE_CHARACTERS
        cut = _SAFE_CUT.search(text, start + PIECE_CHARACTERS // 2, end)
        end = cut.end() if cut else end
        yield text[start:end]
        start = end
    yield text[start:]


class Vocabulary:
    """One encoding, shared by all counters of the process that use it."""

    def __init__(self, spec: EncodingSpec, *, load: Callable[[EncodingSpec], TokenCount] | None = None) -> None:
        self._spec = spec
        self._load_beside_agent = load or load_beside_agent
        self._load_for_bulk = load or load_for_bulk
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        """Guards `_thread`, which is set only once it runs, so that it can be joined."""
        self._cache = CountCache()
        self._count: TokenCount | None = None
        """Counts the tokens of a piece; None until loaded."""

    @property
    def loaded(self) -> bool:
        """True once counts are exact."""
        return self._count is not None

    def start(self, *, for_bulk: bool = False) -> None:
        """Load on a daemon thread unless it is loaded, loading or has failed, or the interpreter shuts down.

        With *for_bulk* counting is faster, but the other threads of the process may stand still meanwhile.
        """
        load = self._load_for_bulk if for_bulk else self._load_beside_agent
        with self._starting:
            if self.loaded or self._error or (self._thread and self._thread.is_alive()):
                return
            thread = threading.Thread(
                target=self._load_quietly, args=(load,), name="windowpane-vocabulary", daemon=True
            )
            try:
                _started.add(self)
                thread.start()
            except RuntimeError:  # no thread can be started any more: counts stay estimates
                return
            self._thread = thread

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Start loading and wait at most *timeout_seconds*; returns whether counts are exact."""
        self.start()
        if self._thread and not self.loaded:
            self._thread.join(timeout_seconds)
        return self.loaded

    def require(self) -> None:
        """Load for bulk and wait for it. Raises the error of the loading, such as `VocabularyError`."""
        self.start(for_bulk=True)
        if not self.wait() and self._error:
            raise self._error

    def count(self, text: str) -> int | None:
        """Return the tokens of *text*, special tokens counted as ordinary text; None until loaded."""
        count_piece = self._count
        if count_piece is None:
            return None
        key = hash(text)  # of 64 bits, keyed by the process; a string remembers its own
        count = self._cache.get(key)
        if count is None:
            count = sum(map(count_piece, split_text(text)))
            self._cache.put(key, count)
        return count

    def before_fork(self) -> None:
        """Wait for the loading: a child would inherit a half imported tokenizer, and now shares its memory."""
        self.wait(FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Do nothing."""

    def after_fork(self) -> None:
        """Replace the lock in a forked child: another thread may have held it."""
        self._starting = threading.Lock()

    def _load_quietly(self, load: Callable[[EncodingSpec], TokenCount]) -> None:
        try:
            self._count = load(self._spec)
        except Exception as error:  # noqa: BLE001  # the agent continues with estimates
            self._error = error
            _log.exception("token counts stay estimates: %s could not be loaded", self._spec.name)


_started: weakref.WeakSet[Vocabulary] = weakref.WeakSet()
follow_forks(_started)


@cache
def o200k() -> Vocabulary:
    """Return the process's o200k_base vocabulary."""
    return Vocabulary(O200K)


@cache
def cl100k() -> Vocabulary:
    """Return the process's cl100k_base vocabulary."""
    return Vocabulary(CL100K)


class ExactCounter:
    """Counts for a model with a public tokenizer: exact once the vocabulary is loaded.

    Read `source` before `count`: if loading ends between the two, an exact count is labeled an estimate, never
    the reverse.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def source(self) -> CountSource:
        """`exact` once the vocabulary is loaded, `estimate` before."""
        return "exact" if self._vocabulary.loaded else "estimate"

    def ready(self, timeout_seconds: float | None = None) -> bool:
        """Wait at most *timeout_seconds* until counts are exact; returns whether they are."""
        return self._vocabulary.wait(timeout_seconds)

    def count(self, text: str) -> int:
        """Return the tokens of *text*; 0 for the empty string."""
        if not text:
            return 0
        exact = self._vocabulary.count(text)
        return estimate_by_characters(text) if exact is None else exact
