"""Plug-ins may raise, hang or return nonsense, and content may have any shape: none of it is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from builders import filler, is_valid, manager, sent, talk, tool_turn
from message_rules import anthropic_faults

from windowpane.agents.managers import AsyncContextWindowManager
from windowpane.core.events import ContentCompressed
from windowpane.effects.model_calls import MAXIMUM_ANSWER_CHARACTERS
from windowpane.exceptions import ConfigurationError
from windowpane.manager import drivers
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

COUNTS = ["raises", "negative", "text", "nothing"]
PNG = "iVBORw0KGgo="
OPENAI_IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}
ANTHROPIC_IMAGE = {"type": "image", "source": SOURCE}
PROTOCOL_IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


class BrokenCounter:
    """A tokenizer that asks a server that is away, or counts nonsense."""

    source = "exact"

    def __init__(self, count: Callable[[str], Any]) -> None:
        self._count = count

    def count(self, text: str) -> int:
        return self._count(text)  # type: ignore[no-any-return]  # what it gives is the point


def fails(*_: object) -> Any:
    raise ConnectionError("away")


def exits(*_: object) -> Any:
    raise SystemExit(3)


def filled(window: Any, *, turns: int = 30) -> None:
    """Far more than the window holds."""
    window.add_user("Read every file")
    for n in range(turns):
        tool_turn(window, n, result=filler(700, tag=f"r{n}x"), text=f"Decided to keep f{n}.py as it is")


@pytest.mark.parametrize("count", [fails, lambda _: -5, lambda _: "many", lambda _: None], ids=COUNTS)
def test_a_failing_tokenizer_reduces_accuracy_and_loses_no_content(count: Callable[[str], Any]) -> None:
    sink = RecordingSink()
    window = manager(
        sink, limit=8_000, dependencies=replace(in_memory_dependencies(sink), counter=BrokenCounter(count))
    )
    window.add_system("You read files.")
    filled(window)

    assert "You read files." in sent(window)
    assert "Read every file" in sent(window)
    assert 0 < window.status().used_tokens <= 8_000
    assert {block.count_source for block in window.blocks()} <= {"exact", "estimate"}
    assert window.blocks()[-1].count_source == "estimate"


def test_a_tokenizer_may_count_in_fractions() -> None:
    sink = RecordingSink()
    counter = BrokenCounter(lambda text: len(text) / 4)
    window = manager(sink, dependencies=replace(in_memory_dependencies(sink), counter=counter))
    window.add_user("abcde")

    assert [block.tokens for block in window.blocks()] == [2]


def test_with_a_failing_embedder_the_window_is_still_managed() -> None:
    """Similarity is then measured by words; an unreachable server causes no overflow."""
    sink = RecordingSink()
    window = manager(sink, limit=8_000, policy="semantic_merge", embedder=fails)
    filled(window)

    assert window.status().used_tokens <= 8_000
    assert is_valid(window)


@pytest.mark.parametrize(
    "answer",
    [fails, exits, lambda *_: 12345, lambda *_: {"choices": []}, lambda *_: None],
    ids=["raises", "exits", "number", "object", "nothing"],
)
def test_a_model_that_talks_nonsense_is_not_believed(answer: Callable[..., Any]) -> None:
    sink = RecordingSink()
    window = manager(
        sink, limit=8_000, language_model=answer, cascade=["tool_result_summarization", "compaction"]
    )
    filled(window)

    accepted = [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]
    assert {event.strategy for event in accepted} <= {"compaction", "truncation"}
    assert {event.method for event in accepted if event.strategy == "compaction"} <= {"extractive"}
    assert window.status().used_tokens <= 8_000
    assert is_valid(window)


def test_an_endless_answer_is_refused_without_counting_it() -> None:
    sink = RecordingSink()
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    dependencies = replace(
        in_memory_dependencies(sink), counter=BrokenCounter(count), model=lambda *_: "x" * 1_000_000
    )
    window = manager(sink, limit=8_000, dependencies=dependencies, cascade=["tool_result_summarization"])
    filled(window)

    failed = [event for event in sink.of(ContentCompressed) if event.outcome == "failed"]
    assert failed
    assert "ValueError" in failed[0].reason
    assert max(counted) < MAXIMUM_ANSWER_CHARACTERS


def test_a_model_that_hangs_does_not_keep_the_loop_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "MODEL_TIMEOUT_SECONDS", 0.05)
    release, ended = threading.Event(), threading.Event()

    def hangs(*_: object) -> str:
        release.wait(60)
        ended.set()
        return "late"

    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), model=hangs)

    async def agent() -> None:
        window = AsyncContextWindowManager(
            agent="a",
            model="m",
            limit_tokens=8_000,
            dependencies=dependencies,
            cascade=["tool_result_summarization"],
        )
        window.add_user("Read every file")
        for n in range(20):
            await window.on_turn_start()
            await window.on_turn_end(chat_reply(calls=[(f"c{n}", "read", "{}")]))
            await window.on_tool_result("read", filler(700, tag=f"r{n}x"), f"c{n}")
        window.close()

    asyncio.run(agent())
    waited_for = ended.is_set()
    release.set()

    assert any("TimeoutError" in event.reason for event in sink.of(ContentCompressed))
    assert not waited_for


def test_an_unavailable_archive_returns_no_original() -> None:
    class Away:
        put = get = staticmethod(fails)

    sink = RecordingSink()
    window = manager(sink, dependencies=replace(in_memory_dependencies(sink), archive=Away()))

    assert window.retrieve("wp:b1") is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"role": "user", "content": "Fix it"}, "Fix it"),
        (["Fix", "it"], "Fix\nit"),
        ({"type": "text", "text": "Fix it"}, "Fix it"),
        (42, "42"),
        (None, "(empty)"),
    ],
    ids=["message", "strings", "part", "number", "nothing"],
)
def test_a_user_message_of_any_shape_is_sent(content: Any, expected: str) -> None:
    window = manager(RecordingSink())
    window.add_user(content)

    assert window.messages() == [{"role": "user", "content": expected}]


@pytest.mark.parametrize(
    ("output", "expected", "failed"),
    [
        (ValueError("no such file"), "ValueError: no such file", True),
        (b"caf\xc3\xa9", "café", False),
        (None, "(no output)", False),
        ({1: "a", (2, 3): "b"}, "{1: 'a', (2, 3): 'b'}", False),
    ],
    ids=["exception", "bytes", "nothing", "odd keys"],
)
def test_a_tool_may_return_anything(output: Any, expected: str, *, failed: bool) -> None:
    window = manager(RecordingSink())
    window.add_user("go")
    window.on_turn_start()
    window.on_turn_end(chat_reply(calls=[("c1", "read", "{}")]))
    window.on_tool_result("read", output, "c1")

    (result,) = window.messages("anthropic").messages[-1]["content"]
    assert result["content"] == expected
    assert result.get("is_error", False) is failed


def test_tool_results_in_a_user_message_answer_their_calls() -> None:
    window = manager(RecordingSink())
    window.add_user("go")
    window.on_turn_start()
    window.on_turn_end(chat_reply(calls=[("c1", "shot", "{}"), ("c2", "read", "{}")]))
    shown = [{"type": "text", "text": "the page"}, ANTHROPIC_IMAGE]
    window.add_user(
        [
            {"type": "tool_result", "tool_use_id": "c1", "content": shown},
            {"type": "tool_result", "tool_use_id": "c2", "content": "ENOENT", "is_error": True},
            {"type": "text", "text": "and go on"},
        ]
    )

    first, second, said = window.messages("anthropic").messages[-1]["content"]
    assert anthropic_faults(window.messages("anthropic").messages) == []
    assert first["content"][-1] == ANTHROPIC_IMAGE
    assert second == {"type": "tool_result", "tool_use_id": "c2", "content": "ENOENT", "is_error": True}
    assert said == {"type": "text", "text": "and go on"}
    assert is_valid(window)


@pytest.mark.parametrize(
    "image", [OPENAI_IMAGE, ANTHROPIC_IMAGE, PROTOCOL_IMAGE], ids=lambda part: str(list(part))
)
def test_an_image_is_sent_in_the_shape_of_who_gets_it(image: dict[str, Any]) -> None:
    window = manager(RecordingSink())
    window.add_user([{"type": "text", "text": "look"}, image])

    assert window.messages()[0]["content"][1] == OPENAI_IMAGE
    assert window.messages("anthropic").messages[0]["content"][1] == ANTHROPIC_IMAGE


def test_an_image_by_address_stays_an_address() -> None:
    window = manager(RecordingSink())
    window.add_user([{"type": "image_url", "image_url": {"url": "https://example.net/a.png"}}])

    (image,) = window.messages("anthropic").messages[0]["content"]
    assert image == {"type": "image", "source": {"type": "url", "url": "https://example.net/a.png"}}


def test_names_that_do_not_exist_are_refused_at_once() -> None:
    window = manager(RecordingSink())

    with pytest.raises(ConfigurationError, match=r"there is no event 'zone\.change'; expected zone\.changed"):
        window.on("zone.change", print)
    with pytest.raises(ConfigurationError, match="cannot be called; expected a function"):
        window.on("zone.changed", "print")  # type: ignore[arg-type]  # a mistake on purpose
    with pytest.raises(ConfigurationError, match="cannot be called; expected a function"):
        window.before_compaction(None)  # type: ignore[arg-type]  # a mistake on purpose
    for claim in (window.budget.can_add, window.budget.reserve, window.budget.release):
        with pytest.raises(ConfigurationError, match=r"budget\.tool_result"):
            claim("tool_result", 100)  # type: ignore[arg-type]  # a mistake on purpose
    with pytest.raises(ConfigurationError, match="expected openai or anthropic"):
        window.messages("gemini")  # type: ignore[call-overload]  # a mistake on purpose


def test_several_names_may_come_as_one_list() -> None:
    with manager(RecordingSink()) as window:
        window.task.plan(["read", "write"], "test")  # type: ignore[arg-type]  # what people write
        window.task.decide("fetch", instead_of="got")
        window.task.watch(["a.py", "b.py"])  # type: ignore[arg-type]  # the same

        assert list(window.task.subtasks) == ["read", "write", "test"]
        assert window._engine.task.record.choices[0].instead_of == ("got",)
        assert window._engine.task.record.paths == ["a.py", "b.py"]


class Unspeakable:
    """Whatever it is asked, it raises."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __iter__ = __str__


