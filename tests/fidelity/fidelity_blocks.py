"""Blocks for the tests of fidelity."""

from __future__ import annotations

from hashlib import blake2b

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block


def digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def block(
    text: str | None, content_type: ContentType = "assistant_response", *, tokens: int | None = None, n: int = 0
) -> Block:
    count = tokens if tokens is not None else max(1, len(text or "") // 4)
    return Block(
        f"b{n}", content_type, count, 1, f"b{n}", 1, digest(text or ""), len(text or ""), "estimate", text
    )
