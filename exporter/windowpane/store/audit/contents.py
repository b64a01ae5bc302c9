"""Comparison of the captured texts with the digests that events know them by.

A digest is that of the text before secrets were replaced in it, with the key of the store. So three kinds of
texts cannot be compared: those with a replacement, those whose stream has digests with the key of another host
or process, and results of tools that a live agent records, whose digest may include media.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final

from windowpane.core.digests import keyed_digester
from windowpane.store import captured_content
from windowpane.store.database import Database

_CONTENTS: Final = "SELECT digest, chars, preview, body FROM contents ORDER BY digest"
_KEY: Final = "SELECT digest_key FROM store"
_REPLACEMENT: Final = "[redacted:"
_CUT_SECRET: Final = re.compile(r"\[redacted:\w+\]\Z")
"""The text after this one has lost the rest of the secret, and shows no replacement itself."""


class ContentAudit:
    """Sorts the captured texts by their digests; `add` is passed each block that names one."""

    def __init__(self, connection: Database) -> None:
        (key,) = connection.execute(_KEY).fetchone() or (b"",)
        self._connection = connection
        self._digest = keyed_digester(key)
        self._right, self._cut, self._other = set[str](), set[str](), set[str]()
        self._damaged: list[str] = []
        self._own_streams = set[str]()
        self._suspects: dict[str, str] = {}
        """Stream by digest."""
        self._before: tuple[str, str] = ("", "")
        """Stream and digest of the block before."""
        for digest, chars, preview, body in connection.execute(_CONTENTS):
            text = _text(body)
            if text is None or (chars, preview) not in _descriptions(text):
                self._damaged.append(str(digest))
            elif self._digest(text) == digest:
                self._right.add(digest)
            elif _CUT_SECRET.search(text):
                self._cut.add(digest)
            elif _REPLACEMENT not in text:
                self._other.add(digest)

    def add(self, stream: str, digest: str, *, tool: str | None = None, is_comparable: bool = True) -> None:
        """Add the next block of a stream; *tool* is the name that a tool call has in its digest."""
        if tool is not None and digest in self._other and self._is_call_of(tool, digest):
            self._other.discard(digest)
            self._right.add(digest)
        if digest in self._right:
            self._own_streams.add(stream)
        elif digest in self._other and is_comparable and not self._continues_secret(stream):
            self._suspects.setdefault(digest, stream)
        self._before = stream, digest

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the texts, once every block was added."""
        for digest in self._damaged:
            yield f"the captured text {digest} is damaged"
        for digest, stream in self._suspects.items():
            if stream in self._own_streams:
                yield f"the captured text {digest} is not that of its digest"

    def _is_call_of(self, tool: str, digest: str) -> bool:
        text = captured_content.read(self._connection, digest)
        return self._digest(f"{tool}\0{text}") == digest

    def _continues_secret(self, stream: str) -> bool:
        return self._before[0] == stream and self._before[1] in self._cut


def _text(body: object) -> str | None:
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass")  # type: ignore[arg-type]  # or any value
    except (zlib.error, UnicodeDecodeError, TypeError):
        return None


def _descriptions(text: str) -> tuple[tuple[int, str], ...]:
    """Return number of characters and preview, as SQLite and as PostgreSQL holds them."""
    preview = captured_content.preview(text)
    return (len(text), preview), (len(text), preview.replace("\0", "\N{REPLACEMENT CHARACTER}"))
