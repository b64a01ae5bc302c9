"""What managing costs: a turn in which nothing is due, and planning an eviction, by the size of the history."""

from __future__ import annotations

import time
from collections.abc import Callable

from windowpane.control.eviction.engine import plan_eviction
from windowpane.control.eviction.policies import POLICIES
from windowpane.control.snapshot import Item, Snapshot
from windowpane.managing import ContextWindowManager
from windowpane.settings import DEFAULT_LIFETIMES, WindowLimits
from windowpane.testing import CharacterCounter, RecordingSink, in_memory_seams
from windowpane.window.blocks import Block

REPEATS = 9
FLAT = 1.5
CALLS = 400.0
PLAN = 3.0


class Empty:
    def method(self) -> None:
        return None


def fastest(run: Callable[[], object], *, inner: int = 1) -> float:
    """Seconds of one call, the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(inner):
            run()
        times.append((time.perf_counter() - start) / inner)
    return min(times)


def quiet_window(blocks: int) -> ContextWindowManager:
    sink = RecordingSink()
    window = ContextWindowManager(
        agent="bench", model="none", limit_tokens=blocks * 100 + 100_000, seams=in_memory_seams(sink)
    )
    for n in range(blocks):
        window.add_memory(f"m{n}")
    window.on_turn_start()
    return window


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
    empty = Empty()
    call = fastest(empty.method, inner=100_000)
    turns = {}
    for blocks in (100, 10_000, 100_000):
        window = quiet_window(blocks)
        turns[blocks] = fastest(window.on_turn_start, inner=200)
        print(
            f"on_turn_start at {blocks:>7,} blocks: {turns[blocks] * 1e6:.1f} µs, "
            f"{turns[blocks] / call:.0f} empty calls"
        )
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
        planned = fastest(lambda: plan_eviction(view, 20_000, policy=POLICIES["hybrid"], counter=counter))  # noqa: B023
        plain = fastest(lambda: floor(rows, turn))  # noqa: B023
        ratio = planned / plain
        print(
            f"plan over {count:>7,} blocks: {planned * 1e3:.2f} ms, floor {plain * 1e3:.2f} ms, "
            f"ratio {ratio:.2f} (limit {PLAN}) {'ok' if ratio <= PLAN else 'ABOVE'}"
        )


if __name__ == "__main__":
    main()
