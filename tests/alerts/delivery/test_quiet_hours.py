"""Quiet hours: only critical alerts reach a person at night, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.alerts.delivery.message import AlertMessage
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.worker import DeliverySettings
from windowpane.config.loading import load_config
from windowpane.core.events import AlertFired, Event, EventContext
from windowpane.core.quiet_hours import QuietHours
from windowpane.core.vocabulary import Severity
from windowpane.exceptions import ConfigurationError
from windowpane.testing import ManualClock

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
HOUR = 3_600.0


class Recorder:
    """A channel that records its messages."""

    key = "recorder:1"
    kind = "recorder"

    def __init__(self) -> None:
        self.sent: list[str] = []

    def accepts(self, message: AlertMessage) -> bool:
        return True

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self.sent.extend(message.alert for message in messages)


def fired(alert: str, severity: Severity, *, n: int) -> Event:
    context = EventContext("s", "agent", "gpt-4o", 3, 1, "live", "stream/alerts")
    return Event(context, n, MIDNIGHT, AlertFired(alert, severity, 3, 0.9, 0.8))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MIDNIGHT)


@pytest.fixture
def channel() -> Recorder:
    return Recorder()


@pytest.fixture
def notifier(tmp_path: Path, clock: ManualClock, channel: Recorder) -> Iterator[Notifier]:
    """A notifier whose only channel sleeps until what is 07:00 for this machine."""
    local = datetime.fromtimestamp(MIDNIGHT, UTC).astimezone()
    start = local.hour * 60 + local.minute
    quiet = QuietHours((start - 120) % 1440, (start + 420) % 1440)
    with closing(
        Notifier(
            [channel],
            Outbox(tmp_path / "outbox.db"),
            settings=DeliverySettings(group_seconds=0.0),
            quiet_hours={channel.key: quiet},
            clock=clock,
        )
    ) as notifier:
        notifier.start = lambda: None  # type: ignore[method-assign]  # the test delivers by hand
        yield notifier


class TestTheSpan:
    def test_it_may_run_past_midnight(self) -> None:
        quiet = QuietHours.parse("22:00-07:00")

        assert quiet.until(MIDNIGHT - HOUR / 2, UTC) == MIDNIGHT + 7 * HOUR
        assert quiet.until(MIDNIGHT + 6.99 * HOUR, UTC) == MIDNIGHT + 7 * HOUR
        assert quiet.until(MIDNIGHT + 7 * HOUR, UTC) is None
        assert quiet.until(MIDNIGHT + 12 * HOUR, UTC) is None

    def test_it_is_local_time(self) -> None:
        quiet = QuietHours.parse("22:00-07:00")

        assert quiet.until(MIDNIGHT, UTC) is not None
        assert quiet.until(MIDNIGHT, timezone(timedelta(hours=9))) is None

    @given(start=st.integers(0, 1439), end=st.integers(0, 1439), now=st.floats(MIDNIGHT, MIDNIGHT + 86_400 * 30))
    def test_it_always_ends_within_a_day(self, start: int, end: int, now: float) -> None:
        if start == end:
            return
        quiet = QuietHours(start, end)
        until = quiet.until(now, UTC)

        assert until is None or now < until <= now + 86_400
        assert until is None or quiet.until(until, UTC) is None

    @pytest.mark.parametrize("text", ["", "22-7", "25:00-07:00", "22:00", "22:60-07:00", "07:00-07:00"])
    def test_what_is_no_span_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigurationError, match="22:00-07:00"):
            QuietHours.parse(text)

    def test_the_configuration_refuses_it_by_its_key(self, tmp_path: Path) -> None:
        file = tmp_path / "windowpane.yaml"
        file.write_text('notify: {channels: [{url: "log://", quiet_hours: "late"}]}')

        with pytest.raises(ConfigurationError, match="quiet_hours"):
            load_config(file, environ={})


class TestDelivery:
    def test_critical_alerts_pass_and_others_wait(
        self, notifier: Notifier, clock: ManualClock, channel: Recorder
    ) -> None:
        notifier.write([fired("overflow", "critical", n=0), fired("fidelity", "warning", n=1)])
        notifier.deliver_due()
        at_night = list(channel.sent)
        clock.advance(7.1 * HOUR)
        notifier.deliver_due()
        notifier.deliver_due()

        assert at_night == ["overflow"]
        assert channel.sent == ["overflow", "fidelity"]
