"""The dashboard's figures, held against sums done by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from windowpane.core.events import ContentCompressed, Event, EventContext, FidelityEvaluated, Payload
from windowpane.store.records import AlertRow, SessionRow, StoredEvent, TurnRow
from windowpane.store.replays import ReplayRunRow
from windowpane_dashboard.charts.downsample import downsampled_rows
from windowpane_dashboard.charts.zone_bands import _towards, forecast_turns
from windowpane_dashboard.queries.alerts import outcome_of
from windowpane_dashboard.queries.comparison import ComparedSession, differences
from windowpane_dashboard.queries.compressions import pair_compressions
from windowpane_dashboard.queries.fleet import Fleet
from windowpane_dashboard.queries.replays import best_cells, best_setup, results_by_setup, results_frame
from windowpane_dashboard.queries.timeline import Timeline, marks_frame, regrets_frame, turns_frame
from windowpane_dashboard.sections.cost import resent_summary

TURN = TurnRow(
    turn=1, window_id=1, at=None, model="m", used_before=900, used_after=700, used_final=800,
    count_source="usage",
    components={"tool_results": 500}, limit_tokens=10_000, usable_tokens=9_000, red_tokens=9_000, zone="green",
    utilization=0.08, velocity=100.0, added_tokens=200, turns_until_red=5.0, turns_until_red_p10=3.0,
    turns_until_red_p90=8.0, burn_rate=90.0, stale_tokens=80, duplicate_tokens=40, input_tokens=800,
    output_tokens=50, cache_read_tokens=500, cache_write_tokens=100, cost_dollars=0.10, latency_seconds=1.0,
    estimate_error=None,
)  # fmt: skip
SESSION = SessionRow(
    session_id="s", revision=1, agent="a", model="m", source="live", parent_session_id=None, started_at=0.0,
    last_at=1_000.0, ended=False, incomplete=False, turns=40, exchanges=1, events=10, windows=1,
    limit_tokens=100_000, limit_source="given", used_tokens=50_000, peak_used_tokens=93_000, utilization=0.5,
    peak_utilization=0.93, zone="yellow", worst_zone="red", velocity=100.0, turns_until_red=9.0, cost_dollars=1.0,
    input_tokens=100, output_tokens=1, cache_read_tokens=40, evicted_blocks=0, evicted_tokens=0, compressions=0,
    regrets=0, overflows=0, fidelity=None, firing=0, worst_severity=None, last_event="turn.ended",
)  # fmt: skip


def timeline(*turns: TurnRow) -> Timeline:
    return Timeline(
        turns_frame(turns), (), marks_frame([]), marks_cut=False, facts=None, regrets=regrets_frame([])
    )


def stored(*payloads: Payload, turn: int = 5) -> list[StoredEvent]:
    context = EventContext("s", "a", "m", turn, 1, "live", "stream")
    return [
        StoredEvent(10 + place, 1, counted=True, hash="", event=Event(context, place, None, data))
        for place, data in enumerate(payloads)
    ]


class TestTurns:
    @pytest.mark.parametrize(
        ("changes", "used"),
        [({}, 800), ({"used_final": None}, 700), ({"used_final": None, "used_after": None}, 900)],
        ids=["final", "reduced", "before"],
    )
    def test_a_turn_is_as_large_as_last_measured(self, changes: dict[str, Any], used: int) -> None:
        """The provider's count at the end, else the size after the reduction, else before it."""
        assert turns_frame([replace(TURN, **changes)])["used"].tolist() == [used]

    def test_fresh_input_is_what_no_cache_had_to_do_with(self) -> None:
        """All that was sent, less what was read from the cache and written to it."""
        assert turns_frame([TURN])["fresh_tokens"].tolist() == [200]

    def test_the_worst_turn_is_the_first_in_the_worst_zone(self) -> None:
        """Red once is worse than orange for long."""
        zones = ("green", "orange", "red", "red", "yellow")
        turns = [replace(TURN, turn=number, zone=zone) for number, zone in enumerate(zones, 1)]

        assert timeline(*turns).worst_turn == 3
        assert timeline(*turns[:2]).worst_turn == 2

    def test_what_was_paid_again_has_its_share_of_the_cost(self) -> None:
        """A tenth of a call's tokens is a tenth of its price; a call without a price adds none."""
        turns = turns_frame([TURN, replace(TURN, turn=2, used_final=1_000, cost_dollars=None)])

        assert resent_summary(turns) == (
            "Of 1,800 tokens that all calls sent, 160 (9%) were stale and 80 (4%) duplicates, "
            "about $0.01 of the cost by its share of the tokens."
        )


