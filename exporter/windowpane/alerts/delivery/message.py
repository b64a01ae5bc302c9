"""An alert as a message to a person: what, where, how bad, since when, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import quote

from windowpane.alerts.rules import RULES_BY_NAME
from windowpane.core.events import AlertFired, AlertResolved, Event
from windowpane.core.vocabulary import Severity

State = Literal["firing", "resolved"]

SEVERITY_ORDER: Final[dict[Severity, int]] = {"info": 0, "warning": 1, "critical": 2}
_NAME_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """What a channel is told about one firing or resolution."""

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
    link: str | None
    """The session's page; None where no public address is set."""

    @property
    def since(self) -> str:
        """Since when the condition holds, in turns and, where known, in time."""
        text = f"since turn {self.crossing_turn}"
        if self.at is None:
            return text
        return f"{text} ({datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M:%S} UTC)"


@dataclass(frozen=True, slots=True)
class Text:
    """A message's two parts."""

    title: str
    body: str


def message_of(event: Event, *, public_url: str | None = None) -> AlertMessage | None:
    """The message that an alert event makes; None for every other event."""
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
        summary=data.summary if isinstance(data, AlertFired) else "The condition no longer holds",
        todo=rule.todo if rule is not None and fired else "",
        link=session_link(public_url, context.session_id),
    )


def session_link(public_url: str | None, session_id: str) -> str | None:
    """Address of a session's page; None where no public address is set."""
    return f"{public_url.rstrip('/')}/session?session={quote(session_id, safe='')}" if public_url else None


def render(messages: Sequence[AlertMessage]) -> Text:
    """One text for the messages of one session, the worst first in the title."""
    worst = max(messages, key=lambda message: (message.state == "firing", SEVERITY_ORDER[message.severity]))
    label = worst.severity if worst.state == "firing" else "resolved"
    more = f" and {len(messages) - 1} more" if len(messages) > 1 else ""
    title = f"[{label}] {worst.title}{more}: {_plain(worst.agent)}"
    lines = [line for message in messages for line in _lines(message, named=len(messages) > 1)]
    where = f"Agent {_plain(worst.agent)}, session {_plain(worst.session_id)}, turn {worst.turn}"
    lines.append(where + (f", model {_plain(worst.model)}" if worst.model else ""))
    if worst.link:
        lines.append(worst.link)
    return Text(title, "\n".join(lines))


def _lines(message: AlertMessage, *, named: bool) -> list[str]:
    label = message.severity if message.state == "firing" else "resolved"
    what = f"[{label}] {message.title}: {message.summary}" if named else message.summary
    if message.state == "resolved":
        return [f"{what} (held from turn {message.crossing_turn} to {message.turn})"]
    return [f"{what}, {message.since}", f"What to do: {message.todo}"]


def _plain(name: str) -> str:
    """An untrusted name on one line: printable, not long."""
    text = "".join(character if character.isprintable() else " " for character in name)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"
