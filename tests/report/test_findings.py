"""Findings: each rule at its threshold, with dollars, evidence and a replay to try."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from windowpane.core.events import CacheBroken, ContentRegretted
from windowpane.report.findings import DUPLICATE_SHARE, STALE_SHARE, Finding, SessionEvidence, findings
from windowpane.store.records import BlockRow, SessionRow, ToolUse, TurnRow


def row(kind: type[Any], **values: Any) -> Any:
    """Return a row of the store with *values*, and nothing else known."""
    empty = {"components": {}, "agent": "a", "session_id": "s"}
    counts = ("turns", "exchanges", "events", "windows", "regrets", "cache_breaks", "cache_break_tokens",
              "used_tokens", "stale_tokens", "duplicate_tokens", "turn", "window_id", "added_tokens")  # fmt: skip
    names = [field.name for field in fields(kind)]
    known = {name: 0 if name in counts else empty.get(name) for name in names}
    return kind(**{**known, **values})


def turn(number: int, **values: Any) -> TurnRow:
    return row(TurnRow, turn=number, **{"used_final": 10_000, "cost_dollars": 0.10, **values})


def session(**values: Any) -> SessionRow:
    return row(SessionRow, **{"limit_tokens": 100_000, "ended": True, **values})


def unused(tokens: int, **values: Any) -> BlockRow:
    """Return a tool result that was past its lifetime in turn 1, and that nothing used again."""
    known = {"content_type": "tool_result", "tokens": tokens, "turn_added": -20, "block_id": "b", **values}
    return row(BlockRow, **known)


def only(evidence: SessionEvidence) -> Finding:
    (finding,) = findings(evidence)
    return finding


def test_a_session_without_waste_has_no_findings() -> None:
    assert findings(SessionEvidence(session(), [turn(1), turn(2)])) == ()
    assert findings(SessionEvidence(session(), [])) == ()


@pytest.mark.parametrize(
    ("kind", "column", "threshold"),
    [("stale", "stale_tokens", STALE_SHARE), ("duplicates", "duplicate_tokens", DUPLICATE_SHARE)],
)
def test_content_that_was_sent_again_has_its_share_of_the_cost(kind: str, column: str, threshold: float) -> None:
    most, less = round(10_000 * threshold * 1.5), round(10_000 * threshold * 0.6)
    blocks = [unused(most)]
    turns = [turn(1, **{column: less}), turn(2, **{column: most})]
    finding = only(SessionEvidence(session(), turns, blocks=blocks))

    assert (finding.kind, finding.evidence[0].turn) == (kind, 2)
    assert finding.dollars == pytest.approx(0.10 * (most + less) / 10_000)
    assert finding.trial is not None
    assert finding.trial.window_tokens == 100_000
    assert finding.trial.policies
    assert findings(SessionEvidence(session(), [turn(1, **{column: less})], blocks=blocks)) == ()


def test_dollars_are_unknown_without_a_price() -> None:
    evidence = SessionEvidence(
        session(), [turn(1, stale_tokens=5_000, cost_dollars=None)], blocks=[unused(5_000)]
    )
    finding = only(evidence)

    assert finding.dollars is None


def test_cache_breaks_link_to_the_most_expensive_calls() -> None:
    breaks = [(number, CacheBroken(9_000, 10_000, "edited", f"b{number}", number / 10)) for number in range(1, 6)]
    broken = session(cost_dollars=9.0, cache_breaks=5, cache_break_tokens=45_000, cache_break_dollars=1.5)
    finding = only(SessionEvidence(broken, [turn(1)], breaks=breaks))

    assert [(one.turn, one.block_id) for one in finding.evidence] == [(5, "b5"), (4, "b4"), (3, "b3")]
    assert (finding.dollars, "was changed" in finding.text) == (1.5, True)
    few = session(cache_breaks=1, cache_break_dollars=0.01)
    assert findings(SessionEvidence(few, [turn(1)], breaks=breaks[:1])) == ()


def test_a_flood_names_the_tool_and_its_largest_target() -> None:
    uses = [
        ToolUse("read", "a.py", 1, 1_000, 3_000, 0.2), ToolUse("read", "b.py", 1, 1_000, 2_500, 0.1),
        ToolUse("grep", "", 1, 1_000, 4_000, 0.3),
    ]  # fmt: skip
    turns = [turn(1, cost_dollars=0.5), turn(2, cost_dollars=0.5, components={"tool_results": 5_000})]
    finding = only(SessionEvidence(session(), turns, uses))

    assert finding.kind == "tool_flood"
    assert finding.dollars == pytest.approx(0.3)
    assert (finding.evidence[0].turn, "a.py" in finding.evidence[0].text) == (2, True)


def test_tools_that_were_never_called_cost_their_definitions_in_every_call() -> None:
    definitions = [
        row(BlockRow, tool_name=name, tokens=500, block_id=name) for name in ("read", "write", "fetch")
    ]
    uses = [ToolUse("read", "", 1, 10, 10, None)]
    finding = only(SessionEvidence(session(), [turn(1), turn(2)], uses, definitions=definitions))

    assert finding.kind == "unused_tools"
    assert finding.dollars == pytest.approx(2 * 0.10 * 1_000 / 10_000)
    assert {one.block_id for one in finding.evidence} == {"write", "fetch"}
    assert findings(SessionEvidence(session(), [turn(1)], definitions=definitions)) == ()


def test_a_compaction_is_forecast_only_for_a_live_session() -> None:
    soon = session(ended=False, turns_until_compaction=6.0, compaction_tokens=90_000)
    finding = only(SessionEvidence(soon, [turn(1)], is_live=True))

    assert (finding.kind, finding.dollars) == ("compaction_soon", None)
    assert findings(SessionEvidence(soon, [turn(1)])) == ()


def test_what_a_compression_lost_is_paid_where_it_is_read_again() -> None:
    regrets = [
        (2, ContentRegretted("compression", "same_call", "b1", "b9", 4_000, 1, "id")),
        (2, ContentRegretted("eviction", "same_call", "b2", "b8", 4_000, 1, "id")),
    ]
    call = turn(2, model="claude-sonnet-4-5", input_tokens=10_000, cache_read_tokens=5_000, output_tokens=0)
    finding = only(SessionEvidence(session(regrets=2), [turn(1), call], regrets=regrets))

    assert (finding.kind, finding.evidence[0].block_id) == ("lost_content", "b9")
    read_share = 0.1  # a token from the cache costs a tenth
    assert finding.dollars == pytest.approx(0.1 * 4_000 / (5_000 + 5_000 * read_share))


def test_the_most_expensive_finding_comes_first() -> None:
    evidence = SessionEvidence(
        session(ended=False, turns_until_compaction=2.0, compaction_tokens=90_000),
        [turn(1, stale_tokens=2_000, duplicate_tokens=4_000)],
        blocks=[unused(2_000)],
        is_live=True,
    )

    assert [finding.kind for finding in findings(evidence)] == ["duplicates", "stale", "compaction_soon"]


def test_findings_together_cost_no_more_than_the_session() -> None:
    """A tool result that is stale is its tool's too, and a break makes each of them more expensive."""
    turns = [
        turn(number, cost_dollars=1.0, stale_tokens=3_000, duplicate_tokens=3_000) for number in range(1, 11)
    ]
    broken = [(number, CacheBroken(9_000, 10_000, "edited", None, 0.8)) for number in range(1, 11)]
    found = findings(
        SessionEvidence(
            session(cost_dollars=10.0, cache_breaks=10, cache_break_dollars=8.0),
            turns,
            [ToolUse("read", "a.py", 1, 9_000, 90_000, 9.0)],
            broken,
            blocks=[unused(3_000)],
        )
    )

    by_kind = {one.kind: one for one in found}
    assert sum(one.dollars or 0.0 for one in found) <= 10.0
    assert by_kind["stale"].dollars == by_kind["duplicates"].dollars == pytest.approx(10 * 0.2 * 0.3)
    assert by_kind["tool_flood"].dollars == pytest.approx(9.0 * 0.2 - 2 * 0.6)
    assert "read filled 30%" in by_kind["tool_flood"].text


