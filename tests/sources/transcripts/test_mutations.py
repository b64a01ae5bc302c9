"""Recordings with random damage or of a later release: every reader continues, and each loss is reported."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reads import digest

from windowpane.core.codec import encode
from windowpane.core.events import BlockAdded, ContentCompressed, TurnEnded, WindowRolled
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import MAXIMUM_PROBLEMS, FileStats, Problem, Reader
from windowpane.testing import CharacterCounter

FILES = {
    "claude_code": (
        "compact_small_a6-e4c2a0fbd1-0.jsonl",
        "daaain_edge_cases.jsonl",
        "malformed_two_objects_one_line_37-995ebed6e4-2.jsonl",
        "new_cli_8c-b7fcfcbb16-0.jsonl",
        "micro_ids_present_d5-99f72ee73a-0.jsonl",
    ),
    "codex": ("rollout_small_a3-92ff332928-0.jsonl", "rollout_compact2_spark_00-34f597b72d-1.jsonl"),
    "pi": ("large-session.jsonl",),
}
EXCERPT_LINES = 40
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 2**70, 1.5, float("nan"), "", [], {}, [1], {"type": "text"}, "2026-13-45", 1e308, ["x"],
)  # fmt: skip
Json = dict[str, Any]


PLAYBACK = PlaybackSettings(digest=digest, counter_for=lambda model: CharacterCounter())


def reader_of(source: str, *, complete: bool) -> Reader:
    return next(reader for reader in all_readers(complete=complete) if reader.format == source)


def disturb(value: Any, random: Random) -> None:
    """Replace or drop one value somewhere inside."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(value[key], dict | list) and random.random() < 0.65:
            value = value[key]
            continue
        if random.random() < 0.75:
            value[key] = deepcopy(random.choice(ODD_VALUES))  # later disturbances write into it
        else:
            del value[key]
        return


def damaged_line(line: bytes, what: str, random: Random) -> bytes:
    if what == "cut":
        return line[: random.randrange(len(line) + 1)]
    if what == "flip" and line:
        changed = bytearray(line)
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        return bytes(changed)
    if what != "value":
        return line
    try:
        row = json.loads(line)
    except ValueError:
        return line
    if isinstance(row, dict):
        for _ in range(random.randint(1, 5)):
            disturb(row, random)
    return json.dumps(row).encode()


def damage(lines: list[bytes], random: Random) -> bytes:
    """Lines deleted, doubled, cut, flipped, shuffled, or with values of another kind; or the file cut off."""
    out = []
    for line in lines:
        what = random.choice(("keep", "keep", "keep", "delete", "double", "cut", "flip", "value", "value"))
        out += [damaged_line(line, what, random)] * {"delete": 0, "double": 2}.get(what, 1)
    if random.random() < 0.2:
        random.shuffle(out)
    content = b"\n".join(out)
    return content[: random.randrange(len(content) + 1)] if random.random() < 0.3 else content


def undecodable(content: bytes) -> set[int]:
    """Lines that the standard library cannot take for one JSON text."""
    bad = set()
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            json.loads(line.decode())
        except ValueError:
            if line.strip(b" \t\r\n"):
                bad.add(number)
    return bad


@pytest.mark.parametrize("source", FILES)
@given(choice=st.integers(0, 2**32))
def test_damaged_recordings_are_read(tmp_path: Path, sessions_dir: Path, source: str, choice: int) -> None:
    random = Random(choice)
    lines = (sessions_dir / source / random.choice(FILES[source])).read_bytes().split(b"\n")
    start = random.choice((0, random.randrange(len(lines))))
    content = damage(lines[start : start + EXCERPT_LINES], random)
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(content)

    for complete in (True, False):
        stats = FileStats()
        problems: list[Problem] = []
        records = list(reader_of(source, complete=complete).read(path, stats=stats, problems=problems))
        events = [
            event
            for key in session_keys(records)
            for event in session_events(records, key=key, source=source, playback=PLAYBACK)
        ]
        for event in events:
            encode(event)

        bad = undecodable(content)
        assert bad <= {problem.line for problem in problems}
        assert len(problems) <= MAXIMUM_PROBLEMS
        lost = any("not JSON" in problem.problem or "binary" in problem.problem for problem in problems)
        if complete and lost and events:
            assert any(event.type == "session.incomplete" for event in events)


