"""A fork starts with the content that it repeats, whose calls are counted in the session that it came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest
from reads import Json, digest
from test_branches import entry, reply, user

from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.json_lines import parse_rows
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow

PARENT = "019a0000-0000-7000-8000-000000000001"
FORK = "019a0000-0000-7000-8000-000000000002"


def codex(second: int, kind: str, **payload: object) -> Json:
    return {"timestamp": f"2026-01-01T00:00:{second:02}Z", "type": kind, "payload": payload}


def message(second: int, role: str, words: str) -> Json:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
    return codex(second, "response_item", type="message", role=role, content=[part])


def counted(second: int, tokens: int, total: int) -> Json:
    last = {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
    info = {"last_token_usage": last, "total_token_usage": {"input_tokens": total}}
    return codex(second, "event_msg", type="token_count", info=info)


def codex_parent() -> list[Json]:
    """Two calls, with a compaction between them."""
    return [
        codex(0, "session_meta", id=PARENT, base_instructions={"text": "be good"}),
        codex(0, "turn_context", model="gpt-5"),
        message(1, "user", "first question"), message(2, "assistant", "first answer"), counted(2, 1_000, 1_000),
        codex(3, "compacted", message="they asked once",
              replacement_history=[{"type": "message", "role": "user",
                                    "content": [{"type": "input_text", "text": "first question"}]}]),
        message(4, "user", "second question"), message(5, "assistant", "second answer"), counted(5, 2_000, 3_000),
    ]  # fmt: skip


def codex_fork(rows: Sequence[Json]) -> list[Json]:
    """The copied rows have the time of the fork; two calls follow."""
    copied = [row | {"timestamp": "2026-01-01T00:00:30Z"} for row in rows]
    meta = codex(30, "session_meta", id=FORK, forked_from_id=PARENT, base_instructions={"text": "be good"})
    own = [
        message(31, "user", "third question"),
        message(32, "assistant", "third answer"), counted(32, 2_100, 5_100),
        message(33, "user", "fourth question"),
        message(34, "assistant", "fourth answer"), counted(34, 2_200, 7_300),
    ]  # fmt: skip
    return [meta, *copied, *own]


def pi_parent() -> list[Json]:
    header = {"type": "session", "version": 3, "id": PARENT, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}
    compaction = entry("c", "d", "compaction", summary="they asked once", firstKeptEntryId="d", tokensBefore=9)
    return [
        header,
        user("a", None, 3), reply("b", "a", 1_000), user("x", "b", 5), user("d", "b", 4), compaction,
        reply("e", "c", 2_000),
    ]  # fmt: skip


def pi_fork(rows: Sequence[Json]) -> list[Json]:
    header = rows[0] | {"id": FORK, "parentSession": f"/home/somebody/sessions/{PARENT}.jsonl"}
    own = [user("f", "e", 3), reply("g", "f", 2_100), user("h", "g", 3), reply("i", "h", 2_200)]
    return [header, *rows[1:], *own]


def claude(number: int, kind: str, words: str, usage: int = 0) -> Json:
    document: Json = {"role": kind, "content": words}
    if kind == "assistant":
        document |= {"id": f"msg_01{number:022}", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
                 "content": [{"type": "text", "text": words}],
                 "usage": {"input_tokens": usage, "output_tokens": 5}}  # fmt: skip
    parent = f"u{number - 1}" if number else None
    return {"type": kind, "sessionId": PARENT, "uuid": f"u{number}", "parentUuid": parent,
            "timestamp": f"2026-01-01T00:00:{number:02}Z", "message": document}  # fmt: skip


def claude_parent() -> list[Json]:
    summary = claude(3, "user", "they asked once") | {"isCompactSummary": True}
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": PARENT, "uuid": "b",
                "parentUuid": None, "timestamp": "2026-01-01T00:00:02Z",
                "compactMetadata": {"trigger": "auto", "preTokens": 1_000}}  # fmt: skip
    return [
        claude(0, "user", "first question"), claude(1, "assistant", "first answer", 1_000), boundary, summary,
        claude(4, "user", "second question"), claude(5, "assistant", "second answer", 2_000),
    ]  # fmt: skip


def claude_fork(rows: Sequence[Json]) -> list[Json]:
    copied = [
        row | {"sessionId": FORK, "forkedFrom": {"sessionId": PARENT, "messageUuid": row["uuid"]}} for row in rows
    ]
    own = [
        claude(6, "user", "third question"), claude(7, "assistant", "third answer", 2_100),
        claude(8, "user", "fourth question"), claude(9, "assistant", "fourth answer", 2_200),
    ]  # fmt: skip
    return [*copied, *(row | {"sessionId": FORK} for row in own)]


CASES = {"codex": (codex_parent, codex_fork), "pi": (pi_parent, pi_fork),
         "claude": (claude_parent, claude_fork)}  # fmt: skip


def write(folder: Path, name: str, rows: Sequence[Json]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def imported(folder: Path, *paths: Path) -> tuple[dict[str, SessionRow], list[str]]:
    """The sessions of an import of *paths* one after the other, and the problems it reports."""
    with closing(SqliteStore(folder / "windowpane.db")) as store:
        problems = [
            problem.problem
            for path in paths
            for report in import_paths(
                [path], store, playback=playback_settings(digest), readers=all_readers(complete=True)
            )
            for problem in report.problems
        ]
        return {row.session_id: row for row in store.sessions(SessionFilter())}, problems


@pytest.mark.parametrize("agent", CASES)
@pytest.mark.parametrize("first", [0, 1], ids=["parent-first", "fork-first"])
def test_the_calls_that_a_fork_repeats_are_counted_in_the_session_it_came_from(
    tmp_path: Path, agent: str, first: int
) -> None:
    parent_rows, fork_rows = CASES[agent]
    paths = [
        write(tmp_path, PARENT, parent_rows()),
        write(tmp_path, FORK, fork_rows(parent_rows())),
    ]

    sessions, problems = imported(tmp_path, *(paths if not first else reversed(paths)))

    parent, fork = sessions[PARENT], sessions[FORK]
    assert (parent.turns, parent.input_tokens) == (2, 3_000)
    assert (fork.turns, fork.input_tokens) == (2, 4_300)
    assert (parent.compressions, fork.compressions) == (1, 0)
    assert problems == []


@pytest.mark.parametrize("agent", CASES)
def test_the_window_of_a_fork_starts_with_what_it_inherits(tmp_path: Path, agent: str) -> None:
    parent_rows, fork_rows = CASES[agent]
    write(tmp_path, PARENT, parent_rows())
    path = write(tmp_path, FORK, fork_rows(parent_rows()))
    reader = {"codex": CodexReader, "pi": PiReader, "claude": ClaudeCodeReader}[agent](complete=True)
    records = list(reader.read(path, stats=FileStats(), problems=[]))
    calls = [number for number, record in enumerate(records) if isinstance(record, ModelCalled)]
    texts = [record.text for record in records[: calls[0]] if isinstance(record, ContentAdded)]

    if agent == "codex":
        expected = ["be good", "first question", "they asked once", "second question", "second answer"]
        assert texts == [*expected, "third question", "third answer"]
    elif agent == "claude":
        assert texts == ["they asked once", "second question", "second answer", "third question", "third answer"]
    else:
        words = [(text or "").split()[0] for text in texts]
        assert words == ["word0", "they", "done", "word0", "done"]
        assert len((texts[0] or "").split()) == 4


@pytest.mark.parametrize("agent", CASES)
def test_a_fork_whose_origin_is_not_there_counts_what_it_repeats(tmp_path: Path, agent: str) -> None:
    parent_rows, fork_rows = CASES[agent]

    sessions, problems = imported(tmp_path, write(tmp_path / "alone", FORK, fork_rows(parent_rows())))

    assert sessions[FORK].turns == 4
    reported = [problem for problem in problems if "fork" in problem]
    assert len(reported) == 1
    assert reported[0].endswith("the calls it repeats count here too")


def test_a_rollout_of_another_day_is_found(tmp_path: Path) -> None:
    write(tmp_path / "sessions" / "2025" / "12" / "31", f"rollout-2025-12-31T23-59-59-{PARENT}", codex_parent())
    folder = tmp_path / "sessions" / "2026" / "01" / "01"
    path = write(folder, f"rollout-2026-01-01T00-00-30-{FORK}", codex_fork(codex_parent()))

    sessions, _ = imported(tmp_path, path)

    assert sessions[FORK].turns == 2


@pytest.mark.parametrize("cut", range(0, 16, 3))
def test_a_fork_that_grows_gives_the_records_of_the_whole_file(tmp_path: Path, cut: int) -> None:
    write(tmp_path, PARENT, codex_parent())
    path = write(tmp_path, FORK, codex_fork(codex_parent()))
    whole = list(CodexReader(complete=True).read(path, stats=FileStats(), problems=[]))
    lines = path.read_bytes().splitlines(keepends=True)
    followed = CodexReader(complete=False).transcript(path, stats=FileStats(), problems=[])
    records = []
    for start, part in ((0, lines[:cut]), (cut, lines[cut:])):
        records += followed.feed(parse_rows(b"".join(part), followed.log, after_line=start))
        records += followed.pause()

    assert records == whole


def test_forks_that_name_each_other_count_by_themselves(tmp_path: Path) -> None:
    rows = codex_parent()
    rows[0]["payload"]["forked_from_id"] = FORK
    paths = [write(tmp_path, PARENT, rows), write(tmp_path, FORK, codex_fork(rows))]

    for order in permutations(paths):
        sessions, _ = imported(tmp_path, *order)
        assert (sessions[PARENT].turns, sessions[FORK].turns) == (2, 4)


@pytest.mark.parametrize(
    "name", ["../secret", "*", "a\0b", "/dev/zero", "", "x" * 5_000, "\ud800.jsonl", "é" * 200]
)
def test_only_a_recording_beside_it_is_read_for_a_fork(tmp_path: Path, name: str) -> None:
    for rows in (
        [codex(0, "session_meta", id=FORK, forked_from_id=name), message(1, "user", "hi")],
        [pi_parent()[0] | {"id": FORK, "parentSession": name}, user("a", None, 2)],
    ):
        problems: list[Problem] = []
        path = write(tmp_path / "sessions", FORK, rows)
        reader = next(one for one in (CodexReader(complete=True), PiReader(complete=True))
                      if one.recognizes(path, path.read_bytes()))  # fmt: skip
        assert list(reader.read(path, stats=FileStats(), problems=problems))


def codex_subagent(rows: Sequence[Json], *, start: int) -> list[Json]:
    """The rollout of a sub-agent: its header, a copy of its parent's rows, and from row *start* on its own."""
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    header = codex(30, "session_meta", id=FORK, source=spawned, subagent_history_start_ordinal=start)
    own = [message(31, "user", "the task"), message(32, "assistant", "done"), counted(32, 3_000, 6_000)]
    return [row | {"ordinal": number} for number, row in enumerate([header, *rows, *own])]


