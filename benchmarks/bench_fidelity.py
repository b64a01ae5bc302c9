"""Probe fidelity of a 100,000-token compaction against one plain tokenization of the same text.

With `--recordings` also what the probe and the following of rules take of an import of WINDOWPANE_SESSIONS_DIR.
"""

from __future__ import annotations

import random
import re
import sys
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from truth.recordings import Session, recorded_sessions

from windowpane.core.digests import keyed_digester
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity import probe
from windowpane.fidelity.probe import evaluate
from windowpane.fidelity.rule_record import RuleRecord
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events

BLOCKS = 200
TOKENS = 100_000
REPEATS = 7
LIMIT = 6.0


def conversation(start: int = 7) -> list[Block]:
    """Prose, code, paths and errors of about 400,000 characters."""
    chance = random.Random(start)
    texts = [f"word{n}" if n % 5 else f"name_{n}" for n in range(3_000)] + ["must", "decided", "next", "because"]
    texts += [f"src/module_{n}/file_{n}.py" for n in range(150)] + [f"limit: {n}" for n in range(100)]
    kinds: list[ContentType] = ["assistant_response", "tool_call", "tool_result", "tool_result"]
    blocks = []
    for n in range(BLOCKS):
        lines = []
        while sum(map(len, lines)) < 4 * TOKENS // BLOCKS:
            lines.append(" ".join(chance.choices(texts, k=9)) + ".")
        text = "\n".join(lines)
        blocks.append(
            Block(f"b{n}", kinds[n % 4], TOKENS // BLOCKS, n, f"b{n}", 1, str(n), len(text), "estimate", text)
        )
    return blocks


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


class ImportCost(NamedTuple):
    """Cost of fidelity where recordings are played as by an import: of all, and of those with a compaction."""

    megabytes: float
    played_ms: float
    """CPU time per MB of the files, with fidelity."""
    fidelity_ms: float
    compacted_megabytes: float
    compacted_fidelity_ms: float
    peak_kilobytes: float
    """Most memory that one evaluation took."""

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.0f} MB of recordings take {self.played_ms:.1f} ms of CPU time per MB from records "
            f"to events, of which fidelity takes {self.fidelity_ms:.1f} ms. Of the "
            f"{self.compacted_megabytes:.0f} MB with a compaction it takes {self.compacted_fidelity_ms:.1f} ms "
            f"per MB. One evaluation takes at most {self.peak_kilobytes:,.0f} kB of memory"
        )


class Meter:
    """CPU time of calls; while it traces, their memory instead."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.peak_kilobytes = 0.0
        self.traces = False

    def measured(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return *work* with its calls measured."""

        def call(*arguments: Any, **options: Any) -> Any:
            if self.traces:
                tracemalloc.start()
            started = time.process_time()
            result = work(*arguments, **options)
            self.seconds += time.process_time() - started
            if self.traces:
                self.peak_kilobytes = max(self.peak_kilobytes, tracemalloc.get_traced_memory()[1] / 1e3)
                tracemalloc.stop()
            return result

        return call


def import_cost(sessions: Sequence[Session]) -> ImportCost:
    """Play *sessions* from their records, and measure the probe and the following of rules within."""
    meter, originals = Meter(), (probe.evaluate, RuleRecord.measure)
    probe.evaluate, RuleRecord.measure = map(meter.measured, originals)  # type: ignore[method-assign]
    try:
        started = time.process_time()
        spent = {}
        for session in sessions:
            before = meter.seconds
            play(session)
            spent[session.key] = meter.seconds - before
        played = time.process_time() - started
        compacted = [session for session in sessions if spent[session.key]]
        meter.traces = True
        for session in compacted:
            play(session)
    finally:
        probe.evaluate, RuleRecord.measure = originals  # type: ignore[method-assign]
    size, compacted_size = megabytes(sessions), megabytes(compacted)
    fidelity = 1e3 * sum(spent.values())
    return ImportCost(
        size, 1e3 * played / size, fidelity / size,
        compacted_size, fidelity / compacted_size, meter.peak_kilobytes,
    )  # fmt: skip


def megabytes(sessions: Sequence[Session]) -> float:
    """Return the size of the files of *sessions*."""
    return sum(path.stat().st_size for path in {session.path for session in sessions}) / 1e6


def play(session: Session) -> None:
    """Make the events of a session as an import does."""
    playback = playback_settings(keyed_digester(b"fidelity"))
    deque(session_events(session.records, key=session.key, source=session.format, playback=playback), maxlen=0)


def main() -> None:
    """Print the ratio, and the cost of an import of recordings."""
    removed = conversation()
    visible = removed[: BLOCKS // 10]
    text = "\n".join(block.text or "" for block in removed)
    floor = fastest(lambda: re.findall(r"\w+|[^\w\s]", text))
    probe = fastest(lambda: evaluate(removed, visible, digest=str.upper))
    ratio = probe / floor
    print(
        f"probe fidelity, {TOKENS:,} tokens: {probe * 1e3:.1f} ms; re tokenization: {floor * 1e3:.1f} ms; "
        f"ratio {ratio:.2f} (limit {LIMIT}) {'ok' if ratio <= LIMIT else 'ABOVE'}"
    )

    if "--recordings" in sys.argv:
        print(import_cost(recorded_sessions()))


if __name__ == "__main__":
    main()
