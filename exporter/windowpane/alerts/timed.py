"""Alerts that only time shows, as data: they are judged by Prometheus, not by the engine of a process.

A process that is gone, or no longer hears from its agents, cannot say so itself. Everything else is judged over
turns by `windowpane.alerts.engine`, and Prometheus only passes its verdicts on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windowpane.core.vocabulary import Severity
from windowpane.metrics import catalog

JOB: Final = "windowpane"
"""The `job` label of everything that is scraped from Windowpane."""
OLD_EVENT_SECONDS: Final = 3_600
FAILURE_WINDOW: Final = "15m"
"""How far back failures and drops are looked for, as a PromQL range."""


@dataclass(frozen=True, slots=True)
class TimedRule:
    """One alert on the course of time: its condition in PromQL, and what to tell a person."""

    name: str
    title: str
    severity: Severity
    expression: str
    hold: str
    """How long the condition must hold, as Prometheus writes durations."""
    what: str
    """One line about a firing, with Prometheus's own templates."""
    todo: str

    @property
    def runbook(self) -> str:
        """Anchor of the alert's section in the runbook: its name, so that a label is enough to link to it."""
        return self.name


def _grew(metric: str, *, matching: str = "") -> str:
    """Where a counter grew within the window, seen also where its series begins above zero."""
    series = f"{metric}{{{matching}}}" if matching else metric
    return f"increase({series}[{FAILURE_WINDOW}]) > 0 or ({series} > 0 unless {series} offset {FAILURE_WINDOW})"


def _failing() -> str:
    """Channels with failures and not one delivery within the window."""
    metric = catalog.NOTIFICATIONS.name
    failed = _grew(metric, matching='outcome=~"failed|retried"')
    delivered = _grew(metric, matching='outcome="delivered"')
    return f"max without (outcome) ({failed})\nunless max without (outcome) ({delivered})"


TIMED_RULES: Final[tuple[TimedRule, ...]] = (
    TimedRule(
        "target_absent", "Nothing is scraped", "warning",
        f'absent(up{{job="{JOB}"}})', "5m",
        f'no target with job="{JOB}" exists',
        "See whether an agent or `windowpane serve` runs, and what the scrape configuration selects.",
    ),
    TimedRule(
        "target_down", "Exporter does not answer", "critical",
        f'up{{job="{JOB}"}} == 0', "2m",
        "{{ $labels.instance }} has not answered a scrape for two minutes",
        "See whether the process lives, and ask its /healthz.",
    ),
    TimedRule(
        "events_old", "No events", "info",
        f"{catalog.LAST_EVENT_AGE.name} > {OLD_EVENT_SECONDS}", "5m",
        "the newest event at {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
        "Where agents should be at work, see whether they still report; where idle hours are normal, silence it.",
    ),
    TimedRule(
        "events_dropped", "Events dropped", "warning",
        _grew(catalog.DROPPED_EVENTS.name), "0m",
        "{{ $labels.sink }} did not take events at {{ $labels.instance }} (reason: {{ $labels.reason }})",
        "Read the process's log: a full disk, a locked store or a queue that is too slow all show there.",
    ),
    TimedRule(
        "notifications_failing", "Notifications fail", "critical",
        _failing(), "5m",
        "messages by {{ $labels.channel }} fail at {{ $labels.instance }}, and none was delivered",
        "Prove the channel with `windowpane alerts test URL`; what waits is in the outbox and is tried again.",
    ),
)  # fmt: skip
