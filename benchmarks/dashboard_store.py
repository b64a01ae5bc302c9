"""The store on which the dashboard is measured: one very long session, and many short ones beside it."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    Event,
    EventContext,
    EvictedBlock,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter, SessionFilter
from windowpane.store.records import SessionRow

LONGEST = "marathon"
PARENT = "session-00000"
CHILDREN = 8
ALERTED_SESSIONS = 300
WORDS = [
    "adapter", "buffer", "cache", "decode", "encode", "fetch", "graph", "handler", "index", "journal", "kernel",
    "ledger", "metric", "node", "offset", "parser", "queue", "router", "schema", "token", "vector", "worker",
]  # fmt: skip
WORDS_OF_A_RESULT = 150
BATCH = 5_000


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def result_text(name: str) -> str:
    """About 1,000 characters of program-like text, another one for every name."""
    order = random.Random(name)
    parts = (f"{order.choice(WORDS)}_{order.randrange(1_000)}" for _ in range(WORDS_OF_A_RESULT // 2))
    return f"{name}: " + " = ".join(parts)


def session_events(session_id: str, turns: int, start: float) -> list[Event]:
    """An agent that reads a file every turn, with an eviction every 60 turns."""
    emitted: list[Event] = []
    info = SessionInfo(session_id, "marathon", "gpt-5", "live", f"stream-{session_id}")
    session = SessionTracker(info, emit=emitted.extend, digest=digest, limits=WindowLimits.of(128_000, "given"))
    session.start(start)
    session.add("system_prompt", "Go on.", 900, pinned=True, at=start)
    for turn in range(1, turns + 1):
        at = start + 4.0 * turn
        if turn % 60 == 0:
            drop(session, at)
        work(session, turn, at)
    session.flush()
    return emitted


def drop(session: SessionTracker, at: float) -> None:
    evicted = tuple(
        EvictedBlock(block.id, block.content_type, block.tokens, "drop", "over the target", 0.2)
        for block in session.window
        if not block.pinned
    )
    removed = sum(block.tokens for block in evicted)
    session.evict(BlocksEvicted("hybrid", evicted, removed, removed, 12_000), (), at)


def work(session: SessionTracker, turn: int, at: float) -> None:
    session.add(
        "tool_result", result_text(f"file_{turn}"), 1_000, tool_call_id=f"call-{turn}", tool_name="read", at=at
    )
    used = session.measure("before", at + 1).used_tokens
    session.add("assistant_response", f"seen {turn}", 60, at=at + 2)
    session.add("tool_call", f"read {turn + 1}", 30, tool_call_id=f"call-{turn + 1}", tool_name="read", at=at + 2)
    usage = Usage(input_tokens=used // 4, output_tokens=90, cache_read_tokens=used - used // 4)
    session.end_turn(usage, cost_dollars=0.0125, latency_seconds=2.5, at=at + 3)


def fill(path: Path, *, events: int, sessions: int, turns: int, captured: int | None = None) -> None:
    """The longest session, then copies of one shorter session until there are enough events.

    Each session has its own tool results. The texts of all sessions are captured, or of so many.
    """
    store = SqliteStore(path, capture=True, redact=lambda text: text)
    now = time.time()
    started = time.perf_counter()
    long = session_events(LONGEST, turns, now - 4.0 * turns)
    for at in range(0, len(long), BATCH):
        store.append(long[at : at + BATCH])
    each, over = divmod(max(0, events - len(long)), sessions - 1)
    pattern = session_events("pattern", each, now - 90_000.0)[: each + 1]
    batch: list[Event] = []
    for number in range(sessions - 1):
        if number == captured:
            store.append(batch)
            batch = []
            store.close()
            store = SqliteStore(path)
        events_of = pattern[: each + (number < over)]
        batch += copied(events_of, f"session-{number:05}", f"agent-{number % 40}", 31.0 * (number % 2_000))
        if len(batch) >= BATCH:
            store.append(batch)
            batch = []
    store.append(batch)
    while store.index_text():
        pass
    size = store.size()
    store.close()
    print(
        f"store: {size.events:,} events of {size.sessions:,} sessions, {size.bytes / 1e6:,.0f} MB, "
        f"written in {time.perf_counter() - started:,.0f} s"
    )


def complete(path: Path) -> None:
    """Add what the store of an earlier release lacks: alerts, and a parent with sub-agents."""
    store = SqliteStore(path)
    rows = store.sessions(SessionFilter(order="recent", limit=ALERTED_SESSIONS))
    if not store.alerts(AlertFilter(limit=1)):
        store.append([event for row in rows for event in alerts_of(row)])
    if not store.sessions(SessionFilter(parent_session_id=PARENT, limit=1)):
        pattern = session_events("pattern", 40, time.time() - 80_000.0)
        store.append([event for number in range(CHILDREN) for event in child_events(pattern, number)])
    store.close()


def alerts_of(row: SessionRow) -> list[Event]:
    """Return two firings of a session, the first of them resolved; neither states how full its window was."""
    stream = f"alerts-{row.session_id}"
    context = EventContext(row.session_id, row.agent, row.model, row.turns, 1, "live", stream)
    data = (
        AlertFired(
            "repeated_calls", "warning", 3, 3.0, None, "The same tool call returned the same result 3 times"
        ),
        AlertResolved("repeated_calls", "warning", 3, 0.0, None, 4),
        AlertFired("cost_red", "critical", 5, 1.05, 1.0, "105% of the budget is spent today, at or above 100%"),
    )
    at = row.last_at or time.time()
    return [Event(context, number, at, one) for number, one in enumerate(data)]


def child_events(pattern: list[Event], number: int) -> list[Event]:
    """Return a sub-agent of `PARENT`, which is a copy of *pattern*."""
    events = copied(pattern, f"{PARENT}/child-{number}", "helper", 60.0 * number)
    contexts = {id(event.context): replace(event.context, parent_session_id=PARENT) for event in events}
    return [event._replace(context=contexts[id(event.context)]) for event in events]


def copied(pattern: list[Event], session_id: str, agent: str, later: float) -> list[Event]:
    contexts = {}
    found = []
    for event in pattern:
        context = contexts.get(id(event.context))
        if context is None:
            context = replace(event.context, session_id=session_id, agent=agent, stream_id=f"stream-{session_id}")
            contexts[id(event.context)] = context
        own = own_result(event, session_id)
        found.append(own._replace(context=context, at=None if event.at is None else event.at + later))
    return found


def own_result(event: Event, session_id: str) -> Event:
    """The event with a text that only this session has, where it adds a tool result."""
    data = event.data
    if not isinstance(data, BlockAdded) or data.block.content_type != "tool_result":
        return event
    text = f"{session_id} {data.block.text}"
    return event._replace(data=BlockAdded(replace(data.block, text=text, digest=digest(text))))
