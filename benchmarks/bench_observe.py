"""Observing a call whose history holds 2, 200 or 800 messages: the agent's wait, and the CPU time of all threads.

Each with replies that come back as they were, and with replies that never do (frameworks that write them anew).
Floor of the wait: a copy of the arguments and of their list, and two items put on a queue. Floor of the CPU time:
counting the tokens of the new text only, keyed digests of it, and one addition a new block. Also stores two
observed conversations, one twice as long as the other, and compares the bytes. Accepts `--json`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from windowpane.config.schema import Config
from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event, Usage
from windowpane.models.tokens import counter_for
from windowpane.models.wire.replies import Reply, ReplyPart
from windowpane.outputs.runtime.current import set_running_outputs
from windowpane.outputs.runtime.task_queue import TaskQueue
from windowpane.sources.clients.calls import WatchedClient
from windowpane.sources.conversations.conversations import Scope
from windowpane.store.embedded import SqliteStore

CALLS = 20
ROUNDS = 9
TEXT = "The reader opens src/app/main.py at line 42, finds the timeout of 30 s and writes it down for later. " * 8
COUNTER = counter_for("gpt-4o", wait=True)
DIGEST = keyed_digester(b"benchmark")


class Cost(NamedTuple):
    """Seconds a call."""

    waited: float
    cpu: float


class Outputs:
    """Outputs that hand events to *emit*."""

    config = Config()
    digest = staticmethod(DIGEST)

    def __init__(self, emit: Callable[[list[Event]], None]) -> None:
        self.emit = emit
        self.observations = TaskQueue("observer")

    def record_hook(self, hook: str, seconds: float) -> None:
        """Record nothing."""

    def earlier_compaction_tokens(self, agent: str, model: str, *, project: str) -> None:
        """Return nothing: there are no earlier sessions."""


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

    def __init__(self, emit: Callable[[list[Event]], None], tag: str, *, comes_back: bool = True) -> None:
        self.tag = tag
        self.comes_back = comes_back
        self.outputs = Outputs(emit)
        set_running_outputs(self.outputs)
        self.client = WatchedClient(Scope("agent", limit_tokens=4_000_000))
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be careful."}, {"role": "user", "content": f"Task {tag}"},
        ]  # fmt: skip
        self.number = 0

    def call(self) -> float:
        """Make one call; return the seconds that the agent waited for it to be observed."""
        body = {"model": "gpt-4o", "messages": [dict(message) for message in self.messages]}
        started = time.perf_counter()
        watched = self.client.start("chat", body)
        sent = time.perf_counter()
        assert watched is not None
        reply = reply_of(self.number if self.comes_back else -1 - self.number)
        back = time.perf_counter()
        watched.record_reply(reply)
        done = time.perf_counter()
        self.messages += sent_back(self.number, self.tag)
        self.number += 1
        return sent - started + done - back

    def flush(self) -> None:
        """Wait until all calls are recorded."""
        assert self.outputs.observations.flush(60)


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


def floor_of_waiting(history: int) -> float:
    """Seconds a call for a copy of its arguments and their list, and two items on a queue."""
    messages = [{"role": "user", "content": TEXT} for _ in range(history)]
    queue: SimpleQueue[object] = SimpleQueue()
    spent = 0.0
    for _ in range(CALLS):
        body = {"model": "gpt-4o", "messages": [dict(message) for message in messages]}
        started = time.perf_counter()
        queue.put({**body, "messages": list(body["messages"])})
        queue.put(None)
        spent += time.perf_counter() - started
    return spent / CALLS


def cost(history: int, tag: str, *, comes_back: bool) -> Cost:
    """Return the cost of a call over a history of *history* messages."""
    agent = Agent(lambda _: None, tag, comes_back=comes_back)
    while len(agent.messages) < history:
        agent.call()
        agent.flush()
    started = time.process_time()
    waited = sum(agent.call() for _ in range(CALLS))
    agent.flush()
    spent = time.process_time() - started
    agent.outputs.observations.close(60)
    return Cost(waited / CALLS, spent / CALLS)


def stored_bytes(calls: int, folder: Path) -> int:
    store = SqliteStore(folder / f"{calls}.db")
    agent = Agent(store.append, f"stored {calls}")
    for _ in range(calls):
        agent.call()
        agent.flush()
    used = sum(len(stored.event.data.type) for batch in store.scan() for stored in batch)
    store.close()
    assert used
    return (folder / f"{calls}.db").stat().st_size


def main() -> None:
    floors: dict[str, list[float]] = {"cpu": [], "2": [], "200": [], "800": []}
    costs: dict[tuple[int, bool], list[Cost]] = {}
    for round_number in range(ROUNDS):
        floors["cpu"].append(floor(str(round_number)))
        for history in (2, 200, 800):
            floors[str(history)].append(floor_of_waiting(history))
            for comes_back in (True, False):
                tag = f"{round_number} {history} {comes_back}"
                costs.setdefault((history, comes_back), []).append(cost(history, tag, comes_back=comes_back))
    floor_ms = statistics.median(floors["cpu"]) * 1e3
    document: dict[str, float] = {"floor_ms": floor_ms}
    lines = [f"floor of the CPU time: new text only           {floor_ms:.3f} ms a call"]
    for (history, comes_back), measured in costs.items():
        mode = "" if comes_back else "_rewritten"
        waited_ms = statistics.median(one.waited for one in measured) * 1e3
        cpu_ms = statistics.median(one.cpu for one in measured) * 1e3
        floor_of = statistics.median(floors[str(history)]) * 1e3
        document |= {
            f"waited_ms_{history}{mode}": waited_ms, f"waited_ratio_{history}{mode}": waited_ms / floor_of,
            f"added_ms_{history}{mode}": cpu_ms, f"ratio_{history}{mode}": cpu_ms / floor_ms,
        }  # fmt: skip
        replies = "replies come back " if comes_back else "replies rewritten"
        lines.append(
            f"{history:>3} messages, {replies:<18} the agent waits {waited_ms:.3f} ms a call "
            f"({waited_ms / floor_of:.1f} times the floor); CPU {cpu_ms:.3f} ms ({cpu_ms / floor_ms:.1f} times)"
        )
    with tempfile.TemporaryDirectory() as folder:
        short, long = stored_bytes(400, Path(folder)), stored_bytes(800, Path(folder))
    document |= {"bytes_800_messages": short, "bytes_ratio_doubled": long / short}
    lines.append(
        f"stored: {short:,} bytes of 800 messages; twice the messages take {long / short:.2f} times the bytes"
    )
    print(json.dumps(document) if "--json" in sys.argv else "\n".join(lines))


if __name__ == "__main__":
    main()
