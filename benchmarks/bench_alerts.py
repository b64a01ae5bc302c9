"""Firings of each alert on the recordings, and what follows them: writes benchmarks/ALERTS.md.

The recordings are those of the folder that WINDOWPANE_SESSIONS_DIR names and of the folder `corpus` beside it.
Precision is the share of firings after which the rule's consequence came within ten turns (for `compaction_soon`
two to fifteen); recall the share of consequences that a firing preceded by as much. A rule without a consequence
that a recording could show has only its purpose stated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from truth.recordings import MINIMUM_CALLS, Session, recorded_sessions

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES
from windowpane.core.events import AlertFired, ContentCompressed, Event, PressureMeasured, ZoneChanged

HORIZON: Final = (0, 10)
COMPACTION_HORIZON: Final = (2, 15)

Happened = Callable[[Event], bool]


def _compacted(event: Event) -> bool:
    return isinstance(event.data, ContentCompressed) and event.data.outcome == "accepted"


def _compacted_by_itself(event: Event) -> bool:
    return _compacted(event) and getattr(event.data, "trigger", "") == "auto"


def _worse_zone_or_compacted(event: Event) -> bool:
    data = event.data
    return _compacted(event) or (isinstance(data, ZoneChanged) and data.to_zone in ("orange", "red", "overflow"))


def _red(event: Event) -> bool:
    data = event.data
    return isinstance(data, PressureMeasured) and data.zone in ("red", "overflow")


CONSEQUENCES: Final[dict[str, tuple[str, Happened]]] = {
    "utilization": ("a compaction", _compacted),
    "burn_rate_spike": ("orange or worse, or a compaction", _worse_zone_or_compacted),
    "tool_results": ("a compaction", _compacted),
    "compaction_soon": ("an automatic compaction", _compacted_by_itself),
    "red_soon": ("red", _red),
    "red_imminent": ("red", _red),
    "output_reserve": ("a compaction", _compacted),
}
PURPOSES: Final[dict[str, str]] = {
    "utilization": "nothing reduces the window: act now",
    "eviction_rate": "a manager's working set is larger than its window",
    "compression_ratio": "a manager pays for compressions that free little",
    "burn_rate_spike": "one addition takes a tenth of the window",
    "fidelity": "a compression that is unusually bad for this session",
    "tool_results": "most of a filling window is tool output",
    "compaction_soon": "the agent is about to compact: note what must survive",
    "red_soon": "red is near, and nothing reduces the window before it",
    "red_imminent": "the last chance before red",
    "overflow": "a call did not fit",
    "cannot_compress": "a manager cannot make room",
    "audit_chain_broken": "the record was changed",
    "output_reserve": "the next answer may be cut off",
    "regret": "a manager evicts what is needed",
    "thrashing": "a manager reduces too little at a time",
    "cache_breaks": "cached content is paid for again: over a dollar and a tenth of the session",
    "repeated_calls": "the agent is in a loop",
    "oscillation": "zones change without effect",
    "estimate_off": "token counts between calls are not to be trusted",
    "yellow_entered": "for information",
    "window_rolled": "for information",
    "compaction_done": "for information",
    "rot_threshold": "long contexts dilute attention; off by default",
}


@dataclass
class Counts:
    """The firings of one rule over all recordings."""

    fired: int = 0
    sessions: int = 0
    followed: int = 0
    consequences: int = 0
    warned: int = 0
    names: list[str] = field(default_factory=list)


def main() -> int:
    """Write the document; 0 also where there are no recordings."""
    sessions = recorded_sessions()
    if not sessions:
        return 0
    counts = {rule.name: Counts() for rule in RULES}
    warnings, turns = [], 0
    for session in sessions:
        calls = sum(event.type == "turn.ended" for event in session.events)
        if calls >= MINIMUM_CALLS:
            turns += calls
            warnings.append(_count(session, counts))
    text = _document(counts, warnings, turns)
    Path(__file__).with_name("ALERTS.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _count(session: Session, counts: dict[str, Counts]) -> int:
    """Add a session's firings; return how many were warnings or worse."""
    events = list(AlertEngine().interleave(session.events))
    fired: dict[str, list[int]] = {}
    loud = 0
    for event in events:
        if isinstance(event.data, AlertFired):
            fired.setdefault(event.data.alert, []).append(event.context.turn)
            loud += event.data.severity != "info"
    for name, count in counts.items():
        own = fired.get(name, [])
        count.fired += len(own)
        count.sessions += bool(own)
        if name in CONSEQUENCES:
            happened = CONSEQUENCES[name][1]
            first, last = COMPACTION_HORIZON if name == "compaction_soon" else HORIZON
            when = sorted({event.context.turn for event in events if happened(event)})
            if name in ("red_soon", "red_imminent"):
                when = [turn for turn in when if turn - 1 not in when]
            count.followed += sum(any(0 <= turn - at <= last for turn in when) for at in own)
            count.consequences += len(when)
            count.warned += sum(any(first <= turn - at <= last for at in own) for turn in when)
    return loud


def _document(counts: dict[str, Counts], warnings: Sequence[int], turns: int) -> str:
    median, high = np.median(warnings), np.quantile(warnings, 0.9)
    total = f"{len(warnings)} sessions of at least {MINIMUM_CALLS} calls, {turns:,} turns"
    spread = f"median {median:g}, 90th percentile {high:g}, most {max(warnings)}"
    lines = [
        *("# Alerts against recordings", "", str(__doc__).strip(), ""),
        *(f"{total}. Warnings and worse a session: {spread}.", ""),
        "| alert | severity | means | purpose | fired | sessions | consequence | precision | recall |",
        "|---|---|---|---|--:|--:|---|--:|--:|",
    ]
    for rule in RULES:
        count = counts[rule.name]
        consequence = CONSEQUENCES[rule.name][0] if rule.name in CONSEQUENCES else ""
        precision = f"{count.followed / count.fired:.0%}" if consequence and count.fired else ""
        recall = f"{count.warned}/{count.consequences}" if consequence and count.consequences else ""
        lines.append(
            f"| `{rule.name}` | {rule.severity} | {rule.nature} | {PURPOSES[rule.name]} | {count.fired} "
            f"| {count.sessions} | {consequence} | {precision} | {recall} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
