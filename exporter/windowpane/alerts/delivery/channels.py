"""Channels that alerts are sent to: the log, any Apprise URL, Alertmanager.

A channel sends or raises `DeliveryError`; the notifier groups, limits and retries. Addresses hold secrets, so
they are never logged and never part of an error: a channel is identified by its kind and a digest of its address.
"""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from windowpane.alerts.delivery.message import AlertMessage, render
from windowpane.core.characters import plain
from windowpane.core.times import within_calendar
from windowpane.core.version import install_command
from windowpane.core.vocabulary import SEVERITIES, Severity
from windowpane.effects.http_client import HttpClient, UnreachableError
from windowpane.exceptions import ConfigurationError
from windowpane.metrics.families import session_label

SEND_SECONDS: Final = 10.0
FIRING_HOURS: Final = 24
"""Hours after which Alertmanager drops a firing alert that was not resolved."""

_log = logging.getLogger("windowpane.alerts")
_LEAKING_LOGGERS: Final = ("apprise", "urllib3.connectionpool")
"""Loggers that write addresses, including tokens in paths."""
_delivering: ContextVar[bool] = ContextVar("windowpane_delivering", default=False)
"""Apprise copies the context into the threads it sends from."""


_PATH: Final = "notify.channels.url"
_ALERTMANAGER: Final = "alertmanager://host:9093"
EXPECTED: Final = "log://, alertmanager://host:port or an Apprise URL"
_WEBHOOKS: Final = {"http": "json://host:port/path", "https": "jsons://host/path"}
"""Apprise's form of a webhook address that accepts JSON."""


