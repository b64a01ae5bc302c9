"""The window at any turn equals the real window at that moment, over random histories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.conformance.direct_access import PROJECTIONS, contents_of

from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.store import Store

SERVER_EXAMPLES = 100
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


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
@given(history=steps, batch=st.integers(1, 40))
def test_the_window_at_a_turn_is_the_one_the_model_saw(
    store: Store, history: list[tuple[str, int]], batch: int
) -> None:
    check_windows(store, history, batch)


@pytest.mark.parametrize("stores", [pytest.param("postgresql", marks=pytest.mark.server)], indirect=True)
@settings(max_examples=SERVER_EXAMPLES)
@given(history=steps, batch=st.integers(1, 40))
def test_the_window_at_a_turn_in_a_server(store: Store, history: list[tuple[str, int]], batch: int) -> None:
    check_windows(store, history, batch)


def check_windows(store: Store, history: list[tuple[str, int]], batch: int) -> None:
    """Compare blocks and order with the live window at each call and at the end, also after a rebuild."""
    script = Script()
    for action, number in history:
        script.step(action, number)
    script.tracker.flush()
    while store.prune(max_bytes=1):  # the session of the example before
        pass
    for start in range(0, len(script.events), batch):
        store.append(script.events[start : start + batch])

    now = store.blocks_at("s1", script.tracker.turn + 1)
    assert [row.block_id for row in now] == [block.id for block in script.tracker.window]
    assert [row.tokens for row in now] == [block.tokens for block in script.tracker.window]
    for turn, expected in script.sent.items():
        seen = [row.block_id for row in store.blocks_at("s1", turn) if row.content_type != "unattributed"]
        assert seen == expected, f"turn {turn}"

    before = contents_of(store, PROJECTIONS)
    store.rebuild_projections()
    assert contents_of(store, PROJECTIONS) == before
    assert store.verify().intact
