"""Firings of each alert on the recordings, and what follows them: writes benchmarks/ALERTS.md.

The recordings are those of the folder that WINDOWPANE_SESSIONS_DIR names and of the folder `corpus` beside it.
Precision is the share of firings after which the rule's consequence came within ten turns (for `compaction_soon`
two to fifteen); recall the share of consequences that a firing preceded by as much. What a worse alert about the
same cause inhibited counts for both: the message came under another name. A rule without a consequence states
what has happened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from truth.recordings import MINIMUM_CALLS, Half, Session, recorded_sessions
from truth.statistics import interval

from windowpane.alerts.conditions import RepeatedCalls
from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES, Rule, configured
from windowpane.core.events import (
    AlertFired,
    BlockAdded,
    CacheBroken,
    ContentCompressed,
    ContentRegretted,
    Event,
    PressureMeasured,
    ZoneChanged,
)

Happened = Callable[[Event], bool]


class Consequence(NamedTuple):
    """The announcement of a rule, and the first and the last turn after a firing in which it may come."""

    text: str
    happened: Happened
    first: int = 0
    last: int = 10


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


def _regretted(cause: str) -> Happened:
    return lambda event: isinstance(event.data, ContentRegretted) and event.data.cause == cause


def _is_off(event: Event) -> bool:
    data = event.data
    return isinstance(data, PressureMeasured) and data.phase == "final" and abs(data.estimate_error or 0) > 0.10


def _repeated() -> Happened:
    calls = RepeatedCalls()
    return lambda event: (
        isinstance(event.data, BlockAdded) and bool(calls.record(event.data.block, event.context.turn))
    )


FILLED: Final = Consequence("orange or worse, or a compaction", _worse_zone_or_compacted)
RED: Final = Consequence("red", _red)
COMPACTED: Final = Consequence("a compaction", _compacted)


def consequences() -> dict[str, Consequence]:
    """Return what each rule announces; a rule that is not here states what has happened."""
    return {
        "utilization": COMPACTED,
        "eviction_rate": Consequence("evicted content is fetched again", _regretted("eviction")),
        "compression_ratio": Consequence("another compression", _compacted, first=1),
        "burn_rate_spike": FILLED,
        "fidelity": Consequence("compressed content is fetched again", _regretted("compression")),
        "tool_results": COMPACTED,
        "compaction_soon": Consequence("an automatic compaction", _compacted_by_itself, first=2, last=15),
        "red_soon": RED,
        "red_imminent": RED,
        "output_reserve": COMPACTED,
        "regret": Consequence("evicted content is fetched again", _regretted("eviction"), first=1),
        "thrashing": Consequence("another compression", _compacted, first=1),
        "cache_breaks": Consequence(
            "another cache break", lambda event: isinstance(event.data, CacheBroken), first=1
        ),
        "repeated_calls": Consequence("it repeats the call once more", _repeated(), first=1),
        "estimate_off": Consequence("an estimate is off again", _is_off, first=1),
        "yellow_entered": FILLED,
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

UNSEEN: Final[dict[str, str]] = {
    "utilization": "agents that compact by themselves do so before; for programs that manage nothing",
    "red_imminent": "as `utilization`",
    "output_reserve": "as `utilization`; the providers of these agents refused no call",
    "eviction_rate": "a manager's own; recorded agents clear old results at once, which is not a rate",
    "compression_ratio": "a manager's own: recorded compactions free two thirds and more",
    "fidelity": "evaluated by an import, not here; no recorded summary was unusually bad for its session",
    "overflow": "no recorded call was refused; a real server's refusals fire it in the tests",
    "cannot_compress": "a manager's own",
    "audit_chain_broken": "raised by a check of the store, not by a recording",
    "regret": "a manager's own evictions; recorded agents seldom evict",
    "thrashing": "a manager's own",
    "oscillation": "a manager's own",
    "window_rolled": "a manager's own",
    "rot_threshold": "off by default",
}
"""Reasons why a rule that fired on no recording stays: it is about what these recordings cannot show."""


COLUMNS: Final = (
    "alert", "severity", "means", "purpose", "fired", "inhibited", "sessions", "consequence", "precision",
    "recall",
)  # fmt: skip


@dataclass
class Counts:
    """The firings of one rule over all recordings."""

    fired: int = 0
    held: int = 0
    """Firings without inhibition."""
    sessions: int = 0
    conditions: int = 0
    """Turns in which the condition announced its consequence, inhibited or not."""
    followed: int = 0
    consequences: int = 0
    warned: int = 0


def main() -> int:
    """Write the document; 0 also where there are no recordings."""
    sessions = [one for one in recorded_sessions() if _calls(one) >= MINIMUM_CALLS]
    if not sessions:
        return 0
    counts = {rule.name: Counts() for rule in RULES}
    warnings = [_count(session, counts) for session in sessions]
    text = _document(counts, sessions, warnings)
    Path(__file__).with_name("ALERTS.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


def _calls(session: Session) -> int:
    return sum(event.type == "turn.ended" for event in session.events)


def _firings(session: Session, rules: Sequence[Rule]) -> list[tuple[AlertFired, int]]:
    """Return the alerts of *session* with their turns."""
    alerts = AlertEngine(rules).evaluate(session.events)
    return [(event.data, event.context.turn) for event in alerts if isinstance(event.data, AlertFired)]


def _count(session: Session, counts: dict[str, Counts]) -> int:
    """Add a session's firings; return how many were warnings or worse."""
    rules = configured()
    alone = [replace(rule, inhibited_by=(), needs_certain_limit=False) for rule in rules]
    fired, held = _firings(session, rules), _firings(session, alone)
    for name, count in counts.items():
        own = [turn for alert, turn in fired if alert.alert == name]
        without_inhibition = [turn for alert, turn in held if alert.alert == name]
        count.fired += len(own)
        count.held += len(without_inhibition)
        count.sessions += bool(own)
        consequence = consequences().get(name)
        if consequence is not None:
            when = sorted({event.context.turn for event in session.events if consequence.happened(event)})
            if consequence is RED:
                when = [turn for turn in when if turn - 1 not in when]
            first, last = consequence.first, consequence.last
            after = 1 if first == 1 else 0
            conditions = {*own, *without_inhibition}
            count.conditions += len(conditions)
            count.followed += sum(any(after <= turn - at <= last for turn in when) for at in conditions)
            count.consequences += len(when)
            count.warned += sum(any(first <= turn - at <= last for at in conditions) for turn in when)
    return sum(alert.severity != "info" for alert, _ in fired)


