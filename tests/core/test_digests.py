"""Digests of texts, keyed by the store that has them."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from windowpane.core.digests import keyed_digester


@pytest.mark.parametrize("text", ["", "text", "\u2603", "half a pair \ud800"])
def test_a_digest_is_keyed_blake2b_of_the_text(text: str) -> None:
    digest = keyed_digester(b"key")

    assert digest(text) == blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=b"key").hexdigest()
