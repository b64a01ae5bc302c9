"""Headlines: the state of one session, or of all of them, in one sentence.

Shared by the dashboard, the report and the terminal. A page makes links of the phrases that have a subject.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.events import FidelityEvaluated
from windowpane.core.vocabulary import Zone
from windowpane.store.records import FleetTotals, SessionRow
from windowpane.text.formats import count, percent, tokens
from windowpane.text.labels import is_id
from windowpane.text.zones import zone_label

MAXIMUM_NAME: Final = 60
"""Characters of a file or command in a headline."""


@dataclass(frozen=True, slots=True)
class FactTotals:
    """Facts over all evaluated compressions of a session."""

    total: int
    kept: int
    recoverable: int
    lost: int
    contradicted: int
    compactions: int = 1
    """Compressions whose facts these are."""

    @property
    def damaged(self) -> int:
        """Facts that were lost or are contradicted."""
        return self.lost + self.contradicted

    @property
    def text(self) -> str:
        """The facts that were kept, and those that were not."""
        others = (("recoverable", self.recoverable), ("lost", self.lost), ("contradicted", self.contradicted))
        return ", ".join([f"{self.kept} of {self.total} facts kept", *(f"{n} {fate}" for fate, n in others if n)])

    @classmethod
    def of(cls, evaluations: Iterable[FidelityEvaluated]) -> FactTotals | None:
        """Sum the facts of *evaluations*; None without any fact."""
        counts = [
            (one.facts_total, one.facts_kept, one.facts_recoverable, one.facts_lost, one.facts_contradicted, 1)
            for one in evaluations
            if one.facts_total
        ]
        return cls(*map(sum, zip(*counts, strict=True))) if counts else None


Subject = Literal[
    "worst turn", "overflows", "compressions", "evictions", "regrets", "alerts", "critical", "warned", "red",
    "red soon", "reached red", "forgot most", "failed", "next", "cost",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a headline, and its subject if a page shows more about it."""

    text: str
    subject: Subject | None = None


def session_phrases(
    row: SessionRow,
    *,
    worst_turn: int | None = None,
    open_turn: int | None = None,
    facts: FactTotals | None = None,
    lost_rules: int = 0,
    again: str = "",
    live: bool = True,
) -> tuple[Phrase, ...]:
    """Return one sentence about a session; *worst_turn* is the first turn in its worst zone.

    No count of turns contains the *open_turn*. *again* is the `largest_again`. An alert fires only while its
    session is *live*.
    """
    parts = [_fullness(row, worst_turn)]
    if row.turns and open_turn is not None:
        parts.append(Phrase(f"turn {open_turn} has not ended"))
    if row.overflows:
        parts.append(Phrase(count(row.overflows, "overflow"), "overflows"))
    if row.compressions:
        parts.append(Phrase(_compressions(row.compressions, facts), "compressions"))
    if lost_rules:
        parts.append(Phrase(f"{count(lost_rules, 'rule')} lost", "compressions"))
    if row.evicted_blocks or row.evicted_tokens:
        parts.append(Phrase(_evictions(row), "evictions"))
    if row.regrets:
        verb = "was" if row.regrets == 1 else "were"
        largest = f" ({'largest: ' if row.regrets > 1 else ''}{again})" if again else ""
        parts.append(Phrase(f"{count(row.regrets, 'removed item')} {verb} needed again{largest}", "regrets"))
    if row.firing:
        state = "firing" if live else "never resolved"
        parts.append(Phrase(f"{count(row.firing, 'alert')} {state}", "alerts"))
    if row.incomplete:
        parts.append(Phrase("the recording is incomplete"))
    return joined(parts, "; ", end=".")


def largest_again(regrets: Iterable[tuple[str | None, int]]) -> str:
    """Return the file or command that was needed again with most tokens: `resume.go, 8,497 tokens`.

    *regrets* are files or commands with their tokens, or ids, which name nothing; empty where none is named.
    """
    sums: Counter[str] = Counter()
    for target, size in regrets:
        if target and not is_id(target):
            sums[target] += size
    if not sums:
        return ""
    target, size = max(sums.items(), key=lambda item: item[1])
    name = target if " " in target else re.split(r"[/\\]", target.rstrip("/\\"))[-1]
    return f"{name[:MAXIMUM_NAME]}, {tokens(size)} tokens"


def turn_headline(
    turn: int,
    used_tokens: float | None,
    *,
    limit_tokens: float | None,
    utilization: float | None,
    zone: Zone | None,
    estimated: bool,
    ended: bool,
    removed_from: float | None = None,
) -> str:
    """Return the size of a turn's window: `Turn 40: 118,204 of 131,072 tokens, 90% full, ● red`.

    *removed_from* are its tokens before content was removed; None where none was.
    """
    size = tokens(used_tokens, estimated=estimated)
    name = f"Turn {turn}" if ended else f"Turn {turn}, not ended"
    removed = "" if removed_from is None else f"; {tokens(removed_from)} before content was removed"
    if utilization is None or limit_tokens is None:
        return f"{name}: {size} tokens{removed}"
    share = f"{percent(utilization)} full, {zone_label(zone)}"
    return f"{name}: {size} of {tokens(limit_tokens)} tokens, {share}{removed}"


