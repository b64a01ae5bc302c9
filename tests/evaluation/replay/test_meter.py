"""The measures of a replay, call by call, against values worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.core.digests import keyed_digester
from windowpane.core.events import ContentCompressed, Event, EventContext, Usage
from windowpane.core.limits import REGRET_MINIMUM_TOKENS, REGRET_TURNS
from windowpane.core.tracking.marks import marks_of
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import MAXIMUM_HOLDERS
from windowpane.evaluation.replay import ReplayMatrix, ReplaySetup, simulate, summarize_runs, to_stored_replay
from windowpane.evaluation.replay import meter as metering
from windowpane.evaluation.replay.history import (
    CallNeeds,
    Need,
    RecordedCall,
    RecordedHistory,
    WindowSpan,
    find_needs,
)
from windowpane.evaluation.replay.meter import Measures, Meter, WindowSizes
from windowpane.evaluation.replay.recordings import Recording
from windowpane.evaluation.replay.results import MAXIMUM_POINTS
from windowpane.evaluation.replay.simulate import ReplayRun, _EventCounts

NOTHING = CallNeeds((), ())


def block(name: str, tokens: int = 10, content_type: ContentType = "tool_result", text: str = "") -> Block:
    marks = marks_of(content_type, text or name)
    return Block(name, content_type, tokens, 1, name, 1, name, tokens * 4, "exact", text or name, marks=marks)


SYSTEM = block("system", 20, "system_prompt")


def history(*arrived: Sequence[Block]) -> RecordedHistory:
    """Return one span of calls, each with the blocks added before it."""
    span, calls = WindowSpan(1), []
    for number, blocks in enumerate(arrived, 1):
        start = len(span.blocks)
        span.blocks.extend(blocks)
        calls.append(RecordedCall(number, span, start, len(span.blocks)))
    return RecordedHistory(tuple(calls))


def measured(
    arrived: Sequence[Sequence[Block]],
    sent: Sequence[Sequence[Block]],
    needs: dict[int, CallNeeds] | None = None,
    **options: Any,
) -> Measures:
    """Return the measures of *sent*; *needs* has the recorded agent's needs by call, from 0."""
    wanted = [(needs or {}).get(number, NOTHING) for number in range(len(arrived))]
    sizes = WindowSizes(1_000, options.pop("fitting_tokens", 900), 500)
    options = {"probe": False, **options}
    meter = Meter(history(*arrived), wanted, sizes, digest=keyed_digester(b"k" * 32), **options)
    for blocks in sent:
        meter.sent(blocks)
    return meter.measures(evicted=0, compressions=0, compression_fidelity=None)


def lost(number_needed: int, need: Need, after: Sequence[Block] = (), *, tokens: int = 40) -> Measures:
    """A result is removed before call 1 and needed by the reply to call *number_needed*."""
    first = block("result", tokens)
    arrived = [[SYSTEM, first], *([[]] * number_needed)]
    sent = [[SYSTEM, first], *([[SYSTEM, *after]] * number_needed)]
    return measured(arrived, sent, {number_needed: CallNeeds((), (need,))})


@pytest.mark.parametrize(("fitting", "overflows"), [(29, 1), (30, 0)])
def test_a_call_overflows_only_above_what_fits(fitting: int, overflows: int) -> None:
    one = [SYSTEM, block("user")]

    assert measured([one], [one], fitting_tokens=fitting).overflows == overflows


def test_only_an_unbroken_prefix_is_read_from_the_cache() -> None:
    a, b, c, other = block("a"), block("b"), block("c", 30), block("other")
    whole = measured([[SYSTEM, a, b, c], [], []], [[SYSTEM, a, b, c], [SYSTEM, a, b, c], [SYSTEM, other, b, c]])

    assert whole.tokens_sent == 3 * 70
    assert whole.cached_tokens == 70 + 20
    assert whole.cost_tokens == pytest.approx(1.25 * 70 + 0.10 * 70 + (0.10 * 20 + 1.25 * 50))


