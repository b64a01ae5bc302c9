"""Headlines: the state of one session, or of all of them, in one sentence.

Shared by the dashboard, the report and the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windowpane.core.events import FidelityEvaluated
from windowpane.core.vocabulary import Zone
from windowpane.store.records import FleetTotals, SessionRow
from windowpane.text.formats import count, percent, tokens


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


def session_headline(
    row: SessionRow, *, worst_turn: int | None = None, facts: FactTotals | None = None, live: bool = True
) -> str:
    """Return one sentence about a session; *worst_turn* is the first turn in its worst zone.

    An alert fires only while its session is *live*.
    """
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
        parts.append(f"{count(row.firing, 'alert')} {'firing' if live else 'never resolved'}")
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


def fleet_headline(totals: FleetTotals) -> str:
    """Return one sentence about the sessions that need attention, or about the recorded ones if none is live."""
    if not totals.live:
        reached = f"{totals.reached_red:,}" if totals.reached_red else "none"
        again = f"; {totals.regretting:,} fetched removed content again" if totals.regretting else ""
        recorded = count(totals.sessions, "session")
        return f"No session is live. {recorded} recorded, {reached} of them reached red{again}."
    live = count(totals.live, "live session")
    if not totals.live_needing_attention:
        return f"{live}, none needs you."
    parts = [
        text
        for number, text in (
            (totals.live_critical, f"{totals.live_critical:,} with a critical alert"),
            (totals.live_warned, f"{totals.live_warned:,} with a warning"),
            (totals.live_red, f"{totals.live_red:,} in red"),
            (totals.live_red_soon, f"{totals.live_red_soon:,} red soon"),
        )
        if number
    ]
    verb = "needs" if totals.live_needing_attention == 1 else "need"
    return f"{totals.live_needing_attention:,} of {live} {verb} you ({', '.join(parts)})."