@pytest.mark.parametrize(
    ("used", "blocks"),
    [
        ("referenced later", [unused(5_000, last_referenced=9)]),
        (
            "named by a later call",
            [unused(5_000, target="a.py"), row(BlockRow, content_type="tool_call", target="a.py", turn_added=9)],
        ),
    ],
)
def test_content_that_is_used_again_is_not_stale(used: str, blocks: list[BlockRow]) -> None:
    turns = [turn(number, stale_tokens=5_000) for number in range(1, 10)]

    assert findings(SessionEvidence(session(), turns, blocks=blocks)) == (), used


def expired(dollars: float, *, idle: float = 600.0, lifetime: int | None = 300) -> tuple[int, CacheBroken]:
    return 2, CacheBroken(100_000, 100_000, "expired", None, dollars, idle, lifetime)


def advice(*breaks: tuple[int, CacheBroken], written: int = 100_000, agent: str = "claude-code") -> str:
    lost = sum(broken.dollars or 0.0 for _, broken in breaks)
    row_of = session(agent=agent, cost_dollars=50.0, cache_breaks=len(breaks), cache_break_dollars=lost)
    turns = [turn(1, cost_dollars=25.0), turn(2, cost_dollars=25.0, cache_write_tokens=written)]
    return only(SessionEvidence(row_of, turns, breaks=breaks)).advice


