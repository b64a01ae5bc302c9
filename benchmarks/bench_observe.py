"""The time that observing adds to a call whose history holds 2, 200 or 800 messages.

Floor: counting the tokens of the new text only, keyed digests of it, and one addition a new block. Also stores
two observed conversations, one twice as long as the other, and compares the bytes. Accepts `--json`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.models.replies import Reply, ReplyPart
from windowpane.models.tokens import counter_for
from windowpane.observer.conversations import Conversation, Conversations, Scope
from windowpane.observer.diff import ModelProfile
from windowpane.observer.messages import ApiCall, parse_call
from windowpane.observer.observer import WindowObserver
from windowpane.store.sqlite import SqliteStore

CALLS = 20
ROUNDS = 9
TEXT = "The reader opens src/app/main.py at line 42, finds the timeout of 30 s and writes it down for later. " * 8
COUNTER = counter_for("gpt-4o", wait=True)
DIGEST = keyed_digester(b"benchmark")


class Added(NamedTuple):
    """Seconds a call."""

    before: float
    after: float


def opener(emit: Callable[[list[Event]], None]) -> Callable[[ApiCall, Scope, Conversation | None], Conversation]:
    def open_conversation(call: ApiCall, scope: Scope, _: Conversation | None) -> Conversation:
        tracker = SessionTracker(
            SessionInfo("session", "agent", "gpt-4o", "live", "stream"),
            emit=emit,
            digest=DIGEST,
            limits=WindowLimits.of(4_000_000, "given"),
            clock=time.time,
        )
        tracker.start()
        return Conversation(
            WindowObserver(tracker, lambda _: ModelProfile(COUNTER), digest=DIGEST), scope, call.shape
        )

    return open_conversation


def reply_of(number: int) -> Reply:
    part = ReplyPart("tool_call", json.dumps({"n": number}), f"call_abcdefghijklmnopqrst_{number}", "read_file")
    return Reply((part,), Usage(1_000, 20))


def sent_back(number: int, tag: str) -> list[dict[str, Any]]:
    """Return the messages that the agent appends after a reply: the call, and its result."""
    part = reply_of(number).parts[0]
    function = {"name": part.tool_name, "arguments": part.text}
    return [
        {
            "role": "assistant",
            "tool_calls": [{"id": part.tool_call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": part.tool_call_id, "content": f"{tag} {number} {TEXT}"},
    ]


class Agent:
    """An observed agent whose requests are built anew for every call, as clients build them."""

    def __init__(self, emit: Callable[[list[Event]], None], tag: str) -> None:
        self.tag = tag
        self.conversations = Conversations(opener(emit))
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be careful."}, {"role": "user", "content": f"Task {tag}"},
        ]  # fmt: skip
        self.number = 0

    def call(self) -> Added:
        body = {"model": "gpt-4o", "messages": [dict(message) for message in self.messages]}
        started = time.perf_counter()
        call = parse_call("chat", body)
        conversation, common = self.conversations.find(call, Scope("agent"), now=time.time())
        conversation.observer.record_call(call, time.time(), common=common)
        sent = time.perf_counter()
        reply = reply_of(self.number)
        back = time.perf_counter()
        conversation.observer.record_reply(reply, time.time())
        self.conversations.index_reply(conversation, reply, None)
        done = time.perf_counter()
        self.messages += sent_back(self.number, self.tag)
        self.number += 1
        return Added(sent - started, done - back)


def floor(tag: str) -> float:
    """Seconds a call for totals and new text only."""
    total = 0
    seen: list[tuple[str, int]] = []
    spent = 0.0
    for number in range(CALLS):
        texts = [f"floor {tag} {number} {TEXT}", json.dumps({"n": number}), "read_file"]
        started = time.perf_counter()
        for text in texts:
            tokens = COUNTER.count(text)
            total += tokens
            seen.append((DIGEST(text), tokens))
        spent += time.perf_counter() - started
    return spent / CALLS


def added(history: int, tag: str) -> float:
    """Seconds a call over a history of *history* messages."""
    agent = Agent(lambda _: None, tag)
    while len(agent.messages) < history:
        agent.call()
    return sum(sum(agent.call()) for _ in range(CALLS)) / CALLS


def stored_bytes(calls: int, folder: Path) -> int:
    store = SqliteStore(folder / f"{calls}.db")
    agent = Agent(store.append, f"stored {calls}")
    for _ in range(calls):
        agent.call()
    used = sum(len(stored.event.data.type) for batch in store.scan() for stored in batch)
    store.close()
    assert used
    return (folder / f"{calls}.db").stat().st_size


def main() -> None:
    results: dict[str, list[float]] = {"floor": [], "2": [], "200": [], "800": []}
    for round_number in range(ROUNDS):
        results["floor"].append(floor(str(round_number)))
        for history in (2, 200, 800):
            results[str(history)].append(added(history, f"{round_number} {history}"))
    medians = {name: statistics.median(values) for name, values in results.items()}
    with tempfile.TemporaryDirectory() as folder:
        short, long = stored_bytes(400, Path(folder)), stored_bytes(800, Path(folder))
    document = {
        "floor_ms": medians["floor"] * 1e3,
        **{f"added_ms_{history}": medians[str(history)] * 1e3 for history in (2, 200, 800)},
        **{f"ratio_{history}": medians[str(history)] / medians["floor"] for history in (2, 200, 800)},
        "bytes_800_messages": short,
        "bytes_ratio_doubled": long / short,
    }
    if "--json" in sys.argv:
        print(json.dumps(document))
        return
    print(f"floor: totals and new text only  {document['floor_ms']:.3f} ms a call")
    for history in (2, 200, 800):
        print(
            f"observed, {history:>3} messages          {document[f'added_ms_{history}']:.3f} ms a call, "
            f"{document[f'ratio_{history}']:.2f} times the floor"
        )
    print(f"stored: {short:,} bytes of 800 messages; twice the messages take {long / short:.2f} times the bytes")


if __name__ == "__main__":
    main()
