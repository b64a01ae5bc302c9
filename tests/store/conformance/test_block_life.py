"""The life of one block, read from the events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windowpane.core.events import Event
from windowpane.store.reads.block_life import BlockLife
from windowpane.store.store import Store

Session = Callable[..., list[Event]]


@pytest.fixture
def lives(store: Store, make_session: Session) -> Callable[[str], list[BlockLife]]:
    """A function that returns the lives of the blocks that were removed by one cause."""
    store.append(make_session())

    def of(cause: str) -> list[BlockLife]:
        removed = [row for row in store.removed_blocks("s1", 99) if row.removed_by == cause]
        lives = (store.block_life("s1", row.block_id) for row in removed)
        return [life for life in lives if life is not None]

    return of


def test_an_evicted_block(lives: Callable[[str], list[BlockLife]]) -> None:
    (life,) = lives("eviction")

    assert life.called_by is not None
    assert (life.called_by.content_type, life.called_by.tool_call_id) == ("tool_call", life.block.tool_call_id)
    removal = life.removal
    assert removal is not None
    assert (removal.policy, removal.reason, removal.removed_blocks) == ("hybrid", "older than 8 turns", 1)
    assert removal.evicted is not None
    assert removal.evicted.score == 0.2
    assert life.replacement is not None
    assert life.replacement.content_type == "placeholder"


def test_a_compressed_block(lives: Callable[[str], list[BlockLife]]) -> None:
    calls = [life for life in lives("compression") if life.block.content_type == "tool_call"]
    life = calls[0]

    assert life.removal is not None
    assert life.removal.compression is not None
    assert life.removal.policy == "compaction"
    assert life.removal.removed_blocks == len(life.removal.compression.removed)
    assert life.replacement is not None
    assert life.replacement.content_type == "summary"
    assert [use.block.content_type for use in life.uses if use.block] == ["tool_result"]


def test_an_unknown_block_has_no_life(store: Store, make_session: Session) -> None:
    store.append(make_session(turns=2))
    held = store.blocks_at("s1", 2)[0]

    life = store.block_life("s1", held.block_id)
    assert life is not None
    assert (life.removal, life.replacement, life.fetched_again) == (None, None, ())
    assert life.added_at is not None
    assert store.block_life("s1", "nothing") is None
    assert store.block_life("nothing", held.block_id) is None