def counted_turns(turns: int, open_turn: int | None) -> str:
    """Return the number of turns as every list shows it: `27 turns, and turn 28 has not ended`."""
    counted = count(turns, "turn")
    return counted if open_turn is None else f"{counted}, and turn {open_turn} has not ended"


def sentence(phrases: Iterable[Phrase]) -> str:
    """Return the text of *phrases*."""
    return "".join(phrase.text for phrase in phrases)


def joined(phrases: Iterable[Phrase], separator: str, *, end: str = "") -> tuple[Phrase, ...]:
    """Return *phrases* with the separator between them and *end* after the last."""
    separated = [piece for phrase in phrases for piece in (phrase, Phrase(separator))][:-1]
    return (*separated, Phrase(end)) if end else tuple(separated)


def _fullness(row: SessionRow, worst_turn: int | None) -> Phrase:
    if not row.turns:
        return Phrase(f"No model call has finished yet; the window holds {tokens(row.used_tokens)} tokens")
    turns = count(row.turns, "turn")
    if row.limit_tokens is None or row.peak_utilization is None:
        return Phrase(
            f"The limit of the window is unknown; at most {tokens(row.peak_used_tokens)} tokens were sent "
            f"in {turns}"
        )
    peak = f"{percent(row.peak_utilization)} of {tokens(_peak_limit(row))} tokens"
    if row.worst_zone in (None, "green"):
        return Phrase(f"Stayed green: at most {peak} in {turns}")
    zone = str(row.worst_zone).capitalize()
    if worst_turn is None:
        return Phrase(f"{zone}, highest {peak}")
    return Phrase(f"{zone} at turn {worst_turn}, highest {peak}", "worst turn")


def _peak_limit(row: SessionRow) -> int | None:
    """Return the limit at the peak, which is another than now after a change of the model."""
    return round(row.peak_used_tokens / row.peak_utilization) if row.peak_utilization else row.limit_tokens


def _evictions(row: SessionRow) -> str:
    """Return the number of removed items and their tokens; of some removals only the tokens are recorded."""
    size, more = f"{tokens(row.evicted_tokens)} tokens", "another " if row.compressions else ""
    what = f"{count(row.evicted_blocks, 'item')} removed, {size}" if row.evicted_blocks else f"{size} removed"
    return f"{more}{what}"


def _compressions(compressions: int, facts: FactTotals | None) -> str:
    what = count(compressions, "compaction")
    if facts is None or not facts.total:
        return f"{what} with unknown loss"
    unknown = max(0, compressions - facts.compactions)
    looked_up = count(facts.total, "fact") + (f" ({count(unknown, 'compaction')} unknown)" if unknown else "")
    kept = f"{what} kept {facts.total - facts.recoverable:,} of {looked_up}"
    fates = (("contradicted", facts.contradicted), ("lost", facts.lost))
    damaged = " and ".join(f"{fate} {number:,}" for fate, number in fates if number)
    text = f"{what} {damaged} of {looked_up}" if damaged else kept
    return f"{text}, {facts.recoverable:,} recoverable" if facts.recoverable else text


def fleet_phrases(totals: FleetTotals, *, filtered: bool = False) -> tuple[Phrase, ...]:
    """Return one sentence about the sessions that need attention, or about the recorded ones if none is live."""
    if not totals.live:
        return _recorded(totals, "match" if filtered else "recorded")
    live = count(totals.live, "matching live session" if filtered else "live session")
    if not totals.live_needing_attention:
        return (Phrase(f"{live}, none in red or with a warning."),)
    needs: tuple[tuple[int, str, Subject | None], ...] = (
        (totals.live_critical, "with a critical alert", "critical"),
        (totals.live_warned, "with a warning", "warned"),
        (totals.live_red, "in red", "red"),
        (totals.live_red_soon, "red soon", "red soon"),
    )
    parts = [Phrase(f"{number:,} {text}", subject) for number, text, subject in needs if number]
    verb = "needs" if totals.live_needing_attention == 1 else "need"
    return (
        Phrase(f"{totals.live_needing_attention:,} of {live} {verb} you ("),
        *joined(parts, ", "),
        Phrase(")."),
    )


def _recorded(totals: FleetTotals, verb: str) -> tuple[Phrase, ...]:
    recorded = count(totals.sessions, "session")
    reached = f"{totals.reached_red:,} of them reached red" if totals.reached_red else "none of them reached red"
    subject: Subject | None = "reached red" if totals.reached_red else None
    return (Phrase(f"No session is live. {recorded} {verb}, "), Phrase(reached, subject), Phrase("."))
