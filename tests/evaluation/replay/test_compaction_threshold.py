"""Advice on the level of compaction: the same growth at every level, and never one that loses more rules."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.report.test_findings import turn

from windowpane.core.events import ContentCompressed, RulesFollowed
from windowpane.evaluation.replay.advice_text import advice_sentences, level_cells, setting_lines
from windowpane.evaluation.replay.compaction_threshold import (
    SessionEvidence,
    ThresholdAdvice,
    advice_of,
)

MODEL = "gpt-5"
DAY = 86_400.0
COMPACTED = ContentCompressed("compaction", "auto", "accepted", 200_000, 3_000, method="agent")


def rules(*, followed: tuple[int, ...], visible: tuple[int, ...]) -> RulesFollowed:
    return RulesFollowed("e", 1, followed_by_compactions=followed, visible_by_compactions=visible)


def evidence(number: int, *, visible: int = 20) -> SessionEvidence:
    """Return a session of 40 calls that grows by 10,000 tokens a call and is compacted at 200,000, to 40,000."""
    used, calls, events = 10_000, [], []
    for call in range(1, 41):
        used = 40_000 if used >= 200_000 else used + 10_000
        calls.append(
            turn(
                call, model=MODEL, window_id=1, used_final=used, input_tokens=used, output_tokens=500,
                cache_read_tokens=used - 10_000, cost_dollars=0.02,
            )
        )  # fmt: skip
        if used == 40_000 and call > 5:
            events += [(call, COMPACTED), (call, rules(followed=(20,), visible=(visible,)))]
    row: Any = SimpleNamespace(
        session_id=f"s{number}", compaction_tokens=200_000, limit_tokens=272_000, started_at=number * DAY,
        last_at=number * DAY + 60,
    )  # fmt: skip
    return SessionEvidence(row, calls, events)


def advice(sessions: int = 14, *, visible: int = 20) -> ThresholdAdvice:
    found = advice_of("codex", [evidence(number, visible=visible) for number in range(sessions)])
    assert found is not None
    return found


def test_the_present_level_is_replayed_as_it_was_recorded() -> None:
    one = advice()

    assert one.present.compactions == one.compactions.count == 28
    assert (one.compactions.tokens_after, one.present.saved_dollars) == (40_000, 0.0)


def test_the_row_of_the_present_levels_names_their_range() -> None:
    """Their median would read as one level, with which lower ones are then compared."""
    one = advice()
    mixed = [evidence(number) for number in range(12)]
    mixed[0].row.compaction_tokens = 967_000
    found = advice_of("codex", mixed)
    assert found is not None

    assert level_cells(one, one.present)[0] == "now (200k)"
    assert level_cells(found, found.present)[0] == "now (200k to 967k)"


def test_a_lower_level_compacts_more_often_and_sends_less() -> None:
    one = advice()

    compactions = [level.compactions for level in (*one.lower, one.present)]
    assert compactions == sorted(compactions, reverse=True)
    assert all(level.saved_low <= level.saved_dollars <= level.saved_high for level in one.lower)
    assert one.lowest_cost is not None


def test_a_level_is_advised_where_no_more_rules_are_lost() -> None:
    one = advice()

    assert one.best is not None
    assert one.best == one.lowest_cost
    assert advice_sentences(one).startswith("Compact at ")
    lines = setting_lines(one)
    assert lines is not None
    assert lines.lines == f"model_auto_compact_token_limit = {one.best.level_tokens}"


def test_a_level_that_loses_rules_is_never_best_however_little_it_costs() -> None:
    one = advice(visible=10)

    assert (one.best, setting_lines(one)) == (None, None)
    assert one.lowest_cost is not None
    answer = "Compact as now: no lower size that costs less is known to keep as many rules."
    assert answer in advice_sentences(one)


def test_without_rules_nothing_is_advised() -> None:
    one = advice()
    unknown = replace(one, present=replace(one.present, survival=None))

    assert unknown.best is None
    assert advice_sentences(unknown).startswith("No advice yet. Lower sizes cost less;")


def test_rules_of_few_compactions_are_no_evidence_however_many_they_are() -> None:
    one = advice()
    few = replace(one.compactions, followed=(385,), visible=(385,), with_rules=2)

    assert (few.survival(1), few.is_survival_narrow) == (None, False)
    assert few.survival_interval == (pytest.approx(0.342, abs=0.001), 1.0)
    assert replace(one, compactions=replace(one.compactions, with_rules=15)).best is None
    text = advice_sentences(replace(one, compactions=few, present=replace(one.present, survival=None)))
    assert "one left 100% (34% to 100%) of the rules visible (n = 2 compactions with 385 rules)" in text
    assert "less a month" not in text


def test_a_level_that_changes_nothing_is_not_listed_and_each_saving_has_its_range() -> None:
    one = advice()

    assert all(level.saved_dollars for level in one.lower)
    assert level_cells(one, one.lower[0])[2] == "−$5.76 (−$5.76 to −$5.76)"
    assert level_cells(one, one.present)[2] == "–"


def test_nine_sessions_are_too_few() -> None:
    one = advice(sessions=9)

    assert (one.best, one.lowest_cost) == (None, None)
    assert advice_sentences(one).startswith("Too few sessions to advise: 9; 10 are needed.")


def test_a_month_needs_a_week_of_recordings() -> None:
    assert advice().per_month(1.0) == pytest.approx(30 / 13, rel=0.01)
    assert replace(advice(), days=6.0).per_month(1.0) is None


def test_survival_never_rises_with_the_number_of_compactions() -> None:
    recorded = replace(advice().compactions, followed=(100, 50, 3), visible=(80, 45, 3))

    shares = [recorded.survival(number) for number in range(5)]
    assert shares == [1.0, 0.8, 0.8, pytest.approx(0.64), pytest.approx(0.512)]
    assert replace(recorded, followed=(9,), visible=(9,)).survival(1) is None
