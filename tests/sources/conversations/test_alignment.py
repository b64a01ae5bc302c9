"""The match of a block with the one now at its position."""

from __future__ import annotations

import pytest

from windowpane.models.wire.messages import BlockSpec, Key
from windowpane.sources.conversations.alignment import TrackedBlock, align


def message(text: str) -> BlockSpec:
    return BlockSpec("user_message", text, Key("user_message", text))


@pytest.mark.parametrize(
    ("text", "rewritten"), [("a short form", True), ("something else that is longer than what it was", False)]
)
def test_only_a_text_that_is_not_longer_counts_as_a_rewrite(text: str, rewritten: bool) -> None:
    old = TrackedBlock(message("the message as it was at first"), "b1")
    found = align([old], [message(text)], size=lambda spec: len(spec.text or ""))

    assert ([rewrite.tracked for rewrite in found.rewritten] == [old]) == rewritten
    assert (found.dropped, found.added) == (([], []) if rewritten else ([old], [0]))


@pytest.mark.parametrize(("arguments", "cut"), [(199, False), (120, False), (100, False), (99, True), (40, True)])
def test_a_tool_call_is_cut_below_half_of_its_length(arguments: int, *, cut: bool) -> None:
    key = Key("tool_call", "call_1")
    old = TrackedBlock(BlockSpec("tool_call", "a" * 200, key), "b1")
    found = align([old], [BlockSpec("tool_call", "b" * arguments, key)], size=lambda spec: len(spec.text or ""))

    assert found.retained == ({} if cut else {0: old})
    assert [rewrite.tracked for rewrite in found.rewritten] == ([old] if cut else [])