def _document(counts: dict[str, Counts], sessions: Sequence[Session], warnings: Sequence[int]) -> str:
    turns = sum(map(_calls, sessions))
    total = f"{len(sessions)} sessions of at least {MINIMUM_CALLS} calls, {turns:,} turns"
    lines = [
        *("# Alerts against recordings", "", str(__doc__).strip(), ""),
        *(f"{total}. Warnings and worse a session, with 90% intervals of a bootstrap by session:", ""),
        *("| sessions | median | 90th percentile | most |", "|---|--:|--:|--:|"),
        _spread("all", warnings),
    ]
    halves: tuple[Half, ...] = ("reporting", "tuning")
    pairs = list(zip(warnings, sessions, strict=True))
    lines += [_spread(half, [number for number, one in pairs if one.half == half]) for half in halves]
    inhibited = (
        "*Inhibited* are the firings that a worse alert about the same cause, or a size of the window that is "
        "in doubt, made superfluous."
    )
    lines += [
        *("", inhibited, ""),
        f"| {' | '.join(COLUMNS)} |",
        "|---|---|---|---|--:|--:|--:|---|--:|--:|",
        *(_row(rule, counts[rule.name]) for rule in RULES),
        *("", "Rules that fired on none of these recordings, and why they stay:", ""),
        *(f"- `{rule.name}`: {UNSEEN[rule.name]}" for rule in RULES if not counts[rule.name].fired),
    ]
    return "\n".join(lines) + "\n"


def _spread(name: str, warnings: Sequence[int]) -> str:
    median, high = (
        interval([[n] for n in warnings], lambda some, share=share: float(np.quantile(some, share)))  # type: ignore[misc]
        for share in (0.5, 0.9)
    )
    return f"| {name} ({len(warnings)}) | {median.text(1)} | {high.text(1)} | {max(warnings)} |"


def _row(rule: Rule, count: Counts) -> str:
    consequence = consequences().get(rule.name)
    text = "states what has happened" if consequence is None else consequence.text
    precision = f"{count.followed / count.conditions:.0%}" if count.conditions else ""
    recall = f"{count.warned}/{count.consequences}" if consequence and count.consequences else ""
    inhibited = count.held - count.fired
    return (
        f"| `{rule.name}` | {rule.severity} | {rule.nature} | {PURPOSES[rule.name]} | {count.fired} "
        f"| {inhibited or ''} | {count.sessions} | {text} | {precision} | {recall} |"
    )


if __name__ == "__main__":
    sys.exit(main())