NEWEST = Path(__file__).with_name("data") / "newest"
LATER = {
    "claude_code": "claude_code_2.1.332/3e1f7c0a-5b1d-4c58-9a53-1d2b7c9e4f60.jsonl",
    "codex": "codex_0.169.0/rollout-2026-11-26T10-35-31-01a2176c-bba6-7bd1-aa49-e04873e48aba.jsonl",
    "gemini_cli": "gemini_cli_0.61.0/chats/session-2026-11-26T10-46-9bbedb71.jsonl",
    "qwen_code": "qwen_code_0.24.4/-home-ann-project/chats/7207bd10-32ec-4856-bd17-2abbd95a92ad.jsonl",
}
CONTENT = frozenset({"arguments", "args", "input", "tools"})
"""Fields whose content counts as the agent's own."""
CONVERSATION = ("user_message", "assistant_response", "tool_call", "tool_result")
PARENTS = {"uuid": "parentUuid", "id": "parentId"}


def with_fields(value: Any, random: Random) -> Any:
    """Add fields of a later release."""
    if isinstance(value, list):
        return [with_fields(item, random) for item in value]
    if not isinstance(value, dict):
        return value
    added = {"laterField": random.choice((None, 1, "later", {"usage": {"input_tokens": 5}}, [{"type": "later"}]))}
    kept = {name: item if name in CONTENT else with_fields(item, random) for name, item in value.items()}
    return kept | (added if random.random() < 0.3 else {})


def with_rows(rows: list[Json], random: Random) -> list[Json]:
    """Add rows of a later release, which following rows have for their parent."""
    out: list[Json] = []
    renamed: dict[str, str] = {}
    for position, row in enumerate(rows):
        out.append(row)
        for parent in PARENTS.values():
            if row.get(parent) in renamed:
                row[parent] = renamed[row[parent]]
        if position < 3 or random.random() < 0.7:
            continue
        later = {name: row[name] for name in ("sessionId", "timestamp", "version", "cwd") if name in row}
        later |= {"type": "later-row", "payload": {"type": "later"}, "usage": {"input_tokens": 5}}
        for name, parent in PARENTS.items():
            if name in row and parent in row:
                later |= {name: f"later-{position}", parent: row[name]}
                renamed[row[name]] = later[name]
        out.append(later)
    return out


def counts_of(path: Path, source: str) -> tuple[list[tuple[int, ...]], list[Problem]]:
    """Return calls, tokens, compactions, and messages of each session, and the problems."""
    stats, problems = FileStats(), list[Problem]()
    records = list(reader_of(source, complete=True).read(path, stats=stats, problems=problems))
    counts = []
    for key in session_keys(records):
        payloads = [event.data for event in session_events(records, key=key, source=source, playback=PLAYBACK)]
        usages = [data.usage for data in payloads if isinstance(data, TurnEnded) and data.usage is not None]
        counts.append((
            sum(isinstance(data, TurnEnded) for data in payloads),
            sum(usage.input_total for usage in usages),
            sum(usage.cache_read_tokens for usage in usages),
            sum(usage.output_tokens for usage in usages),
            sum(isinstance(data, ContentCompressed) for data in payloads),
            sum(isinstance(data, WindowRolled) for data in payloads),
            sum(isinstance(data, BlockAdded) and data.block.content_type in CONVERSATION for data in payloads),
        ))  # fmt: skip
    return counts, problems


@pytest.mark.parametrize("source", LATER)
@settings(max_examples=5)
@given(choice=st.integers(0, 2**32))
def test_rows_and_fields_of_a_later_release_change_no_count(tmp_path: Path, source: str, choice: int) -> None:
    random = Random(choice)
    recorded = NEWEST / LATER[source]
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    path = tmp_path / recorded.name
    later = with_rows([with_fields(row, random) for row in rows], random)
    path.write_text("\n".join(map(json.dumps, later)))

    expected, _ = counts_of(recorded, source)
    counts, problems = counts_of(path, source)

    assert counts == expected
    if any(row.get("type") == "later-row" for row in later):
        assert any("later-row" in problem.problem for problem in problems)
