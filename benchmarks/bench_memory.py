"""Memory of a managed session by the block: its bookkeeping, without the content that the agent holds as well."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

from windowpane.agents.managers import ContextWindowManager
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

BLOCKS = 100_000
LIMIT_BYTES = 1_024

Fill = Callable[[ContextWindowManager, int], None]


def messages(window: ContextWindowManager, blocks: int) -> None:
    for n in range(blocks):
        window.add_user(f"m{n}")


def loop(window: ContextWindowManager, blocks: int) -> None:
    """Turns of a call and its result, each with a separate id."""
    for n in range(blocks // 3):
        window.on_turn_start()
        window.on_turn_end(chat_reply(f"t{n}", calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"r{n}", f"c{n}")


def naming(window: ContextWindowManager, blocks: int) -> None:
    """The same, and every result names a file that nothing else does: what references are found by."""
    for n in range(blocks // 3):
        window.on_turn_start()
        window.on_turn_end(chat_reply(f"t{n}", calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"src/module_{n}.py", f"c{n}")


CASES: dict[str, Fill] = {"messages": messages, "calls and results": loop, "results naming a file": naming}


def measured(fill: Fill) -> tuple[int, float]:
    """Blocks in the window, and the bytes of each that are not its text."""
    dependencies = replace(
        in_memory_dependencies(RecordingSink()), emit=lambda _batch: None, archive=None, checkpoints=None
    )
    gc.collect()
    tracemalloc.start()
    window = ContextWindowManager(agent="bench", model="none", limit_tokens=10**9, dependencies=dependencies)
    fill(window, BLOCKS)
    window.flush()
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    blocks = window.blocks()
    texts = sum(sys.getsizeof(block.text) for block in blocks)
    return len(blocks), (used - texts) / len(blocks)


def main() -> None:
    """Print the bytes beside the limit."""
    for name, fill in CASES.items():
        blocks, size = measured(fill)
        verdict = "ok" if size < LIMIT_BYTES else "ABOVE"
        print(
            f"{name:>22}: {blocks:>7,} blocks, {size:,.0f} bytes a block without its text "
            f"(limit {LIMIT_BYTES:,}) {verdict}"
        )


if __name__ == "__main__":
    main()
