"""Recorded sessions played through a manager in a smaller window."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import pytest
from tests.sampling import sampled

from windowpane.core.codec import encode
from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    Event,
    OverflowDetected,
    PressureMeasured,
    TurnEnded,
)
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.manager.plans.policies import POLICIES
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback import session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import Cleared, ContentAdded, ModelCalled, Record, SessionOpened
from windowpane.testing import CharacterCounter, MemoryArchive

RECORDED = (
    "pi/large-session.jsonl",
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
    "swe_agent/marshmallow_fc_replace.traj",
    "tau_bench/gpt-4o-airline_trial0_first10.json",
)


def digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def rerun(limit: int, *, policy: str = "hybrid") -> RerunOptions:
    return RerunOptions("s", limit, CharacterCounter(), digest, policy=POLICIES[policy], archive=MemoryArchive())


def played(records: Iterable[Record], *, limit: int, key: str = "k", policy: str = "hybrid") -> list[Event]:
    return list(managed_events(records, key=key, options=rerun(limit, policy=policy)))


def loop(turns: int) -> list[Record]:
    records: list[Record] = [SessionOpened("k", "agent", "model", at=1_000.0)]
    records.append(ContentAdded("user_message", "Do it", at=1_001.0))
    for n in range(turns):
        at = 1_010.0 + n
        records.append(ContentAdded("tool_call", "read {}", f"c{n}", "read", at=at))
        records.append(ModelCalled(None, at=at))
        records.append(ContentAdded("tool_result", f"part {n}: " + "word " * 600, f"c{n}", "read", at=at))
    return records


def recorded(folder: Path, name: str) -> list[Record]:
    path = folder / name
    reader = next(reader for reader in all_readers() if reader.recognizes(path, path.read_bytes()[:65_536]))
    return list(reader.read(path, stats=FileStats(), problems=[]))


def test_a_recorded_loop_is_managed_in_a_small_window() -> None:
    events = played(loop(40), limit=16_384)
    kinds = [type(event.data) for event in events]

    assert kinds.count(TurnEnded) == 40
    assert BlocksEvicted in kinds
    assert all(event.at is not None and 1_000 <= event.at <= 1_060 for event in events)
    assert {event.context.source for event in events} == {"demo"}


def test_the_recorded_usage_is_not_used() -> None:
    from windowpane.core.events import Usage

    records = [
        ModelCalled(Usage(90_000), at=record.at) if isinstance(record, ModelCalled) else record
        for record in loop(10)
    ]
    events = played(records, limit=16_384)

    measured = [event.data for event in events if isinstance(event.data, PressureMeasured)]
    assert all(data.count_source != "usage" for data in measured)
    assert all(data.used_by_component["unattributed"] == 0 for data in measured)


def test_a_rerun_always_gives_the_same_events() -> None:
    first = [encode(event) for event in played(loop(30), limit=8_192)]
    second = [encode(event) for event in played(loop(30), limit=8_192)]

    assert first == second


def test_a_cleared_session_continues_in_a_new_window() -> None:
    records = [*loop(3), Cleared(at=2_000.0), *loop(2)[1:]]
    events = played(records, limit=16_384)

    assert events[-1].context.window_id == 2


def test_calls_without_ids_are_paired_in_order() -> None:
    records: list[Record] = [SessionOpened("k", "agent"), ContentAdded("user_message", "go")]
    for n in range(4):
        records += [
            ContentAdded("tool_call", f"bash {n}", None, "bash"),
            ModelCalled(None),
            ContentAdded("tool_result", f"output {n}", None, None),
        ]
    events = played(records, limit=16_384)
    blocks = [event.data.block for event in events if event.type == "block.added"]  # type: ignore[union-attr]
    groups: dict[str, list[str]] = {}
    for block in blocks:
        groups.setdefault(block.group, []).append(block.content_type)

    assert sum(kinds == ["tool_call", "tool_result"] for kinds in groups.values()) == 4


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("limit", sampled([8_192, 32_768], 1))
def test_recorded_sessions_fit_after_management(sessions_dir: Path, name: str, limit: int) -> None:
    records = recorded(sessions_dir, name)
    for key in session_keys(records)[:3]:
        events = played(records, limit=limit, key=key)
        sent: dict[int, int] = {}
        failed = {
            event.context.turn
            for event in events
            if isinstance(event.data, OverflowDetected) and event.data.outcome == "failed"
        }
        for event in events:
            data = event.data
            if isinstance(data, PressureMeasured) and data.phase in ("before", "after"):
                sent[event.context.turn] = data.used_tokens
            if isinstance(data, BlocksEvicted):
                assert data.tokens_freed > 0
            if isinstance(data, ContentCompressed) and data.outcome == "accepted":
                assert data.tokens_after < data.tokens_before

        assert all(tokens <= limit for turn, tokens in sent.items() if turn not in failed)
        assert not failed


@pytest.mark.parametrize("policy", sampled(sorted(POLICIES), 2))
def test_every_policy_manages_a_long_recorded_session(sessions_dir: Path, policy: str) -> None:
    records = recorded(sessions_dir, RECORDED[0])
    events = played(records, limit=16_384, key=session_keys(records)[0], policy=policy)

    assert any(isinstance(event.data, BlocksEvicted) for event in events)
    assert not any(
        isinstance(event.data, OverflowDetected) and event.data.outcome == "failed" for event in events
    )
