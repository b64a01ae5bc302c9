"""Fences around the content of a prompt, so that nothing inside it can pass for an instruction."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def fenced(parts: Iterable[str]) -> str:
    """Return the parts between fences that nothing inside them can close: each is a digest of the content."""
    body = "\n\n".join(parts)
    mark = blake2b(body.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"<<<content {mark}\n{body}\n{mark} content>>>"
