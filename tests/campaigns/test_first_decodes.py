"""Campaign: threads of a new process that decode a type for the first time together; the process lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaigns.conftest import Campaign

_PROGRAM = """
import sys, threading, windowpane
from windowpane.core.events import Event, EventContext
{prepare}
barrier = threading.Barrier(8)
def run(number):
    {before}
    barrier.wait()
    {together}
    finished.append(number)
finished = []
threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
sys.setswitchinterval(1e-6)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(len(finished) != len(threads))
"""
_READ_EVENTS = """
from windowpane.core.codec import decode, encode
from windowpane.core.events import (
    BlocksEvicted, EvictedBlock, FactOutcome, FidelityEvaluated, RuleOutcome, RulesFollowed, TurnEnded, Usage
)
payloads = [
    TurnEnded(Usage(10), "usage"),
    BlocksEvicted("relevance", (EvictedBlock("b", "tool_result", 9, "mask", "old", 0.5, {"age": 0.5}),), 9, 8),
    FidelityEvaluated("probe", 1.0, 1.0, facts=(FactOutcome("number", "kept", "d"),)),
    RulesFollowed("e", 1, user={"kept": 1}, outcomes=(RuleOutcome("kept", "user", "d"),)),
]
context = EventContext("s", "a", "m", 1, 1, "live", "s")
lines = [encode(Event(context, number, 1.0, payload)) for number, payload in enumerate(payloads)]
"""
_OPEN_WINDOW = """window = windowpane.ContextWindowManager(
        agent="a", model="gpt-4o", limit_tokens=16_000, data_folder=f"{sys.argv[1]}/{number}"
    )
    window.add_user("Go.")
    window.on_turn_start()"""
_END_TURN = """window.on_turn_end({
        "object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "Done."}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 3},
    })
    window.close()"""
_FIRSTS = {
    "cost of a turn": ("from windowpane.models.prices import price_list", "pass", "price_list()"),
    "events of a store": (_READ_EVENTS, "pass", "[decode(line) for line in lines]"),
    "turn of a managed agent": ("", _OPEN_WINDOW, _END_TURN),
}


@pytest.mark.parametrize("first", _FIRSTS)
def test_threads_that_decode_a_type_for_the_first_time_together(
    campaign: Campaign, tmp_path: Path, first: str
) -> None:
    prepare, before, together = _FIRSTS[first]
    program = _PROGRAM.format(prepare=prepare, before=before, together=together)
    tried = campaign.attempts(sample=3, whole=200)
    ends = [_end(program, tmp_path / str(number)) for number in range(tried)]
    campaign.record(
        f"first decodes in 8 threads: {first}",
        tried=tried,
        held=ends.count(0),
        note="processes; switches each µs",
    )
    assert set(ends) == {0}


def _end(program: str, folder: Path) -> int:
    """Return the exit code of a new process; the negative number of a signal that killed it."""
    command = [sys.executable, "-X", "faulthandler", "-c", program, str(folder)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode
