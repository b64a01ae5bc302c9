"""Cache breaks: calls that send a cached prefix as new input, their causes and their prices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windowpane.core.events import BlocksEvicted, CacheBroken, EvictedBlock, Usage
from windowpane.core.window.blocks import Block

from .conftest import Session

Make = Callable[..., Session]


def price(usage: Usage) -> float:
    """Dollars at 10 per unit of new input, 1 read, 12 written for five minutes and 20 for an hour."""
    short = usage.cache_write_tokens - usage.hour_write_tokens
    return (
        10 * usage.input_tokens + usage.cache_read_tokens + 12 * short + 20 * usage.hour_write_tokens
    ) / 10_000


def call(session: Session, read: int, write: int = 0, *, new: int = 0, at: float = 0.0, hour: int = 0) -> None:
    """One turn: a message, a reply and the provider's counts."""
    session.tracker.add("user_message", None, max(1, new + write), at=at)
    session.tracker.add("assistant_response", None, 10, at=at)
    usage = Usage(new, 10, read, write, hour_write_tokens=hour)
    session.tracker.end_turn(usage, cost_of=price, latency_seconds=2.0, at=at)


def broken(session: Session) -> list[CacheBroken]:
    return session.of(CacheBroken)


def test_a_prefix_that_is_read_again_is_no_cache_break(session: Make) -> None:
    one = session()
    call(one, 0, 10_000)
    call(one, 10_000, 5_000, at=10)
    call(one, 8_000, 9_000, at=20)  # 7,000 of 15,000 rewritten: less than half

    assert broken(one) == []


def test_a_rewritten_prefix_is_priced_against_reading_it(session: Make) -> None:
    """The dollars are what the rewritten tokens cost as writes, less what they would have cost as reads."""
    one = session()
    call(one, 0, 10_000)
    call(one, 2_000, 9_000, at=10)

    (event,) = broken(one)
    assert (event.rewritten_tokens, event.cached_tokens, event.cause) == (8_000, 10_000, "unknown")
    assert event.dollars == pytest.approx(8_000 * (12 - 1) / 10_000)
    assert (event.idle_seconds, event.lifetime_seconds) == (10, 300)


def test_one_hour_writes_cost_and_live_longer(session: Make) -> None:
    one = session()
    call(one, 0, 10_000, hour=10_000)
    call(one, 0, 11_000, hour=11_000, at=600)
    call(one, 0, 12_000, hour=12_000, at=600 + 3_601)

    early, late = broken(one)
    assert (early.cause, late.cause) == ("unknown", "expired")
    assert early.dollars == pytest.approx(10_000 * (20 - 1) / 10_000)


def test_a_pause_beyond_the_lifetime_is_named_before_a_change(session: Make) -> None:
    """An expired prefix would have been sent anew in any case."""
    one = session()
    call(one, 0, 10_000)
    block = next(iter(one.tracker.window))
    one.evict(block)
    call(one, 0, 9_000, at=301)

    assert [event.cause for event in broken(one)] == ["expired"]


def test_the_first_changed_block_is_the_cause(session: Make) -> None:
    one = session()
    call(one, 0, 3_000)
    call(one, 3_000, 9_000, at=10)
    first, reply, *_ = one.tracker.window
    one.evict(reply)
    one.evict(first)
    call(one, 0, 9_500, at=20)

    (event,) = broken(one)
    assert (event.cause, event.block_id) == ("removed", first.id)


def test_a_small_change_at_the_end_does_not_explain_a_break_from_the_start(session: Make) -> None:
    one = session()
    call(one, 0, 20_000)
    call(one, 20_000, 500, at=10)
    last = list(one.tracker.window)[2]
    one.evict(last)
    call(one, 0, 20_500, at=20)

    assert [(event.cause, event.block_id) for event in broken(one)] == [("unknown", None)]


def test_another_model_has_another_cache(session: Make) -> None:
    one = session()
    call(one, 0, 10_000)
    one.tracker.set_model("other", None)
    call(one, 0, 11_000, at=10)

    assert [event.cause for event in broken(one)] == ["model"]


@pytest.mark.parametrize("reset", ["compaction", "clear", "rewound"])
def test_a_compaction_a_clear_and_a_rewind_break_nothing(session: Make, reset: str) -> None:
    one = session()
    call(one, 0, 10_000)
    blocks = list(one.tracker.window)
    if reset == "compaction":
        one.compact(*blocks, result=100)
    elif reset == "clear":
        one.tracker.roll("clear")
    else:
        _rewind(one, blocks)
    call(one, 0, 6_000, at=10)
    call(one, 6_000, 100, at=20)

    assert broken(one) == []


def _rewind(one: Session, blocks: list[Block]) -> None:
    evicted = tuple(EvictedBlock(block.id, block.content_type, block.tokens, "drop", "") for block in blocks)
    one.tracker.evict(BlocksEvicted("rewound", evicted, 10, 10))


def test_a_provider_without_write_counts_shows_breaks_by_what_it_read(session: Make) -> None:
    one = session()
    call(one, 0, new=20_000)
    call(one, 19_968, new=500, at=10)
    call(one, 0, new=21_000, at=20)

    (event,) = broken(one)
    assert (event.rewritten_tokens, event.cached_tokens, event.lifetime_seconds) == (19_968, 19_968, None)
    assert event.dollars == pytest.approx(19_968 * (10 - 1) / 10_000)


def test_a_lower_total_without_a_recorded_removal_is_a_removal(session: Make) -> None:
    one = session()
    call(one, 0, 50_000)
    call(one, 1_000, 30_000, at=10)

    assert [event.cause for event in broken(one)] == ["removed"]


def test_a_call_without_usage_or_of_another_conversation_breaks_nothing(session: Make) -> None:
    one = session()
    call(one, 0, 10_000)
    one.tracker.end_turn(None)
    call(one, 0, 300, at=20)

    assert broken(one) == []


def test_a_break_costs_nothing_extra_where_the_price_is_unknown(session: Make) -> None:
    one = session()
    one.tracker.end_turn(Usage(0, 1, 0, 10_000))
    one.tracker.end_turn(Usage(0, 1, 0, 11_000))

    assert [event.dollars for event in broken(one)] == [None]
