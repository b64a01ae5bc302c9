"""Headlines: the state of one session, or of all of them, in one sentence.

Shared by the dashboard, the report and the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.events import FidelityEvaluated
from windowpane.core.liveness import is_live
from windowpane.core.vocabulary import Severity, Zone
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, percent, tokens

RED_SOON_TURNS: Final = 3.0


@dataclass(frozen=True, slots=True)
class FactTotals:
    """Facts over all evaluated compressions of a session."""

    total: int
    kept: int
    recoverable: int
    lost: int
    contradicted: int

    @property
    def damaged(self) -> int:
        """Facts that were lost or are contradicted."""
        return self.lost + self.contradicted

    @classmethod
    def of(cls, evaluations: Iterable[FidelityEvaluated]) -> FactTotals | None:
        """Sum the facts of *evaluations*; None without any fact."""
        counts = [
            (one.facts_total, one.facts_kept, one.facts_recoverable, one.facts_lost, one.facts_contradicted)
            for one in evaluations
            if one.facts_total
        ]
        return cls(*map(sum, zip(*counts, strict=True))) if counts else None


def is_red_soon(row: SessionRow) -> bool:
    """Return True if red is expected within three turns and not reached yet."""
    return row.turns_until_red is not None and 0 < row.turns_until_red <= RED_SOON_TURNS


def session_headline(row: SessionRow, *, worst_turn: int | None = None, facts: FactTotals | None = None) -> str:
    """Return one sentence about a session; *worst_turn* is the first turn in its worst zone."""
    parts = [_fullness(row, worst_turn)]
    if row.overflows:
        parts.append(f"{count(row.overflows, 'overflow')}")
    if row.compressions:
        parts.append(_compressions(row.compressions, facts))
    if row.evicted_blocks:
        parts.append(f"{count(row.evicted_blocks, 'block')} evicted ({tokens(row.evicted_tokens)} tokens)")
    if row.regrets:
        again = "was" if row.regrets == 1 else "were"
        parts.append(f"{count(row.regrets, 'removed block')} {again} fetched again")
    if row.firing:
        parts.append(f"{count(row.firing, 'alert')} firing")
    if row.incomplete:
        parts.append("the recording is incomplete")
    return "; ".join(parts) + "."


def _fullness(row: SessionRow, worst_turn: int | None) -> str:
    if not row.turns:
        return f"No model call has finished yet; the window holds {tokens(row.used_tokens)} tokens"
    turns = count(row.turns, "turn")
    if row.limit_tokens is None or row.peak_utilization is None:
        return (
            f"The limit of the window is unknown; at most {tokens(row.peak_used_tokens)} tokens were sent "
            f"in {turns}"
        )
    peak = f"{percent(row.peak_utilization)} of {tokens(row.limit_tokens)} tokens"
    if row.worst_zone in (None, "green"):
        return f"Stayed green: at most {peak} in {turns}"
    zone: Zone | None = row.worst_zone
    where = "" if worst_turn is None else f" at turn {worst_turn}"
    return f"{str(zone).capitalize()}{where}, highest {peak}"


def _compressions(compressions: int, facts: FactTotals | None) -> str:
    what = count(compressions, "compression")
    if facts is None or not facts.total:
        return f"{what} with unknown loss"
    lost = facts.damaged
    text = f"{what} lost {f'{lost:,}' if lost else 'none'} of {count(facts.total, 'fact')}"
    if facts.recoverable:
        return f"{text}, {facts.kept:,} still visible and {facts.recoverable:,} only through a handle"
    return text


def fleet_headline(
    rows: Sequence[SessionRow], now: float, *, firing: Mapping[str, Severity], more: bool = False
) -> str:
    """Return one sentence about the sessions that need attention, or about the recorded ones if none is live.

    *firing* has the worst firing severity of each session; *more* is True if *rows* are not all sessions.
    """
    live = [row for row in rows if is_live(row, now)]
    if not live:
        high = sum(row.worst_zone in ("red", "overflow") for row in rows)
        regrets = sum(1 for row in rows if row.regrets)
        of_them = f"the {len(rows):,} listed" if more else "them"
        reached = f"{high:,} of {of_them} reached red" if high else f"none of {of_them} reached red"
        again = f"; {regrets:,} fetched removed content again" if regrets else ""
        recorded = f"{'More than ' if more else ''}{count(len(rows), 'session')}"
        return f"No session is live. {recorded} recorded, {reached}{again}."
    critical = sum(firing.get(row.session_id) == "critical" for row in live)
    warned = sum(firing.get(row.session_id) == "warning" for row in live)
    full = sum(row.zone in ("red", "overflow") for row in live)
    soon = sum(is_red_soon(row) and row.zone not in ("red", "overflow") for row in live)
    needy = sum(
        firing.get(row.session_id) in ("warning", "critical")
        or row.zone in ("red", "overflow")
        or is_red_soon(row)
        for row in live
    )
    several = f"{'more than ' if more and len(live) == len(rows) else ''}{count(len(live), 'live session')}"
    if not needy:
        return f"{several[:1].upper()}{several[1:]}, none needs you."
    parts = [
        text
        for number, text in (
            (critical, f"{critical:,} with a critical alert"),
            (warned, f"{warned:,} with a warning"),
            (full, f"{full:,} in red"),
            (soon, f"{soon:,} red soon"),
        )
        if number
    ]
    verb = "needs" if needy == 1 else "need"
    return f"{needy:,} of {several} {verb} you" + (f" ({', '.join(parts)})." if parts else ".")
