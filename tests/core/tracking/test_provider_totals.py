"""Two totals of the provider in a row: the effect of a compaction, and removals that nothing else records."""

from __future__ import annotations

from collections.abc import Callable

from windowpane.core.events import BlocksEvicted, ChangeUnidentified, CompactionMeasured, Usage
from windowpane.core.tracking.provider_totals import ProviderTotals
from windowpane.core.vocabulary import UNKNOWN_CAUSE

from .conftest import Session

Make = Callable[..., Session]


class TestCompaction:
    def test_its_sizes_are_the_totals_around_it(self, session: Make) -> None:
        play = session(200_000)
        block = play.add_user(9_902)
        play.turn(reply=100, total=58_000)

        compacted = play.compact(block, result=2_311, scope="content")
        play.turn(user=500, reply=100, total=50_000)
        play.turn(user=500, reply=100, total=51_000)

        (measured,) = play.of(CompactionMeasured)
        assert (measured.of, measured.tokens_before, measured.tokens_after) == (
            compacted.event_id,
            58_000,
            50_000,
        )
        assert measured.source_before == "usage"

    def test_before_the_first_call_its_size_is_what_the_agent_states(self, session: Make) -> None:
        play = session(1_000_000)
        compression = play.compact(result=18_000, stated=998_659)
        play.turn(user=10, reply=10, total=69_313)

        (measured,) = play.of(CompactionMeasured)
        assert (measured.of, measured.tokens_before) == (compression.event_id, 998_659)
        assert (measured.source_before, measured.zone_before) == ("reported", "red")
        assert play.tracker.end("completed").peak_used_tokens == 998_659

    def test_without_any_size_before_nothing_is_measured(self, session: Make) -> None:
        play = session(200_000)
        play.compact(play.add_user(900), result=100)
        play.turn(user=10, reply=10, total=5_000)

        assert not play.of(CompactionMeasured)

    def test_another_window_is_not_its_result(self, session: Make) -> None:
        play = session(200_000)
        block = play.add_user(900)
        play.turn(reply=10, total=50_000)
        play.compact(block, result=100)
        play.tracker.roll("clear")
        play.turn(user=10, reply=10, total=5_000)

        assert not play.of(CompactionMeasured)


class TestDrop:
    def test_a_lower_total_that_nothing_explains_is_a_removal(self, session: Make) -> None:
        play = session(200_000)
        play.turn(user=1_000, reply=100, total=113_063)
        play.turn(user=1_000, reply=100, total=59_765)

        (removed,) = play.of(BlocksEvicted)
        assert (removed.policy, removed.tokens_removed) == (UNKNOWN_CAUSE, 53_298)
        assert not play.of(ChangeUnidentified)
        assert play.tracker.end("completed").evicted_blocks == len(removed.blocks) == 0

    def test_a_recorded_removal_explains_it(self, session: Make) -> None:
        play = session(200_000)
        block = play.add_user(50_000)
        play.turn(reply=100, total=113_063)
        play.evict(block)
        play.turn(user=1_000, reply=100, total=59_765)

        assert [evicted.policy for evicted in play.of(BlocksEvicted)] == ["test"]

    def test_another_model_counts_otherwise(self) -> None:
        totals = ProviderTotals()
        totals.add(100_000, "one")

        assert totals.add(70_000, "other") is None
        assert totals.add(40_000, "other") is not None

    def test_small_changes_are_not_removals(self) -> None:
        totals = ProviderTotals()
        totals.add(100_000, "one")

        assert totals.add(91_000, "one") is None
        totals.add(5_000, "one")
        assert totals.add(3_500, "one") is None


def test_the_peak_is_the_largest_total_with_the_last_reply(session: Make) -> None:
    play = session(200_000)
    play.turn(user=150_000, reply=10)
    play.turn(user=10, reply=10, total=40_000)
    play.add_user(90_000)
    play.tracker.end_turn(Usage())
    play.turn(user=10, reply=10, total=60_000)

    assert play.tracker.end("completed").peak_used_tokens == 60_000 + 10
