"""Alerts about money and quotas: the cost budgets of a day, and the windows of plans.

They concern no single session, so a separate one per project records them, which has always ended. Alerts that
fire already are read from the store, so that a restart and a second process repeat nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from windowpane.alerts.rules import GRADES
from windowpane.alerts.summary import firing_summary
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    EventContext,
    Payload,
    SessionDescribed,
    SessionEnded,
)
from windowpane.core.times import midnight, within_calendar
from windowpane.core.vocabulary import OWN_SOURCE
from windowpane.metrics.labels import safe_name
from windowpane.metrics.quota import QuotaMetrics
from windowpane.report.spending import spent_dollars
from windowpane.store.filters import AlertFilter
from windowpane.text.formats import dollars, percent
from windowpane.text.quota import duration

if TYPE_CHECKING:
    from windowpane.alerts.rules import Rule
    from windowpane.config.schema import CostBudget
    from windowpane.core.protocols import Clock
    from windowpane.store.records import AlertRow
    from windowpane.store.store import Store

SESSION: Final = "windowpane-budgets"
TITLE: Final = "Budgets and quotas"
MAXIMUM_ALERTS: Final = 200
"""Firings that are compared with what holds now, the latest."""
_COST_ALERTS: Final = tuple(f"cost_{zone}" for zone, _, _ in GRADES)
_QUOTA_ALERTS: Final = ("quota_nearly_used", "quota_used_up")


@dataclass(frozen=True, slots=True)
class _Condition:
    """A threshold that is reached."""

    rule: Rule
    subject: str
    """The budget or quota, as the summary starts."""
    since: float
    """Start of the day or window: a firing before it was about another."""
    value: float
    project: str = ""
    text: str = ""
    """The rest of the summary, if it is not that of the rule."""
    fires: bool = True
    """False for a grade below the present one, which remains but does not start."""

    def is_of(self, alert: AlertRow) -> bool:
        return (
            alert.alert == self.rule.name
            and alert.session_id == _session_id(self.project)
            and alert.summary.startswith(f"{self.subject}: ")
            and (alert.fired_at or 0.0) >= self.since
        )


class SpendingAlerts:
    """Compares costs and quotas with their thresholds; called regularly by its owner. Not thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        budgets: Sequence[CostBudget],
        rules: Sequence[Rule],
        clock: Clock,
        on_alert: Callable[[Sequence[Event]], None],
        agent: Callable[[str], str] = safe_name,
    ) -> None:
        """*on_alert* receives the alerts before they are stored; *agent* maps an agent to its metric label."""
        self._store = store
        self._budgets = budgets
        self._rules = {rule.name: rule for rule in rules}
        self._clock = clock
        self._on_alert = on_alert
        self.quotas = QuotaMetrics(clock=clock, agent=agent)

    def check(self) -> None:
        """Fire the alerts whose threshold was reached since the last call, and resolve those that are over."""
        now = self._clock()
        conditions = [*self._costs(now), *self._quotas(now)]
        projects = {"", *(budget.project for budget in self._budgets)}
        for project in projects:
            self._update([one for one in conditions if one.project == project], project, now)

    def _costs(self, now: float) -> Iterator[_Condition]:
        if not self._budgets:
            return
        today = midnight(now)
        costs = self._store.spending(since=today)
        for budget in self._budgets:
            spent = spent_dollars(budget, costs)
            share = spent / budget.dollars
            text = f"{dollars(spent)} spent on {within_calendar(now).astimezone():%d %b} ({percent(share)})"
            yield from self._reached(_COST_ALERTS, budget.name, today, share, project=budget.project, text=text)

    def _quotas(self, now: float) -> Iterator[_Condition]:
        self.quotas.update(quotas := self._store.quotas(now=now))
        for quota in quotas:
            window, since = f"{quota.agent}, {duration(quota.minutes)}", quota.resets_at - 60 * quota.minutes
            yield from self._reached(_QUOTA_ALERTS, window, since, quota.used_ratio)

    def _reached(
        self,
        alerts: Sequence[str],
        subject: str,
        since: float,
        share: float,
        *,
        project: str = "",
        text: str = "",
    ) -> Iterator[_Condition]:
        """Yield the grades that a share has reached; only the highest one starts to fire."""
        rules = [rule for name in alerts if (rule := self._rules.get(name)) and share >= (rule.threshold or 0)]
        for rule in rules:
            yield _Condition(rule, subject, since, share, project, text, fires=rule is rules[-1])

    def _update(self, conditions: Sequence[_Condition], project: str, now: float) -> None:
        session_id = _session_id(project)
        alerts = self._store.alerts(AlertFilter(session_id=session_id, limit=MAXIMUM_ALERTS))
        payloads: list[tuple[int, Payload]] = [
            (alert.fired_turn, AlertResolved(
                alert.alert, alert.severity, alert.crossing_turn, None, alert.threshold, alert.fired_turn
            ))
            for alert in alerts
            if alert.resolved_turn is None and not any(one.is_of(alert) for one in conditions)
        ]  # fmt: skip
        turn = max((alert.crossing_turn for alert in alerts), default=0)
        for one in conditions:
            if one.fires and not any(one.is_of(alert) for alert in alerts):
                turn += 1
                text = one.text or firing_summary(one.rule, one.value, one.rule.threshold, None)
                payloads.append((turn, AlertFired(
                    one.rule.name, one.rule.severity, turn, one.value, one.rule.threshold,
                    f"{one.subject}: {text[:1].lower()}{text[1:]}",
                )))  # fmt: skip
        if payloads:
            self._record(session_id, project, payloads, now)

    def _record(self, session_id: str, project: str, payloads: list[tuple[int, Payload]], now: float) -> None:
        row, last = self._store.session(session_id), max(turn for turn, _ in payloads)
        described = SessionDescribed(title=TITLE, project=project)
        events = [
            Event(
                EventContext(session_id, "windowpane", "", turn, 1, OWN_SOURCE, f"budgets:{session_id}"),
                n,
                now,
                data,
            )
            for n, (turn, data) in enumerate(
                [(last, described), *payloads, (last, SessionEnded("checked"))], 0 if row is None else row.events
            )
        ]
        self._on_alert(events)
        self._store.append(events)


def _session_id(project: str) -> str:
    return f"{SESSION}-{project}" if project else SESSION
