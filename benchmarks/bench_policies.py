"""Every policy, preset and both baselines over recorded sessions; writes `POLICIES.md` beside this file.

The sessions are those of the folder that WINDOWPANE_SESSIONS_DIR names. They are split in two halves of like
sizes: parameters may be tuned on one, the other is reported. The default policy is held against each baseline
with tokens sent matched by sweeping the baseline's setting, and against every preset as it is and with the
default's thresholds swept until it sends as much; the intervals are 90% of a paired bootstrap by session, and
inconclusive where they include zero.
`--half tuning` prints the tuning half and writes nothing; `--quick` skips the long windows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Protocol

from policies.pooled import pooled
from policies.preface import PREFACE
from policies.report import DEFAULT, Matched, Studied, chapter, values_of, verdicts
from policies.results import refresh_results

from windowpane.evaluation.replay import (
    JoinedSource,
    PreparedRecording,
    ReplayRun,
    ReplaySetup,
    find_recordings,
    simulate,
)
from windowpane.evaluation.replay.recordings import RecordingSource
from windowpane.evaluation.replay.setups import parse_thresholds, preset_names
from windowpane.manager.levels import Levels
from windowpane.manager.plans.policies import POLICIES

TARGET = Path(__file__).with_name("POLICIES.md")
LIMITS = (8_192, 32_768)
LONG_LIMITS = (131_072, 200_000)
JOINED_SHARE = 1.1
"""Sessions are joined until they hold this many windows of content."""
KEEP_GROUPS = (5, 10, 20)
MATCHED = 0.02
"""Tokens sent count as matched within this share."""
HALVES = ("tuning", "reported")


class Task(NamedTuple):
    source: RecordingSource
    limit_tokens: int


class Sized(NamedTuple):
    """A session and the tokens of all its content."""

    source: RecordingSource
    tokens: int


def halves_of(sized: Sequence[Sized]) -> dict[str, str]:
    """Return the half of each session: neighbors by size are paired, and a digest decides which one is where."""
    ranked = sorted(sized, key=lambda one: (-one.tokens, one.source.name))
    halves = {}
    for at in range(0, len(ranked), 2):
        first = blake2b(ranked[at].source.name.encode(), digest_size=2).digest()[0] % 2
        for offset, one in enumerate(ranked[at : at + 2]):
            halves[one.source.name] = HALVES[(first + offset) % 2]
    return halves


def study(task: Task) -> Studied | None:
    """Replay one session in one window; None if its content never fills the window or cannot fit it."""
    prepared = PreparedRecording(task.source.load())
    default = ReplaySetup(task.limit_tokens, policy=DEFAULT)
    if not fills(prepared, default):
        return None
    setups = [ReplaySetup(task.limit_tokens, policy=name) for name in POLICIES]
    setups += [ReplaySetup(task.limit_tokens, preset=name) for name in preset_names()]
    setups.append(ReplaySetup(task.limit_tokens, "truncate"))
    setups += [ReplaySetup(task.limit_tokens, "keep_last", keep_groups=groups) for groups in KEEP_GROUPS]
    runs = tuple(simulate(prepared, setup) for setup in setups)
    target = next(run for run in runs if run.setup == default).measures.tokens_sent
    matched = [match(prepared, task.limit_tokens, target) for match in (match_truncation, match_keeping)]
    swept = Swept(prepared, task.limit_tokens)
    presets = [run for run in runs if run.setup.preset]
    matched += [_match(run.setup.name, swept.at, 200, 980, run.measures.tokens_sent) for run in presets]
    return Studied(task.source.name, task.limit_tokens, runs, tuple(matched))


def fills(prepared: PreparedRecording, default: ReplaySetup) -> bool:
    """Return whether a session reaches the default's first eviction, and its system prompt and tools fit."""
    limits = default.limits
    fullest = max((sum(b.tokens for b in call.history) for call in prepared.history.calls), default=0)
    return fullest > Levels.of(limits).evict and prepared.static_tokens <= limits.usable_tokens


class RunAt(Protocol):
    """Returns the run at a setting."""

    def __call__(self, step: int, *, probe: bool) -> ReplayRun: ...


class Swept:
    """The default policy with shifted thresholds; each setting is replayed once for all comparisons."""

    def __init__(self, prepared: PreparedRecording, limit_tokens: int) -> None:
        self._prepared = prepared
        self._limit_tokens = limit_tokens
        self._runs: dict[tuple[int, bool], ReplayRun] = {}

    def at(self, step: int, *, probe: bool) -> ReplayRun:
        """Return the run with eviction from so many thousandths of the window."""
        if (step, probe) not in self._runs:
            zones = parse_thresholds(str(step / 1_000))
            setup = ReplaySetup(self._limit_tokens, policy=DEFAULT, thresholds=zones)
            self._runs[step, probe] = simulate(self._prepared, setup, probe=probe)
        return self._runs[step, probe]


def match_truncation(prepared: PreparedRecording, limit_tokens: int, target: int) -> Matched:
    """Match by the share of the window at which truncation starts."""
    return _match(
        "truncate",
        lambda step, *, probe: simulate(
            prepared, ReplaySetup(limit_tokens, "truncate", truncate_ratio=step / 1_000), probe=probe
        ),
        10,
        1_000,
        target,
    )


