"""Branches: the window holds the live one only, whichever entry the agent returns to."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, WordCounter, digest, read_rows

from windowpane.core.events import Event
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import Reader

PLAYBACK = PlaybackSettings(digest=digest, counter_for=lambda model: WordCounter())
HEADER: Json = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/work"}


def entry(name: str, parent: str | None, kind: str = "message", **more: Any) -> Json:
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z", **more}


def user(name: str, parent: str | None, words: int, word: str = "word") -> Json:
    content = [{"type": "text", "text": " ".join(f"{word}{number}" for number in range(words))}]
    return entry(name, parent, message={"role": "user", "content": content})


def reply(name: str, parent: str | None, total: int, words: str = "done") -> Json:
    usage = {"input": total, "output": 1, "cacheRead": 0, "cacheWrite": 0}
    message = {"role": "assistant", "content": [{"type": "text", "text": words}], "model": "m", "usage": usage}
    return entry(name, parent, message=message)


class Played:
    """The events of a recording's first session, and the window at its end."""

    def __init__(self, reader: Reader, folder: Path, *rows: Json) -> None:
        self.read: Read = read_rows(reader, folder, rows)
        self.events: list[Event] = list(
            session_events(self.read.records, key="s", source=reader.format, playback=PLAYBACK)
        )
        self.window: dict[str, Any] = {}
        for event in self.events:
            data: Any = event.data
            if event.type == "block.added":
                self.window.pop(data.block.replaces, None)
                self.window[data.block.id] = data.block
            for gone in getattr(data, "blocks", ()) if event.type == "blocks.evicted" else ():
                self.window.pop(gone.block_id, None)
            for gone_id in data.removed if event.type == "content.compressed" else ():
                self.window.pop(gone_id, None)

    def of(self, name: str) -> list[Any]:
        return [event.data for event in self.events if event.type == name]

    @property
    def texts(self) -> list[str]:
        """The first word of each text in the window."""
        return [block.text.split()[0] for block in self.window.values() if block.text]

    @property
    def used_tokens(self) -> int:
        return int(self.of("pressure.measured")[-1].used_tokens)


def play(folder: Path, *rows: Json) -> Played:
    return Played(PiReader(complete=True), folder, HEADER, *rows)


def test_abandoned_branches_leave_the_window(tmp_path: Path) -> None:
    rows = [user("a", None, 100), reply("b", "a", 100, words="plan")]
    for number in range(4):
        rows += [
            user(f"u{number}", "b", 22_001, word=f"try{number}-"),
            reply(f"r{number}", f"u{number}", 22_102),
        ]
    played = play(tmp_path, *rows, user("last", "b", 50, word="again"), reply("end", "last", 151))

    assert played.texts == ["word0", "plan", "again0", "done"]
    assert played.used_tokens == 152
    assert [(data.turns, data.blocks, data.tokens) for data in played.of("history.rewound")] == [
        (1, 2, 22_002)
    ] * 4
    assert {data.policy for data in played.of("blocks.evicted")} == {"rewound"}
    assert not played.of("content.regretted")
    assert not played.of("velocity.spiked")[1:]
    assert not played.of("change.unidentified")


def test_a_prompt_abandoned_before_its_call_is_not_growth(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        user("a", None, 10), reply("b", "a", 10), user("c", "b", 5_000), user("d", "b", 7), reply("e", "d", 18),
    )  # fmt: skip

    assert [data.added_tokens for data in played.of("pressure.measured") if data.phase == "final"][-1] <= 10
    assert played.used_tokens == 19


def test_a_branch_returns_when_the_agent_returns_to_it(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        user("a", None, 5, word="root"), reply("b", "a", 5, words="one"),
        user("c", "a", 5, word="other"), reply("d", "c", 10, words="two"),
        user("e", "b", 5, word="more"),
    )  # fmt: skip

    assert [data.tokens for data in played.of("history.rewound")] == [1, 6]
    assert [block.tokens for block in played.window.values() if block.content_type != "unattributed"] == [5, 1, 5]


def test_a_rewind_to_before_a_compaction_undoes_it(tmp_path: Path) -> None:
    compacted = entry("x", "d", "compaction", summary="so far", firstKeptEntryId="c", tokensBefore=20)
    rows = [
        user("a", None, 5, word="first"), reply("b", "a", 5, words="one"),
        user("c", "b", 6, word="second"), reply("d", "c", 12, words="two"), compacted,
        user("e", "x", 3, word="third"),
    ]  # fmt: skip
    before = play(tmp_path, *rows)
    after = play(tmp_path, *rows, user("f", "b", 4, word="fourth"))

    assert before.texts == ["second0", "two", "so", "third0"]
    assert [block.tokens for block in after.window.values() if block.content_type != "unattributed"] == [5, 1, 4]
    assert not after.of("content.regretted")


