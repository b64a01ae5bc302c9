"""Service discovery: the endpoints of this host's agent processes that still run."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from pydantic import BaseModel

from windowpane.effects.processes import is_running
from windowpane.outputs.http.http_server import host_and_port
from windowpane.outputs.http.routes import Target

if TYPE_CHECKING:
    from windowpane.store.registry import Endpoint

_NO_PROXY: Final = build_opener(ProxyHandler({}))
"""Ignores the proxies of the environment: only servers of this machine are requested."""
_MAXIMUM_BYTES: Final = 100_000


class Health(BaseModel):
    """The part of `/healthz` that is read."""

    status: str = ""


def running_targets(endpoints: Iterable[Endpoint]) -> list[Target]:
    """Return the endpoints of this machine whose process is alive, for Prometheus' HTTP service discovery."""
    return [
        target_at(endpoint.host, endpoint.port, endpoint.scheme)
        for endpoint in endpoints
        if endpoint.machine in ("", this_machine()) and is_running(endpoint.pid)
    ]


def this_machine() -> str:
    """Return the name of this machine, or of the container, in which process numbers are unique."""
    return socket.gethostname()


def target_at(host: str, port: int, scheme: str) -> Target:
    """Return an endpoint as a target; Prometheus reads a scheme other than HTTP from the label `__scheme__`."""
    labels = {"job": "windowpane"}
    if scheme != "http":
        labels["__scheme__"] = scheme
    return Target(host_and_port(host, port), labels)


def http_status(url: str, *, timeout_seconds: float) -> int | None:
    """Return the HTTP status of *url* on this machine; None without a reply, or without one in HTTP."""
    try:
        with _NO_PROXY.open(url, timeout=timeout_seconds) as response:
            return int(response.status)
    except HTTPError as error:
        error.close()
        return error.code
    except (OSError, HTTPException, ValueError):
        return None


def reported_health(url: str, *, timeout_seconds: float) -> str:
    """Return the status that `/healthz` at *url* reports on this machine; empty if that cannot be read."""
    try:
        with _NO_PROXY.open(url, timeout=timeout_seconds) as response:
            return Health.model_validate_json(response.read(_MAXIMUM_BYTES)).status
    except (OSError, HTTPException, ValueError):
        return ""
