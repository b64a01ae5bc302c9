"""The sections of the outputs: the store, the metrics endpoint, the receivers of alerts, and OpenTelemetry."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PlainValidator, SecretStr

from windowpane.config.paths import default_store, named_store
from windowpane.config.section import NUMBER, Count, GivenSecret, HttpUrl, Port, Positive, Section, checked_by
from windowpane.core.quiet_hours import QuietHours
from windowpane.core.store_names import EXPECTED_URL, StoreName, StoreUrl
from windowpane.core.vocabulary import Severity
from windowpane.exceptions import ConfigurationError


def _store_name(given: object) -> StoreName:
    if isinstance(given, str):
        return named_store(given, key="path")
    if isinstance(given, Path | StoreUrl):
        return given
    raise ConfigurationError("path", "invalid", expected=EXPECTED_URL)


def _paths(given: object) -> object:
    return list(filter(None, given.split(os.pathsep))) if isinstance(given, str) else given


class StoreConfig(Section):
    """The event store: its file, its content and its retention."""

    path: Annotated[Path | StoreUrl, PlainValidator(_store_name, json_schema_input_type=str)] = Field(
        default_factory=default_store
    )
    capture: bool = False
    """Store texts too, with secrets redacted."""
    first_message_titles: bool = True
    """Title recorded sessions that have no title by their first user message, with secrets redacted."""
    retention_days: Positive = 30
    retention_bytes: Annotated[int, Field(gt=0), NUMBER] = 2_000_000_000
    audit_key_file: Path | None = None
    audit_old_key_files: Annotated[tuple[Path, ...], BeforeValidator(_paths)] = ()
    """Keys that signed before the current one; they only verify. A text separates them as `PATH` does."""


class IngestConfig(Section):
    """Sending to a server, where the store's name is its URL."""

    token: GivenSecret | None = None
    """The token of the agent or its project."""
    ca: Path | None = None
    """Certificates of the authority that signed the server's; by default those of the system."""
    certificate: Path | None = None
    """Certificate of this client, for a server that asks for one."""
    key: Path | None = None
    """Private key of the client's certificate, if the certificate's file does not hold it."""
    insecure: bool = False
    """Send unencrypted to other machines, too."""
    spool_bytes: Annotated[int, Field(ge=0), NUMBER] = 256 * 2**20
    """Size of what waits on disk at most; what does not fit is dropped, and counted."""
    timeout_seconds: Annotated[float, Field(gt=0, le=300), NUMBER] = 10
    """Time for connecting, and for the answer."""

    def _check(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ValueError("ingest.key needs ingest.certificate")


class Tls(Section):
    """Certificate of the metrics endpoint; with *client_ca* clients must present one that is signed by it."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class ServerConfig(Section):
    """The metrics endpoint."""

    port: Port = 9464
    """0 takes a free port; so does a port that is in use."""
    address: str = "127.0.0.1"
    bearer_token: GivenSecret | None = None
    tls: Tls | None = None
    insecure: bool = False
    """Serve beyond loopback although neither a token nor a certificate is set."""


class ChannelConfig(Section):
    """One receiver of alert messages."""

    url: SecretStr
    """`log://`, `alertmanager://host:port`, or any Apprise URL."""
    min_severity: Severity | None = None
    """None sends everything to the log and Alertmanager, and warnings or worse to people."""
    quiet_hours: Annotated[str, checked_by(QuietHours.parse)] | None = None
    """Local time such as `22:00-07:00`: only critical alerts are sent during it, the others afterwards."""


class NotifyConfig(Section):
    """The receivers of alert messages."""

    channels: tuple[ChannelConfig, ...] = Field(
        default=({"url": "log://", "min_severity": "warning"},), validate_default=True
    )
    test_any_address: bool = False
    """Let visitors of the dashboard send a test message to any address, and not only to a channel."""


class OtlpConfig(Section):
    """Push to an OpenTelemetry endpoint, where one is set, and what `windowpane serve --otlp` receives."""

    endpoint: HttpUrl | None = None
    """Base URL of the receiver, such as `http://127.0.0.1:4318`."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    events: bool = True
    """Send events as log records, beside the metrics."""
    interval_seconds: Annotated[float, Field(ge=1), NUMBER] = 60
    """Interval between two pushes of metrics."""
    receive_port: Port = 4318
    """Port on which `windowpane serve --otlp` takes traces and logs."""
    receive_wait_seconds: Annotated[float, Field(ge=0, le=300), NUMBER] = 10
    """Time for which a call is held until everything that reports it has come."""
    forward: HttpUrl | None = None
    """Base URL of another collector, to which every request that is received is passed on unchanged."""
    forward_headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers added to what is passed on, such as the collector's credentials."""


def _clickhouse_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("clickhouse.url must be the address of ClickHouse's HTTP interface, http://host:8123")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "clickhouse.url must not hold a password, query or fragment; set clickhouse.user and "
            "clickhouse.password"
        )


class ClickHouseConfig(Section):
    """The analytical copy of the store in ClickHouse, where one is set."""

    url: Annotated[str, checked_by(_clickhouse_url)] | None = None
    """Address of the HTTP interface, such as `http://127.0.0.1:8123`."""
    user: str | None = None
    password: SecretStr = SecretStr("")
    database: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "windowpane"
    """Database of this store's copy; it is created."""
    cluster: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.{}-]+$")] | None = None
    """Cluster on which the tables are created; None for one server."""
    retention_days: Count | None = None
    """Days after which the copy deletes events, turns, sessions, alerts and tools; None keeps them."""