def test_a_summary_of_an_abandoned_branch_is_content(tmp_path: Path) -> None:
    summary = entry("x", "b", "branch_summary", fromId="d", summary="tried and failed")
    played = play(
        tmp_path,
        user("a", None, 5), reply("b", "a", 5), user("c", "b", 9), reply("d", "c", 15),
        summary, user("e", "x", 2),
    )  # fmt: skip

    assert [block.content_type for block in played.window.values()][-2:] == ["summary", "user_message"]
    assert [data.tokens for data in played.of("history.rewound")] == [10]


def test_an_unknown_parent_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    played = play(tmp_path, user("a", None, 5), reply("b", "a", 5), user("c", "gone", 5))

    assert not played.of("history.rewound")
    assert [problem.field for problem in played.read.problems] == ["parentId"]


@pytest.mark.parametrize("kind", ["label", "thinking_level_change", "custom", "session_info"])
def test_entries_without_content_are_links_of_the_tree(tmp_path: Path, kind: str) -> None:
    played = play(tmp_path, user("a", None, 5), entry("x", "a", kind), reply("b", "x", 5), user("c", "x", 2))

    assert [data.tokens for data in played.of("history.rewound")] == [1]
    assert [data.last_kept for data in played.of("history.rewound")] == ["b0"]


def random_tree(chance: random.Random) -> list[Json]:
    """Entries whose parent is mostly the entry above, with compactions that keep what the last one left."""
    entries: list[Json] = []
    by_id: dict[str | None, Json] = {}
    for number in range(40):
        parent = entries[-1]["id"] if entries and chance.random() < 0.88 else chance.choice([None, *by_id])
        kind = chance.choice(["user", "assistant"] * 6 + ["label", "compaction", "branch_summary"])
        name, size = f"e{number}", number + 1
        if kind == "user":
            entries.append(user(name, parent, size))
        elif kind == "assistant":
            entries.append(reply(name, parent, 5, words=" ".join(["w"] * size)))
        else:
            above = path_to(by_id, parent)
            first = max((n for n, one in enumerate(above) if one["type"] == "compaction"), default=-1)
            kept = chance.choice([one["id"] for one in above[first + 1 :]] or ["none"])
            summary = " ".join(["s"] * (100 + number))
            entries.append(entry(name, parent, kind, summary=summary, firstKeptEntryId=kept))
        by_id[name] = entries[-1]
    return entries


def path_to(entries: dict[str | None, Json], name: str | None) -> list[Json]:
    path: list[Json] = []
    while name is not None:
        path.insert(0, entries[name])
        name = entries[name]["parentId"]
    return path


def sent_after(entries: list[Json]) -> list[int]:
    """Sizes of the content that pi sends after the last entry, as its own code makes it from the tree."""

    def size(one: Json) -> list[int]:
        if one["type"] == "message":
            return [len(one["message"]["content"][0]["text"].split())]
        return [len(one["summary"].split())] if one["type"] == "branch_summary" else []

    path = path_to({one["id"]: one for one in entries}, entries[-1]["id"])
    compacted = [number for number, one in enumerate(path) if one["type"] == "compaction"]
    if not compacted:
        return [tokens for one in path for tokens in size(one)]
    last = compacted[-1]
    names = [one["id"] for one in path]
    kept_from = path[last]["firstKeptEntryId"]
    kept = path[names.index(kept_from) : last] if kept_from in names else []
    summary = len(path[last]["summary"].split())
    return [summary, *(tokens for one in (*kept, *path[last + 1 :]) for tokens in size(one))]


@pytest.mark.parametrize("seed", range(25))
def test_the_window_of_any_tree_is_what_the_agent_sends(tmp_path: Path, seed: int) -> None:
    entries = random_tree(random.Random(seed))  # test data
    played = play(tmp_path, *entries)
    window = [block.tokens for block in played.window.values() if block.content_type != "unattributed"]

    assert sorted(window) == sorted(sent_after(entries))


# -- Claude Code ----------------------------------------------------------------------------------------------


def row(kind: str, name: str, parent: str | None, content: Any, **more: Any) -> Json:
    message: Json = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m-{name}", "model": "claude-x", "usage": {"input_tokens": 10, "output_tokens": 1}}
    return {
        "type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message,
        "timestamp": "2026-01-01T00:00:00Z",
    } | more  # fmt: skip


def answer(name: str, parent: str, text: str) -> Json:
    return row("assistant", name, parent, [{"type": "text", "text": text}])


def claude(folder: Path, *rows: Json) -> Played:
    return Played(ClaudeCodeReader(complete=True), folder, *rows)


def test_a_prompt_beside_an_earlier_one_abandons_what_followed_that(tmp_path: Path) -> None:
    duration = {"type": "system", "subtype": "turn_duration", "uuid": "x", "parentUuid": "r1", "sessionId": "s"}
    rows = (
        row("user", "u1", None, "first"), answer("r1", "u1", "one"), duration,
        row("user", "u2", "x", "second"), answer("r2", "u2", "two"),
        row("user", "u3", "r2", "third"), answer("r3", "u3", "three"),
        row("user", "u4", "r1", "again"), answer("r4", "u4", "four"),
    )  # fmt: skip
    played = claude(tmp_path, *rows)

    assert played.texts == ["first", "one", "again", "four"]
    assert [(data.turns, data.blocks) for data in played.of("history.rewound")] == [(2, 4)]


