"""Texts are read off the agent's path, so that a hook that needs the facts of a full window is short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from builders import manager, tool_turn

from windowpane.core.events import CheckpointSaved
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.fidelity.facts import Names, extract_facts, names_of
from windowpane.manager import readings
from windowpane.manager.readings import BATCH_CHARACTERS, MAXIMUM_READINGS, Readings
from windowpane.testing import RecordingSink, in_memory_dependencies


def source_of(n: int) -> str:
    return "\n".join(f"def name_{n}_{line}(self): return limit={line}" for line in range(120))


def test_a_hook_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def counted(text: str) -> Names:
        reads.append(len(text))
        return names_of(text)

    monkeypatch.setattr(readings, "names_of", counted)
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), evaluations=BackgroundWriter())
    with manager(sink, limit=60_000, dependencies=dependencies, preset="picoclaw", background=False) as window:
        window.add_user("Read everything.")
        most = 0
        for n in range(60):
            assert window.settle()
            before = sum(reads)
            tool_turn(window, n, result=source_of(n))
            assert window.settle()
            most = max(most, sum(reads) - before)
        window.flush()
    assert sink.of(CheckpointSaved)
    assert 0 < most <= 3 * BATCH_CHARACTERS < 60 * len(source_of(1))


def test_readings_are_the_same_ahead_and_on_demand() -> None:
    jobs: list[Callable[[], None]] = []
    ahead, in_place = Readings(lambda job, _characters: jobs.append(job)), Readings()
    with manager(RecordingSink()) as window:
        for n in range(6):
            tool_turn(window, n, result=source_of(n))
        blocks = window.blocks()
    for block in blocks:
        ahead.add(block)
    assert jobs
    for job in jobs:
        job()

    assert extract_facts(blocks, ahead.read) == extract_facts(blocks, in_place.read)
    assert extract_facts(blocks, ahead.read) == extract_facts(blocks)


def test_remembered_readings_are_bounded() -> None:
    ahead = Readings(lambda job, _characters: job())
    for n in range(MAXIMUM_READINGS + 10):
        ahead.read(f"line {n}")

    assert len(ahead._readings) <= MAXIMUM_READINGS
