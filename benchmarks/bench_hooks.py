"""The time of every hook while a window of 200,000 tokens is filled and reduced, by preset and text.

Each preset runs on each text, on threads and on an event loop, without a language model and with one that the
hooks wait for. The time of the model itself does not count. What is loaded before a run is hidden from Python's
search for cycles, which would take 100 ms for it wherever it comes.

Usage: python benchmarks/bench_hooks.py [WORDS…]     (only the rows that have every word, as `picoclaw logs`)
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final

from windowpane import EngineSettings
from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.exceptions import IrreducibleContextError
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

LIMIT_TOKENS: Final = 200_000
TURNS: Final = 120
RESULT_CHARACTERS: Final = 8_000
OVERFLOW_TURNS: Final = frozenset({100, 110, 118})
"""After the window has been full and was reduced."""
BOUND_MILLISECONDS: Final = 50.0
SUMMARIES: Final = "summaries"
"""The default without eviction, so that the model writes summaries, each of which is checked in the hook."""
PRESETS: Final = (None, "cascade", "baseagent", "picoclaw", "ai_sdk_go", SUMMARIES)
HOOKS: Final = ("on_turn_start", "on_turn_end", "on_tool_result", "on_overflow")
OVERFLOW: Final = {"error": {"code": "context_length_exceeded", "message": "maximum context length exceeded"}}

Text = Callable[[random.Random], str]


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9)))


def logs(chance: random.Random) -> str:
    return (
        f"2026-07-01T10:{chance.randint(10, 59)}:00Z INFO {_word(chance)}.{_word(chance)} "
        f"request_id={chance.getrandbits(48):x} status=200 path=/api/{_word(chance)} "
        f"took={chance.randint(1, 999)}ms\n"
    )


def code(chance: random.Random) -> str:
    return (
        f"    def {_word(chance)}_{_word(chance)}(self, {_word(chance)}: int) -> {_word(chance).title()}Item:\n"
        f"        return self.{_word(chance)}.{_word(chance)}({_word(chance)}_id={chance.randint(0, 99)})\n"
    )


def prose(chance: random.Random) -> str:
    return " ".join(_word(chance) for _ in range(14)).capitalize() + ".\n"


def repeated(_chance: random.Random) -> str:
    return "the same line again and again\n"


def repetitive(chance: random.Random) -> str:
    return " ".join(chance.choices(("error", "retry", "cache", "table", "timeout"), k=9)) + "\n"


def cjk(chance: random.Random) -> str:
    return "".join(chr(chance.randint(0x4E00, 0x9FA5)) for _ in range(30)) + "。\n"


def of_length(text: Text, chance: random.Random, characters: int = RESULT_CHARACTERS) -> str:
    parts: list[str] = []
    length = 0
    while length < characters:
        parts.append(text(chance))
        length += len(parts[-1])
    return "".join(parts)


@dataclass
class Model:
    """Writes a summary from lines of the transcript, at once; its time is recorded."""

    text: Text
    seconds: float = 0.0

    def __call__(self, _system: str, user: str) -> str:
        started = time.perf_counter()
        lines = user.splitlines()
        chance = random.Random(len(lines))
        summary = "\n".join(chance.sample(lines, min(60, len(lines))))[:6_000]
        summary += "\n" + of_length(self.text, chance, 2_000)
        self.seconds += time.perf_counter() - started
        return summary


@dataclass
class Times:
    """Milliseconds of each call of each hook: of the hook's thread, and of the clock."""

    thread: dict[str, list[float]] = field(default_factory=lambda: {hook: [] for hook in HOOKS})
    clock: dict[str, list[float]] = field(default_factory=lambda: {hook: [] for hook in HOOKS})

    @contextmanager
    def of(self, hook: str, model: Model) -> Iterator[None]:
        model.seconds = 0.0
        clock, thread = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.thread[hook].append(1e3 * (time.thread_time() - thread))
            self.clock[hook].append(1e3 * (time.perf_counter() - clock - model.seconds))


async def run(preset: str | None, text: Text, *, on_loop: bool, with_model: bool) -> Times:
    chance, model, times = random.Random(7), Model(text), Times()
    dependencies = replace(in_memory_dependencies(RecordingSink()), evaluations=BackgroundWriter())
    manager: Any = AsyncContextWindowManager if on_loop else ContextWindowManager
    window = manager(
        agent="bench", model="none", limit_tokens=LIMIT_TOKENS, dependencies=dependencies,
        preset=None if preset == SUMMARIES else preset,
        settings=EngineSettings(policy=None) if preset == SUMMARIES else None,
        language_model=model if with_model else None,
    )  # fmt: skip

    async def hook(name: str, *arguments: object) -> None:
        with times.of(name, model):
            try:
                outcome = getattr(window, name)(*arguments)
                if inspect.isawaitable(outcome):
                    await outcome
            except IrreducibleContextError:
                pass

    gc.collect()
    gc.freeze()
    window.add_user("Look at everything.")
    for n in range(TURNS):
        settled = window.settle()
        if inspect.isawaitable(settled):
            await settled
        await hook("on_turn_start")
        if n in OVERFLOW_TURNS:
            await hook("on_overflow", OVERFLOW)
        call = (f"c{n}", "read", json.dumps({"path": f"a{n}.py"}))
        await hook("on_turn_end", chat_reply(f"step {n}: {text(chance)}", calls=[call]))
        await hook("on_tool_result", "read", of_length(text, chance), f"c{n}")
    window.close()
    return times


def main(words: list[str]) -> None:
    """Print the median and the longest call of each hook."""
    print(f"Median / longest in ms of the hook's thread, (longest of the clock); limit {BOUND_MILLISECONDS:.0f}")
    modes = itertools.product(
        PRESETS, (logs, prose, code, repeated, repetitive, cjk), ("threads", "loop"), ("no model", "model")
    )
    for preset, text, driver, party in modes:
        name = f"{preset or 'default':>9}, {text.__name__:>9}, {driver:>7}, {party:>8}"
        if not all(word in name.replace("no model", "alone") for word in words):
            continue
        times = asyncio.run(run(preset, text, on_loop=driver == "loop", with_model=party == "model"))
        cells = [
            f"{hook.removeprefix('on_')} {median(times.thread[hook]):.1f} / {max(times.thread[hook]):.1f} "
            f"({max(times.clock[hook]):.1f})"
            for hook in HOOKS
        ]
        longest = max(max(times.thread[hook]) for hook in HOOKS)
        print(f"{name}: {'; '.join(cells)} {'ok' if longest <= BOUND_MILLISECONDS else 'ABOVE'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
