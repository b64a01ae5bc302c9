"""Where alerts are sent: the log, any Apprise URL, Alertmanager.

A channel sends or raises `DeliveryError`; retrying, grouping and limits are the notifier's. Addresses hold
secrets, so nothing here logs one or puts one in an error: a channel is known by its kind and a digest of its
address.
"""

from __future__ import annotations

import base64
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from http.client import HTTPException
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from windowpane.alerts.delivery.message import SEVERITY_ORDER, AlertMessage, render
from windowpane.core.vocabulary import Severity
from windowpane.exceptions import ConfigurationError

SEND_SECONDS: Final = 10.0
FIRING_HOURS: Final = 24
"""Alertmanager forgets a firing alert after this long without a resolution."""

_log = logging.getLogger("windowpane.alerts")
_TALKATIVE: Final = ("apprise", "urllib3.connectionpool")
"""Loggers that write addresses, tokens in paths included."""
_delivering: ContextVar[bool] = ContextVar("windowpane_delivering", default=False)
"""Apprise copies the context into the threads it sends from."""


_PATH: Final = "notify.channels.url"
_ALERTMANAGER: Final = "alertmanager://host:9093"
EXPECTED: Final = "log://, alertmanager://host:port or an Apprise URL"
_WEBHOOKS: Final = {"http": "json://host:port/path", "https": "jsons://host/path"}
"""How Apprise writes the address of something that takes JSON."""
ANSWER_BYTES: Final = 65_536
"""Of an answer that is read, at most."""
RETRY_AFTER_SECONDS: Final = 3_600.0
"""A channel that asks for more patience than this is asked again all the same."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for a refusal: following it would turn the message into a GET and send the login along."""

    def redirect_request(self, *_: object) -> None:
        """Nothing to follow."""
        return


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