def test_the_cache_of_an_hour_is_advised_where_it_would_have_saved_money() -> None:
    """A break of 100,000 tokens costs $0.575 at $5 a million, an hour's write of as many $0.375 more."""
    assert "ENABLE_PROMPT_CACHING_1H=1, from 2.1.108) would have saved $0.57" in advice(expired(0.575))
    assert '"ttl": "1h"' in advice(expired(0.575), agent="reviewer")
    assert "ttl" not in advice(expired(0.575), agent="opencode")
    assert "would have cost $0.37 more" in advice(expired(0.575), written=100_000 + 253_000)


def test_a_session_with_the_cache_of_an_hour_has_other_advice() -> None:
    assert advice(expired(0.575, idle=9_000.0, lifetime=3_600)).startswith("It has the one-hour cache")


def test_pauses_of_more_than_an_hour_are_no_reason_for_the_cache_of_an_hour() -> None:
    assert "one-hour" not in advice(expired(0.575, idle=9_000.0))


@pytest.mark.parametrize("agent", ["codex", "reviewer"])
def test_advice_names_what_the_user_of_the_agent_can_do(agent: str) -> None:
    broken = session(agent=agent, cost_dollars=9.0, cache_breaks=1, cache_break_dollars=1.5)
    breaks = [(1, CacheBroken(9_000, 10_000, "edited", None, 1.5))]
    finding = only(SessionEvidence(broken, [turn(1)], breaks=breaks))

    assert ("MCP servers" in finding.advice) is (agent == "codex")


def test_tool_definitions_have_the_size_that_the_composition_has() -> None:
    definitions = [row(BlockRow, tool_name=name, tokens=500, block_id=name) for name in ("read", "write")]
    turns = [turn(1, components={"tool_definitions": 3_000})]
    finding = only(
        SessionEvidence(session(), turns, [ToolUse("read", "", 1, 10, 10, None)], definitions=definitions)
    )

    assert "Every call sent the 1,500 tokens of 1 tool definition" in finding.text
    assert finding.evidence[0].text == "write: 1,500 tokens"
