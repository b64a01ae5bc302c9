"""What became of a message, as an event of the session it was about."""

from __future__ import annotations

from dataclasses import replace

from windowpane.alerts.delivery.channels import Channel
from windowpane.alerts.delivery.outbox import Letter, state_of
from windowpane.core.events import AlertFired, AlertResolved, Event, NotificationDelivered, NotificationFailed


def notice(letter: Letter, channel: Channel, outcome: str, reason: str, at: float) -> Event:
    """The event about one message. Each has a stream of its own, so that telling twice is the same event."""
    event = letter.event
    data = event.data
    assert isinstance(data, AlertFired | AlertResolved)
    state = state_of(event)
    stream = f"{event.context.stream_id}/{channel.key}/{data.alert}/{data.crossing_turn}/{state}"
    context = replace(event.context, stream_id=stream)
    attempts = letter.attempts + 1
    if outcome == "delivered":
        delivered = NotificationDelivered(data.alert, data.crossing_turn, channel.kind, state, attempts)
        return Event(context, 0, round(at, 6), delivered)
    failed = NotificationFailed(data.alert, data.crossing_turn, channel.kind, state, attempts, reason)
    return Event(context, 0, round(at, 6), failed)
