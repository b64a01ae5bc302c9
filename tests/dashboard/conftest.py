"""Stores for the dashboard's tests: empty, a rich small one, a long one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.sampling import EVERYTHING

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlocksEvicted,
    Candidate,
    CheckpointSaved,
    ContentCompressed,
    Event,
    EvictedBlock,
    FactOutcome,
    FidelityEvaluated,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.server.launch import APP

HOSTILE = "<script>document.title='owned'</script> **bold** :fire: [link](http://127.0.0.1:9/x) $x^2$"
"""An agent name that every kind of markup would make something of."""


def digest(text: str) -> str:
    """An unkeyed digest; good enough for a test store."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tracker(
    emitted: list[Event],
    *,
    session_id: str,
    agent: str = "reviewer",
    model: str = "gpt-5",
    limit_tokens: int | None = 20_000,
) -> SessionTracker:
    """A session tracker whose events land in *emitted*."""
    return SessionTracker(
        SessionInfo(session_id, agent, model, "live", f"stream-{session_id}"),
        emit=emitted.extend,
        digest=digest,
        limits=None if limit_tokens is None else WindowLimits.of(limit_tokens, "given"),
    )


def work(session: SessionTracker, turn: int, at: float, *, tool_tokens: int = 900) -> str:
    """One turn of an agent: the last call's result comes in, it answers and reads the next file.

    Returns the tool result's block id.
    """
    result = session.add(
        "tool_result", f"contents of file_{turn}.py\nvalue = {turn}", tool_tokens, tool_call_id=f"call-{turn}",
        tool_name="read", at=at,
    )  # fmt: skip
    used = session.measure("before", at + 1).used_tokens
    session.add("assistant_response", f"file_{turn}.py sets value to {turn}", 60, at=at + 2)
    call = f"call-{turn + 1}"
    session.add("tool_call", f"read(file_{turn + 1}.py)", 30, tool_call_id=call, tool_name="read", at=at + 2)
    session.end_turn(
        Usage(input_tokens=used // 4, output_tokens=90, cache_read_tokens=used - used // 4),
        cost_dollars=0.0125, latency_seconds=2.5, at=at + 3,
    )  # fmt: skip
    return result.id


def rich_events(
    *,
    start: float,
    session_id: str = "refactor-api",
    agent: str = "reviewer",
    compactions: Sequence[int] = (15,),
) -> list[Event]:
    """A session in which everything happens that the page explains: 22 turns, red, all seven marks."""
    emitted: list[Event] = []
    session = tracker(emitted, session_id=session_id, agent=agent)
    session.start(start, task="Migrate the service")
    session.add("system_prompt", "You review code.", 700, pinned=True, at=start)
    session.add("tool_definition", "read(path)", 400, pinned=True, at=start)
    session.add("user_message", "Migrate user-service from axios to fetch", 120, pinned=True, at=start)
    results: list[str] = []
    for turn in range(1, 23):
        at = start + 30.0 * turn
        if turn in compactions:
            _compact(session, results, at)
        if turn == 18:
            _evict(session, results[-4:-1], at)
        if turn == 20:
            _fetch_again(session, at)
        results.append(work(session, turn, at, tool_tokens=6_500 if turn == 17 else 1_100))
        if turn == 14:
            session.record(AlertFired("utilization", "critical", 12, 0.93, 0.90, "93%, 18.6k of 20k"), at + 4)
        if turn == 15:
            session.record(AlertResolved("utilization", "critical", 12, 0.41, 0.90, 14), at + 4)
        if turn == 16:
            session.record(CheckpointSaved(1, "milestone", 5_120, "c" * 32), at + 4)
    session.roll("checkpoint", start + 30.0 * 23)
    session.add("user_message", "Go on", 10, at=start + 30.0 * 23)
    work(session, 23, start + 30.0 * 23)
    session.flush()
    return emitted


def _compact(session: SessionTracker, results: list[str], at: float) -> None:
    removed = tuple(block.id for block in session.window if block.content_type in ("tool_result", "tool_call"))
    tokens = sum(block.tokens for block in session.window if block.id in removed)
    summary = session.make_replacement(
        "summary", "Goal: migrate. Decided: keep retries.", 640, replaces=removed[0]
    )
    event = session.compress(
        ContentCompressed(
            "compaction", "red", "accepted", tokens, 640, removed=removed, results=(summary.id,),
            method="extractive", duration_seconds=0.04,
        ),
        (summary,), at,
    )  # fmt: skip
    facts = tuple(
        FactOutcome(kind, outcome, digest(f"{kind}{index}"), f"{kind} {index}")
        for index, (kind, outcome) in enumerate(
            [("identifier", "kept")] * 6 + [("decision", "lost")] * 3 + [("path", "recoverable")] * 2
            + [("number", "contradicted")]
        )
    )  # fmt: skip
    session.record(
        FidelityEvaluated(
            "probe", 0.62, 1.0, 0.6, 0.7, 0.5, facts, 12, 6, 2, 3, 1, of=event.event_id
        ),
        at,
    )  # fmt: skip
    results.clear()


def _evict(session: SessionTracker, block_ids: list[str], at: float) -> None:
    held = {block.id: block for block in session.window}
    replacements, evicted = [], []
    for block_id in block_ids:
        if block_id not in held:
            continue
        old = held[block_id]
        placeholder = session.make_replacement("placeholder", f"[read {block_id} left]", 20, replaces=block_id)
        replacements.append(placeholder)
        evicted.append(
            EvictedBlock(
                block_id, old.content_type, old.tokens, "mask", "older than 8 turns, never referenced", 0.12,
                {"recency": 0.02, "priority": 0.1}, placeholder.id, 20, f"h-{block_id}", old.turn, old.tool_name,
            )
        )  # fmt: skip
    removed = sum(block.tokens for block in evicted)
    candidates = [
        block for block in held.values() if block.content_type == "tool_result" and block.id not in block_ids
    ]
    session.evict(
        BlocksEvicted(
            "hybrid", tuple(evicted), removed, removed - 20 * len(evicted), 12_000,
            candidates=tuple(Candidate(block.id, "tool_result", block.tokens, 0.64) for block in candidates),
        ),
        replacements, at,
    )  # fmt: skip


def _drop(session: SessionTracker, at: float) -> None:
    evicted = tuple(
        EvictedBlock(block.id, block.content_type, block.tokens, "drop", "over the target", 0.2)
        for block in session.window
        if not block.pinned
    )
    removed = sum(block.tokens for block in evicted)
    session.evict(BlocksEvicted("hybrid", evicted, removed, removed, 12_000), (), at)


def _fetch_again(session: SessionTracker, at: float) -> None:
    session.add("tool_call", "read(file_16.py)", 30, tool_call_id="again", tool_name="read", at=at)
    session.add(
        "tool_result", "contents of file_16.py\nvalue = 16", 1_100, tool_call_id="again", tool_name="read", at=at
    )


def plain_events(
    session_id: str, *, start: float, turns: int, limit_tokens: int | None, end: bool, open_turn: bool = False
) -> list[Event]:
    """A quiet session of *turns* turns."""
    emitted: list[Event] = []
    session = tracker(emitted, session_id=session_id, agent="writer", model="m-1", limit_tokens=limit_tokens)
    session.start(start)
    session.add("system_prompt", "You write.", 500, at=start)
    for turn in range(1, turns + 1):
        session.add("user_message", f"chapter {turn}", 40, at=start + turn)
        session.add("assistant_response", f"text {turn}", 120, at=start + turn)
        session.end_turn(Usage(input_tokens=500 + 160 * turn, output_tokens=120), at=start + turn)
    if open_turn:
        session.add("user_message", "not answered yet", 40, at=start + turns + 1)
    if end:
        session.end("completed", start + turns + 1)
    session.flush()
    return emitted


def long_events(session_id: str, *, start: float, turns: int) -> list[Event]:
    """A long session with an eviction every 60 turns and a spike at turn 1,234."""
    emitted: list[Event] = []
    session = tracker(emitted, session_id=session_id, agent="marathon", limit_tokens=128_000)
    session.start(start)
    session.add("system_prompt", "Go on.", 900, pinned=True, at=start)
    for turn in range(1, turns + 1):
        at = start + 4.0 * turn
        if turn % 60 == 0:
            _drop(session, at)
        work(session, turn, at, tool_tokens=50_000 if turn == 1_234 else 1_000)
    session.flush()
    return emitted


def hostile_events(*, start: float) -> list[Event]:
    """A session whose names are markup."""
    emitted = rich_events(start=start, session_id=f"id {HOSTILE}", agent=HOSTILE)
    hostile = replace(emitted[0].context, model=HOSTILE)
    return [event._replace(context=replace(event.context, model=hostile.model)) for event in emitted]


@dataclass(frozen=True)
class Builders:
    """The makers of sessions, for tests that fill a store themselves."""

    rich: Callable[..., list[Event]] = rich_events
    plain: Callable[..., list[Event]] = plain_events
    long: Callable[..., list[Event]] = long_events
    hostile: Callable[..., list[Event]] = hostile_events
    hostile_name: str = HOSTILE


@pytest.fixture(scope="session")
def builders() -> Builders:
    """The makers of sessions."""
    return Builders()


@pytest.fixture
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """A store without events, and the dashboard pointed at it."""
    path = tmp_path / "windowpane.db"
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def small_store(empty_store: SqliteStore) -> SqliteStore:
    """A live session with everything, one without a known limit, one that ended."""
    fill(empty_store)
    return empty_store


def fill(store: SqliteStore) -> None:
    """Append the sessions of `small_store`."""
    now = time.time()
    store.append(rich_events(start=now - 800))
    store.append(plain_events("unknown-limit", start=now - 4_000, turns=6, limit_tokens=None, end=True))
    store.append(plain_events("short", start=now - 9_000, turns=1, limit_tokens=200_000, end=True))


@pytest.fixture(scope="session")
def seen_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a `small_store` that tests share; they only look at it."""
    path = tmp_path_factory.mktemp("seen") / "windowpane.db"
    store = SqliteStore(path)
    fill(store)
    store.close()
    return path


@pytest.fixture(scope="session")
def growing_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """A `small_store` to which each test appends other sessions."""
    store = SqliteStore(tmp_path_factory.mktemp("growing") / "windowpane.db")
    fill(store)
    yield store
    store.close()


@pytest.fixture(scope="session")
def large_store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one session of 3,000 turns (10,000 with WINDOWPANE_TEST_ALL)."""
    path = tmp_path_factory.mktemp("large") / "windowpane.db"
    store = SqliteStore(path)
    turns = 10_000 if EVERYTHING else 3_000
    store.append(long_events("marathon", start=time.time() - 4.0 * turns, turns=turns))
    store.close()
    return path


@pytest.fixture
def open_page() -> Callable[..., AppTest]:
    """Run the application at one page, with query parameters."""
    st.cache_resource.clear()
    st.cache_data.clear()

    def run(page: str, **query: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=60)
        if page != "fleet":
            app.switch_page(f"views/{page}.py")
        for name, value in query.items():
            app.query_params[name] = value
        return app.run()

    return run


@pytest.fixture(scope="session")
def page_text() -> Callable[[AppTest], str]:
    """Return all text of a page."""

    def text(app: AppTest) -> str:
        kinds = (app.subheader, app.caption, app.text, app.markdown, app.error, app.warning, app.code)
        return "\n".join(str(element.value) for kind in kinds for element in kind)

    return text