class TestFleet:
    def test_the_cache_ratio_is_of_all_input(self) -> None:
        """Sums, not a mean of ratios: a large session counts for more."""
        rows = (SESSION, replace(SESSION, input_tokens=900, cache_read_tokens=860, cost_dollars=None))
        listed = Fleet(rows, more=False, fired={})

        assert listed.cache_ratio == 0.9
        assert listed.cost_dollars == 1.0
        assert Fleet((), more=False, fired={}).cache_ratio is None


class TestCompare:
    def test_shares_changes_and_who_is_better(self) -> None:
        """Each measure is compared with A as the measure of the change."""
        one = ComparedSession(SESSION, timeline(TURN, replace(TURN, turn=2, stale_tokens=0)), ())
        other = ComparedSession(
            replace(SESSION, cost_dollars=1.5, cache_read_tokens=60),
            timeline(replace(TURN, used_final=2_000)),
            (),
        )
        frame = differences(one, other).set_index("measure")

        assert frame.loc["tokens sent", ["A", "B", "B against A", "better"]].tolist() == [
            "1,600", "2,000", "+400 (+25%)", "A",
        ]  # fmt: skip
        assert frame.loc["of these stale", ["A", "B", "B against A", "better"]].tolist() == [
            "5%", "4%", "−1.0 points", "B",
        ]  # fmt: skip
        assert frame.loc["cost", ["B against A", "better"]].tolist() == ["+$0.50 (+50%)", "A"]
        assert frame.loc["input from the cache", ["A", "B", "better"]].tolist() == ["40%", "60%", "B"]


class TestCompressions:
    DONE = ContentCompressed("compaction", "threshold", "accepted", 900, 100)

    def test_an_evaluation_belongs_to_the_compression_it_names(self) -> None:
        """Two in one turn keep their own, whichever came last."""
        first, second = stored(self.DONE, self.DONE)
        named = FidelityEvaluated("probe", 0.4, 1.0, of=first.event.event_id)
        evaluated = replace(second, seq=30, event=second.event._replace(n=9, data=named))

        found = pair_compressions([first, second, evaluated])

        assert [None if one.fidelity is None else one.fidelity.score for one in found] == [0.4, None]

    def test_the_first_evaluation_of_a_compression_counts(self) -> None:
        """A later opinion on the same compression does not take its place; one without a name is the turn's."""
        found = pair_compressions(
            stored(self.DONE, FidelityEvaluated("probe", 0.4, 1.0), FidelityEvaluated("judge", 0.9, 1.0))
        )

        assert [one.fidelity.score for one in found if one.fidelity] == [0.4]


def replayed(setup: str, session: str = "s1", **measures: float | None) -> ReplayRunRow:
    known = {
        "tokens_sent": 1_000,
        "cost_tokens": 800.0,
        "cached_tokens": 250,
        "overflows": 0,
        "cost_dollars": 1.0,
    }
    return ReplayRunRow(session, setup, "managed", setup, "", 8_192, {**known, **measures}, "", (1, 2))


