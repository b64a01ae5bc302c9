"""Persisted counters: they outlive deleted sessions and changes of release."""

from __future__ import annotations

import json

import pytest

from windowpane.core.events import BlockAdded, TurnEnded, Usage
from windowpane.core.window.blocks import Block
from windowpane.exceptions import StoreError
from windowpane.metrics.families import Family
from windowpane.metrics.fold import MetricState


def counted(state: MetricState) -> list[Family]:
    """Counters and histograms only: gauges belong to live sessions."""
    return [family for family in state.collect(now=1e12) if family.metric.kind != "gauge"]


def block(tokens: int) -> BlockAdded:
    return BlockAdded(Block("b", "tool_result", tokens, 1, "g", 1, "", 0, "exact", None))


def test_counting_continues_from_a_loaded_base(scripted_state: MetricState, make_event, value_of) -> None:
    base = scripted_state.dump()
    state = MetricState()
    state.load(base)
    state.apply(make_event(TurnEnded(Usage(10, 5), "usage")))
    state.load(base)

    assert value_of(counted(state), "context_window_turns_total") == 6 + 1 + 6
    assert value_of(counted(state), "context_window_limit_tokens") is None


def test_a_dump_survives_a_round_trip(scripted_state: MetricState) -> None:
    state = MetricState()
    state.load(scripted_state.dump())

    assert state.dump() == scripted_state.dump()
    assert counted(state) == counted(scripted_state)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"{}",
        b'{"format":99,"rows":[]}',
        b'{"format":1,"rows":[{"agent":"a"}]}',
        (
            b'{"format":1,"rows":[{"agent":"a","model":"m","series":[{"metric":"context_window_turns_total",'
            b'"labels":[],"value":1},{"metric":"context_window_turns_total","labels":[],"value":-1}]}]}'
        ),
        (
            b'{"format":1,"rows":[{"agent":"a","model":"m","series":[{"metric":"context_window_turns_total",'
            b'"labels":[],"value":"many"}]}]}'
        ),
        b"\xff\xfe",
    ],
)
def test_a_damaged_base_is_rejected_whole(raw: bytes, scripted_state: MetricState) -> None:
    before = scripted_state.dump()
    with pytest.raises(StoreError, match="persisted counters"):
        scripted_state.load(raw)

    assert scripted_state.dump() == before


def test_series_of_another_release_are_skipped_or_rebucketed(make_event, value_of) -> None:
    old = MetricState()
    for tokens in (5, 40, 3_000, 1_000_000):
        old.apply(make_event(block(tokens)))
    document = json.loads(old.dump())
    for entry in document["rows"][0]["series"]:
        if entry["metric"] == "context_window_block_tokens":
            entry["bounds"], entry["counts"] = [10, 75, 4_000], [1, 1, 1, 1]
    document["rows"][0]["series"].append({"metric": "context_window_gone_total", "labels": [], "value": 1})
    new = MetricState()
    new.load(json.dumps(document).encode())
    (point,) = next(
        family.histograms for family in counted(new) if family.metric.name == "context_window_block_tokens"
    )

    assert (sum(point.counts), point.total) == (4, 5 + 40 + 3_000 + 1_000_000)
    assert [upper for upper, count in zip((*range(11), "inf"), point.counts, strict=True) if count] == [
        0, 2, 6, "inf",
    ]  # fmt: skip
