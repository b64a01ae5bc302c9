"""Service discovery: the `/metrics` endpoints of this host's agent processes that are still running."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from windowpane.serve.http_server import Target, host_and_port

if TYPE_CHECKING:
    from windowpane.store.registry import Endpoint


def running_targets(endpoints: Iterable[Endpoint]) -> list[Target]:
    """The endpoints whose process is alive, as Prometheus' HTTP service discovery lists them."""
    return [
        target_at(endpoint.host, endpoint.port, endpoint.scheme) for endpoint in endpoints if _runs(endpoint.pid)
    ]


def target_at(host: str, port: int, scheme: str) -> Target:
    """An endpoint as a target; Prometheus takes `__scheme__` for how to ask it, which is HTTP without one."""
    labels = {"job": "windowpane"}
    if scheme != "http":
        labels["__scheme__"] = scheme
    return Target(host_and_port(host, port), labels)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # alive, and somebody else's
    return True
