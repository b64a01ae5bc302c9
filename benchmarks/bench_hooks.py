"""The longest start of a turn while a window of 200,000 tokens is filled and reduced, by text and preset."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace

from windowpane.agents.managers import ContextWindowManager
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

LIMIT_TOKENS = 200_000
TURNS = 110
RESULT_CHARACTERS = 8_000
BOUND_MILLISECONDS = 50.0

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


def of_length(text: Text, chance: random.Random) -> str:
    parts: list[str] = []
    length = 0
    while length < RESULT_CHARACTERS:
        parts.append(text(chance))
        length += len(parts[-1])
    return "".join(parts)


def longest(text: Text, preset: str | None) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock; a wait between turns is the call of a model."""
    chance = random.Random(7)
    dependencies = replace(in_memory_dependencies(RecordingSink()), evaluations=BackgroundWriter())
    most = clock = 0.0
    with ContextWindowManager(
        agent="bench", model="none", limit_tokens=LIMIT_TOKENS, dependencies=dependencies, preset=preset
    ) as window:
        window.add_user("Look at everything.")
        for n in range(TURNS):
            window.settle()
            at, started = time.perf_counter(), time.thread_time()
            window.on_turn_start()
            most = max(most, time.thread_time() - started)
            clock = max(clock, time.perf_counter() - at)
            window.on_turn_end(
                chat_reply(f"step {n}", calls=[(f"c{n}", "read", json.dumps({"path": f"a{n}.py"}))])
            )
            window.on_tool_result("read", of_length(text, chance), f"c{n}")
    return most * 1e3, clock * 1e3


def main() -> None:
    """Print the longest hook of each."""
    for preset in (None, "baseagent", "picoclaw", "ai_sdk_go"):
        for text in (logs, prose, code, repeated):
            processor, clock = longest(text, preset)
            verdict = "ok" if processor <= BOUND_MILLISECONDS else "ABOVE"
            print(
                f"{preset or 'default':>9}, {text.__name__:>8}: {processor:5.1f} ms of the processor, "
                f"{clock:6.1f} ms of the clock (limit {BOUND_MILLISECONDS:.0f} of the processor) {verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main()
