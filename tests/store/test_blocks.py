"""The window at any turn equals the real window at that moment, over random histories."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.sqlite import SqliteStore

PROJECTIONS = ("sessions", "turns", "blocks", "alerts", "late_events")
ACTIONS = ("user", "result", "call", "end", "drop", "mask", "compress", "roll", "measure", "refer", "memory")

steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1000)), min_size=5, max_size=60)


class Script:
    """Plays random steps into a tracker and records the window at each call."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        info = SessionInfo("s1", "agent", "gpt-5", "demo", "stream")
        self.tracker = SessionTracker(
            info, emit=self.events.extend, digest=lambda text: text, limits=WindowLimits.of(400_000, "given")
        )
        self.tracker.start(1.0)
        self.sent: dict[int, list[str]] = {}
        """Ids at each turn's call, the unattributed block aside."""
        self.called = False

    def visible(self) -> list[str]:
        return [block.id for block in self.tracker.window if block.content_type != "unattributed"]

    def movable(self) -> list:
        return [block for block in self.tracker.window if block.content_type != "unattributed"]

    def note_call(self) -> None:
        if not self.called:
            self.called = True
            self.sent[self.tracker.turn] = self.visible()

    def step(self, action: str, number: int) -> None:
        tracker, blocks = self.tracker, self.movable()
        if action == "user":
            tracker.add("user_message", f"text {number}", 10 + number, at=1.0)
        elif action == "memory":
            tracker.add("memory_injection", None, number, at=1.0)
        elif action == "result":
            tracker.add("tool_result", f"out {number}", number, tool_call_id=f"c{number}", at=1.0)
        elif action == "call":
            if not tracker.in_turn:
                tracker.add("user_message", "go on", 3, at=1.0)
            self.note_call()
            tracker.add("assistant_response", f"reply {number}", 20, at=1.0)
        elif action == "end":
            if tracker.in_turn:
                self.note_call()
                tracker.end_turn(Usage(input_tokens=tracker.window.tokens + number), at=1.0)
                self.called = False
        elif action == "measure":
            tracker.measure("before" if number % 2 else "after", at=1.0)
        elif action == "roll":
            if number % 4 == 0:
                tracker.roll("clear", at=1.0)
        elif action == "refer" and blocks:
            tracker.mark_referenced([blocks[number % len(blocks)].id], "b0", 1.0)
        elif action in ("drop", "mask") and blocks:
            self.evict(blocks[number % len(blocks)], masked=action == "mask")
        elif action == "compress" and blocks:
            self.compress(blocks, number)

    def evict(self, block, *, masked: bool) -> None:
        tracker = self.tracker
        stand_in = tracker.make_replacement("placeholder", None, 1, replaces=block.id) if masked else None
        evicted = EvictedBlock(
            block.id, block.content_type, block.tokens, "mask" if masked else "drop", "old",
            replacement=stand_in.id if stand_in else None,
        )  # fmt: skip
        unseen = EvictedBlock("never seen", "tool_result", 5, "drop", "by the agent")
        tracker.evict(
            BlocksEvicted("test", (evicted, unseen), block.tokens, block.tokens),
            [stand_in] if stand_in else [],
            1.0,
        )

    def compress(self, blocks, number: int) -> None:
        tracker = self.tracker
        first = number % len(blocks)
        removed = blocks[first : first + 1 + number % 5][::-1]
        results = [
            tracker.make_replacement("summary", None, 2, replaces=removed[0].id) for _ in range(number % 3)
        ]
        accepted = number % 7 != 0
        tracker.compress(
            ContentCompressed(
                "compaction", "test", "accepted" if accepted else "rejected", 10, 2,
                removed=tuple(block.id for block in removed), results=tuple(block.id for block in results),
                scope="window" if number % 2 else "content",
            ),
            results if accepted else (),
            1.0,
        )  # fmt: skip


def dump(path: Path) -> dict[str, list]:
    connection = sqlite3.connect(path)
    found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in PROJECTIONS}
    connection.close()
    return found


@given(steps, st.integers(1, 40))
def test_the_window_at_a_turn_is_the_one_the_model_saw(history, batch):
    """Blocks and order equal those of the live window at each call and at the end, also after a rebuild."""
    script = Script()
    for action, number in history:
        script.step(action, number)
    script.tracker.flush()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "w.db")
        for start in range(0, len(script.events), batch):
            store.append(script.events[start : start + batch])

        now = store.blocks_at("s1", script.tracker.turn + 1)
        assert [row.block_id for row in now] == [block.id for block in script.tracker.window]
        assert [row.tokens for row in now] == [block.tokens for block in script.tracker.window]
        for turn, expected in script.sent.items():
            seen = [row.block_id for row in store.blocks_at("s1", turn) if row.content_type != "unattributed"]
            assert seen == expected, f"turn {turn}"

        before = dump(store.path)
        store.rebuild_projections()
        assert dump(store.path) == before
        assert store.verify().intact
        store.close()


def test_removed_blocks_have_turn_reason_and_replacement(store, make_session):
    """An eviction names reason, score and placeholder, a compression its summary; the latest comes first."""
    store.append(make_session(turns=9))

    removed = store.removed_blocks("s1", 99)
    masked = next(row for row in removed if row.removed_by == "eviction")
    compacted = [row for row in removed if row.removed_by == "compression"]

    assert (masked.reason, masked.score, masked.content_type) == ("older than 8 turns", 0.2, "tool_result")
    assert masked.turn_removed is not None
    assert masked.turn_added <= masked.turn_removed
    assert masked.replaced_by is not None
    assert {row.reason for row in compacted} == {"compaction"}
    assert removed[0].turn_removed >= removed[-1].turn_removed
    placeholder = next(row for row in compacted if row.block_id == masked.replaced_by)
    assert (placeholder.replaces, placeholder.position) == (masked.block_id, masked.position)


def test_the_unattributed_block_belongs_to_the_call_that_revealed_it(store, make_session):
    """Tokens beyond the visible content are in the window of the call that they were counted for."""
    store.append(make_session(turns=2))

    first = store.blocks_at("s1", 1)

    assert [row.content_type for row in first].count("unattributed") == 1
    turn = store.turns("s1")[0]
    assert sum(row.tokens for row in first) == turn.used_final


def test_a_turn_without_a_call_shows_the_current_window(store, make_session):
    """Before the call, and beyond the last turn, the current window is returned."""
    events = make_session(turns=3, end=False)
    store.append(events)
    last = store.turns("s1")[-1].turn

    assert store.blocks_at("s1", last) == store.blocks_at("s1", last + 5)
    assert store.blocks_at("s1", 0) == []
    assert store.blocks_at("unknown", 1) == []


def test_blocks_have_their_references_and_regrets(store, make_session):
    """A block's row has its last reference and the turn in which it was needed again after its removal."""
    store.append(make_session(turns=5, end=False))

    rows = {row.block_id: row for row in store.blocks_at("s1", 99)}
    used = [row for row in rows.values() if row.references]

    assert used
    assert all(row.content_type == "tool_call" and row.last_referenced for row in used)