class TestReplays:
    def test_among_equals_the_better_fidelity_wins(self) -> None:
        """Overflows and cost come first; where both are the same, what is still known decides."""
        best = best_setup(results_by_setup([replayed("worse", fidelity=0.5), replayed("better", fidelity=0.9)]))

        assert best is not None
        assert best.setup == "better"

    def test_a_setup_that_some_session_could_not_go_through_does_not_win(self) -> None:
        """Fewer sessions cost less, which is no merit."""
        runs = [replayed("whole"), replayed("whole", "s2"), replayed("half", cost_tokens=1.0)]
        best = best_setup(results_by_setup(runs))

        assert best is not None
        assert best.setup == "whole"

    def test_dollars_need_a_price_for_every_session(self) -> None:
        """A sum of some is not the cost of all."""
        frame = results_frame(
            results_by_setup([
                replayed("a"), replayed("a", "s2", cost_dollars=None), replayed("b"), replayed("b", "s2"),
            ])
        ).set_index("under")  # fmt: skip

        assert pd.isna(frame.loc["a", "dollars"])
        assert frame.loc["b", "dollars"] == 2.0

    def test_the_best_is_the_least_or_the_most(self) -> None:
        """Less cost is better, more fidelity is better."""
        best = best_cells(
            results_frame(
                results_by_setup([replayed("a", fidelity=0.9), replayed("b", cost_tokens=200.0, fidelity=0.2)])
            )
        )

        assert (best["cost tokens"], best["fidelity"]) == ({1}, {0})


class TestAlerts:
    ROW = AlertRow("s", "a", "utilization", "critical", 8, 10, 100.0, None, None, 0.95, 0.9, "full")

    def test_a_firing_lasts_until_its_session_goes_on_no_more(self) -> None:
        """Turns and seconds run to the resolution, else to now in a live session, else to the last event."""
        session = replace(SESSION, turns=40, last_at=400.0)
        resolved = outcome_of(replace(self.ROW, resolved_turn=13, resolved_at=160.0), session, 500.0)
        live, gone = outcome_of(self.ROW, session, 500.0), outcome_of(self.ROW, session, 99_999.0)

        assert (resolved.turns, resolved.seconds, resolved.now) == (3, 60.0, False)
        assert (live.turns, live.seconds, live.now) == (30, 400.0, True)
        assert (gone.turns, gone.seconds, gone.now) == (30, 300.0, False)


class TestPicture:
    @pytest.mark.parametrize(
        ("changes", "ahead"),
        [
            ({}, 8),
            ({"used_final": 9_000}, 0),
            ({"used_final": 8_999}, 8),
            ({"turns_until_red_p90": math.inf}, 25),
            ({"turns_until_red_p10": math.inf}, 0),
            ({"turns_until_red_p90": 90.0}, 25),
            ({"red_tokens": None}, 0),
        ],
        ids=["near", "at red", "just below", "perhaps never", "flat", "far", "unknown"],
    )
    def test_the_forecast_reaches_as_far_as_it_says_anything(self, changes: dict[str, Any], ahead: int) -> None:
        """To the late end of the band, at most a quarter of what is shown, and nowhere from red on."""
        turns = [replace(TURN, turn=number) for number in range(1, 100)]

        assert forecast_turns(turns_frame([*turns, replace(TURN, turn=100, **changes)])) == ahead

    def test_the_way_to_red_is_straight(self) -> None:
        """Half of the time is half of the way; after red it stays there."""
        far, near = _towards(1_000.0, 9_000.0, 20.0, 10), _towards(1_000.0, 9_000.0, 4.0, 10)

        assert [part.tolist() for part in far] == [[10.0], [5_000.0]]
        assert [part.tolist() for part in near] == [[4.0, 10.0], [9_000.0, 9_000.0]]

    def test_the_highest_point_is_kept(self) -> None:
        """One peak among ten thousand flat points is drawn, and so is one trough."""
        series = np.full((10_000, 1), 5.0)
        series[7_777], series[1_234] = 9.0, 1.0

        assert {1_234, 7_777} <= set(downsampled_rows(series, 100).tolist())
