"""The store on which the dashboard is measured: one very long session, and many short ones beside it."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from windowpane.core.events import BlockAdded, BlocksEvicted, Event, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.store.sqlite import SqliteStore

LONGEST = "marathon"
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


def fill(path: Path, *, events: int, sessions: int, turns: int) -> None:
    """The longest session, then copies of one shorter session until there are enough events.

    All texts are captured; each session has its own tool results.
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
