"""Sentences of events, formats of numbers, labels and headlines; unknown stays unknown."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, replace
from typing import Any, get_args, get_type_hints

import pytest

from windowpane.core.events import (
    PAYLOADS,
    BlocksEvicted,
    ContentCompressed,
    Event,
    EventContext,
    EvictedBlock,
    SessionContinued,
)
from windowpane.core.vocabulary import ZONES
from windowpane.core.window.blocks import Block
from windowpane.report.headline import FactTotals, fleet_phrases, largest_again, sentence, session_phrases
from windowpane.store.records import FleetTotals, SessionRow
from windowpane.text.events import content_counts, describe_event
from windowpane.text.formats import (
    ago,
    count,
    dollars,
    percent,
    seconds,
    tokens,
    tokens_rounded,
    tokens_short,
    turns_band,
    turns_until,
)
from windowpane.text.labels import ALERT_MARKS, MARK_OF, MARKS, NOTEWORTHY, ROUTINE
from windowpane.text.zones import zone_label

CONTEXT = EventContext("s", "a", "m", 3, 1, "live", "st")


def event(data: Any) -> Event:
    return Event(CONTEXT, 0, 1.0, data)


def made(cls: type) -> Any:
    """An instance with a plausible value for every field without a default."""
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for field in fields(cls):
        if field.default is not MISSING or field.default_factory is not MISSING:
            continue
        values[field.name] = _value(hints[field.name])
    return cls(**values)


def _value(hint: Any) -> Any:
    if hint is Block:
        return Block("b1", "tool_result", 1_200, 2, "b1", 1, "d", 40, "estimate", tool_name="read")
    if hint in (int, float):
        return hint(7)
    if hint is str:
        return "example"
    choices = get_args(hint)
    if type(None) in choices:
        return None
    if hasattr(hint, "__origin__") and hint.__origin__ is tuple:
        return ()
    return choices[0]


def row(**changes: Any) -> SessionRow:
    plain = SessionRow(
        session_id="s", revision=1, agent="a", model="m", source="live", parent_session_id=None, started_at=0.0,
        last_at=1_000.0, ended=False, incomplete=False, turns=40, exchanges=1, events=10, windows=1,
        limit_tokens=100_000, limit_source="given", used_tokens=50_000, peak_used_tokens=93_000, utilization=0.5,
        peak_utilization=0.93, zone="yellow", worst_zone="red", velocity=100.0, turns_until_red=9.0,
        cost_dollars=1.0, input_tokens=10, output_tokens=1, cache_read_tokens=5, evicted_blocks=0,
        evicted_tokens=0, compressions=0, regrets=0, overflows=0, fidelity=None, firing=0, worst_severity=None,
        last_event="turn.ended",
    )  # fmt: skip
    return replace(plain, **changes)


def headline(given: SessionRow, **details: Any) -> str:
    return sentence(session_phrases(given, **details))


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_event_has_a_sentence(name: str) -> None:
    text = describe_event(event(made(PAYLOADS[name])))

    assert len(text) > 5
    assert "None" not in text
    assert text[0].isupper() or text.startswith("example")
    assert "\n" not in text


def test_an_eviction_names_content_turns_and_reason() -> None:
    gone = tuple(
        EvictedBlock(f"b{turn}", "tool_result", 1_500, "mask", "older than 8 turns", turn_added=turn)
        for turn in range(3, 10)
    )

    text = describe_event(event(BlocksEvicted("hybrid", gone, 10_500, 10_300)))

    assert text == (
        "Removed 7 tool results from turns 3 to 9 (10,500 tokens): older than 8 turns. "
        "10,300 tokens freed net of placeholders."
    )


@pytest.mark.parametrize(
    ("trigger", "method", "text"),
    [
        (
            "pressure",
            "extractive",
            " because the window had filled: content of 10 tokens became 4, without a model",
        ),
        ("auto", "agent", " by the agent itself: content of 10 tokens became 4"),
        ("max_ratio", "gpt-4o", " (max ratio): content of 10 tokens became 4, by gpt-4o"),
    ],
)
def test_a_compaction_names_its_reason_and_its_author(trigger: str, method: str, text: str) -> None:
    sizes = {"tokens_before": 10, "tokens_after": 4, "scope": "content"}
    compressed = replace(
        made(ContentCompressed),
        strategy="compaction",
        trigger=trigger,
        outcome="accepted",
        method=method,
        **sizes,
    )

    assert describe_event(event(compressed)) == f"Compaction{text}."


def test_an_eviction_of_unrecorded_blocks_is_not_nothing() -> None:
    text = describe_event(event(BlocksEvicted("truncated", (), 5_000, 5_000)))

    assert text == "Removed content (5,000 tokens)."


@pytest.mark.parametrize(
    ("from_turn", "interleaved", "sentence"),
    [
        (
            0,
            False,
            "Run 2 of the session continues it: its turn 1 is turn 41; content of the last run was removed.",
        ),
        (3, True, "Run 2 of the session continues it: its turn 3 is turn 43, at the same time as another run."),
    ],
)
def test_a_continued_session_names_its_turns(from_turn: int, *, interleaved: bool, sentence: str) -> None:
    data = SessionContinued("run", 2, from_turn, 40, 1, 0, interleaved)

    assert describe_event(event(data)) == sentence


def test_a_rejected_compression_does_not_claim_a_result() -> None:
    text = describe_event(
        event(ContentCompressed("compaction", "red", "rejected", 900, 950, reason="not smaller"))
    )

    assert text == "Compaction rejected: not smaller."


def test_every_kind_of_event_has_its_own_mark() -> None:
    assert "".join(MARKS) == "RCSWBN!AIP✎"
    assert {mark.letter for mark in [*MARK_OF.values(), *ALERT_MARKS.values()]} == set(MARKS)
    assert set(MARK_OF) <= set(PAYLOADS)
    assert set(NOTEWORTHY) | ROUTINE == set(PAYLOADS)
    assert len({zone_label(zone)[0] for zone in ZONES}) == len(ZONES)


def test_blocks_are_counted_by_type() -> None:
    kinds = ["tool_result", "tool_result", "thinking", "summary", "summary"]

    assert content_counts(kinds) == "2 tool results, 2 summaries and 1 thinking block"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (tokens(12_345), "12,345"),
        (tokens(None), "–"),
        (tokens(math.nan), "–"),
        (tokens(5, estimated=True), "≈5"),
        (tokens_short(940), "940"),
        (tokens_short(12_300), "12.3k"),
        (tokens_short(99_960), "100k"),
        (tokens_short(999_600), "1M"),
        (tokens_short(4_100, signed=True), "+4.1k"),
        (tokens_short(-4_100), "−4.1k"),
        (tokens_rounded(8_123), "8,123"),
        (tokens_rounded(118_000), "118k"),
        (tokens_rounded(1_050_000), "1.05M"),
        (tokens_rounded(None), "–"),
        (percent(0.874), "87%"),
        (percent(0.999), "99.9%"),
        (percent(0.9996), "99.9%"),
        (percent(0.001), "<1%"),
        (percent(1.2), "120%"),
        (dollars(0.42), "$0.42"),
        (dollars(0.0012), "$0.0012"),
        (dollars(0.00002), "<$0.0001"),
        (dollars(1_204.4), "$1,204"),
        (seconds(0.004), "4 ms"),
        (seconds(0.0002), "<1 ms"),
        (seconds(125), "2 min 5 s"),
        (turns_until(0), "now"),
        (turns_until(math.inf), "flat"),
        (turns_until(0.4), "<1"),
        (turns_band(3, 7), "3–7"),
        (turns_band(None, 7), ""),
        (count(1, "turn"), "1 turn"),
        (count(1_204, "turn"), "1,204 turns"),
        (ago(0, 130), "2 min ago"),
        (ago(None, 130), "–"),
    ],
)
def test_numbers_are_formatted_as_documented(given: str, expected: str) -> None:
    assert given == expected


def test_the_headline_of_a_session_names_its_problems() -> None:
    text = headline(
        row(compressions=2, regrets=3, evicted_blocks=12, evicted_tokens=18_400),
        worst_turn=37,
        facts=FactTotals(61, 40, 7, 13, 1, 2),
        again=largest_again(
            [("aa176f6", 9_000), ("src/a b", 10), ("/a/src/resume.go", 4_000), ("/a/src/resume.go", 4_497)]
        ),
    )

    assert text == (
        "Red at turn 37, highest 93% of 100,000 tokens; 2 compactions contradicted 1 and lost 13 of 61 facts, "
        "7 recoverable; another 12 items removed, 18,400 tokens; "
        "3 removed items were needed again (largest: resume.go, 8,497 tokens)."
    )


def test_the_headline_counts_what_is_visible_and_claims_no_absence_of_loss() -> None:
    text = headline(row(compressions=2), facts=FactTotals(27, 20, 7, 0, 0, 2))

    assert "2 compactions kept 20 of 27 facts, 7 recoverable" in text
    assert "no loss" not in text


def test_the_highest_share_is_of_the_limit_that_it_was_measured_against() -> None:
    changed = row(limit_tokens=1_000_000, peak_used_tokens=186_000, peak_utilization=186_000 / 200_000)

    assert "highest 93% of 200,000 tokens" in headline(changed)


def test_an_unknown_limit_is_not_called_green() -> None:
    text = headline(row(limit_tokens=None, peak_utilization=None, worst_zone=None))

    assert text.startswith("The limit of the window is unknown")
    assert "green" not in text


def test_the_headline_of_the_fleet_counts_sessions_that_need_attention() -> None:
    def headline(totals: FleetTotals) -> str:
        return sentence(fleet_phrases(totals))

    totals = FleetTotals({"red": 1, "green": 2, None: 901}, 3.5, 100, 80, 4, 3, 2, 1, 0, 1, 1)

    assert headline(totals) == ("2 of 3 live sessions need you (1 with a critical alert, 1 in red, 1 red soon).")
    quiet = replace(totals, live=1, live_needing_attention=0)
    assert headline(quiet) == "1 live session, none in red or with a warning."
    assert headline(replace(quiet, live=0)) == (
        "No session is live. 904 sessions recorded, 4 of them reached red."
    )
    assert headline(replace(quiet, live=0, reached_red=0)) == (
        "No session is live. 904 sessions recorded, none of them reached red."
    )


def test_an_alert_of_a_session_that_is_over_does_not_fire() -> None:
    assert "2 alerts firing" in headline(row(firing=2), live=True)
    assert "2 alerts never resolved" in headline(row(firing=2), live=False)