def test_dollars_are_the_price_of_each_calls_tokens() -> None:
    blocks = [SYSTEM, block("user")]

    def price(usage: Usage) -> float | None:
        return 2.0 * usage.input_tokens + 0.5 * usage.cache_read_tokens

    assert measured([blocks, []], [blocks, blocks], price=price).cost_dollars == 2.0 * 30 + 0.5 * 30

    def first_only(usage: Usage) -> float | None:
        return None if usage.cache_read_tokens else 1.0

    assert measured([blocks, []], [blocks, blocks], price=first_only).cost_dollars is None


@pytest.mark.parametrize(("turns", "regrets"), [(1, 1), (REGRET_TURNS, 1), (REGRET_TURNS + 1, 0)])
def test_content_is_regretted_within_twenty_turns(turns: int, regrets: int) -> None:
    found = lost(turns + 1, Need("result", "call"))

    assert (found.regrets, found.regretted_tokens) == (regrets, 40 * regrets)


@pytest.mark.parametrize(
    ("visible", "regrets"),
    [("neither", 1), ("left_name here", 1), ("left_name and right_name_2", 0)],
    ids=["nothing", "half", "all"],
)
def test_used_names_are_not_a_regret_while_all_are_visible(visible: str, regrets: int) -> None:
    need = Need("result", "identifier", ("left_name", "right_name_2"))

    assert lost(2, need, [block("other", text=visible)]).regrets == regrets


def test_a_name_in_a_summary_counts_only_by_the_milder_reading() -> None:
    need = Need("result", "identifier", ("left_name",))
    summary = block("summary", content_type="summary", text="it was left_name")
    found = lost(2, need, [summary])

    assert (found.regret_ratio, found.regret_ratio_unsummarized) == (0.0, 40 / 60)


def test_content_larger_than_the_window_is_counted_separately() -> None:
    found = lost(2, Need("result", "call"), tokens=501)

    assert (found.regrets, found.regret_ratio) == (0, 0.0)
    assert found.regret_ratio_with_oversized == 501 / 521


def test_the_shares_have_their_denominators() -> None:
    a, b, c = block("a", 40), block("b", 60), block("c", 100)
    found = measured(
        [[SYSTEM, a, b, c], [], []], [[SYSTEM, a, b, c], [SYSTEM, c], [SYSTEM, c]],
        {2: CallNeeds((), (Need("a", "call"),))},
    )  # fmt: skip

    assert (found.removed_tokens, found.regretted_tokens) == (100, 40)
    assert found.regret_ratio == 40 / 220
    assert found.regretted_share == 40 / 100
    assert (found.peak_tokens, found.peak_utilization) == (220, 0.22)


def test_fidelity_is_weighted_by_removed_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {("a",): 1.0, ("b",): 0.0}

    def names_kept(removed: Sequence[Block], _visible: object) -> float:
        return scores[tuple(one.id for one in removed)]

    monkeypatch.setattr(metering, "names_kept", names_kept)
    monkeypatch.setattr(metering, "coverage_of", lambda _: 1.0)
    a, b = block("a", 250), block("b", 750)
    found = measured([[a, b], [], []], [[a, b], [b], []], probe=True, fitting_tokens=2_000)

    assert found.fidelity == 0.25


@pytest.mark.parametrize(("tokens", "needed"), [(REGRET_MINIMUM_TOKENS, 1), (REGRET_MINIMUM_TOKENS - 1, 0)])
def test_content_added_again_is_a_need_above_a_size(tokens: int, needed: int) -> None:
    one = block("one", tokens)

    assert [len(need.returned) for need in find_needs(history([one], [replace(one, id="again")]))] == [0, needed]


@pytest.mark.parametrize(
    ("tool", "target", "matches"),
    [
        ("Read", "app.py", {"call", "digest"}),
        ("Bash", "cat", {"call", "digest"}),
        ("Bash", "git status", set()),
        ("Edit", "app.py", set()),
    ],
)
def test_only_what_a_call_reads_is_fetched_again(tool: str, target: str, matches: set[str]) -> None:
    """Equal confirmations of edits and equal states are not needs, as they are not a session's own regrets."""
    arrived, again = exchange(tool, target), exchange(tool, target, id_="again")
    needs = find_needs(history([], arrived, again))

    assert {need.match for call in needs for need in (*call.returned, *call.used)} == matches


