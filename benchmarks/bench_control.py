"""The cost of managing: a turn in which nothing is due, and planning an eviction, by the size of the history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.limits import DEFAULT_LIFETIMES, WindowLimits
from windowpane.core.window.blocks import Block
from windowpane.manager.plans.eviction import plan_eviction
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.snapshot import Item, Snapshot
from windowpane.testing import CharacterCounter, RecordingSink, chat_reply, in_memory_dependencies

REPEATS = 15
ROUNDS = 400
TURNS = 30
"""Before the quiet one, so that velocity, forecast and burn rate have something to be made of."""
FLAT = 1.5
CALLS = 400.0
PLAN = 3.0


class Empty:
    def method(self) -> None:
        return None


def fastest(*runs: Callable[[], object]) -> list[float]:
    """Seconds of the processor for each, the fastest of several rounds in which they take turns.

    Not of the clock: a run this long is interrupted wherever the machine has other work.
    """
    times = [float("inf")] * len(runs)
    for _ in range(REPEATS):
        for at, run in enumerate(runs):
            started = time.process_time()
            run()
            times[at] = min(times[at], time.process_time() - started)
    return times


class Quiet:
    """A session of so many blocks in which nothing is due."""

    def __init__(self, blocks: int) -> None:
        self.sink = RecordingSink()
        self.window = ContextWindowManager(
            agent="bench",
            model="none",
            limit_tokens=blocks * 100 + 100_000,
            dependencies=in_memory_dependencies(self.sink),
        )
        for n in range(blocks - 2 * TURNS):
            self.window.add_memory(f"m{n}")
        for n in range(TURNS):
            self.window.add_user(f"question {n}")
            self.window.on_turn_start()
            self.window.on_turn_end(chat_reply("answer " * (n * 37 % 90)))
        assert self.window.on_turn_start().action == "none"

    def turns(self, count: int) -> float:
        """Seconds of one start of a turn; the events are discarded afterwards."""
        start = self.window.on_turn_start
        started = time.perf_counter()
        for _ in range(count):
            start()
        took = time.perf_counter() - started
        self.window.flush()
        self.sink.events.clear()
        return took / count


def empty_calls(count: int) -> float:
    method = Empty().method
    started = time.perf_counter()
    for _ in range(count):
        method()
    return (time.perf_counter() - started) / count


def quiet_turns(sizes: Iterable[int]) -> tuple[float, dict[int, float]]:
    """Seconds of an empty call and of a quiet turn at each size.

    The machine does other work too: each round takes a slice of under a millisecond of everything in turn, so
    that all share what comes between, and the fastest slice of each counts.
    """
    sessions = {size: Quiet(size) for size in sizes}
    call = min(empty_calls(10_000) for _ in range(3))
    turns = {size: quiet.turns(50) for size, quiet in sessions.items()}
    for _ in range(ROUNDS):
        call = min(call, empty_calls(10_000))
        for size, quiet in sessions.items():
            turns[size] = min(turns[size], quiet.turns(50))
    return call, turns


def items(count: int) -> tuple[Item, ...]:
    made = []
    for n in range(count // 2):
        turn = 1 + n // 10
        made.append(Block(f"c{n}", "tool_call", 20, turn, f"c{n}", 1, f"dc{n}", 80, "exact", "{}", f"i{n}", "t"))
        made.append(
            Block(f"r{n}", "tool_result", 900, turn, f"c{n}", 1, f"dr{n}", 3_600, "exact", "x", f"i{n}", "t")
        )
    return tuple(Item(block, None, 0, stale=False) for block in made)


def floor(rows: tuple[Item, ...], turn: int) -> list[tuple[float, str]]:
    """The same five terms in a plain loop, and a sort."""
    last = {row.block.digest: row.block.id for row in rows}
    prestige = {"tool_result": 0.3, "tool_call": 0.4}
    scored = []
    for row in rows:
        block = row.block
        age = turn - block.turn
        lifetime = DEFAULT_LIFETIMES.get(block.content_type)
        score = (
            0.30 * 2 ** (-age / 10)
            + 0.25 * prestige.get(block.content_type, 0.5)
            + 0.20 * (1.0 if lifetime is None else max(0.0, 1 - age / lifetime))
            + 0.15 * min(1.0, row.references / 5)
            + 0.10 * (1.0 if last[block.digest] == block.id else 0.0)
        )
        scored.append((score, block.id))
    scored.sort()
    return scored


def main() -> None:
    """Print the ratios."""
    call, turns = quiet_turns((100, 10_000, 100_000))
    for blocks, seconds in turns.items():
        print(f"on_turn_start at {blocks:>7,} blocks: {seconds * 1e6:.1f} µs, {seconds / call:.0f} empty calls")
    growth = max(turns.values()) / min(turns.values())
    print(f"growth {growth:.2f} (limit {FLAT}) {'ok' if growth <= FLAT else 'ABOVE'}")
    worst = max(turns.values()) / call
    print(f"empty calls {worst:.0f} (limit {CALLS:.0f}) {'ok' if worst <= CALLS else 'ABOVE'}")
    counter = CharacterCounter()
    for count in (1_000, 10_000, 100_000):
        rows = items(count)
        turn = 2 + count // 20
        limits = WindowLimits.of(count * 600, "given")
        view = Snapshot(1, turn, 1, limits, rows, DEFAULT_LIFETIMES, references_known=True)
        planned, plain = fastest(
            partial(plan_eviction, view, 20_000, policy=POLICIES["hybrid"], counter=counter),
            partial(floor, rows, turn),
        )
        ratio = planned / plain
        print(
            f"plan over {count:>7,} blocks: {planned * 1e3:.2f} ms, floor {plain * 1e3:.2f} ms, "
            f"ratio {ratio:.2f} (limit {PLAN}) {'ok' if ratio <= PLAN else 'ABOVE'}"
        )


if __name__ == "__main__":
    main()