def match_keeping(prepared: PreparedRecording, limit_tokens: int, target: int) -> Matched:
    """Match by the number of groups that are kept."""
    return _match(
        "keep_last",
        lambda step, *, probe: simulate(
            prepared, ReplaySetup(limit_tokens, "keep_last", keep_groups=step), probe=probe
        ),
        1,
        max(2, len(prepared.history.calls) * 2),
        target,
    )


def _match(kind: str, at: RunAt, low: int, high: int, target: int) -> Matched:
    """Search the setting by its tokens alone; only the runs that are compared are probed."""
    below, above = at(low, probe=False), at(high, probe=False)
    if below.measures.tokens_sent > target * (1 + MATCHED):
        return Matched(kind, None)
    if above.measures.tokens_sent < target * (1 - MATCHED):
        return Matched(kind, None)
    while high - low > 1:
        middle = (low + high) // 2
        run = at(middle, probe=False)
        if abs(run.measures.tokens_sent / target - 1) <= MATCHED:
            return Matched(kind, values_of(at(middle, probe=True)), overflows=run.measures.overflows)
        if run.measures.tokens_sent <= target:
            low, below = middle, run
        else:
            high, above = middle, run
    below, above = at(low, probe=True), at(high, probe=True)
    nearest = min(below, above, key=lambda run: abs(run.measures.tokens_sent - target))
    overflows = nearest.measures.overflows
    if abs(nearest.measures.tokens_sent / target - 1) <= MATCHED:
        return Matched(kind, values_of(nearest), overflows=overflows)
    span = above.measures.tokens_sent - below.measures.tokens_sent
    share = (target - below.measures.tokens_sent) / span
    one, other = values_of(below), values_of(above)
    mixed = {name: one[name] + share * (other[name] - one[name]) for name in one if name in other}
    return Matched(kind, mixed, interpolated=True, overflows=overflows)


def joined(sized: Sequence[Sized], limit_tokens: int) -> list[RecordingSource]:
    """Return disjoint runs of sessions, the largest first, each of so many windows of content."""
    groups: list[RecordingSource] = []
    parts: list[RecordingSource] = []
    tokens = 0
    for one in sorted(sized, key=lambda one: (-one.tokens, one.source.name)):
        parts.append(one.source)
        tokens += one.tokens
        if tokens >= JOINED_SHARE * limit_tokens:
            named = "session" if len(parts) == 1 else "sessions"
            groups.append(JoinedSource(f"joined {len(groups) + 1} ({len(parts)} {named})", tuple(parts)))
            parts, tokens = [], 0
    return groups


def spread(sources: Sequence[RecordingSource], most: int | None) -> Sequence[RecordingSource]:
    """Return so many of the sources, evenly spaced; all for None."""
    return sources if most is None else sources[:: max(1, len(sources) // most)][:most]


def measure_size(source: RecordingSource) -> int:
    return PreparedRecording(source.load()).history.tokens


class Study(NamedTuple):
    """The results, and the half of each session."""

    found: list[Studied]
    halves: dict[str, str]


def sweep(folder: Path, *, half: str | None, quick: bool, workers: int) -> Study:
    """Replay every session in every window it fills, or those of one half."""
    sources: list[RecordingSource] = list(find_recordings([folder]))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        sized = [Sized(*one) for one in zip(sources, pool.map(measure_size, sources), strict=True)]
        halves = halves_of(sized)
        chosen = [one for one in sources if half in (None, halves[one.name])]
        tasks = [Task(source, limit) for limit in LIMITS for source in chosen]
        if not quick:
            tasks += [Task(source, limit) for limit in LONG_LIMITS for source in joined(sized, limit)]
        found = []
        for number, one in enumerate(pool.map(study, tasks), 1):
            print(f"\r{number} of {len(tasks)}", end="", file=sys.stderr, flush=True)
            if one is not None:
                found.append(one)
    print(file=sys.stderr)
    return Study(found, halves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="reported")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not folder:
        print("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions to replay; nothing done")
        return
    half = "tuning" if options.half == "tuning" else None
    study = sweep(Path(folder), half=half, quick=options.quick or half is not None, workers=options.workers)
    if half:
        print("\n".join(chapter("Tuning half", study.found, LIMITS)))
        return
    text = report(study)
    if not options.quick:
        TARGET.write_text(text, encoding="utf-8")
        refresh_results()
    print(text)


def report(study: Study) -> str:
    """Return the whole document."""
    reported = [one for one in study.found if study.halves.get(one.name) == "reported"]
    lines = [
        PREFACE,
        "## Regret of the default, reported half",
        "",
        *pooled(reported),
        *verdicts(reported, LIMITS),
        "",
        "## Regret of the default, all sessions",
        "",
        *pooled(study.found),
        *verdicts(study.found, (*LIMITS, *LONG_LIMITS)),
        "",
        *chapter("Reported half", reported, LIMITS),
        *chapter("All sessions", study.found, LIMITS),
        *chapter("Joined end to end", study.found, LONG_LIMITS, ", joined sessions"),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