class DeliveryError(Exception):
    """A channel rejected a message or cannot be reached; the text gives the reason without the address."""

    def __init__(self, reason: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        """Pause that the channel requested; 0 if it did not."""


class Channel(Protocol):
    """A receiver of messages about alerts."""

    @property
    def key(self) -> str:
        """Stable identity in the outbox, without the address."""
        ...

    @property
    def kind(self) -> str:
        """Kind of channel, such as `log`, `json` or `mailto`; safe as a metric label."""
        ...

    def accepts(self, message: AlertMessage) -> bool:
        """Return whether *message* is sent to this channel."""
        ...

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Send the messages of one session together. Raises `DeliveryError`."""
        ...


class LogChannel:
    """Writes alerts to the program's log."""

    kind = "log"
    key = "log"
    in_process = True
    """Alerts are logged by the process that raised them, never by another one that shares the outbox."""

    def __init__(self, *, min_severity: Severity = "info") -> None:
        self._min_severity = min_severity

    def accepts(self, message: AlertMessage) -> bool:
        """Accept messages of the minimum severity, and their resolutions."""
        return _is_severe(message, self._min_severity)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Write one line per message."""
        for message in messages:
            notification = render([message])
            level = logging.WARNING if message.state == "firing" and message.severity != "info" else logging.INFO
            _log.log(level, "%s: %s", notification.title, notification.body.replace("\n", "; "))


class AppriseChannel:
    """Any service that Apprise supports, by URL."""

    def __init__(self, url: str, *, min_severity: Severity = "warning") -> None:
        self.kind = urlsplit(url).scheme.lower()
        self.key = _key(self.kind, url)
        self._min_severity = min_severity
        self._apprise = _load_apprise(url, self.kind)

    def accepts(self, message: AlertMessage) -> bool:
        """Accept messages of the minimum severity, except resolutions of informational alerts."""
        is_info_resolution = message.state == "resolved" and message.severity == "info"
        return _is_severe(message, self._min_severity) and not is_info_resolution

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Send one notification for all messages."""
        notification = render(messages)
        with _without_leaks():
            accepted = self._apprise.notify(
                title=notification.title,
                body=notification.body,
                notify_type=_notify_type(messages),
                body_format="text",
            )
        if not accepted:
            raise DeliveryError(f"the {self.kind} service cannot be reached or did not accept it")


class AlertmanagerChannel:
    """Alertmanager's API v2: one alert per session and rule, which ends when it resolves."""

    kind = "alertmanager"

    def __init__(
        self, url: str, *, min_severity: Severity = "info", clock: Callable[[], float] = time.time
    ) -> None:
        parts = _parsed(url)
        if not parts.hostname:
            raise ConfigurationError(_PATH, "has no host", expected=_ALERTMANAGER)
        self.key = _key(self.kind, url)
        try:
            self._address, self._headers = _endpoint(parts)
        except ValueError:
            raise ConfigurationError(_PATH, "invalid port", expected=_ALERTMANAGER) from None
        self._min_severity = min_severity
        self._clock = clock
        self._client = HttpClient(clock=clock)

    def accepts(self, message: AlertMessage) -> bool:
        """Accept messages of the minimum severity; their resolutions end the alert."""
        return _is_severe(message, self._min_severity)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Post the alerts in one request."""
        body = json.dumps([self._alert(message) for message in messages]).encode()
        try:
            response = self._client.post(self._address, body, self._headers, timeout_seconds=SEND_SECONDS)
        except UnreachableError as error:
            raise DeliveryError(f"Alertmanager cannot be reached ({type(error.__cause__).__name__})") from None
        if not response.is_success:
            raise DeliveryError(
                f"Alertmanager answered {response.status}", retry_after_seconds=response.retry_after_seconds
            )

    def _alert(self, message: AlertMessage) -> dict[str, Any]:
        at = message.at if message.at is not None else self._clock()
        firing = message.state == "firing"
        alert: dict[str, Any] = {
            "labels": {
                "alertname": message.alert,
                "severity": message.severity,
                "agent": plain(message.agent),
                "session": session_label(message.session_id),
            },
            "annotations": {
                "title": plain(message.title),
                "summary": plain(message.summary),
                "todo": plain(message.todo),
            },
            "endsAt": _rfc3339(at + FIRING_HOURS * 3600 if firing else at),
        }
        if message.project:  # one of the configured names, never what a session states
            alert["labels"]["project"] = message.project
        if firing:
            alert["startsAt"] = _rfc3339(at)
        if message.link:
            alert["generatorURL"] = message.link
        return alert


def channel_for(url: str, *, min_severity: Severity | None = None) -> Channel:
    """Return the channel of an address: `log://`, `alertmanager(s)://host:port`, or an Apprise URL.

    Raises `ConfigurationError`, which never repeats the address.
    """
    scheme = _parsed(url).scheme.lower()
    if scheme == "log":
        return LogChannel(min_severity=min_severity or "info")
    if scheme in ("alertmanager", "alertmanagers"):
        return AlertmanagerChannel(url, min_severity=min_severity or "info")
    return AppriseChannel(url, min_severity=min_severity or "warning")


def _parsed(url: str) -> SplitResult:
    if not url.isprintable():
        raise ConfigurationError(_PATH, "invalid address: it has a control character", expected=EXPECTED)
    try:
        return urlsplit(url)
    except ValueError:
        raise ConfigurationError(_PATH, "invalid address: the host cannot be parsed", expected=EXPECTED) from None


def _is_severe(message: AlertMessage, minimum: Severity) -> bool:
    return SEVERITIES.index(message.severity) >= SEVERITIES.index(minimum)


def _key(kind: str, url: str) -> str:
    return f"{kind}:{blake2b(url.encode(), digest_size=8).hexdigest()}"


def _load_apprise(url: str, kind: str) -> Any:
    try:
        import apprise
    except ImportError as error:
        raise ConfigurationError(
            _PATH, f"a {kind or 'service'} address requires Apprise; run: {install_command('notify')}"
        ) from error
    service = apprise.Apprise()
    with _without_leaks():
        added = service.add(url)
    if not added:
        problem = f"Apprise does not support this {kind} address" if kind else "invalid address"
        webhook = _WEBHOOKS.get(kind)
        expected = EXPECTED if webhook is None else f"{EXPECTED}; the form of a plain webhook is {webhook}"
        raise ConfigurationError(_PATH, problem, expected=expected)
    return service


def _notify_type(messages: Sequence[AlertMessage]) -> str:
    firing = [message.severity for message in messages if message.state == "firing"]
    if not firing:
        return "success"
    return {"info": "info", "warning": "warning", "critical": "failure"}[max(firing, key=SEVERITIES.index)]


def _endpoint(parts: SplitResult) -> tuple[str, dict[str, str]]:
    """Return the HTTP address of the alerts endpoint, and the headers of requests to it."""
    scheme = "https" if parts.scheme.lower() == "alertmanagers" else "http"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    headers = {"Content-Type": "application/json"}
    if parts.username:
        login = f"{parts.username}:{parts.password or ''}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
    return f"{scheme}://{host}:{parts.port or 9093}{parts.path.rstrip('/')}/api/v2/alerts", headers


def _rfc3339(at: float) -> str:
    return within_calendar(at).isoformat(timespec="milliseconds")


@contextmanager
def _without_leaks() -> Iterator[None]:
    """Suppress log lines that may hold addresses while Apprise is called, and only those."""
    for name in _LEAKING_LOGGERS:
        logger = logging.getLogger(name)
        if _may_log not in logger.filters:
            logger.addFilter(_may_log)
    token = _delivering.set(True)
    try:
        yield
    finally:
        _delivering.reset(token)


def _may_log(_record: logging.LogRecord) -> bool:
    return not _delivering.get()
