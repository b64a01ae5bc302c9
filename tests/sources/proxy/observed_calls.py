"""Requests sent through a proxy, and the sessions in which their calls are recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx2

from windowpane.core.events import OverflowDetected, TurnEnded, TurnStarted
from windowpane.outputs.runtime.start import Runtime
from windowpane.store.filters import EventFilter


def post(url: str, body: Any, **headers: str) -> bytes:
    """Send a request and return the body of its response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(url, content=data, headers=headers, timeout=20).content


def recorded(outputs: Runtime, is_whole: Callable[[list[list[Any]]], bool] = bool) -> list[list[Any]]:
    """Return the payloads of each session, by their start, once every call has ended and *is_whole* is true."""
    assert outputs.store is not None
    for _ in range(200):
        assert outputs.flush()
        sessions = sorted(outputs.store.sessions(), key=lambda row: row.started_at or 0)
        payloads = [
            [one.event.data for one in outputs.store.events(EventFilter(session_id=row.session_id, limit=1_000))]
            for row in sessions
        ]
        ends = [data for one in payloads for data in one if isinstance(data, TurnEnded | OverflowDetected)]
        if (
            ends
            and is_whole(payloads)
            and len(ends) >= sum(isinstance(data, TurnStarted) for one in payloads for data in one)
        ):
            return payloads
        time.sleep(0.05)
    raise AssertionError("no call has ended")
