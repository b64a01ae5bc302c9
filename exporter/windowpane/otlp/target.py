"""Where OTLP goes, and who says that it comes from us: one URL a signal, one resource a process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal

from opentelemetry.sdk.resources import Resource

from windowpane.core.version import package_version

SCOPE: Final = "windowpane"
SERVICE_NAME: Final = "windowpane"

Signal = Literal["metrics", "logs"]

_SIGNAL_PATHS: Final = ("/v1/metrics", "/v1/logs", "/v1/traces")


def signal_url(endpoint: str, signal: Signal) -> str:
    """The URL one signal is sent to.

    *endpoint* is a receiver's base URL, as `OTEL_EXPORTER_OTLP_ENDPOINT` is; one that already ends in the path of
    a signal is understood too. Source: the OTLP exporter specification.
    """
    base = endpoint.rstrip("/")
    for path in _SIGNAL_PATHS:
        base = base.removesuffix(path)
    return f"{base}/v1/{signal}"


def process_resource(given: Mapping[str, str] | None = None) -> Resource:
    """Who sends: *given*, then the environment, then our name.

    Every call makes another `service.instance.id`, so that two processes never write the same series.
    """
    attributes: dict[str, Any] = {"service.instance.id": uuid.uuid4().hex, **(given or {})}
    named_outside = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    if not named_outside:
        attributes.setdefault("service.name", SERVICE_NAME)
        attributes.setdefault("service.version", package_version())
    return Resource.create(attributes)
