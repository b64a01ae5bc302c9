"""Probe fidelity of a 100,000-token compaction against one plain tokenization of the same text."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.probe import evaluate

BLOCKS = 200
TOKENS = 100_000
REPEATS = 7
LIMIT = 6.0


def conversation(start: int = 7) -> list[Block]:
    """Prose, code, paths and errors of about 400,000 characters."""
    chance = random.Random(start)
    texts = [f"word{n}" if n % 5 else f"name_{n}" for n in range(3_000)] + ["must", "decided", "next", "because"]
    texts += [f"src/module_{n}/file_{n}.py" for n in range(150)] + [f"limit: {n}" for n in range(100)]
    kinds: list[ContentType] = ["assistant_response", "tool_call", "tool_result", "tool_result"]
    blocks = []
    for n in range(BLOCKS):
        lines = []
        while sum(map(len, lines)) < 4 * TOKENS // BLOCKS:
            lines.append(" ".join(chance.choices(texts, k=9)) + ".")
        text = "\n".join(lines)
        blocks.append(
            Block(f"b{n}", kinds[n % 4], TOKENS // BLOCKS, n, f"b{n}", 1, str(n), len(text), "estimate", text)
        )
    return blocks


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the ratio."""
    removed = conversation()
    visible = removed[: BLOCKS // 10]
    text = "\n".join(block.text or "" for block in removed)
    floor = fastest(lambda: re.findall(r"\w+|[^\w\s]", text))
    probe = fastest(lambda: evaluate(removed, visible, digest=str.upper))
    ratio = probe / floor
    print(
        f"probe fidelity, {TOKENS:,} tokens: {probe * 1e3:.1f} ms; re tokenization: {floor * 1e3:.1f} ms; "
        f"ratio {ratio:.2f} (limit {LIMIT}) {'ok' if ratio <= LIMIT else 'ABOVE'}"
    )


if __name__ == "__main__":
    main()
