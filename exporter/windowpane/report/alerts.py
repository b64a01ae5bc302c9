"""Firings of alerts as text: a headline, their end and duration, and the lines that silence or change them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.core.times import is_live
from windowpane.core.vocabulary import Severity
from windowpane.metrics.families import session_label
from windowpane.report.headline import Phrase, Subject, joined
from windowpane.store.records import AlertRow, SessionRow
from windowpane.text.formats import count, seconds

_NOUNS: Final[dict[Severity, str]] = {"critical": "critical alert", "warning": "warning", "info": "notice"}
_SUBJECTS: Final[dict[Severity, Subject | None]] = {
    "critical": "critical",
    "warning": "warned",
    "info": None,
}


@dataclass(frozen=True, slots=True)
class FiringOutcome:
    """The end of a firing."""

    text: str
    short: str
    """The same for a narrow column."""
    now: bool
    """True while it fires."""
    turns: int
    """Duration in turns."""
    seconds: float | None


def outcome_of(row: AlertRow, session: SessionRow | None, now: float) -> FiringOutcome:
    """Return how a firing ended: resolved, with its session, or not yet."""
    if row.resolved_turn is not None:
        lasted = _passed(row.fired_at, row.resolved_at)
        turns = row.resolved_turn - row.fired_turn
        at = f"at turn {row.resolved_turn}"
        return FiringOutcome(f"resolved {at}", short=at, now=False, turns=turns, seconds=lasted)
    last = row.fired_turn if session is None else max(session.turns, row.fired_turn)
    turns = last - row.fired_turn
    if session is not None and is_live(session, now):
        passed = _passed(row.fired_at, now)
        return FiringOutcome("fires now", short="fires now", now=True, turns=turns, seconds=passed)
    passed = _passed(row.fired_at, None if session is None else session.last_at)
    if session is not None and session.ended:
        return FiringOutcome(
            "until the session ended", short="session end", now=False, turns=turns, seconds=passed
        )
    stops = "until the recording stops"
    return FiringOutcome(stops, short="recording end", now=False, turns=turns, seconds=passed)


def _passed(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)


def duration_text(outcome: FiringOutcome) -> str:
    """Return the duration of a firing: `3 turns, 2 min 5 s`."""
    turns = count(outcome.turns, "turn") if outcome.turns else "less than a turn"
    return turns if not outcome.seconds else f"{turns}, {seconds(outcome.seconds)}"


def silence_text(row: AlertRow) -> str:
    """Return the command that silences an alert of one session in Alertmanager for two hours."""
    matchers = (f"alertname={row.alert}", f"session={session_label(row.session_id)}")
    return f"amtool silence add {' '.join(map(shlex.quote, matchers))} --duration=2h --comment=expected"


def settings_text(row: AlertRow) -> tuple[str, str]:
    """Return the lines of the configuration that change an alert's threshold, and those that disable the alert.

    The threshold is the value at which the alert fired; empty for an alert that compares nothing.
    """
    rule, above = RULES_BY_NAME.get(row.alert), "health_monitoring:\n  alerts:\n"
    compares = rule is not None and rule.threshold is not None and row.value is not None
    threshold = f"{above}    thresholds: {{{row.alert}: {round(row.value or 0.0, 3)}}}" if compares else ""
    return threshold, f"{above}    disable: [{row.alert}]"


def alert_phrases(
    listed: Sequence[AlertRow], current: Sequence[AlertRow], *, more: bool = False
) -> tuple[Phrase, ...]:
    """Return a sentence about the alerts that fire now, else about the *listed* ones, and about failed messages.

    *more* if others match that are not listed.
    """
    failed = sum(bool(row.failed) for row in listed)
    several = f"{count(len(listed), 'alert')}{' or more' if more else ''}"
    parts: tuple[Phrase, ...]
    if current:
        kinds = [
            Phrase(count(number, noun), _SUBJECTS[severity])
            for severity, noun in _NOUNS.items()
            if (number := sum(row.severity == severity for row in current))
        ]
        live = count(len({row.session_id for row in current}), "live session")
        parts = (*joined(kinds, ", "), Phrase(f" firing now in {live}; {several} listed"))
    else:
        where = count(len({row.session_id for row in listed}), "session")
        parts = (Phrase(f"Nothing fires now; {several} fired in {where}"),)
    if failed:
        parts = (*parts, Phrase("; "), Phrase(f"{count(failed, 'message')} did not arrive", "failed"))
    return (*parts, Phrase("."))
