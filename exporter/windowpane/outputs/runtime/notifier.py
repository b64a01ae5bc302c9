"""The notifier of the configured channels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from windowpane.alerts.delivery.channels import channel_for
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.routes import OTHERS, ProjectChannel, ProjectRoutes
from windowpane.config.paths import local_base
from windowpane.core.quiet_hours import QuietHours
from windowpane.exceptions import WindowpaneError
from windowpane.outputs.http.local_dashboard import local_dashboard

if TYPE_CHECKING:
    from pathlib import Path

    from windowpane.alerts.delivery.channels import Channel
    from windowpane.alerts.delivery.notifier import CountNotifications, Emit
    from windowpane.config.outputs import ChannelConfig
    from windowpane.config.schema import Config
    from windowpane.store.reads.project_reader import EventReader


def configured_notifier(
    config: Config,
    *,
    outbox: Path | None,
    emit: Emit,
    count: CountNotifications | None = None,
    store: EventReader | None = None,
) -> Notifier:
    """Return a notifier for the configured channels, not started; without *outbox* messages wait in memory only.

    Alerts of a project that has channels are sent to these, all others to `notify.channels`. A session that has
    not named its project here belongs to the one that *store* has for it, else to the configured one. Raises
    `ConfigurationError` for an address that cannot be used.
    """
    quiet_hours: dict[Channel, str | None] = {}
    keys: dict[str, frozenset[str]] = {}
    own = {name: project.channels for name, project in config.projects.items() if project.channels is not None}
    for name, configured in {OTHERS: config.notify.channels, **own}.items():
        channels = {_channel(one, name): one.quiet_hours for one in configured}
        keys[name] = frozenset(channel.key for channel in channels)
        quiet_hours |= channels
    return Notifier(
        list(quiet_hours),
        Outbox(outbox),
        public_url=lambda: config.public_url or local_dashboard(local_base(config.store.path)),
        quiet_hours={channel.key: QuietHours.parse(hours) for channel, hours in quiet_hours.items() if hours},
        routes=ProjectRoutes(keys, project_of=partial(_project_of, store, config.project)) if own else None,
        emit=emit,
        count=count,
    )


def _channel(configured: ChannelConfig, project: str) -> Channel:
    channel = channel_for(configured.url.get_secret_value(), min_severity=configured.min_severity)
    return ProjectChannel(channel, project) if project else channel


def _project_of(store: EventReader | None, default: str, session_id: str) -> str:
    """Return the project of a session that has not named one here."""
    try:
        row = None if store is None else store.session(session_id)
    except WindowpaneError:
        row = None
    return row.project if row is not None and row.project else default
