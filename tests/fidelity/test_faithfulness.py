"""Faithfulness: a summary states nothing that the replaced content speaks against, however short it is."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.probe import evaluate

CONVERSATION = (
    "The exporter must keep the old metric names because two dashboards read them.",
    "I moved the retry loop into src/client/retry.py and it now waits 250 milliseconds between attempts.",
    "The integration tests of the billing service are not finished yet, three fail on the staging host.",
    "The release branch was created from the main branch on Monday and carries 14 commits.",
    "The nightly build uploads its report to the archive of the team.",
    "Users of the old client see a warning at each start of the program.",
    "The parser reads every line of the transcript and skips damaged rows.",
    "We decided to store the parsed settings in cache.json since parsing takes seconds.",
)
SUMMARY = (
    "- The exporter must keep its old metric names, two dashboards read them\n"
    "- Retry loop moved to src/client/retry.py, waits 250 milliseconds between attempts\n"
    "- Integration tests of billing are not finished, three fail on the staging host\n"
    "- Release branch created from main on Monday, carries 14 commits\n"
)


def block(text: str, content_type: ContentType = "assistant_response", n: int = 0) -> Block:
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    return Block(f"b{n}", content_type, len(text) // 4, n, f"b{n}", 1, digest, len(text), "estimate", text)


def faithfulness(summary: str, removed: tuple[str, ...] = CONVERSATION) -> float:
    blocks = [block(text, n=n) for n, text in enumerate(removed)]
    value = evaluate(blocks, [block(summary, "summary")], digest=str).faithfulness
    assert value is not None
    return value


def test_a_short_true_summary_is_faithful() -> None:
    assert faithfulness(SUMMARY) == 1.0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("must keep", "must not keep"),
        ("are not finished", "are finished"),
        ("moved to", "not moved to"),
        ("waits 250", "waits 520"),
        ("carries 14", "carries 41"),
        ("src/client/retry.py", "src/client/entry.py"),
    ],
)
def test_a_changed_negation_number_or_name_is_not_faithful(before: str, after: str) -> None:
    changed = SUMMARY.replace(before, after)
    assert changed != SUMMARY

    assert 0.6 < faithfulness(changed) < 0.95


def test_the_statements_beside_a_deleted_one_are_still_faithful() -> None:
    shorter = SUMMARY.split("\n", 1)[1]
    blocks = [block(text, n=n) for n, text in enumerate(CONVERSATION)]

    whole = evaluate(blocks, [block(SUMMARY, "summary")], digest=str)
    less = evaluate(blocks, [block(shorter, "summary")], digest=str)

    assert less.faithfulness == whole.faithfulness == 1.0
    assert less.score is not None
    assert whole.score is not None
    assert less.score < whole.score


def test_the_closest_evidence_decides() -> None:
    removed = (*CONVERSATION, "The integration tests of the payment service are finished.")

    assert faithfulness(SUMMARY, removed) == 1.0


def test_the_rest_of_the_summary_is_evidence_too() -> None:
    summary = (
        SUMMARY + "- The archive job is not scheduled on the worker\n- Archive job of the worker: not scheduled\n"
    )

    assert faithfulness(summary) == 1.0


def test_nothing_to_check_is_unknown() -> None:
    blocks = [block(text, n=n) for n, text in enumerate(CONVERSATION)]

    assert evaluate(blocks, [block("ok", "summary")], digest=str).faithfulness is None
