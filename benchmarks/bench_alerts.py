"""Firings of each alert on the recordings, and what follows them: writes benchmarks/ALERTS.md.

The recordings are those of the folder that WINDOWPANE_SESSIONS_DIR names and of the folders `corpus` and
`corpus-new` beside it. Precision is the share of firings after which the rule's consequence came within ten turns
(for `compaction_soon` fifteen); recall the share of consequences that a firing preceded by as much (for
`compaction_soon` by two at least). What a worse alert about the same cause inhibited counts for both: the message
came under another name. The threshold of `compaction_soon` was chosen with a look at both halves, so only further
sessions can confirm it. A rule without a consequence states what has happened, and its text states no more.
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

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES, Rule, configured
from windowpane.core.events import (
    AlertFired,
    ContentCompressed,
    Event,
    PressureMeasured,
)

Happened = Callable[[Event], bool]
HALVES: Final[tuple[Half, ...]] = ("reporting", "tuning")


class Consequence(NamedTuple):
    """The announcement of a rule, and the first and the last turn after a firing in which it may come."""

    text: str
    happened: Happened
    first: int = 0
    last: int = 10


def _compacted_by_itself(event: Event) -> bool:
    data = event.data
    return isinstance(data, ContentCompressed) and data.outcome == "accepted" and data.trigger == "auto"


def _red(event: Event) -> bool:
    data = event.data
    return isinstance(data, PressureMeasured) and data.zone in ("red", "overflow")


RED: Final = Consequence("red", _red)
CONSEQUENCES: Final = {
    "compaction_soon": Consequence("an automatic compaction", _compacted_by_itself, first=2, last=15),
    "red_imminent": RED,
}
"""The announcement of each rule; a rule that is not here states what has happened."""


UNSEEN: Final[dict[str, str]] = {
    "utilization": "agents that compact by themselves do so before; for programs that manage nothing",
    "red_imminent": "as `utilization`",
    "output_reserve": "as `utilization`; the providers of these agents refused no call",
    "eviction_rate": "a manager's own; recorded agents clear old results at once, which is not a rate",
    "compression_ratio": "a manager's own: recorded compactions free two thirds and more",
    "fidelity": "evaluated by an import, not here; no recorded summary was unusually bad for its session",
    "rule_lost": "rules are followed by an import, not here; see LOSSES.md",
    "overflow": "no recorded call was refused; a real server's refusals fire it in the tests",
    "cannot_compress": "a manager's own",
    "regret": "a manager's own evictions; recorded agents seldom evict",
    "thrashing": "a manager's own",
    "oscillation": "a manager's own",
    "window_rolled": "sessions that the user cleared; these recordings have none of 15 calls",
    "rot_threshold": "off by default",
}
"""Reasons why a rule that fired on no recording stays: it is about what these recordings cannot show."""
OUTSIDE: Final = "raised outside a session: by a budget, a quota or a check of the store"


COLUMNS: Final = (
    "alert", "title", "severity", "means", "fired", "inhibited", "sessions", "consequence",
    "precision, reporting", "precision, tuning", "recall, reporting", "recall, tuning",
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
    counts: dict[Half, dict[str, Counts]] = {half: {rule.name: Counts() for rule in RULES} for half in HALVES}
    warnings = [_count(session, counts[session.half]) for session in sessions]
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
        consequence = CONSEQUENCES.get(name)
        if consequence is not None:
            when = sorted({event.context.turn for event in session.events if consequence.happened(event)})
            if consequence is RED:
                when = [turn for turn in when if turn - 1 not in when]
            first, last = consequence.first, consequence.last
            conditions = {*own, *without_inhibition}
            count.conditions += len(conditions)
            count.followed += sum(any(0 <= turn - at <= last for turn in when) for at in conditions)
            count.consequences += len(when)
            count.warned += sum(any(first <= turn - at <= last for at in conditions) for turn in when)
    return sum(alert.severity != "info" for alert, _ in fired)


def _document(counts: dict[Half, dict[str, Counts]], sessions: Sequence[Session], warnings: Sequence[int]) -> str:
    turns = sum(map(_calls, sessions))
    total = f"{len(sessions)} sessions of at least {MINIMUM_CALLS} calls, {turns:,} turns"
    lines = [
        *("# Alerts against recordings", "", str(__doc__).strip(), ""),
        *(f"{total}. Warnings and worse a session, with 90% intervals of a bootstrap by session:", ""),
        *("| sessions | median | 90th percentile | most |", "|---|--:|--:|--:|"),
        _spread("all", warnings),
    ]

    def fired(rule: Rule) -> int:
        return sum(counts[half][rule.name].fired for half in HALVES)

    pairs = list(zip(warnings, sessions, strict=True))
    lines += [_spread(half, [number for number, one in pairs if one.half == half]) for half in HALVES]
    inhibited = (
        "*Inhibited* are the firings that a worse alert about the same cause, or a size of the window that is "
        "in doubt, made superfluous."
    )
    lines += [
        *("", inhibited, ""),
        f"| {' | '.join(COLUMNS)} |",
        "|---|---|---|---|--:|--:|--:|---|--:|--:|--:|--:|",
        *(_row(rule, [counts[half][rule.name] for half in HALVES]) for rule in RULES),
        *("", "Rules that fired on none of these recordings, and why they stay:", ""),
        *(f"- `{rule.name}`: {_reason(rule)}" for rule in RULES if not fired(rule)),
    ]
    return "\n".join(lines) + "\n"


def _spread(name: str, warnings: Sequence[int]) -> str:
    median, high = (
        interval([[n] for n in warnings], lambda some, share=share: float(np.quantile(some, share)))  # type: ignore[misc]
        for share in (0.5, 0.9)
    )
    return f"| {name} ({len(warnings)}) | {median.text(1)} | {high.text(1)} | {max(warnings)} |"


def _row(rule: Rule, counts: Sequence[Counts]) -> str:
    consequence = CONSEQUENCES.get(rule.name)
    text = "states what has happened" if consequence is None else consequence.text
    fired, held, sessions = (
        sum(getattr(count, name) for count in counts) for name in ("fired", "held", "sessions")
    )
    shares = [_share(count.followed, count.conditions) for count in counts]
    shares += [_share(count.warned, count.consequences) for count in counts]
    return (
        f"| `{rule.name}` | {rule.title} | {rule.severity} | {rule.nature} | {fired} "
        f"| {held - fired or ''} | {sessions} | {text} | {' | '.join(shares)} |"
    )


def _reason(rule: Rule) -> str:
    return OUTSIDE if rule.kind == "outside" else UNSEEN[rule.name]


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.0%})" if whole else ""


if __name__ == "__main__":
    sys.exit(main())
