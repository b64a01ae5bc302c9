"""Used tokens: unattributed content, calibration, and reports above the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    ChangeUnidentified,
    LimitChanged,
    TurnEnded,
    Usage,
    UsageRejected,
)
from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.tracking.pressure import TokenAccount, apportion
from windowpane.core.vocabulary import COMPONENTS

Make = Callable[..., Any]
CATALOG = WindowLimits.of(100_000, "catalogue")


def unattributed(play: Any) -> list[int]:
    return [added.block.tokens for added in play.of(BlockAdded) if added.block.content_type == "unattributed"]


class TestUnattributed:
    def test_the_first_usage_reveals_unrecorded_content(self, session: Make) -> None:
        play = session(100_000)
        play.turn(100, 20, total=5100)
        final = play.turn(50, 20, total=5170)

        assert unattributed(play) == [5000]
        assert final.used_by_component["unattributed"] == 5000

    def test_unattributed_tokens_are_not_growth(self, session: Make) -> None:
        play = session(100_000)

        assert play.turn(100, 0, total=5100).added_tokens == 100

    @pytest.mark.parametrize("total", [100, 60])
    def test_unattributed_tokens_are_never_negative(self, session: Make, total: int) -> None:
        play = session(100_000)
        final = play.turn(100, 0, total=total)

        assert unattributed(play) == []
        assert final.used_by_component["message_history"] == total

    def test_unattributed_tokens_are_updated_after_a_compaction(self, session: Make) -> None:
        play = session(100_000)
        block = play.add_user(4000)
        play.turn(0, 0, total=9000)
        play.compact(block, result=100)
        final = play.turn(50, 0, total=3150)

        assert unattributed(play) == [5000, 3000]
        assert final.used_by_component["unattributed"] == 3000

    def test_after_a_compaction_there_may_be_no_unattributed_tokens(self, session: Make) -> None:
        play = session(100_000)
        block = play.add_user(4000)
        play.turn(0, 0, total=9000)
        play.compact(block, result=100)
        final = play.turn(50, 0, total=120)

        assert final.used_by_component["unattributed"] == 0
        assert sum(final.used_by_component.values()) == 120

    def test_earlier_measurements_are_unchanged(self, session: Make) -> None:
        play = session(100_000)
        play.turn(100, 0, total=5100)
        before = play.phases("before")[0]

        assert before.used_by_component["unattributed"] == 0
        assert sum(before.used_by_component.values()) == before.used_tokens == 100


class TestCalibration:
    def test_calibration_uses_differences_and_not_totals(self, session: Make) -> None:
        play = session(100_000)
        play.turn(1000, 0, total=9000)
        for turn in range(1, 6):
            play.turn(1000, 0, total=9000 + 1000 * turn)

        assert play.tracker.gauge.account.calibration == pytest.approx(1.0)

    def test_calibration_moves_towards_the_providers_count(self, session: Make) -> None:
        play = session(1_000_000)
        total = 10_000
        for _ in range(30):
            play.turn(1000, 0, total=total)
            total += 1200

        assert play.tracker.gauge.account.calibration == pytest.approx(1.2, abs=0.01)
        play.add_user(1000)
        assert play.tracker.measure("before").used_tokens == pytest.approx(total, abs=30)

    @pytest.mark.parametrize(("reported", "bound"), [(400, 0.5), (2_150, 2.0)])
    def test_calibration_stays_between_a_half_and_two(self, reported: int, bound: float) -> None:
        account = TokenAccount()
        total = raw = 1000
        for _ in range(100):
            assert account.report(total, raw).unseen_tokens == 0
            total, raw = total + reported, raw + 1000

        assert account.calibration == pytest.approx(bound, abs=0.01)

    @pytest.mark.parametrize(("reported", "unseen"), [(100, -900), (90_000, 89_000)])
    def test_what_no_tokenizer_explains_is_unseen(self, reported: int, unseen: int) -> None:
        account = TokenAccount()
        account.report(1_000, 1_000)

        assert account.report(1_000 + reported, 2_000).unseen_tokens == unseen
        assert account.calibration == 1.0

    @given(reports=st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), max_size=40))
    def test_no_reports_exceed_the_range_of_calibration(self, reports: list[tuple[int, int]]) -> None:
        account = TokenAccount()
        for total, raw in reports:
            account.report(total, raw)
            assert 0.5 <= account.calibration <= 2.0
            assert account.used(raw) == total

    def test_a_reduction_does_not_change_the_calibration(self, session: Make) -> None:
        play = session(100_000)
        play.add_user(5000)
        block = play.add_user(300)
        play.turn(0, 0, total=5300)
        play.evict(block)
        play.turn(2000, 0, total=8700)
        assert play.tracker.gauge.account.calibration == 1.0

        play.turn(2000, 0, total=12_100)
        assert play.tracker.gauge.account.calibration > 1.0

    def test_small_differences_do_not_change_the_calibration(self) -> None:
        account = TokenAccount()
        account.report(1000, 1000)
        account.report(1398, 1199)
        assert account.calibration == 1.0
        account.report(1798, 1399)
        assert account.calibration > 1.0

    def test_the_estimates_error_is_signed(self, session: Make) -> None:
        play = session(100_000)
        first = play.turn(100, 0, total=1000)
        second = play.turn(100, 0, total=1000)

        assert first.estimate_error is None
        assert second.estimate_error == pytest.approx(0.1)

    def test_an_unexplained_change_of_the_count_is_reported(self, session: Make) -> None:
        play = session(100_000)
        play.turn(100, 0, total=10_000)
        play.turn(100, 0, total=30_000)
        play.turn(100, 0, total=10_000)

        assert [change.tokens for change in play.of(ChangeUnidentified)] == [19_900]
        assert [removed.tokens_removed for removed in play.of(BlocksEvicted)] == [20_000]


class TestLimits:
    def test_a_report_above_the_catalog_raises_the_limit(self, session: Make) -> None:
        """The next known window size is used, with its source."""
        play = session(CATALOG, next_limit=lambda above: 200_000 if above <= 200_000 else None)
        final = play.turn(10, 0, total=120_000)
        change = play.of(LimitChanged)[0]

        assert (change.limit_tokens, change.limit_source, change.previous_tokens) == (
            200_000, "observed_floor", 100_000,
        )  # fmt: skip
        assert (final.used_tokens, final.limit_tokens, final.utilization) == (120_000, 200_000, 0.6)
        assert play.of(UsageRejected) == []

    def test_without_a_larger_known_window_the_report_itself_is_the_limit(self, session: Make) -> None:
        play = session(CATALOG)

        assert play.turn(10, 0, total=120_000).limit_tokens == 120_000

    def test_a_raised_limit_keeps_the_thresholds_that_were_set(self, session: Make) -> None:
        chosen = Thresholds(0.2, 0.3, 0.4)
        for thresholds, expected in ((chosen, chosen), (None, Thresholds(0.6, 0.8, 0.9))):
            limits = WindowLimits.of(100_000, "catalogue", thresholds=thresholds)
            play = session(limits, next_limit=lambda _: 200_000)
            play.turn(10, 0, total=120_000)
            assert play.tracker.limits.thresholds == expected

    @pytest.mark.parametrize("source", ["given", "provider"])
    def test_a_report_above_a_given_limit_is_rejected(self, session: Make, source: str) -> None:
        """A limit of the user or the provider is certain, so the report is rejected."""
        play = session(WindowLimits.of(100_000, source))
        final = play.turn(10, 0, total=120_000)

        assert play.of(UsageRejected) == [UsageRejected(120_000, 100_000, "above_limit")]
        assert (final.used_tokens, final.count_source) == (10, "estimate")
        assert play.of(TurnEnded)[0].count_source == "estimate"

    def test_a_report_of_exactly_the_limit_is_accepted(self, session: Make) -> None:
        assert session(1000).turn(10, 0, total=1000).used_tokens == 1000

    def test_a_report_of_zero_tokens_is_ignored(self, session: Make) -> None:
        play = session(1000)
        final = play.tracker.end_turn(Usage(output_tokens=5))

        assert final.count_source != "usage"

    def test_cache_reads_and_writes_are_part_of_the_window(self, session: Make) -> None:
        play = session(1000)
        play.add_user(10)
        final = play.tracker.end_turn(Usage(input_tokens=100, cache_read_tokens=300, cache_write_tokens=200))

        assert (final.used_tokens, final.cache_hit_ratio) == (600, 0.5)


class TestComponents:
    @given(
        used=st.integers(0, 10**6),
        counts=st.lists(st.integers(0, 10**5), min_size=len(COMPONENTS), max_size=len(COMPONENTS)),
    )
    def test_parts_always_sum_to_used(self, used: int, counts: list[int]) -> None:
        parts = apportion(used, dict(zip(COMPONENTS, counts, strict=True)))

        assert sum(parts.values()) == used
        assert set(parts) == set(COMPONENTS)
        assert min(parts.values()) >= 0

    def test_the_rounding_remainder_is_added_to_the_history(self) -> None:
        raw = {**dict.fromkeys(COMPONENTS, 0), "tool_results": 2, "system_prompt": 1, "unattributed": 50}

        assert apportion(55, raw)["tool_results"] == 4
        assert apportion(55, {**raw, "message_history": 1})["message_history"] == 2

    def test_the_count_is_exact_only_if_every_block_is(self, session: Make) -> None:
        play = session(1000)
        play.add_user(10, count_source="exact")
        assert play.tracker.measure("before").count_source == "exact"
        play.add_user(10)
        assert play.tracker.measure("before").count_source == "estimate"