def test_parallel_results_and_commands_are_not_rewinds(tmp_path: Path) -> None:
    def tool(name: str, parent: str) -> Json:
        block = {"type": "tool_use", "id": f"t-{name}", "name": "Read", "input": {}}
        written = row("assistant", name, parent, [block])
        written["message"]["id"] = "m1"
        return written

    def result(name: str, call: str) -> Json:
        content = [{"type": "tool_result", "tool_use_id": f"t-{call}", "content": "text"}]
        return row("user", name, call, content)

    command = "<command-name>/exit</command-name>"
    played = claude(
        tmp_path,
        row("user", "u1", None, "first"), tool("a1", "u1"), tool("a2", "a1"), tool("a3", "a2"),
        result("o1", "a1"), result("o3", "a3"), result("o2", "a2"), answer("r1", "o2", "one"),
        row("user", "c0", "r1", "caveat", isMeta=True), row("user", "c1", "c0", command),
        row("user", "c2", "c1", "<local-command-stdout>bye</local-command-stdout>"),
        row("user", "u2", "c0", "second"), row("user", "u3", "elsewhere", "third"),
    )  # fmt: skip

    assert not played.of("history.rewound")


def test_a_rewind_of_the_first_prompt_abandons_the_whole_conversation(tmp_path: Path) -> None:
    hook = {"type": "progress", "uuid": "h", "parentUuid": None, "sessionId": "s"}
    played = claude(
        tmp_path,
        hook, row("user", "u1", "h", "first"), answer("r1", "u1", "one"),
        row("user", "u2", "h", "again"), answer("r2", "u2", "two"),
    )  # fmt: skip

    assert played.texts == ["again", "two"]
    assert [data.last_kept for data in played.of("history.rewound")] == [None]


def test_a_rewind_past_a_compaction_undoes_it(tmp_path: Path) -> None:
    boundary = {
        "type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s",
        "compactMetadata": {"trigger": "auto", "preTokens": 100},
    }  # fmt: skip
    rows = (
        row("user", "u1", None, "first"), answer("r1", "u1", "one"),
        row("user", "u2", "r1", "second"), answer("r2", "u2", "two"), boundary,
        row("user", "k", "b", "summary", isCompactSummary=True), row("user", "u3", "k", "third"),
        answer("r3", "u3", "three"),
    )  # fmt: skip

    assert not claude(tmp_path, *rows).of("history.rewound")
    rewound = claude(tmp_path, *rows, row("user", "u4", "r1", "other"), answer("r4", "u4", "four"))
    types = [block.content_type for block in rewound.window.values() if block.content_type != "unattributed"]
    assert types == ["user_message", "assistant_response"] * 2
    assert not rewound.of("compaction.measured")[1:]


# -- Codex ----------------------------------------------------------------------------------------------------


def item(kind: str, **payload: Any) -> Json:
    return {"type": kind, "timestamp": "2026-01-01T00:00:00Z", "payload": payload}


def codex_message(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def counted(tokens: int) -> Json:
    last = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return item("event_msg", type="token_count", info={"last_token_usage": last, "total_token_usage": last})


@pytest.mark.parametrize(
    ("turns", "window"),
    [
        (1, ["base", "rules", "one", "done", "two", "done", "new"]),
        (2, ["base", "rules", "one", "done", "new"]),
        (9, ["base", "rules", "new"]),
    ],
)
def test_a_rolled_back_thread_ends_before_its_last_user_messages(
    tmp_path: Path, turns: int, window: list[str]
) -> None:
    context = codex_message("user", "<environment_context>moved</environment_context>")
    played = Played(
        CodexReader(complete=True), tmp_path,
        item("session_meta", id="s", base_instructions={"text": "base"}), item("turn_context", model="gpt-5"),
        codex_message("developer", "rules"),
        codex_message("user", "one"), codex_message("assistant", "done"), counted(10),
        codex_message("user", "two"), codex_message("assistant", "done"), counted(20),
        context, codex_message("user", "two"), codex_message("assistant", "done"), counted(30),
        item("event_msg", type="thread_rolled_back", num_turns=turns),
        codex_message("user", "new"),
    )  # fmt: skip

    assert played.texts == window
    assert [data.turns for data in played.of("history.rewound")] == [min(turns, 3)]


@pytest.mark.parametrize(
    ("reader", "rows", "field"),
    [
        (CodexReader(complete=True), [item("session_meta", id="s", forked_from_id="r")], "forked_from_id"),
        (PiReader(complete=True), [HEADER | {"parentSession": "/old.jsonl"}], "parentSession"),
        (PiReader(complete=True), [HEADER | {"branchedFrom": "/old.jsonl"}], "parentSession"),
    ],
)
def test_a_copy_of_another_session_is_reported(
    tmp_path: Path, reader: Reader, rows: list[Json], field: str
) -> None:
    assert [problem.field for problem in read_rows(reader, tmp_path, rows).problems] == [field]
