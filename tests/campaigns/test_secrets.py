"""Secrets of 200 kinds in 100 contexts do not survive redaction, and recorded sessions do."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import composed_secrets
import pytest
from composed_secrets import HELD_OUT, composed
from made_up_secrets import Case, cases, remains
from tests.recorded_texts import recorded_texts

from windowpane.core.redaction import join_split_secrets, redact

MINIMUM_RECALL = 0.97
MINIMUM_COMPOSED_RECALL = 0.70
MAXIMUM_FALSE_ALARMS = 1.0
"""In a million characters."""


def redacted(texts: tuple[str, ...]) -> list[str]:
    return [redact(text).text for text in join_split_secrets(texts)]


@pytest.mark.timeout(0)
def test_secrets_are_found_whatever_they_are_written_in(campaign) -> None:
    """At least 97 of 100 made-up secrets are replaced, over all kinds and within each kind of context."""
    rounds = campaign.attempts(sample=1, whole=20)
    tried: Counter[str] = Counter()
    found: Counter[str] = Counter()
    missed: list[Case] = []
    for number in range(rounds):
        chosen = list(cases(number))
        if not campaign.whole:
            chosen = random.Random(number).sample(chosen, 3_000)
        for case in chosen:
            tried[case.kind] += 1
            if remains(case, redacted(case.texts)):
                missed.append(case)
            else:
                found[case.kind] += 1
    for kind in sorted(tried, key=lambda kind: found[kind] / tried[kind]):
        print(f"{kind:32}{found[kind] / tried[kind]:8.1%} of {tried[kind]}")
    recall = found.total() / tried.total()
    campaign.record(
        "secrets in texts",
        tried=tried.total(),
        held=found.total(),
        note=f"recall {recall:.2%} over {len(tried)} kinds",
    )

    assert recall >= MINIMUM_RECALL, [(case.kind, case.context) for case in missed[:20]]


@pytest.mark.timeout(0)
def test_recorded_sessions_stay_as_they_are(campaign, sessions_dir: Path) -> None:
    characters, alarms = 0, []
    budget = campaign.attempts(sample=1_500_000, whole=1_000_000_000)
    for text in recorded_texts(sessions_dir):
        characters += len(text)
        alarms += [kind for kind, count in redact(text).counts.items() for _ in range(count)]
        if characters > budget:
            break
    rate = len(alarms) / max(characters, 1) * 1e6
    campaign.record(
        "redaction of recorded sessions",
        tried=characters,
        held=characters - len(alarms),
        note=f"characters; {rate:.2f} false alarms in a million",
    )

    assert rate <= MAXIMUM_FALSE_ALARMS, Counter(alarms)


@pytest.mark.timeout(0)
def test_composed_secrets_of_the_half_that_no_rule_was_tuned_on(campaign) -> None:
    tried: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for number in range(campaign.attempts(sample=1, whole=10)):
        for case in composed(number, HELD_OUT):
            is_missed = composed_secrets.remains(case, redact(case.text).text)
            for kind in ("all", case.sort, case.document, case.encoding):
                tried[kind] += 1
                missed[kind] += is_missed
    worst = sorted((kind for kind in tried if kind != "all"), key=lambda kind: -missed[kind] / tried[kind])
    for kind in worst:
        print(f"{kind:28}{1 - missed[kind] / tried[kind]:8.1%} of {tried[kind]}")
    recall = 1 - missed["all"] / tried["all"]
    kinds = ", ".join(f"{kind} {1 - missed[kind] / tried[kind]:.0%}" for kind in worst[:12])
    campaign.record(
        "secrets composed from grammars, held-out half",
        tried=tried["all"],
        held=tried["all"] - missed["all"],
        note=f"recall {recall:.1%}; lowest: {kinds}",
    )

    assert recall >= MINIMUM_COMPOSED_RECALL