@pytest.mark.parametrize(
    "give",
    [
        lambda window, it: window.add_user(it),
        lambda window, it: window.add_user([it]),
        lambda window, it: window.add_memory(it),
        lambda window, it: window.add_assistant(it),
        lambda window, it: window.add_assistant("said", tool_calls=it),
        lambda window, it: window.add_tool_definitions(it),
        lambda window, it: window.on_tool_result("read", it, "c1"),
        lambda window, it: window.on_tool_result(it, "text", "c1"),
        lambda window, it: window.on_turn_end(it),
    ],
)
def test_content_that_cannot_be_read_is_contained(give: Callable[[Any, Any], None]) -> None:
    with manager(RecordingSink()) as window:
        window.add_user("hello")
        give(window, Unspeakable())
        window.add_user("still there?")

        assert is_valid(window)
        assert "still there?" in str(window.messages())


def test_a_reply_without_calls_may_give_none_for_them() -> None:
    """As OpenAI's message object does: `tool_calls` is None where there are none, `content` where there are."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    with manager(RecordingSink()) as window:
        window.add_user("hello")
        window.add_assistant("hello yourself", tool_calls=None)
        window.add_assistant(None, tool_calls=[call])
        window.on_tool_result("read", "text", "c1")

        assert is_valid(window)
        assert "hello yourself" in str(window.messages())
        assert [block.content_type for block in window.blocks()].count("tool_call") == 1


def test_a_raising_listener_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    window = manager(RecordingSink())
    window.on("turn.ended", lambda event: 1 / 0)
    for n in range(4):
        talk(window, f"question {n}", f"answer {n}")

    assert window.status().listener_failures == 4
    assert sum("listener of turn.ended failed" in record.getMessage() for record in caplog.records) == 1
