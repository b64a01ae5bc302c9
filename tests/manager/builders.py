"""Builders shared by the tests of the manager: a manager in memory, words that count, turns, snapshots."""

from __future__ import annotations

import json
from typing import Any

from message_rules import anthropic_faults, openai_faults

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.limits import DEFAULT_LIFETIMES, WindowLimits
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.manager.snapshot import Item, Snapshot
from windowpane.manager.status import Decision
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies


def manager(sink: RecordingSink, *, limit: int | None = 100_000, **options: Any) -> ContextWindowManager:
    """A manager that touches nothing outside the test."""
    dependencies = options.pop("dependencies", None) or in_memory_dependencies(
        sink, model=options.pop("model", None)
    )
    return ContextWindowManager(
        agent="tester", model="no-such-model", limit_tokens=limit, dependencies=dependencies, **options
    )


def filler(tokens: int, *, tag: str = "w") -> str:
    """*tokens* tokens of distinct words, by the test counter's four characters a token."""
    text = " ".join(f"{tag}{n}" for n in range(tokens))
    return (text + "." * 4 * tokens)[: tokens * 4]


def tool_turn(window: ContextWindowManager, n: int, *, result: str, text: str | None = None) -> Decision:
    """One turn: a call and its result."""
    decision = window.on_turn_start()
    window.on_turn_end(chat_reply(text, calls=[(f"c{n}", "read_file", json.dumps({"path": f"src/f{n}.py"}))]))
    window.on_tool_result("read_file", result, f"c{n}")
    return decision


def talk(window: ContextWindowManager, question: str, answer: str) -> Decision:
    """One exchange of one turn."""
    window.add_user(question)
    decision = window.on_turn_start()
    window.on_turn_end(chat_reply(answer))
    return decision


def is_valid(window: ContextWindowManager) -> bool:
    """Return whether both providers would accept the messages."""
    return openai_faults(window.messages()) == [] == anthropic_faults(window.messages("anthropic").messages)


def sent(window: ContextWindowManager) -> str:
    """Return the content that would be sent, as one text."""
    return json.dumps(window.messages(), ensure_ascii=False)


def item(
    name: str, content_type: ContentType, tokens: int, turn: int = 1, *, group: str = "", **more: Any
) -> Item:
    """One block of a snapshot."""
    block = Block(
        name,
        content_type,
        tokens,
        turn,
        group or name,
        more.pop("exchange", 1),
        name,
        tokens * 4,
        "exact",
        more.pop("text", f"text of {name}"),
        tool_name=more.pop("tool", "search") if content_type == "tool_result" else None,
        pinned=more.pop("pinned", False),
    )
    return Item(block, None, 0, False)


def tool_items(n: int, tokens: int, turn: int = 1, *, call_tokens: int = 20, **more: Any) -> list[Item]:
    """A call and its result."""
    return [
        item(f"call{n}", "tool_call", call_tokens, turn, group=f"g{n}"),
        item(f"result{n}", "tool_result", tokens, turn, group=f"g{n}", **more),
    ]


def snapshot(items: list[Item], *, turn: int = 50, limit: int = 200_000, **more: Any) -> Snapshot:
    """A snapshot of these blocks, taken long after the last of them."""
    limits = more.pop("limits", None) or WindowLimits.of(limit, "given")
    exchange = max((one.block.exchange for one in items), default=0)
    return Snapshot(1, turn, exchange, limits, tuple(items), DEFAULT_LIFETIMES, **more)
