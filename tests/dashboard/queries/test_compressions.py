"""Compressions: evaluations, facts, and the difference of both texts."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from windowpane.core.events import (
    ContentCompressed,
    Event,
    EventContext,
    FactOutcome,
    FidelityEvaluated,
    Payload,
)
from windowpane.store.embedded import SqliteStore
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import StoredEvent
from windowpane_dashboard.queries.compressions import (
    LINE_LENGTH,
    LINES,
    SCANNED,
    EvaluatedCompression,
    compression_label,
    damage_summary,
    facts_frame,
    facts_summary,
    first_to_read,
    pair_compressions,
    read_compressions,
    sides,
    text_difference,
    worst_first,
)
from windowpane_dashboard.sections.compression import legend, line_markdown

HOSTILE = [
    "<script>document.title='owned'</script>",
    "**bold** [link](http://127.0.0.1:9/x) $x^2$ :fire: :red[x]",
    "![x](http://127.0.0.1:9/y.png)",
    "| a | b |",
    "- [ ] task",
    "</div><iframe src=x>",
]


def test_lines_are_the_same_removed_or_new() -> None:
    result = text_difference(
        ["goal: migrate\nread file_1.py\n"], ["- goal:  migrate", "decided: keep retries"], {}
    )

    assert [line.state for line in result.before.lines] == ["same", "removed"]
    assert [line.state for line in result.after.lines] == ["same", "new"]


@pytest.mark.parametrize(
    ("facts", "first"),
    [
        ({"pull/2": "contradicted", "pr/2": "contradicted", "line 90": "lost"}, ("line 59", "line 29")),
        ({"line 90": "lost", "line 10": "kept"}, ("line 89", "line 19")),
        ({}, ("line 19", "line 19")),
    ],
    ids=["contradicted", "lost", "different"],
)
def test_both_sides_open_at_the_first_line_to_read(facts: dict[str, str], first: tuple[str, str]) -> None:
    """The texts differ from line 20 on; one contradicts the other in lines 60 and 30."""
    before = [f"line {number}" for number in range(20)] + [f"before {number}" for number in range(20, 100)]
    after = [f"line {number}" for number in range(20)] + [f"after {number}" for number in range(20, 40)]
    before[59:61], after[29:31], before[89:91] = (
        ["line 59", "pull/2"],
        ["line 29", "pr/2"],
        ["line 89", "line 90"],
    )

    result = text_difference(before, after, facts)

    opened = [side.lines[0].pieces[0].text for side in (result.before, result.after)]
    assert opened == list(first)
    assert result.before.omitted == 100 - len(result.before.lines)


def test_facts_are_marked_in_the_text() -> None:
    facts = {"file_1.py": "lost", "file_1.py:12": "contradicted", "retries": "kept", "py": "lost"}

    result = text_difference(["see file_1.py:12 and file_1.py"], ["keep retries"], facts)

    before = [(piece.text, piece.outcome) for piece in result.before.lines[0].pieces]
    assert before == [("see ", None), ("file_1.py:12", "contradicted"), (" and ", None), ("file_1.py", "lost")]
    assert result.after.lines[0].pieces[-1].outcome == "kept"
    assert "✓ kept" in legend(result)
    assert "✕ lost" in legend(result)
    assert "recoverable" not in legend(result)


@pytest.mark.parametrize("line", HOSTILE)
def test_no_character_of_a_line_is_markup(line: str) -> None:
    for facts in ({}, {line: "lost"}):
        visible = text_difference([line], [], facts).before.lines[0]
        markdown = line_markdown(visible)
        for symbol in ("<", "[", "*", "|", "$"):
            bare = markdown.replace(f"\\{symbol}", "").replace(":red-background[", "")
            assert symbol not in bare


def test_control_and_direction_characters_are_replaced() -> None:
    markdown = line_markdown(text_difference(["a\u202egnp.exe\x07\x1b[31m\u200f"], [], {}).before.lines[0])

    assert not any(character in markdown for character in "\u202e\x07\x1b\u200f")
    assert markdown.count("\ufffd") == 4


def test_long_texts_are_cut() -> None:
    started = time.perf_counter()
    result = text_difference(
        ["x" * 10_000_000], ["w" * 1_000_000] + [f"line {n}" for n in range(5_000)], {"x" * 900: "lost"}
    )

    assert all(sum(len(p.text) for p in line.pieces) < LINE_LENGTH + 40 for line in result.before.lines)
    assert f"{SCANNED - LINE_LENGTH:,} characters" in result.before.lines[0].pieces[-1].text or len(
        result.before.lines[0].pieces
    )
    many = text_difference([], [f"line {n}" for n in range(5_000)], {}).after
    assert len(many.lines) == LINES
    assert many.omitted == 5_000 - LINES
    assert time.perf_counter() - started < 30


def test_a_compression_is_paired_with_its_evaluation(small_store: SqliteStore) -> None:
    result = read_compressions(small_store, "refactor-api")
    assert len(result) == 1
    before, after = sides(small_store, "refactor-api", result[0])
    fidelity = result[0].fidelity
    assert fidelity is not None

    facts = facts_frame(small_store, fidelity)
    assert len(before.blocks) == len(result[0].data.removed)
    assert [block.content_type for block in after.blocks] == ["summary"]
    assert not before.captured
    assert list(facts["outcome"])[:3] == ["contradicted", "lost", "lost"]
    assert facts["text"].isna().all()


def test_a_contradicted_fact_is_listed_first() -> None:
    contents = {"a": "src/app.py", "b": "Never push.\nAlways push."}
    facts = (FactOutcome("read_file", "kept", "a"), FactOutcome("reversed", "contradicted", "b"))
    fidelity = FidelityEvaluated(
        "probe", 0.5, 1.0, facts=facts, facts_total=2, facts_kept=1, facts_contradicted=1
    )

    frame = facts_frame(cast("EventReader", SimpleNamespace(content=contents.get)), fidelity)

    assert frame[["outcome", "text"]].to_numpy().tolist() == [
        ["contradicted", "Never push."],
        ["kept", "src/app.py"],
    ]
    assert facts_summary(fidelity) == "Of 2 facts: 1 contradicted, 1 kept."


def stored(*payloads: Payload, turn: int = 5) -> list[StoredEvent]:
    context = EventContext("s", "a", "m", turn, 1, "live", "stream")
    return [
        StoredEvent(10 + index, 1, counted=True, hash="", event=Event(context, index, None, data))
        for index, data in enumerate(payloads)
    ]


def test_the_worst_compression_is_read_first_unless_a_turn_is_chosen() -> None:
    done = ContentCompressed("compaction", "threshold", "accepted", 900, 100)
    wrong = FidelityEvaluated("probe", 0.5, 1.0, facts_total=4, facts_contradicted=1)
    lost = FidelityEvaluated("probe", 0.5, 1.0, facts_total=9, facts_lost=7)
    recorded = [
        EvaluatedCompression(1, 5, done, wrong),
        EvaluatedCompression(2, 9, done, None),
        EvaluatedCompression(3, 20, done, lost),
    ]

    assert [compression_label(recorded[at]) for at in worst_first(recorded)] == [
        "turn 5: contradicted 1", "turn 20: lost 7", "turn 9: loss unknown",
    ]  # fmt: skip
    assert (
        damage_summary(recorded) == "2 of 2 compactions lost or contradicted something; of 1 more it is unknown."
    )
    assert first_to_read(recorded, 12, is_turn_chosen=False) == 0
    assert first_to_read(recorded, 12, is_turn_chosen=True) == 1
    assert first_to_read(recorded[1:2], 30, is_turn_chosen=False) == 0


class TestCompressions:
    DONE = ContentCompressed("compaction", "threshold", "accepted", 900, 100)

    def test_an_evaluation_belongs_to_the_compression_it_names(self) -> None:
        first, second = stored(self.DONE, self.DONE)
        evaluation = FidelityEvaluated("probe", 0.4, 1.0, of=first.event.event_id)
        evaluated = replace(second, seq=30, event=second.event._replace(n=9, data=evaluation))

        result = pair_compressions([first, second, evaluated])

        assert [None if one.fidelity is None else one.fidelity.score for one in result] == [0.4, None]

    def test_the_first_evaluation_of_a_compression_counts(self) -> None:
        result = pair_compressions(
            stored(self.DONE, FidelityEvaluated("probe", 0.4, 1.0), FidelityEvaluated("judge", 0.9, 1.0))
        )

        assert [one.fidelity.score for one in result if one.fidelity] == [0.4]


def test_all_of_a_long_text_can_be_read() -> None:
    lines = [f"line {number} " + "x" * (600 if number == 3 else 1) for number in range(1_000)]
    start = text_difference(["\n".join(lines)], ["line 7 x"], {})
    assert not start.is_whole

    parts = [
        text_difference(["\n".join(lines)], ["line 7 x"], {}, part=number) for number in range(1, start.parts + 1)
    ]

    texts = ["".join(piece.text for piece in line.pieces) for part in parts for line in part.before.lines]
    assert texts == lines
    assert [line.state for line in parts[0].before.lines].count("same") == 1
