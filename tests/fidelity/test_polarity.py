"""Negations of a replacement against the text that it replaced."""

from __future__ import annotations

import pytest
from tests.fidelity.test_faithfulness import CONVERSATION, SUMMARY, faithfulness

from windowpane.fidelity.clauses import read_terms

SOURCE = (
    "The migration script keeps the old columns of the orders table until the release.",
    "The billing worker does not retry failed payments on weekends.",
    "I have integrated the timestamp check into the resume command.",
    "The cache of the parser is enabled for large transcripts.",
)


def doubt_about(claim: str, *sources: str) -> float:
    """Return the doubt of a summary of which one statement of five is *claim*."""
    return 5 * (1 - faithfulness(f"{SUMMARY}- {claim}\n", (*CONVERSATION, *SOURCE, *sources)))


@pytest.mark.parametrize(
    ("true", "false"),
    [
        (
            "Timestamp check is integrated into the resume command",
            "Timestamp check isn't integrated into the resume command",
        ),
        (
            "Billing worker does not retry failed payments on weekends",
            "Billing worker does retry failed payments on weekends",
        ),
        (
            "Cache of the parser is enabled for large transcripts",
            "Cache of the parser was never enabled for large transcripts",
        ),
        (
            "Migration script keeps old columns of the orders table",
            "Migration script cannot keep old columns of the orders table",
        ),
    ],
)
def test_the_opposite_of_a_sentence_is_doubted(true: str, false: str) -> None:
    assert doubt_about(true) < 0.05
    assert doubt_about(false) > 0.3


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "The retry limit was not added to the upload client",
            "I should add the retry limit to the upload client.",
        ),
        ("The retry limit was not added to the upload client", "- Add the retry limit to the upload client"),
        ("The retry limit was not added to the upload client", "Was the retry limit added to the upload client?"),
        (
            "Uses git clone of the website instead of copying files",
            "Why don't you use git clone of the website?",
        ),
        ("I incorrectly claimed the font path was a live bug", "Correction: the font path was not a live bug."),
        ("Tests of the upload client have not been run yet", "I ran the tests of the upload client."),
    ],
)
def test_a_plan_a_question_and_a_report_are_weak_evidence(claim: str, source: str) -> None:
    """They are about what is wanted, asked or believed, and what was not done yet may have been done since."""
    assert doubt_about(claim, source) < 0.42


def test_the_context_decides_what_a_negation_is_about() -> None:
    assert (
        doubt_about("The parser is enabled in the nightly build", "The proxy is not enabled on staging hosts.")
        == 0
    )


def test_a_sentence_is_read_into_terms() -> None:
    terms = {term.text: term for term in read_terms("The worker is not fully started, it runs without the lock.")}

    assert terms["start"].negated
    assert terms["lock"].limited
    assert not terms["lock"].negated
    assert not terms["work"].limited
