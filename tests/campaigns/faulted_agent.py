"""A managed agent whose hooks are timed, and the check of what the store has of it afterwards."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from windowpane.agents.managers import ContextWindowManager
from windowpane.store.embedded import SqliteStore
from windowpane.testing import chat_reply

WARM_UP_TURNS = 3
"""Turns that load tokenizer and modules, and are not timed."""
LONGEST_HOOK_MS = 1_000.0
"""Longest accepted hook during a fault: at most two waits of a quarter of a second, on a busy machine."""


class TimedAgent:
    """An agent with a small window: every few turns it evicts, archives and saves a checkpoint."""

    def __init__(self, folder: Path, session: str) -> None:
        self.session = session
        self._turns = 0
        self._longest = 0.0
        self._window = ContextWindowManager(
            agent="faulted", model="gpt-4o", limit_tokens=6_000, task_goal="Survive.", task_id=session,
            session_id=session, data_folder=folder,
        )  # fmt: skip
        self._window.add_user("Go.")
        self.longest_hook_ms(WARM_UP_TURNS)

    def longest_hook_ms(self, turns: int) -> float:
        """Take some turns and return the longest call of a hook among them."""
        self._longest = 0.0
        for _ in range(turns):
            self._turn()
        return 1_000 * self._longest

    def close(self) -> None:
        """End the session."""
        self._window.close()

    def _turn(self) -> None:
        number, window = self._turns, self._window
        self._turns += 1
        call = (f"c{number}", "read", json.dumps({"part": number}))
        self._timed(window.on_turn_start)
        self._timed(lambda: window.on_turn_end(chat_reply(None, calls=[call])))
        text = " ".join(f"line {number} {word}" for word in range(300))
        self._timed(lambda: window.on_tool_result("read", text, call[0]))
        if number % 3 == 0:
            self._timed(lambda: window.task.complete(f"step {number}"))

    def _timed(self, hook: Callable[[], Any]) -> None:
        started = time.perf_counter()
        hook()
        self._longest = max(self._longest, time.perf_counter() - started)


def stored_numbers(store: Path, session: str) -> list[int]:
    """Return the numbers of a session's own events, in the order of the store."""
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute(
            "SELECT body FROM events JOIN sessions ON events.session = sessions.key "
            "WHERE session_id = ? ORDER BY seq", (session,)
        ).fetchall()  # fmt: skip
    bodies = [json.loads(body) for (body,) in rows]
    return [
        body["n"] for body in bodies if body["stream_id"].count("/") <= 1 and "alerts" not in body["stream_id"]
    ]


def is_complete(store: Path, session: str) -> bool:
    """Return whether the session is stored from its first to its last event, once, in order and verifiably."""
    numbers = stored_numbers(store, session)
    with closing(SqliteStore(store)) as opened:
        row = opened.session(session)
        intact = opened.verify(session).intact
    return bool(numbers) and numbers == list(range(len(numbers))) and row is not None and row.ended and intact
