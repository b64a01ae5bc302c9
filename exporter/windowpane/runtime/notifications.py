"""The notifier that the configuration describes: its channels, their quiet hours, and the outbox they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.alerts.delivery.channels import channel_for
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.quiet_hours import QuietHours

if TYPE_CHECKING:
    from pathlib import Path

    from windowpane.alerts.delivery.notifier import CountNotifications, Emit
    from windowpane.config.schema import Config


def configured_notifier(
    config: Config, *, outbox: Path | None, emit: Emit, count: CountNotifications | None = None
) -> Notifier:
    """A notifier for `notify.channels`; not started. Without *outbox* what waits is kept in memory.

    Raises `ConfigurationError` for an address that cannot be used.
    """
    channels = {
        channel_for(told.url.get_secret_value(), min_severity=told.min_severity): told.quiet_hours
        for told in config.notify.channels
    }
    return Notifier(
        list(channels),
        Outbox(outbox),
        public_url=config.public_url,
        quiet_hours={channel.key: QuietHours.parse(hours) for channel, hours in channels.items() if hours},
        emit=emit,
        count=count,
    )
