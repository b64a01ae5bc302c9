"""The window against a naive model that recomputes everything from a list, under any sequence of edits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from windowpane.core.limits import DEFAULT_LIFETIMES
from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, CONTENT_TYPES, ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Window
from windowpane.exceptions import WindowError

LIFETIMES: dict[ContentType, int] = {**DEFAULT_LIFETIMES, "tool_result": 2, "thinking": 0}


@dataclass
class Entry:
    """A block of the model: the turn of its last use, and its position."""

    block: Block
    arrival: int
    renewed: int


class Model:
    """A list in window order, from which every value is recomputed."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.turn = 1
        self.arrivals = 0

    def entry(self, block: Block) -> Entry:
        self.arrivals += 1
        return Entry(block, self.arrivals, block.turn)

    def stale(self, entry: Entry) -> bool:
        lifetime = LIFETIMES.get(entry.block.content_type)
        return lifetime is not None and not entry.block.pinned and entry.renewed + lifetime < self.turn

    def duplicate(self, entry: Entry) -> bool:
        digest = entry.block.digest
        return bool(digest) and any(
            other.block.digest == digest and other.arrival < entry.arrival for other in self.entries
        )


class WindowMachine(RuleBasedStateMachine):
    """Adds, replaces, refers and passes turns in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window(LIFETIMES)
        self.model = Model()
        self.window.enter_turn(1)
        self.made = 0

    def make(self, data: st.DataObject) -> Block:
        """A block with a digest that fixes its tokens, as equal texts have equal counts."""
        digest = data.draw(st.sampled_from(["", "", "a", "b", "c"]), "digest")
        tokens = {"": None, "a": 7, "b": 0, "c": 40}[digest]
        block_id = f"b{self.made}"
        self.made += 1
        return Block(
            id=block_id,
            content_type=data.draw(st.sampled_from(CONTENT_TYPES), "type"),
            tokens=data.draw(st.integers(0, 100), "tokens") if tokens is None else tokens,
            turn=self.model.turn,
            group=data.draw(st.sampled_from([block_id, "g1", "g2"]), "group"),
            exchange=0,
            digest=digest,
            chars=0,
            count_source="estimate",
            pinned=data.draw(st.booleans(), "pinned"),
        )

    def some_ids(self, data: st.DataObject) -> list[str]:
        known = [entry.block.id for entry in self.model.entries]
        return data.draw(st.lists(st.sampled_from([*known, "never seen"]), max_size=5), "ids")

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        block = self.make(data)
        self.window.add(block)
        self.model.entries.append(self.model.entry(block))

    @rule(data=st.data(), count=st.integers(0, 3))
    def replace(self, data: st.DataObject, count: int) -> None:
        removed = self.some_ids(data)
        results = [self.make(data) for _ in range(count)]
        leaving = [entry for entry in self.model.entries if entry.block.id in removed]

        left = self.window.replace(removed, results)

        assert sorted(block.id for block in left) == sorted(entry.block.id for entry in leaving)
        place = min((self.model.entries.index(entry) for entry in leaving), default=len(self.model.entries))
        before = [entry for entry in self.model.entries[:place] if entry not in leaving]
        after = [entry for entry in self.model.entries[place:] if entry not in leaving]
        self.model.entries = [*before, *(self.model.entry(block) for block in results), *after]

    @rule(data=st.data())
    def mark_referenced(self, data: st.DataObject) -> None:
        for block_id in self.some_ids(data):
            found = [entry for entry in self.model.entries if entry.block.id == block_id]
            for entry in found:
                entry.renewed = self.model.turn
            assert self.window.mark_referenced(block_id, self.model.turn) == bool(found)

    @rule(turns=st.integers(1, 3))
    def pass_turns(self, turns: int) -> None:
        for _ in range(turns):
            self.model.turn += 1
            self.window.enter_turn(self.model.turn)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def refuse_a_known_id(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(self.model.entries), "known").block
        other = data.draw(st.sampled_from(self.model.entries), "other").block
        version = self.window.version
        with pytest.raises(WindowError, match="already in the window"):
            self.window.add(known)
        fresh = self.make(data)
        with pytest.raises(WindowError, match="already in the window"):
            self.window.replace(() if known is other else (other.id,), (fresh, known))
        with pytest.raises(WindowError, match="already in the window"):
            self.window.replace((other.id,), (fresh, fresh))
        assert self.window.version == version

    @precondition(lambda self: len(self.model.entries) > 12)
    @rule()
    def clear(self) -> None:
        self.window.clear()
        self.model.entries = []

    @invariant()
    def totals_equal_their_recomputation(self) -> None:
        window, entries = self.window, self.model.entries
        by_component = dict.fromkeys(COMPONENTS, 0)
        for entry in entries:
            by_component[COMPONENT_OF[entry.block.content_type]] += entry.block.tokens
        duplicates = [entry for entry in entries if self.model.duplicate(entry)]
        stale = [entry for entry in entries if self.model.stale(entry) and entry not in duplicates]

        assert len(window) == len(entries)
        assert window.tokens == sum(entry.block.tokens for entry in entries)
        assert window.tokens_by_component == by_component
        assert window.duplicate_tokens == sum(entry.block.tokens for entry in duplicates)
        assert window.stale_tokens == sum(entry.block.tokens for entry in stale)

    @invariant()
    def order_and_flags_equal_their_recomputation(self) -> None:
        slots = list(self.window.slots())

        assert [slot.block for slot in slots] == [entry.block for entry in self.model.entries]
        assert [slot.stale for slot in slots] == [self.model.stale(entry) for entry in self.model.entries]
        assert [slot.duplicate for slot in slots] == [self.model.duplicate(entry) for entry in self.model.entries]

    @invariant()
    def groups_hold_their_blocks_in_the_order_they_came(self) -> None:
        for group in {"g1", "g2", *(entry.block.group for entry in self.model.entries)}:
            members = sorted(
                (entry for entry in self.model.entries if entry.block.group == group),
                key=lambda entry: entry.arrival,
            )
            assert self.window.group(group) == tuple(entry.block.id for entry in members)


TestWindow = WindowMachine.TestCase
TestWindow.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=30)
