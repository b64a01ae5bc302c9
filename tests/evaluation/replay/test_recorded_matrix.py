"""Real sessions in managing mode: every managed call keeps the invariants, under every policy, preset and window.

A sample by default; everything with WINDOWPANE_TEST_ALL.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from message_rules import anthropic_faults, openai_faults
from tests.sampling import sampled

from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block
from windowpane.evaluation.replay import (
    FileSource,
    JoinedSource,
    PreparedRecording,
    ReplaySetup,
    find_recordings,
    simulate,
)
from windowpane.evaluation.replay.setups import preset_names
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.plans.policies import POLICIES

SESSIONS = (
    "pi/large-session.jsonl",
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
    "claude_code/compact_micro_76-62d755ef9f-2.jsonl",
    "claude_code/micro_ids_present_d5-99f72ee73a-0.jsonl",
    "claude_code/new_cli_8c-b7fcfcbb16-0.jsonl",
    "codex/rollout_compact2_spark_00-34f597b72d-1.jsonl",
    "codex/rollout_small_a3-92ff332928-0.jsonl",
    "swe_agent/marshmallow_fc_replace.traj",
    "mini_swe_agent/chat_sqlfluff-2419.traj.json",
    "tau_bench/gpt-4o-airline_trial0_first10.json",
    "tau2_bench/telecom_gpt-4o_first6.json",
)
LIMITS = (8_192, 32_768)
LONG = (131_072, 200_000)


def managements() -> list[dict[str, str]]:
    return [{"policy": name} for name in POLICIES] + [{"preset": name} for name in preset_names()]


def combinations() -> list[tuple[str, int, dict[str, str]]]:
    whole = [(name, limit, chosen) for name in SESSIONS for limit in LIMITS for chosen in managements()]
    return list(sampled(whole, 13))


class Pair(NamedTuple):
    """Identity that joins a result to its call: recordings reuse ids, so the group is part of it."""

    call_id: str | None
    group: str


def _pair(block: Block) -> Pair:
    return Pair(block.tool_call_id, block.group)


class Inspector:
    """Checks every managed call against the rules."""

    def __init__(self, setup: ReplaySetup) -> None:
        self._setup = setup
        self.calls = 0
        self.faults: list[str] = []

    def __call__(self, manager: BlockingWindow) -> None:
        self.calls += 1
        blocks = manager.blocks()
        total = sum(block.tokens for block in blocks)
        if total > self._setup.fitting_tokens:
            self._fault(f"{total} tokens do not fit")
        calls = Counter(_pair(block) for block in blocks if block.content_type == "tool_call")
        results = Counter(_pair(block) for block in blocks if block.content_type == "tool_result")
        for pair, count in results.items():
            if pair.call_id is not None and count > calls[pair]:
                self._fault(f"{count} results of call {pair} in its group, which holds {calls[pair]}")
        for fault in openai_faults(manager.messages()):
            self._fault(f"OpenAI: {fault}")
        for fault in anthropic_faults(manager.messages("anthropic").messages):
            self._fault(f"Anthropic: {fault}")

    def _fault(self, text: str) -> None:
        self.faults.append(f"call {self.calls}: {text}")


def static_tokens(prepared: PreparedRecording, setup: ReplaySetup) -> int:
    """Return the tokens sent with every call, as the setup counts them."""
    counter = setup.management().counter or prepared.counter
    history = prepared.history.calls[-1].history
    return sum(counter.count(block.text or "") for block in history if block.content_type in STATIC_TYPES)


def inspect(prepared: PreparedRecording, setup: ReplaySetup) -> list[str]:
    if static_tokens(prepared, setup) > setup.limits.usable_tokens:
        pytest.skip("system prompt and tools alone do not fit this window")
    inspector = Inspector(setup)
    run = simulate(prepared, setup, watch=inspector)
    assert inspector.calls == run.measures.turns == len(prepared.history.calls)
    return inspector.faults


_cached: dict[str, PreparedRecording] = {}


def prepare(source: FileSource | JoinedSource) -> PreparedRecording:
    """Return the prepared recording; the last few are cached, so a session is read once for all its setups."""
    if source.name not in _cached:
        while len(_cached) > 3:
            _cached.pop(next(iter(_cached)))
        _cached[source.name] = PreparedRecording(source.load())
    return _cached[source.name]


@pytest.mark.parametrize(
    ("name", "limit", "chosen"),
    [
        pytest.param(*one, id=f"{one[0].split('/')[0]}-{one[0][-14:-6]}-{one[1]}-{next(iter(one[2].values()))}")
        for one in combinations()
    ],
)
def test_every_managed_call_keeps_the_rules(
    sessions_dir: Path, name: str, limit: int, chosen: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    for source in list(find_recordings([sessions_dir / name]))[:3]:
        assert inspect(prepare(source), ReplaySetup(limit, **chosen)) == []  # type: ignore[arg-type]
    assert not [record for record in caplog.records if "failed; the agent goes on" in record.message]


@pytest.mark.matrix
@pytest.mark.parametrize("limit", LONG)
@pytest.mark.parametrize("chosen", managements(), ids=lambda chosen: next(iter(chosen.values())))
def test_long_windows_with_joined_sessions(sessions_dir: Path, limit: int, chosen: dict[str, str]) -> None:
    names = ("claude_code/new_cli_8c-b7fcfcbb16-0.jsonl", SESSIONS[0], SESSIONS[3])
    parts = tuple(source for name in names for source in list(find_recordings([sessions_dir / name]))[:1])

    assert inspect(prepare(JoinedSource("joined", parts)), ReplaySetup(limit, **chosen)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [SESSIONS[0], SESSIONS[7]])
def test_the_baselines_send_whole_groups(sessions_dir: Path, name: str) -> None:
    prepared = prepare(next(iter(find_recordings([sessions_dir / name]))))
    from windowpane.evaluation.replay import keep_last, truncate

    for call in prepared.history.calls:
        for retained in (truncate(call.history, 6_000), keep_last(call.history, 7)):
            calls = {block.tool_call_id for block in retained if block.content_type == "tool_call"}
            results = {block.tool_call_id for block in retained if block.content_type == "tool_result"}
            assert results <= calls
