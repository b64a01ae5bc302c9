"""What became of one block when another stands in its place."""

from __future__ import annotations

import pytest

from windowpane.observer.diff import TrackedBlock, align
from windowpane.observer.messages import BlockSpec, Key


def said(text: str) -> BlockSpec:
    return BlockSpec("user_message", text, Key("user_message", text))


@pytest.mark.parametrize(
    ("text", "rewritten"), [("a short form", True), ("something else that is longer than what it was", False)]
)
def test_only_what_is_no_longer_than_before_is_the_same_thing_rewritten(text: str, rewritten: bool) -> None:
    """A shorter text in a message's place stands for it; a longer one is another message."""
    old = TrackedBlock(said("the message as it was at first"), "b1")
    found = align([old], [said(text)], size=lambda spec: len(spec.text or ""))

    assert ([rewrite.tracked for rewrite in found.rewritten] == [old]) == rewritten
    assert (found.dropped, found.added) == (([], []) if rewritten else ([old], [0]))
