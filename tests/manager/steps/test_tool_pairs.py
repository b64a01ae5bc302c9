"""Calls, results and reasoning stay together in every reduction."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from builders import filler, is_valid, item, manager, sent, snapshot, talk, tool_items
from hypothesis import given
from hypothesis import strategies as st

from windowpane.agents.managers import AsyncContextWindowManager
from windowpane.core.events import ContentCompressed
from windowpane.core.window.repair import ABORTED, repair_parts
from windowpane.manager.plans.compaction import plan_compaction
from windowpane.manager.plans.eviction import plan_eviction
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.plans.protection import GRADES, never_removed
from windowpane.manager.snapshot import groups_of
from windowpane.testing import CharacterCounter, RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

COUNTER = CharacterCounter()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def answer(call_id: str, said: str = "r") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": said}


def msg(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


def pairs_hold(messages: list[dict[str, Any]]) -> bool:
    """Every call is answered once in the next message, every result has its call in the one before."""
    waiting: list[str] = []
    for message in messages:
        answers = [part["tool_use_id"] for part in message["content"] if part["type"] == "tool_result"]
        if sorted(answers) != sorted(waiting):
            return False
        waiting = [part["id"] for part in message["content"] if part["type"] == "tool_use"]
    return not waiting


def test_a_mixed_message_loses_only_its_orphan_part() -> None:
    history = [
        msg("user", text("go")),
        msg("assistant", use("1")),
        msg("user", answer("1"), answer("9"), text("x")),
    ]
    mended = repair_parts(history)

    assert mended.messages[-1]["content"] == [answer("1"), text("x")]
    assert mended.repairs == {"orphan_result": 1}


@pytest.mark.parametrize(
    ("policy", "expected", "repairs"),
    [
        (
            "answer",
            [
                msg("assistant", text("let me"), use("1"), use("2")),
                msg("user", answer("1"), answer("2", ABORTED)),
            ],
            {"aborted_result": 1},
        ),
        ("drop", [msg("assistant", text("let me"), use("1")), msg("user", answer("1"))], {"dropped_call": 1}),
    ],
)
def test_an_unanswered_call_among_parts_is_answered_or_dropped(
    policy: Any, expected: list[Any], repairs: dict[str, int]
) -> None:
    mended = repair_parts(
        [msg("assistant", text("let me"), use("1"), use("2")), msg("user", answer("1"))], unanswered=policy
    )

    assert mended.messages == expected
    assert mended.repairs == repairs


PARTS = st.lists(
    st.one_of(st.sampled_from("1234").map(use), st.sampled_from("1234").map(answer), st.just(text("t"))),
    max_size=4,
    unique_by=lambda part: (part["type"], part.get("id"), part.get("tool_use_id")),
)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), PARTS), max_size=8), st.booleans())
def test_any_history_of_parts_is_repaired_once(history: list[Any], drop: bool) -> None:
    messages = [
        msg(role, *(p for p in parts if p["type"] != ("tool_use" if role == "user" else "tool_result")))
        for role, parts in history
    ]
    policy: Any = "drop" if drop else "answer"
    mended = repair_parts(messages, unanswered=policy)

    assert pairs_hold(mended.messages)
    assert repair_parts(mended.messages, unanswered=policy).repairs == {}


def test_two_compactions_in_a_row_leave_no_orphan() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, cascade=["compaction"]) as window:
        window.add_user("read all of it")
        for n in range(40):
            window.on_turn_start()
            window.on_turn_end(
                chat_reply(f"Decided plan_{n}.", calls=[(f"c{n}", "read", "{}"), (f"d{n}", "read", "{}")])
            )
            window.on_tool_result("read", filler(400, tag=f"c{n}x"), f"c{n}")
            window.on_tool_result("read", filler(400, tag=f"d{n}x"), f"d{n}")

            assert is_valid(window)
        chained = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]

        assert len(chained) >= 2
        assert set(chained[0].results) & set(chained[1].removed)
        calls = {block.tool_call_id for block in window.blocks() if block.content_type == "tool_call"}
        results = {block.tool_call_id for block in window.blocks() if block.content_type == "tool_result"}
        assert calls == results


def test_an_abort_in_the_middle_of_a_tool_call_can_be_compacted() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        talk(window, "begin", filler(3_000))
        window.add_user("run it")
        window.on_turn_start()
        window.on_turn_end(chat_reply("running", calls=[("c1", "run", "{}")]))
        window.add_user("stop, do something else")
        for n in range(6):
            talk(window, f"question {n}", filler(3_000, tag=f"a{n}x"))

            assert is_valid(window)
        assert any(event.outcome == "accepted" for event in sink.of(ContentCompressed))


def test_a_call_that_waits_is_never_compacted() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        window.add_user("old run")
        window.on_turn_start()
        window.on_turn_end(chat_reply("old", calls=[("dead", "run", json.dumps({"x": filler(2_000, tag="d")}))]))
        for n in range(3):
            talk(window, f"question {n}", filler(3_000, tag=f"a{n}x"))
        window.add_user("deploy it")
        window.on_turn_start()
        window.on_turn_end(chat_reply("asking first", calls=[("pending", "approve", '{"what": "deploy"}')]))
        window.add_memory(filler(5_500))
        window.on_turn_start()

        assert "pending" in sent(window)
        assert '"dead"' not in sent(window)
        assert is_valid(window)


BATCH = [item(f"call{n}", "tool_call", 10, group="batch") for n in range(3)] + [
    item(f"result{n}", "tool_result", 5_000, group="batch") for n in range(3)
]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_batch_of_calls_is_removed_whole_and_batches_are_independent(policy: str) -> None:
    items = [
        item("goal", "user_message", 10),
        *BATCH,
        *tool_items(7, 5_000, turn=3),
        item("u", "user_message", 9),
    ]
    found = plan_eviction(
        snapshot(items, goal_block="goal"), 10**6, policy=POLICIES[policy], counter=COUNTER, grade=GRADES[2]
    )
    dropped = [{block.id for block in removal.blocks} for removal in found.removals if removal.form == "drop"]
    masked = {block.id for removal in found.removals if removal.form == "mask" for block in removal.blocks}

    assert all(blocks in ({one.block.id for one in BATCH}, {"call7", "result7"}) for blocks in dropped)
    assert masked | set().union(*dropped) >= {"result0", "result1", "result2", "result7"}


THINKING_LOOP = [
    item("think", "thinking", 500, group="loop"),
    item("call", "tool_call", 20, group="loop"),
    item("result", "tool_result", 4_000, group="loop"),
]


def test_a_tool_cycle_with_thinking_is_atomic() -> None:
    items = [item("goal", "user_message", 10), *THINKING_LOOP, *tool_items(1, 9_000, turn=2)]
    items.append(item("said", "assistant_response", 9_000, turn=3))
    kept_and_gone = set()
    for target in range(0, 24_000, 500):
        plan = plan_compaction(snapshot(items, goal_block="goal", limit=32_768), target)
        assert plan is not None
        ids = {block.id for block in plan.removed}
        assert len(ids & {"think", "call", "result"}) in (0, 3)
        assert len(ids & {"call1", "result1"}) in (0, 2)
        kept_and_gone.add("think" in ids)

    assert True in kept_and_gone
    open_loop = snapshot(items, goal_block="goal", limit=32_768, open_calls=frozenset({"loop"}))
    plan = plan_compaction(open_loop, 4_000)
    assert plan is not None
    assert not {block.id for block in plan.removed} & {"think", "call", "result"}


def test_reasoning_of_old_replies_is_removed_with_them_and_never_in_part() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384) as window:
        for n in range(8):
            window.add_user(f"question {n}")
            window.on_turn_start()
            window.on_turn_end(
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": filler(500, tag=f"t{n}x"), "signature": f"sig{n}"},
                        {"type": "text", "text": filler(2_000, tag=f"a{n}x")},
                    ],
                }
            )
        shown = window.messages("anthropic").messages
        signed = [part["signature"] for m in shown for part in m["content"] if part["type"] == "thinking"]
        texts = json.dumps(shown)

        assert sink.of(ContentCompressed)
        assert 0 < len(signed) < 8
        assert all(filler(500, tag=f"t{sig[3:]}x") in texts and f"a{sig[3:]}x1 " in texts for sig in signed)
        assert is_valid(window)


def test_reasoning_before_a_call_belongs_to_its_group() -> None:
    snap = snapshot([item("goal", "user_message", 10), *THINKING_LOOP], turn=9, open_calls=frozenset({"loop"}))

    assert [group.id for group in groups_of(snap.items)] == ["goal", "loop"]
    assert "loop" in never_removed(snap, groups_of(snap.items))


def test_a_cancelled_compaction_changes_nothing() -> None:
    sink = RecordingSink()
    asked = asyncio.Event()

    class Hanging(ScriptedModel):
        async def __call__(self, system: str, user: str) -> str:  # type: ignore[override]
            asked.set()
            await asyncio.Event().wait()
            return ""

    async def loop() -> None:
        dependencies = in_memory_dependencies(sink, model=Hanging([""]))
        window = AsyncContextWindowManager(agent="a", model="m", limit_tokens=16_384, dependencies=dependencies)
        for n in range(3):
            window.add_user(f"question {n}")
            await window.on_turn_start()
            await window.on_turn_end(chat_reply(filler(3_000, tag=f"a{n}x")))
        window.add_user("go on " + filler(2_500))
        before = window.messages()
        hook = asyncio.ensure_future(window.on_turn_start())
        await asyncio.wait_for(asked.wait(), 20)
        hook.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hook

        assert window.messages() == before

    asyncio.run(loop())
    assert [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"] == []
