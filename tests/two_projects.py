"""Sessions of two projects, of which one has a word and a size in everything that nothing of the other has."""

from __future__ import annotations

from typing import Any

from tests.store.conftest import digest

from windowpane.core.events import (
    AlertFired,
    ContentCompressed,
    Event,
    FidelityEvaluated,
    SessionDescribed,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay
from windowpane.store.store import Store
from windowpane.store.writes.received import ReceivedBatch

SECRET = "xylophone"
"""A word in each text and name of the other project."""
FACTOR = 1_000_000
"""The other project's tokens and dollars are this many times those of the first."""
OWN, OTHER = (
    ("shop-lead", "shop-helper", "shop-odd", "same@shop"),
    ("bank-lead", "bank-helper", "outer", "same@bank"),
)
"""Sessions of `shop`, and of `bank` or no project."""
SAME = "same"
"""The id by which the agents of both projects call one of their sessions."""


def played(
    session_id: str,
    project: str,
    *,
    word: str = "drum",
    factor: int = 1,
    parent: str | None = None,
    turns: int = 4,
) -> list[Event]:
    """Return a session with tools, texts, a compaction, a fidelity score, an alert and names that hold *word*."""
    events: list[Event] = []
    info = SessionInfo(session_id, f"{word}-agent", f"{word}-model", "demo", f"{session_id}-stream", parent)
    limits = WindowLimits.of(100_000 * factor, "given")
    tracker = SessionTracker(info, emit=events.extend, digest=digest, limits=limits)
    tracker.start(1_000.0, task=f"the {word}")
    described = SessionDescribed(
        title=f"title {word}", title_source="user", folder=f"/{word}", repository=word, branch=word, label=word,
        project=project,
    )  # fmt: skip
    tracker.record(described, 1_000.0)
    for turn in range(1, turns + 1):
        at = 1_000.0 + turn
        tracker.add("user_message", f"play the {word} {turn}", 100 * factor, at=at)
        call = f"call-{turn}"
        path = f'{{"path": "{word}.py"}}'
        tracker.add("tool_call", path, 20 * factor, tool_call_id=call, tool_name=f"{word}-tool", at=at)
        used = tracker.window.tokens
        tracker.end_turn(Usage(input_tokens=used, output_tokens=20 * factor), cost_dollars=float(factor), at=at)
        tracker.add(
            "tool_result", f"a {word} {turn}", 400 * factor, tool_call_id=call, tool_name=f"{word}-tool", at=at
        )
    removed = [block for block in tracker.window if block.content_type == "tool_result"]
    summary = tracker.make_replacement("summary", f"the {word} was played", 60, replaces=removed[0].id)
    compressed = ContentCompressed(
        "compaction", "manual", "accepted", 400 * factor, 60, removed=tuple(block.id for block in removed),
        results=(summary.id,),
    )  # fmt: skip
    tracker.compress(compressed, (summary,), 1_009.0)
    tracker.record(FidelityEvaluated("probe", 0.5, 1.0), 1_009.0)
    fired = AlertFired("utilization", "critical", turns, 0.95, 0.9, f"the {word} is full")
    tracker.record(fired, 1_009.0)
    tracker.flush()
    return events


def replay(name: str, at: float, *sessions: str) -> StoredReplay:
    """Return a stored replay of these sessions."""
    runs = tuple(ReplayRunRow(session, "setup", "managed", "hybrid", "", 1_000) for session in sessions)
    notes = (f"{SECRET} could not be replayed",)
    return StoredReplay(ReplayRow(name, name, at, len(runs) + 1, len(runs), notes), runs)


def fill_own(store: Store) -> None:
    """Store a session of `shop` with its sub-agent, one with an unknown parent, a note and a replay."""
    store.append(played("shop-lead", "shop"))
    store.append(played("shop-helper", "shop", parent="shop-lead"))
    store.append(played("shop-odd", "shop", parent="outer"))
    store.receive([ReceivedBatch(played(SAME, ""), project="shop")])
    store.add_note("shop-lead", 2, "a remark about the drum")
    store.save_replay(replay("own", 1.0, "shop-lead"))


def fill_other(store: Store) -> None:
    """Store sessions of `bank`: a sub-agent of `shop`, a parent of another, many in front in every order."""
    other: dict[str, Any] = {"word": SECRET, "factor": FACTOR}
    store.append(played("bank-lead", "bank", turns=6, **other))
    store.append(played("bank-helper", "bank", parent="shop-lead", **other))
    store.append(played("outer", "", **other))
    store.receive([ReceivedBatch(played(SAME, "", turns=6, **other), project="bank")])
    for number in range(25):
        store.append(played(f"s{number:02}", "bank", turns=1, **other))
    store.add_note("bank-lead", 2, f"a remark about the {SECRET} and the drum")
    for number in range(60):
        store.save_replay(replay(f"{SECRET} {number}", 100.0 + number, "bank-lead"))
    store.save_replay(replay("both", 200.0, "shop-lead", "bank-lead"))