class DeliveryError(Exception):
    """A channel did not take a message; the text says why, without the address."""

    def __init__(self, reason: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds
        """How long the channel asked to be left alone; 0 where it did not say."""


class Channel(Protocol):
    """Something that takes messages about alerts."""

    @property
    def key(self) -> str:
        """Stable identity in the outbox; reveals nothing of the address."""
        ...

    @property
    def kind(self) -> str:
        """What it is, such as `log`, `json` or `mailto`; safe as a metric label."""
        ...

    def wants(self, message: AlertMessage) -> bool:
        """Whether this channel is told about *message* at all."""
        ...

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Send the messages of one session together. Raises `DeliveryError`."""
        ...


class LogChannel:
    """Writes alerts to the program's log."""

    kind = "log"
    key = "log"
    in_process = True
    """Each process writes what it raised itself; in the log of another nobody would look for it."""

    def __init__(self, *, min_severity: Severity = "info") -> None:
        self._min_severity = min_severity

    def wants(self, message: AlertMessage) -> bool:
        """Whatever is severe enough, resolutions too."""
        return _severe(message, self._min_severity)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """One line a message."""
        for message in messages:
            text = render([message])
            level = logging.WARNING if message.state == "firing" and message.severity != "info" else logging.INFO
            _log.log(level, "%s: %s", text.title, text.body.replace("\n", "; "))


class AppriseChannel:
    """Any of the services Apprise knows, by URL."""

    def __init__(self, url: str, *, min_severity: Severity = "warning") -> None:
        self.kind = urlsplit(url).scheme.lower()
        self.key = _key(self.kind, url)
        self._min_severity = min_severity
        self._apprise = _load_apprise(url, self.kind)

    def wants(self, message: AlertMessage) -> bool:
        """Whatever is severe enough; that an informational alert is over is told to nobody."""
        passed = message.state == "resolved" and message.severity == "info"
        return _severe(message, self._min_severity) and not passed

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """One notification for all messages."""
        text = render(messages)
        with _quiet():
            accepted = self._apprise.notify(
                title=text.title, body=text.body, notify_type=_notify_type(messages), body_format="text"
            )
        if not accepted:
            raise DeliveryError(f"the {self.kind} service cannot be reached or did not accept it")


class AlertmanagerChannel:
    """Alertmanager's API v2: one alert a (session, alert), ended when it resolves."""

    kind = "alertmanager"

    def __init__(
        self, url: str, *, min_severity: Severity = "info", clock: Callable[[], float] = time.time
    ) -> None:
        parts = _parsed(url)
        if not parts.hostname:
            raise ConfigurationError(_PATH, "names no host", expected=_ALERTMANAGER)
        self.key = _key(self.kind, url)
        try:
            self._address, self._headers = _endpoint(parts)
        except ValueError:
            raise ConfigurationError(_PATH, "its port is none", expected=_ALERTMANAGER) from None
        self._min_severity = min_severity
        self._clock = clock

    def wants(self, message: AlertMessage) -> bool:
        """Whatever is severe enough; a resolution always, it ends the alert."""
        return _severe(message, self._min_severity)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Post the alerts."""
        body = json.dumps([self._alert(message) for message in messages]).encode()
        request = urllib.request.Request(self._address, body, self._headers, method="POST")  # noqa: S310  # http(s)
        try:
            with _OPENER.open(request, timeout=SEND_SECONDS) as response:
                response.read(ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            error.close()
            asked = _retry_after(error.headers.get("Retry-After"), self._clock())
            raise DeliveryError(f"Alertmanager answered {error.code}", retry_after_seconds=asked) from None
        except (OSError, HTTPException) as error:
            raise DeliveryError(f"Alertmanager cannot be reached ({type(error).__name__})") from None

    def _alert(self, message: AlertMessage) -> dict[str, Any]:
        at = message.at if message.at is not None else self._clock()
        firing = message.state == "firing"
        alert: dict[str, Any] = {
            "labels": {
                "alertname": message.alert,
                "severity": message.severity,
                "agent": message.agent,
                "session": message.session_id,
            },
            "annotations": {"title": message.title, "summary": message.summary, "todo": message.todo},
            "endsAt": _rfc3339(at + FIRING_HOURS * 3600 if firing else at),
        }
        if firing:
            alert["startsAt"] = _rfc3339(at)
        if message.link:
            alert["generatorURL"] = message.link
        return alert


def channel_for(url: str, *, min_severity: Severity | None = None) -> Channel:
    """The channel of an address: `log://`, `alertmanager(s)://host:port`, or an Apprise URL.

    Raises `ConfigurationError`, which never repeats the address.
    """
    scheme = _parsed(url).scheme.lower()
    if scheme == "log":
        return LogChannel(min_severity=min_severity or "info")
    if scheme in ("alertmanager", "alertmanagers"):
        return AlertmanagerChannel(url, min_severity=min_severity or "info")
    return AppriseChannel(url, min_severity=min_severity or "warning")


def _parsed(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise ConfigurationError(_PATH, "is no address: its host cannot be read", expected=EXPECTED) from None


def _severe(message: AlertMessage, minimum: Severity) -> bool:
    return SEVERITY_ORDER[message.severity] >= SEVERITY_ORDER[minimum]


def _key(kind: str, url: str) -> str:
    return f"{kind}:{blake2b(url.encode(), digest_size=8).hexdigest()}"


def _load_apprise(url: str, kind: str) -> Any:
    try:
        import apprise
    except ImportError as error:
        raise ConfigurationError(
            _PATH, f"a {kind or 'service'} address needs Apprise", expected="windowpane[notify]"
        ) from error
    service = apprise.Apprise()
    with _quiet():
        added = service.add(url)
    if not added:
        problem = f"a {kind} address that Apprise does not understand" if kind else "no address"
        hook = _WEBHOOKS.get(kind)
        expected = EXPECTED if hook is None else f"{EXPECTED}; a plain webhook is written {hook}"
        raise ConfigurationError(_PATH, problem, expected=expected)
    return service


def _notify_type(messages: Sequence[AlertMessage]) -> str:
    firing = [message.severity for message in messages if message.state == "firing"]
    if not firing:
        return "success"
    return {"info": "info", "warning": "warning", "critical": "failure"}[
        max(firing, key=lambda severity: SEVERITY_ORDER[severity])
    ]


def _endpoint(parts: SplitResult) -> tuple[str, dict[str, str]]:
    """HTTP address of the alerts endpoint, and the headers that go with it."""
    scheme = "https" if parts.scheme.lower() == "alertmanagers" else "http"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    headers = {"Content-Type": "application/json"}
    if parts.username:
        login = f"{parts.username}:{parts.password or ''}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
    return f"{scheme}://{host}:{parts.port or 9093}{parts.path.rstrip('/')}/api/v2/alerts", headers


def _retry_after(header: str | None, now: float) -> float:
    """Seconds that a `Retry-After` header asks for, as a number or as a date; 0 where it says nothing usable."""
    if not header:
        return 0.0
    try:
        asked = float(header) if header.strip().isdecimal() else parsedate_to_datetime(header).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return min(max(asked, 0.0), RETRY_AFTER_SECONDS)


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep log lines that may hold addresses out of the log while we call Apprise, and only those."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if _not_ours not in logger.filters:
            logger.addFilter(_not_ours)
    token = _delivering.set(True)
    try:
        yield
    finally:
        _delivering.reset(token)


def _not_ours(_record: logging.LogRecord) -> bool:
    return not _delivering.get()
