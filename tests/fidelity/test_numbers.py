"""Numbers of a replacement against the text that it replaced."""

from __future__ import annotations

import pytest
from tests.fidelity.test_faithfulness import CONVERSATION, SUMMARY, block, faithfulness

from windowpane.fidelity.probe import evaluate

SOURCE = (
    "Lock files older than 30 minutes are stale, as staleLockThreshold says.",
    "The exporter writes 12 panels into the dashboard of the team.",
)


def doubt_about(claim: str) -> float:
    """Return the doubt of a summary of which one statement of five is *claim*."""
    return 5 * (1 - faithfulness(f"{SUMMARY}- {claim}\n", (*CONVERSATION, *SOURCE)))


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("Lock files older than 30 minutes are stale", "Lock files older than 90 minutes are stale"),
        ("Exporter writes 12 panels into the dashboard", "Exporter writes 14 panels into the dashboard"),
    ],
)
def test_another_number_beside_the_same_word_is_doubted(claim: str, changed: str) -> None:
    assert doubt_about(claim) == 0
    assert doubt_about(changed) > 0.2


def test_a_count_that_the_text_does_not_state_is_hardly_doubted() -> None:
    assert doubt_about("The team discussed both dashboards in 2 long sentences") < 0.05


def test_tool_output_supports_a_number() -> None:
    summary = f"{SUMMARY}- Exporter writes 14 panels into the dashboard\n"
    blocks = [block(text, n=n) for n, text in enumerate((*CONVERSATION, *SOURCE))]
    output = block("exporter: wrote 14 panels into dashboard", "tool_result", n=len(blocks))

    without = evaluate(blocks, [block(summary, "summary")], digest=str).faithfulness
    supported = evaluate([*blocks, output], [block(summary, "summary")], digest=str).faithfulness

    assert without is not None
    assert supported is not None
    assert supported > without + 0.03


def test_the_number_of_a_list_item_is_not_checked() -> None:
    assert doubt_about("x\n3. The exporter writes panels into the dashboard of the team") < 0.05