@pytest.mark.parametrize("first", [0, 1], ids=["parent-first", "child-first"])
def test_the_calls_of_the_history_that_a_subagent_inherits_are_its_parents(tmp_path: Path, first: int) -> None:
    """Codex copies the parent's rows, with their counts; the header states the first row of the sub-agent's own.

    The shape is that of rollouts of Codex 0.146 and later.
    """
    rows = codex_parent()
    child = codex_subagent(rows, start=len(rows) + 1)
    paths = [write(tmp_path, PARENT, rows), write(tmp_path, FORK, child)]
    sessions, problems = imported(tmp_path, paths[first], paths[1 - first])

    assert (sessions[PARENT].turns, sessions[FORK].turns) == (2, 1)
    assert (sessions[PARENT].input_tokens, sessions[FORK].input_tokens) == (3_000, 3_000)
    assert sessions[FORK].parent_session_id == PARENT
    assert problems == []


def test_a_subagent_whose_history_is_not_in_its_rollout_is_not_reported_as_a_copy(tmp_path: Path) -> None:
    write(tmp_path, PARENT, codex_parent())
    sessions, problems = imported(tmp_path, write(tmp_path, FORK, codex_subagent([], start=1)))

    assert (sessions[FORK].turns, problems) == (1, [])


def test_the_copied_calls_count_where_the_parent_is_not_there(tmp_path: Path) -> None:
    rows = codex_parent()
    sessions, problems = imported(tmp_path, write(tmp_path, FORK, codex_subagent(rows, start=len(rows) + 1)))

    assert sessions[FORK].turns == 3
    assert any("is not there: the calls it repeats count here too" in problem for problem in problems)
