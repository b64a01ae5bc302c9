"""Numbers of a replacement against the text that it replaced."""

from __future__ import annotations

import pytest
from tests.fidelity.test_faithfulness import CONVERSATION, SUMMARY, block, faithfulness

from windowpane.fidelity.probe import evaluate

SOURCE = (
    "Lock files older than 30 minutes are stale, as staleLockThreshold says.",
    "The exporter writes 12 panels into the dashboard of the team.",
    "Idle sessions end after a 10-minute grace period of the worker.",
    "The damaged rows are skipped in reader.py:236-246 of the importer.",
    "The archive of the team holds 100 reports of the nightly build.",
    "Some reports of the nightly build have 1000 lines.",
)


def doubt_about(claim: str) -> float:
    """Return the doubt of a summary of which one statement of five is *claim*."""
    return 5 * (1 - faithfulness(f"{SUMMARY}- {claim}\n", (*CONVERSATION, *SOURCE)))


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("Lock files older than 30 minutes are stale", "Lock files older than 90 minutes are stale"),
        ("Exporter writes 12 panels into the dashboard", "Exporter writes 14 panels into the dashboard"),
        ("Idle sessions end after a 10-minute grace period", "Idle sessions end after a 40-minute grace period"),
        ("Skipped damaged rows in reader.py:236-246", "Skipped damaged rows in reader.py:536-246"),
        ("Skipped damaged rows in reader.py:236-246", "Skipped damaged rows in reader.py:236-846"),
        ("Archive of the team holds 100 reports", "Archive of the team holds 1000 reports"),
    ],
)
def test_another_number_beside_the_same_word_is_doubted(claim: str, changed: str) -> None:
    """14 occurs elsewhere in the conversation: it is doubted beside `panels`."""
    assert doubt_about(claim) == 0
    assert doubt_about(changed) > 0.2


def test_a_number_that_is_stated_on_both_sides_elsewhere_is_not_doubted() -> None:
    """Sentences about two panels or two phases have different numbers beside the same words."""
    removed = (*CONVERSATION, *SOURCE, "In staging the exporter writes 14 panels to keep the page short.")
    summary = f"{SUMMARY}- The exporter writes 14 panels into the dashboard of the team\n"

    assert faithfulness(summary, removed) == 1.0


def test_the_list_of_a_summary_does_not_speak_against_itself() -> None:
    """Items in the same words have different numbers, as lists of files have different lines."""
    items = "".join(f"- Comment of the worker on line {line} of the archive\n" for line in (31, 84, 97))

    removed = (*CONVERSATION, "Builds 31, 84 and 97 were slow.")

    assert faithfulness(SUMMARY + items, removed) > 0.98


def test_a_statement_too_short_to_be_checked_supports_a_number() -> None:
    """The item has a count and one word; a longer one would be a statement of the summary itself."""
    claim = "Team has added 14 panels to the dashboard"

    assert doubt_about(f"{claim}\n- 14 panels") < doubt_about(claim) - 0.1


def test_a_word_with_many_numbers_speaks_against_none() -> None:
    """Text about code has any number after `line`."""
    removed = (*CONVERSATION, *(f"Skipped damaged rows of the importer in line {n}" for n in range(20, 31)))
    few, many = removed[:-3], removed
    summary = f"{SUMMARY}- Skipped damaged rows of the importer in line 14\n"

    assert faithfulness(summary, few) < 0.9
    assert faithfulness(summary, many) > 0.98


def test_a_count_that_the_text_does_not_state_is_hardly_doubted() -> None:
    """A summary counts, and nothing in the text speaks against 2 of these sentences."""
    assert doubt_about("The team discussed both dashboards in 2 long sentences") < 0.05


def test_tool_output_supports_a_number() -> None:
    """A line that has the number beside the same word, though the model wrote another one about it."""
    summary = f"{SUMMARY}- Exporter writes 14 panels into the dashboard\n"
    blocks = [block(text, n=n) for n, text in enumerate((*CONVERSATION, *SOURCE))]
    output = block("exporter: wrote 14 panels into dashboard", "tool_result", n=len(blocks))

    without = evaluate(blocks, [block(summary, "summary")], digest=str).faithfulness
    supported = evaluate([*blocks, output], [block(summary, "summary")], digest=str).faithfulness

    assert without is not None
    assert supported is not None
    assert supported > without + 0.03


def test_the_number_of_a_list_item_is_not_checked() -> None:
    """Items are numbered by the summary itself."""
    assert doubt_about("x\n3. The exporter writes panels into the dashboard of the team") < 0.05