@pytest.mark.parametrize(("removed_before", "regrets"), [(1, 0), (2, 1)])
def test_what_was_changed_after_its_removal_is_read_for_the_change(removed_before: int, regrets: int) -> None:
    """The reply to call 1 edits the file, and the reply to call 2 reads it again."""
    read, edited = exchange("Read", "app.py"), exchange("Edit", "app.py", id_="edit")
    arrived = [[SYSTEM, *read], [block("next")], edited, exchange("Read", "app.py", id_="again")]
    needs = find_needs(history(*arrived))
    sent = [[SYSTEM, *read] if number < removed_before else [SYSTEM] for number in range(len(arrived))]

    assert measured(arrived, sent, dict(enumerate(needs))).regrets == regrets


def exchange(tool: str, target: str, *, id_: str = "first") -> list[Block]:
    """Return a call of a tool and its result, the same each time except for their ids."""
    marks = marks_of("tool_call", tool, tool_name=tool, target=target)
    call = replace(block(tool, 5, "tool_call"), tool_name=tool, target=target, tool_call_id=id_, marks=marks)
    result = block(f"the {tool} result", REGRET_MINIMUM_TOKENS)
    return [call, replace(result, tool_name=tool, target=target, tool_call_id=id_, marks=marks)]


def test_content_cleared_by_the_user_is_not_evicted() -> None:
    first, second = history([SYSTEM, block("a"), block("b"), block("c")]), history([SYSTEM, block("d")])
    calls = (*first.calls, replace(second.calls[0], number=2))
    meter = Meter(
        RecordedHistory(calls), [NOTHING] * 2, WindowSizes(8_192, 8_000, 500),
        digest=keyed_digester(b"k" * 32), probe=False,
    )  # fmt: skip
    prepared = SimpleNamespace(
        meter=lambda _setup, **_options: meter, recording=Recording("cleared", "cleared", (), "")
    )

    run = simulate(prepared, ReplaySetup(8_192, "keep_last", keep_groups=2))  # type: ignore[arg-type]

    assert run.timeline == (40, 30)
    assert run.measures.evicted_blocks == 1


def test_a_sum_of_dollars_needs_the_price_of_every_session() -> None:
    setup = ReplaySetup(8_192)

    def run(dollars: float | None, fidelity: float | None) -> ReplayRun:
        return ReplayRun("s", setup, Measures(overflows=1, cost_dollars=dollars, fidelity=fidelity), ())

    (partly,) = summarize_runs([run(1.0, 0.5), run(None, None)])
    (whole,) = summarize_runs([run(1.0, 0.5), run(0.5, 1.0)])

    assert (partly.cost_dollars, partly.fidelity, partly.overflows) == (None, 0.5, 2)
    assert (whole.cost_dollars, whole.fidelity, whole.sessions) == (1.5, 0.75, 2)


def test_only_accepted_compressions_are_counted() -> None:
    counts = _EventCounts()
    context = EventContext("s", "a", "m", 1, 1, "replay", "stream")
    for number, outcome in enumerate(("accepted", "rejected", "failed", "accepted")):
        counts.add(Event(context, number, None, ContentCompressed("compaction", "threshold", outcome, 900, 100)))

    assert counts.compressions == 2


def test_a_long_timeline_keeps_its_peaks() -> None:
    timeline = [100] * (2 * MAXIMUM_POINTS)
    timeline[2 * 777 + 1] = 900
    stored = to_stored_replay(
        ReplayMatrix((ReplayRun("s", ReplaySetup(8_192), Measures(), tuple(timeline)),)), name="n", at=1.0
    )

    assert len(stored.runs[0].timeline) == MAXIMUM_POINTS
    assert stored.runs[0].timeline[777] == 900


@pytest.mark.parametrize(("holders", "needed"), [(MAXIMUM_HOLDERS, MAXIMUM_HOLDERS), (MAXIMUM_HOLDERS + 1, 0)])
def test_a_common_name_refers_to_no_content(holders: int, needed: int) -> None:
    name = "ledger_entries_2024"
    held = [block(f"r{number}", text=f"{number} has {name}") for number in range(holders)]
    reply_block = block("said", content_type="assistant_response", text=f"as {name} shows")
    one = history(held, [reply_block])
    first = replace(one.calls[0])

    assert len(find_needs(RecordedHistory((first,)))[0].used) == needed
