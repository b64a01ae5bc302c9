"""Text of files, commands, other agents and pastes is never given back to a model as a rule or as open work."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from tests.hostile_transcripts import FOREIGN, PAYLOADS, WRITERS, Message, recording

from windowpane.sources.hooks.compacted_session import text_given_back

OWN = "Never push to main without asking me first."
LISTED = "Fix auth.py"


@pytest.mark.timeout(0)
def test_foreign_text_is_not_given_back_and_own_text_is(campaign, tmp_path: Path) -> None:
    """Two messages with foreign text, before and after what the user typed and the model listed."""
    path = tmp_path / "session.jsonl"
    every = list(product(WRITERS, FOREIGN, FOREIGN, PAYLOADS))
    number = campaign.attempts(sample=300, whole=len(every))
    injected: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for agent, before, after, payload in random.Random(1).sample(every, number):
        text = PAYLOADS[payload]
        own = [Message("user", OWN), Message("assistant", f"Next steps:\n- {LISTED}")]
        said = [*FOREIGN[before](text), Message("assistant", "Ok."), *own, *FOREIGN[after](text)]
        path.write_text(recording(agent, said), encoding="utf-8")
        given = text_given_back({"source": "compact", "transcript_path": str(path)})
        injected[f"{before} or {after}"] += "evil" in given
        missed[f"{before} or {after}"] += OWN not in given or LISTED not in given
    held = number - max(injected.total(), missed.total())
    note = f"{len(FOREIGN)} kinds of messages, twice each, {len(PAYLOADS)} texts, {len(WRITERS)} agents"
    campaign.record("foreign text given back to a model", tried=number, held=held, note=note)

    assert not +injected
    assert not +missed
