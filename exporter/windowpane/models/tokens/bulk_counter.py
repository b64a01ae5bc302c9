"""Token counts for large imports by fastokens, which counts the same as tiktoken in a seventh of the time.

Its loading takes 1.5 s of processor time and 170 MB, five times and twice as much as tiktoken's, so it pays only
after much text. It is optional: without the library tiktoken counts everything.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windowpane.models.tokens.encodings import load_encoding, packaged_vocabulary

if TYPE_CHECKING:
    from windowpane.models.tokens.encodings import EncodingSpec

LONG_S: Final = "\u017f"
"""With `(?i:'s)` tiktoken also recognizes the contraction with a long s, fastokens does not."""


def load_bulk_counter(spec: EncodingSpec) -> Callable[[str], int] | None:
    """Return a function that counts the tokens of a piece of text; None where fastokens is not installed."""
    try:
        from fastokens import Tokenizer
    except ImportError:
        return None
    with tempfile.TemporaryDirectory(prefix="windowpane-") as folder:  # it reads the vocabulary from a file only
        file = Path(folder) / "vocabulary.tiktoken"
        file.write_bytes(gzip.decompress(packaged_vocabulary(spec.name)))
        encode = Tokenizer.from_tiktoken(str(file), spec.pattern, {}).encode_ordinary
    slow = load_encoding(spec).encode_ordinary

    def count(piece: str) -> int:
        if LONG_S in piece:
            return len(slow(piece))
        try:
            return len(encode(piece))
        except UnicodeEncodeError:  # half of a surrogate pair
            return len(slow(piece))

    return count
