"""The channels of each session's alerts: its project's channels, else the channels of all other sessions.

A session names its project in an event before its first alert, so most are learnt from the events; the others are
looked up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from windowpane.alerts.delivery.channels import Channel
from windowpane.alerts.delivery.message import AlertMessage
from windowpane.core.events import Event, SessionDescribed

REMEMBERED_SESSIONS: Final = 10_000
OTHERS: Final = ""
"""The name under which the channels of all other sessions are."""

FindProject = Callable[[str], str]
"""Returns the project of a session, or an empty text; never raises."""


def no_project(_session_id: str) -> str:
    """Return no project."""
    return OTHERS


class ProjectChannel:
    """A channel that receives the alerts of one project, whose name is part of its messages."""

    def __init__(self, channel: Channel, project: str) -> None:
        self._channel = channel
        self._project = project
        self.kind = channel.kind
        self.key = f"{project}/{channel.key}"
        self.in_process = bool(getattr(channel, "in_process", False))

    def accepts(self, message: AlertMessage) -> bool:
        """Return whether *message* is sent to this channel."""
        return self._channel.accepts(message)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Send the messages of one session together. Raises `DeliveryError`."""
        self._channel.send([replace(message, project=self._project) for message in messages])


class ProjectRoutes:
    """The keys of the channels of each project."""

    def __init__(self, keys: Mapping[str, frozenset[str]], *, project_of: FindProject = no_project) -> None:
        self._keys = keys
        self._project_of = project_of
        self._projects: OrderedDict[str, str] = OrderedDict()

    def record(self, event: Event) -> None:
        """Remember the project that an event names."""
        if isinstance(event.data, SessionDescribed) and event.data.project:
            self._remember(event.context.session_id, event.data.project)

    def keys_of(self, session_id: str) -> frozenset[str]:
        """Return the keys of the channels that receive the session's alerts."""
        project = self._projects.get(session_id)
        if project is None:
            project = self._project_of(session_id)
            self._remember(session_id, project)
        return self._keys.get(project, self._keys[OTHERS])

    def _remember(self, session_id: str, project: str) -> None:
        self._projects[session_id] = project
        self._projects.move_to_end(session_id)
        if len(self._projects) > REMEMBERED_SESSIONS:
            self._projects.popitem(last=False)
