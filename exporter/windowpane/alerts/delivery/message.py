"""An alert as a message to a person: what, where, how bad, since when, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, urlencode

from windowpane.alerts.rules import RULES_BY_NAME, Nature
from windowpane.core.characters import plain
from windowpane.core.events import AlertFired, AlertResolved, Event
from windowpane.core.times import moment
from windowpane.core.vocabulary import SEVERITIES, Severity
from windowpane.text import formats

State = Literal["firing", "resolved"]

_NAME_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """One firing or resolution, as it is passed to a channel."""

    alert: str
    severity: Severity
    state: State
    session_id: str
    agent: str
    model: str
    turn: int
    crossing_turn: int
    at: float | None
    title: str
    summary: str
    todo: str
    nature: Nature | None
    """Degradation or anomaly; None for an alert that is not declared."""
    link: str | None
    """Address of the session's page; None where the dashboard has no known address."""
    project: str = ""
    """Project whose channel receives the message; empty for the channels of all sessions."""

    @property
    def since(self) -> str:
        """Start of the condition as text: its turn and, where known, its time."""
        text = f"since turn {self.crossing_turn}"
        return text if moment(self.at) is None else f"{text} ({formats.utc(self.at)})"


@dataclass(frozen=True, slots=True)
class Notification:
    """The title and body of a message to a person."""

    title: str
    body: str


def message_of(event: Event, *, public_url: str | None = None) -> AlertMessage | None:
    """Return the message for an alert event; None for any other event."""
    data, context = event.data, event.context
    if not isinstance(data, AlertFired | AlertResolved):
        return None
    rule = RULES_BY_NAME.get(data.alert)
    title = rule.title if rule is not None else data.alert
    fired = isinstance(data, AlertFired)
    return AlertMessage(
        alert=data.alert,
        severity=data.severity,
        state="firing" if fired else "resolved",
        session_id=context.session_id,
        agent=context.agent,
        model=context.model,
        turn=context.turn,
        crossing_turn=data.crossing_turn,
        at=event.at,
        title=title,
        summary=alert_text(data) if isinstance(data, AlertFired) else "The condition no longer holds",
        todo=rule.todo if rule is not None and fired else "",
        nature=None if rule is None else rule.nature,
        link=alert_link(public_url, event, data),
    )


def alert_text(data: AlertFired) -> str:
    """Return the summary of a firing, with what it is about where that may be named."""
    return f"{data.summary}: {data.subject}" if data.subject else data.summary


def alert_link(public_url: str | None, event: Event, data: AlertFired | AlertResolved) -> str | None:
    """Return the address of the session's page with the alert and its runbook open; None without a dashboard.

    The page finds the turn by the alert's time: the turns of a session that continues have other numbers there.
    """
    if not public_url:
        return None
    query = {"session": event.context.session_id, "alert": f"{data.alert}:{data.crossing_turn}"}
    if event.at is not None:
        query["at"] = repr(float(event.at))
    return f"{public_url.rstrip('/')}/session?{urlencode(query, quote_via=quote)}"


def render(messages: Sequence[AlertMessage]) -> Notification:
    """Combine the messages of one session into one notification; its title names the most severe."""
    worst = max(messages, key=lambda message: (message.state == "firing", SEVERITIES.index(message.severity)))
    label = worst.severity if worst.state == "firing" else "resolved"
    more = f" and {len(messages) - 1} more" if len(messages) > 1 else ""
    title = f"[{label}] {worst.title}{more}: {_plain(worst.agent)}"
    lines = [line for message in messages for line in _lines(message, with_title=len(messages) > 1)]
    origin = f"Agent {_plain(worst.agent)}, session {_plain(worst.session_id)}, turn {worst.turn}"
    lines.append(origin + (f", model {_plain(worst.model)}" if worst.model else ""))
    if worst.link:
        lines.append(worst.link)
    return Notification(title, "\n".join(lines))


def _lines(message: AlertMessage, *, with_title: bool) -> list[str]:
    label = message.severity if message.state == "firing" else "resolved"
    summary = plain(f"[{label}] {message.title}: {message.summary}" if with_title else message.summary)
    if message.state == "resolved":
        return [f"{summary} (held from turn {message.crossing_turn} to {message.turn})"]
    nature = "" if message.nature is None else f"{message.nature.capitalize()}: "
    return [f"{nature}{summary}, {message.since}", f"What to do: {message.todo}"]


def _plain(name: str) -> str:
    """Return an untrusted name as one short printable line."""
    text = plain(name)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"
