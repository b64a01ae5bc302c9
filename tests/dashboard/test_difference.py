"""Before and after of a compression: what stayed, what went, what came, and what became of the facts."""

from __future__ import annotations

import time

import pytest

from windowpane_dashboard.queries.compressions import LINE_LENGTH, LINES, SCANNED, text_difference
from windowpane_dashboard.sections.compression import legend, line_markdown

HOSTILE = [
    "<script>document.title='owned'</script>",
    "**bold** [link](http://127.0.0.1:9/x) $x^2$ :fire: :red[x]",
    "![x](http://127.0.0.1:9/y.png)",
    "| a | b |",
    "- [ ] task",
    "</div><iframe src=x>",
]


def test_lines_are_the_same_gone_or_new() -> None:
    """A line that the other side has too, but for spaces and list signs, is the same."""
    found = text_difference(
        ["goal: migrate\nread file_1.py\n"], ["- goal:  migrate", "decided: keep retries"], {}
    )

    assert [line.state for line in found.before.lines] == ["same", "removed"]
    assert [line.state for line in found.after.lines] == ["same", "new"]
    assert found.before.changed == found.after.changed == 1


def test_facts_are_marked_where_they_stand() -> None:
    """Each fact carries its outcome on both sides; the longest fact wins where one is part of another."""
    facts = {"file_1.py": "lost", "file_1.py:12": "contradicted", "retries": "kept", "py": "lost"}

    found = text_difference(["see file_1.py:12 and file_1.py"], ["keep retries"], facts)

    before = [(piece.text, piece.outcome) for piece in found.before.lines[0].pieces]
    assert before == [("see ", None), ("file_1.py:12", "contradicted"), (" and ", None), ("file_1.py", "lost")]
    assert found.after.lines[0].pieces[-1].outcome == "kept"
    assert "✓ kept" in legend(found)
    assert "✕ lost" in legend(found)
    assert "recoverable" not in legend(found)


@pytest.mark.parametrize("line", HOSTILE)
def test_no_character_of_a_line_is_markup(line: str) -> None:
    """What Markdown, HTML or Streamlit would make something of is escaped, marked as a fact or not."""
    for facts in ({}, {line: "lost"}):
        shown = text_difference([line], [], facts).before.lines[0]
        words = line_markdown(shown)
        for sign in ("<", "[", "*", "|", "$"):
            bare = words.replace(f"\\{sign}", "").replace(":red-background[", "")
            assert sign not in bare


def test_control_and_direction_characters_are_shown_as_such() -> None:
    """Nothing turns a line around, rings a bell or ends it."""
    words = line_markdown(text_difference(["a\u202egnp.exe\x07\x1b[31m\u200f"], [], {}).before.lines[0])

    assert not any(character in words for character in "\u202e\x07\x1b\u200f")
    assert words.count("\ufffd") == 4


def test_endless_texts_cost_and_show_little() -> None:
    """A 10 MB line, a word of a million characters and many lines are cut, and how much is said."""
    begun = time.perf_counter()
    found = text_difference(
        ["x" * 10_000_000], ["w" * 1_000_000] + [f"line {n}" for n in range(5_000)], {"x" * 900: "lost"}
    )

    assert all(sum(len(p.text) for p in line.pieces) < LINE_LENGTH + 40 for line in found.before.lines)
    assert f"{SCANNED - LINE_LENGTH:,} characters" in found.before.lines[0].pieces[-1].text or len(
        found.before.lines[0].pieces
    )
    many = text_difference([], [f"line {n}" for n in range(5_000)], {}).after
    assert len(many.lines) == LINES
    assert many.omitted == 5_000 - LINES
    assert time.perf_counter() - begun < 30
