"""Playing records into a tracker: the recording becomes events, the same ones every time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest
from reads import WordCounter, digest

from windowpane.core import events as e
from windowpane.core.codec import encode
from windowpane.core.events import Event, FidelityEvaluated, Usage
from windowpane.core.protocols import Digester, ModelInfo
from windowpane.core.vocabulary import UNKNOWN_CAUSE, CountSource
from windowpane.core.window.blocks import Block
from windowpane.sources.transcripts import playback as playback_module
from windowpane.sources.transcripts.playback import (
    DeferredPlayer,
    session_events,
    session_id_of,
    session_keys,
)
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.records import (
    Broken,
    Cleared,
    Compacted,
    ContentAdded,
    ContentRemoved,
    LimitStated,
    ModelCalled,
    Record,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

OPENED = SessionOpened("s", "agent", "small")


class Catalog:
    """Knows two models and one price."""

    def lookup(self, model: str) -> ModelInfo | None:
        limits = {"small": 1_000, "large": 5_000}
        return ModelInfo(model, limits[model]) if model in limits else None

    def family_limit(self, model: str) -> None:
        return None

    def next_limit(self, model: str, above: int) -> int | None:
        return 5_000 if above <= 5_000 else None

    def smaller_limit(self, model: str, used: int) -> int | None:
        return None

    def cost_dollars(self, model: str, usage: Usage, at: float | None) -> float | None:
        return usage.input_total / 1_000


class Probe:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[Block], Sequence[Block], str | None]] = []

    def __call__(
        self, removed: Sequence[Block], visible: Sequence[Block], /, *, digest: Digester, of: str | None
    ) -> FidelityEvaluated | None:
        self.asked.append((removed, visible, of))
        return FidelityEvaluated("probe", 0.5, 1.0, of=of)


PLAYBACK = PlaybackSettings(digest=digest, counter_for=lambda model: WordCounter(), catalog=Catalog())


def play(*records: Record, playback: PlaybackSettings = PLAYBACK, key: str = "s") -> list[Event]:
    return list(session_events(records, key=key, source="test", playback=playback))


def of(events: list[Event], name: str) -> list[Any]:
    return [event.data for event in events if event.type == name]


def message(text: str, **more: Any) -> ContentAdded:
    return ContentAdded("user_message", text, **more)


def replied(text: str = "yes") -> ContentAdded:
    return ContentAdded("assistant_response", text)


def called(tokens: int, **more: Any) -> ModelCalled:
    return ModelCalled(Usage(input_tokens=tokens, output_tokens=1), "small", **more)


def filler(number: int, word: str = "w") -> str:
    return " ".join(f"{word}{place}" for place in range(number))


def test_same_records_give_the_same_bytes() -> None:
    records = (OPENED, message("a b", at=1.0), replied(), called(2, at=2.0))

    assert [encode(event) for event in play(*records)] == [encode(event) for event in play(*records)]


def test_longer_recording_continues_a_shorter_one() -> None:
    records: list[Record] = [OPENED]
    for turn in range(5):
        records += [message(filler(turn + 2), at=float(turn)), replied(), called(turn + 3)]
    whole = [encode(event) for event in play(*records)]

    for length in range(2, len(records)):
        part = [encode(event) for event in play(*records[:length])]
        assert part == whole[: len(part)]


def test_sessions_of_one_file_are_played_apart() -> None:
    other = SessionOpened("t", "agent", "small", parent_key="s")
    records = (
        OPENED,
        message("a"),
        other,
        message("b c"),
        OPENED,
        replied(),
        called(1),
        other,
        replied(),
        called(2),
    )

    assert session_keys(records) == ("s", "t")
    (first, second) = (play(*records, key=key) for key in ("s", "t"))
    assert [block.block.tokens for block in of(first, "block.added")] == [1, 1]
    assert [block.block.tokens for block in of(second, "block.added")] == [2, 1]
    assert second[0].context.parent_session_id == "test:s"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("0cd9edf7-459c-4900-af40-cf2c64dea525", "0cd9edf7-459c-4900-af40-cf2c64dea525"),
        ("0cd9edf7-459c-4900-af40-cf2c64dea525/agent-1", "0cd9edf7-459c-4900-af40-cf2c64dea525/agent-1"),
        ("task-1", "test:task-1"),
        ("x" * 500, "test:" + "x" * 200),
        ("caf\udce9", "test:caf\\udce9"),
    ],
)
def test_session_ids_are_unique_across_formats(key: str, expected: str) -> None:
    assert session_id_of("test", key) == expected


def test_compaction_of_seen_content_counts_that_content() -> None:
    probe = Probe()
    events = play(
        OPENED,
        ContentAdded("system_prompt", "be good"),
        message(filler(80), key="u1"),
        replied(filler(20)),
        called(82),
        Compacted("auto", tokens_before=102, tokens_after=12, summary=filler(10, "s")),
        playback=replace(PLAYBACK, evaluate=probe),
    )

    (compressed,) = of(events, "content.compressed")
    assert (compressed.scope, compressed.tokens_before, compressed.tokens_after) == ("content", 100, 10)
    assert compressed.removed_by_component == {"message_history": 100}
    ((removed, visible, of_id),) = probe.asked
    assert [block.tokens for block in removed] == [80, 20]
    assert [block.content_type for block in visible] == ["system_prompt", "summary"]
    assert of_id == next(event.event_id for event in events if event.type == "content.compressed")
    assert of(events, "fidelity.evaluated")[0].of == of_id


def test_compaction_of_mostly_unseen_content_counts_the_window() -> None:
    probe = Probe()
    events = play(
        OPENED,
        message(filler(10)),
        replied(),
        called(900),
        Compacted("auto", tokens_before=901, tokens_after=100, summary=filler(5)),
        replied(),
        called(105),
        playback=replace(PLAYBACK, evaluate=probe),
    )

    (compressed,) = of(events, "content.compressed")
    assert (compressed.scope, compressed.tokens_before, compressed.tokens_after) == ("window", 901, 100)
    assert compressed.ratio is None
    ((removed, _, _),) = probe.asked
    assert (removed[-1].text, sum(block.tokens for block in removed)) == (None, 806)
    after = [event.used_tokens for event in of(events, "pressure.measured") if event.phase == "before"]
    assert after[-1] == 100


def test_summary_that_was_not_recorded_has_no_fidelity() -> None:
    probe = Probe()
    events = play(
        OPENED,
        message(filler(100)),
        replied(),
        called(100),
        Compacted("auto", tokens_before=101, tokens_after=20),
        playback=replace(PLAYBACK, evaluate=probe),
    )

    (evaluated,) = of(events, "fidelity.evaluated")
    assert (evaluated.score, evaluated.coverage) == (None, 1.0)
    assert "summary was not recorded" in evaluated.reason
    assert not probe.asked
    assert of(events, "content.compressed")[0].scope == "window"


def test_what_a_compaction_kept_stays() -> None:
    start = (OPENED, message("a", key="u1"), message("b", key="u2"), message("c", key="u3"), replied(), called(4))
    (by_key,) = of(play(*start, Compacted("auto", summary="s", kept_keys=("u2",))), "content.compressed")
    (counted,) = of(play(*start, Compacted("auto", summary="s", keep_last=2)), "content.compressed")

    assert by_key.removed == ("b0", "b2", "b3")
    assert counted.removed == ("b0", "b1")


def test_evicted_results_leave_placeholders() -> None:
    """A result is masked, so its call stays whole; other content is dropped."""
    events = play(
        OPENED,
        message("go", key="u1"),
        ContentAdded("tool_call", "read a", "c1"),
        called(2),
        ContentAdded("tool_result", filler(50), "c1"),
        ContentRemoved(("c1", "u1"), "microcompact"),
    )

    (evicted,) = of(events, "blocks.evicted")
    assert [(block.form, block.tokens) for block in evicted.blocks] == [("mask", 50), ("drop", 1)]
    assert (evicted.tokens_removed, evicted.tokens_freed) == (51, 43)
    placeholder = of(events, "block.added")[-1].block
    assert (placeholder.content_type, placeholder.replaces) == ("placeholder", evicted.blocks[0].block_id)


def test_eviction_of_unseen_content_frees_the_recorded_tokens() -> None:
    events = play(
        OPENED,
        message("go"),
        replied(),
        called(500),
        ContentRemoved(("x",), "microcompact", tokens_freed=200),
        replied(),
    )

    (evicted,) = of(events, "blocks.evicted")
    assert (evicted.blocks[0].block_id, evicted.blocks[0].tokens) == ("x", 0)
    assert (evicted.tokens_removed, evicted.tokens_freed) == (200, 200)
    assert of(events, "pressure.measured")[-1].used_tokens == 301


def test_limit_is_the_users_else_the_recordings_else_the_catalogs() -> None:
    """Each wins over the next, and the event names the source."""
    stated = LimitStated(2_000)
    given = replace(PLAYBACK, limit_tokens=3_000)

    def started(*records: Record, playback: PlaybackSettings = PLAYBACK) -> tuple[int | None, str | None]:
        (data,) = of(play(*records, playback=playback), "session.started")
        return data.limit_tokens, data.limit_source

    assert started(OPENED, stated, message("a"), called(1), playback=given) == (3_000, "given")
    assert started(SessionOpened("s", "a"), stated, message("a"), called(1)) == (2_000, "provider")
    assert started(OPENED, message("a"), called(1)) == (1_000, "catalogue")
    assert started(SessionOpened("s", "a", "unheard-of"), message("a")) == (None, None)


def test_limit_of_the_catalog_rises_with_what_was_observed() -> None:
    events = play(OPENED, message("a"), replied(), called(4_000))

    (changed,) = of(events, "limit.changed")
    assert (changed.limit_tokens, changed.limit_source) == (5_000, "observed_floor")


def test_limit_stated_later_changes_it() -> None:
    later = (LimitStated(2_000), LimitStated(2_000))
    events = play(OPENED, message("a"), replied(), called(1), *later)

    assert [change.limit_tokens for change in of(events, "limit.changed")] == [2_000]


def test_cost_is_the_recorded_one_else_the_catalogs() -> None:
    events = play(
        OPENED, message("a"), replied(), called(100, cost_dollars=7.0), message("b"), replied(), called(200)
    )

    assert [ended.cost_dollars for ended in of(events, "turn.ended")] == [7.0, 0.2]


def test_a_recorded_cost_is_compared_with_the_published_prices() -> None:
    events = play(
        OPENED, message("a"), replied(), called(100, cost_dollars=0.2),
        message("b"), replied(), called(200, cost_dollars=0.201), message("c"), replied(), called(200),
    )  # fmt: skip

    ended = of(events, "turn.ended")
    assert [(one.cost_dollars, one.list_cost_dollars) for one in ended] == [
        (0.2, 0.1),
        (0.201, None),
        (0.2, None),
    ]


def test_a_stated_cost_of_zero_is_of_a_recorder_without_a_price() -> None:
    free = play(OPENED, message("a"), replied(), called(100, cost_dollars=0.0))
    unpriced = play(
        OPENED, message("a"), replied(), called(100, cost_dollars=0.0), playback=replace(PLAYBACK, catalog=None)
    )

    assert [ended.cost_dollars for ended in of(free, "turn.ended")] == [0.1]
    assert [ended.cost_dollars for ended in of(unpriced, "turn.ended")] == [None]


def test_model_known_later_counts_from_the_beginning() -> None:
    """Content before the first call is counted and measured for the model of that call."""
    asked: list[str] = []

    def counter_for(model: str) -> WordCounter:
        asked.append(model)
        return WordCounter()

    events = play(
        SessionOpened("s", "a"),
        message("a b"),
        replied(),
        called(3),
        playback=replace(PLAYBACK, counter_for=counter_for),
    )

    assert asked == ["small"]
    assert {event.context.model for event in events} == {"small"}


def test_change_of_model_changes_window_and_counter() -> None:
    events = play(OPENED, message("a"), replied(), called(1), replace(OPENED, model="large"), message("b"))

    assert [change.limit_tokens for change in of(events, "limit.changed")] == [5_000]
    assert events[-1].context.model == "large"


def test_clear_starts_a_new_window() -> None:
    events = play(
        OPENED, message(filler(9)), replied(), called(10), Cleared(), message("b"), replied(), called(3)
    )

    (rolled,) = of(events, "window.rolled")
    assert (rolled.reason, rolled.to_window) == ("clear", 2)
    final, after_reply = of(events, "pressure.measured")[-2:]
    assert (final.used_tokens, after_reply.used_tokens) == (3, 4)


def test_end_and_break_are_reported_only_if_recorded() -> None:
    start = (OPENED, message("a"), replied(), called(1))

    assert not of(play(*start), "session.ended")
    assert of(play(*start, SessionClosed("submitted")), "session.ended")[0].reason == "submitted"
    (incomplete,) = of(play(*start, Broken("cut off", 7)), "session.incomplete")
    assert (incomplete.reason, incomplete.line) == ("cut off", 7)


def test_use_of_a_result_is_a_reference() -> None:
    events = play(
        OPENED,
        message("go"),
        ContentAdded("tool_call", "ls", "c1"),
        called(1),
        ContentAdded("tool_result", "src/app/main.py", "c1"),
        ContentAdded("tool_call", 'read {"path": "src/app/main.py"}', "c2"),
        called(9),
    )

    (referenced,) = of(events, "blocks.referenced")
    assert (referenced.block_ids, referenced.by) == (("b2",), "b3")


def test_stated_tokens_and_media_are_used_unchanged() -> None:
    events = play(
        OPENED,
        ContentAdded("thinking", None, tokens=587),
        ContentAdded("media", None, media=2),
        playback=replace(PLAYBACK, media_tokens=lambda model: 765),
    )

    assert [(added.block.tokens, added.block.count_source) for added in of(events, "block.added")] == [
        (587, "usage"),
        (1_530, "estimate"),
    ]


def test_events_without_times_of_their_own_have_the_latest() -> None:
    events = play(OPENED, message("a", at=5.0), replied(), called(1))

    assert [event.at for event in events if event.type == "turn.ended"] == [5.0]


def test_result_of_a_sub_agent_is_its_return() -> None:
    events = play(
        OPENED,
        ContentAdded("tool_call", "Task", "c1"),
        called(1),
        ContentAdded("tool_result", "a b c", "c1", child_key="s/a"),
    )

    (returned,) = of(events, "subagent.returned")
    assert (returned.child_session_id, returned.result_tokens) == ("test:s/a", 3)


# -- names ----------------------------------------------------------------------------------------------------


def test_a_session_is_titled_by_its_first_own_message_until_the_agent_names_it() -> None:
    wrapped = message("<environment_context>\n<cwd>/work</cwd>\n</environment_context>")
    records = (
        OPENED, wrapped, message("fix the parser"), message("now test it"), replied(), called(100),
        SessionDescribed(title="Parser repair", folder="/work", branch="main"), SessionDescribed(folder="/work"),
    )  # fmt: skip

    assert of(play(*records), "session.described") == [
        e.SessionDescribed("fix the parser", "first_message"),
        e.SessionDescribed("Parser repair", "agent", folder="/work", branch="main"),
    ]
    without = play(*records, playback=replace(PLAYBACK, first_message_titles=False))
    assert [named.title for named in of(without, "session.described")] == ["Parser repair"]


class LoadingCounter(WordCounter):
    """A counter whose vocabulary is loaded while it counts."""

    loaded = False

    @property
    def source(self) -> CountSource:  # type: ignore[override]
        return "exact" if self.loaded else "estimate"

    def count(self, text: str) -> int:
        self.loaded = True
        return super().count(text)


def test_an_estimate_is_not_labeled_exact_when_the_vocabulary_is_loaded_meanwhile() -> None:
    counter = LoadingCounter()
    events = play(
        OPENED, message("a b"), replied(), called(2), playback=replace(PLAYBACK, counter_for=lambda _: counter)
    )

    assert [added.block.count_source for added in of(events, "block.added")] == ["estimate", "exact"]


def test_a_window_that_no_compaction_empties_holds_a_bounded_amount_of_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(playback_module, "MAXIMUM_TEXT_CHARACTERS", 1_000)
    probe = Probe()
    contents = [
        ContentAdded("tool_result", f"{number:02} " + "x" * 97, f"c{number}", key=f"k{number}")
        for number in range(40)
    ]
    records = (
        OPENED,
        ContentAdded("system_prompt", "s" * 300),
        *contents,
        Compacted("auto", summary="all of it"),
    )
    events = play(*records, playback=replace(PLAYBACK, evaluate=probe))
    removed, visible, _ = probe.asked[0]

    assert sum(len(block.text or "") for block in removed) <= 1_000
    assert removed[-1].text == contents[-1].text
    assert [block.text for block in removed][:20] == [None] * 20
    assert [block.chars for block in removed] == [100] * 40
    assert next(iter(visible)).text == "s" * 300
    monkeypatch.undo()
    assert events == play(*records, playback=replace(PLAYBACK, evaluate=Probe()))


def test_a_block_whose_text_was_discarded_is_not_referred_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_module, "MAXIMUM_TEXT_CHARACTERS", 1_000)
    results = (ContentAdded("tool_result", f"src/app/main_{n}.py " + "x" * 80, f"c{n}") for n in range(40))
    call = ContentAdded("tool_call", "cat src/app/main_3.py src/app/main_39.py", "d")
    (referenced,) = of(play(OPENED, message("go"), *results, call), "blocks.referenced")

    assert referenced.block_ids == ("b40",)


def retained_bytes(root: object, *, except_for: object) -> int:
    """Return the size of everything that *root* refers to, a string once for each object that holds it."""
    seen, todo, size = {id(except_for)}, [root], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        size += sys.getsizeof(one)
        if isinstance(one, msgspec.Struct):
            todo += [getattr(one, name) for name in one.__struct_fields__]
        else:
            todo += gc.get_referents(one)
    return size


def test_a_block_of_a_transcript_that_is_never_compacted_costs_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_module, "MAXIMUM_TEXT_CHARACTERS", 10_000)
    player = DeferredPlayer("s", "test", PLAYBACK, [])

    def grown(start: int, end: int) -> int:
        for n in range(start, end):
            words = " ".join(f"src/app/module_{n}_{word}.py" for word in range(40))
            call, result = f"toolu_{n:024}", f"{n:08}-0000-4000-8000-000000000000"
            for record in (
                ContentAdded("tool_call", f'{{"path": "{n}"}}', call, "Read", key=f"{n:036}"),
                called(100),
                ContentAdded("tool_result", words, call, key=result),
            ):
                player.play(record)
        player.flush()
        player._emitted.clear()
        return retained_bytes(player, except_for=PLAYBACK)

    player.play(OPENED)
    blocks = 2 * 1_024
    before = grown(0, 1_024)

    assert grown(1_024, 2_048) - before < 800 * blocks


def long_session(player: DeferredPlayer, start: int, end: int) -> None:
    for n in range(start, end):
        call = f"toolu_{n:024}"
        player.play(ContentAdded("tool_call", f'{{"path": "{n}.py"}}', call, "Read", key=f"{n:036}"))
        player.play(called(100))
        player.play(ContentAdded("tool_result", "word " * 100, call, key=f"{n:08}-0000-4000-8000-000000000000"))


def test_a_recording_that_is_never_compacted_is_held_in_constant_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_module, "MAXIMUM_TEXT_CHARACTERS", 10_000)
    monkeypatch.setattr(playback_module, "MAXIMUM_BLOCKS", 100)
    events: list[Event] = []
    player = DeferredPlayer("s", "test", replace(PLAYBACK, limit_tokens=20_000), events)
    player.play(OPENED)
    sizes = []
    for number in range(1, 9):
        long_session(player, 500 * number, 500 * (number + 1))
        player.flush()
        sizes.append(len(player._player.tracker.window))  # type: ignore[union-attr]
        assert len(player._player._keys) <= 2 * sizes[-1] + 2  # type: ignore[union-attr]
    removed = [event.data for event in events if isinstance(event.data, e.BlocksEvicted)]
    used = [event.data.used_tokens for event in events if isinstance(event.data, e.PressureMeasured)]

    assert max(sizes) < 3 * 20_000 / 50 + 100, "tokens of three windows, in blocks of 50"
    assert {one.policy for one in removed} == {UNKNOWN_CAUSE}
    assert max(used) <= 20_000, "the provider's total is the size, whatever was counted"
    assert not any(isinstance(event.data, e.ContentRegretted | e.CacheBroken) for event in events)


def test_a_long_window_that_can_hold_its_content_is_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback_module, "MAXIMUM_BLOCKS", 100)
    events: list[Event] = []
    player = DeferredPlayer("s", "test", replace(PLAYBACK, limit_tokens=200_000), events)
    player.play(OPENED)
    long_session(player, 0, 300)
    player.flush()

    assert not any(isinstance(event.data, e.BlocksEvicted) for event in events)
