"""The match of a block with the one now at its position."""

from __future__ import annotations

import pytest

from windowpane.observer.alignment import TrackedBlock, align
from windowpane.observer.block_specs import BlockSpec, Key


def message(text: str) -> BlockSpec:
    return BlockSpec("user_message", text, Key("user_message", text))


@pytest.mark.parametrize(
    ("text", "rewritten"), [("a short form", True), ("something else that is longer than what it was", False)]
)
def test_only_a_text_that_is_not_longer_counts_as_a_rewrite(text: str, rewritten: bool) -> None:
    """A shorter text at a message's position replaces it; a longer one is another message."""
    old = TrackedBlock(message("the message as it was at first"), "b1")
    found = align([old], [message(text)], size=lambda spec: len(spec.text or ""))

    assert ([rewrite.tracked for rewrite in found.rewritten] == [old]) == rewritten
    assert (found.dropped, found.added) == (([], []) if rewritten else ([old], [0]))
