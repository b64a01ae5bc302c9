"""Branches: the window holds the live one only, whichever entry the agent returns to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, WordCounter, digest, read_rows

from windowpane.core.events import Event
from windowpane.sources.pi import PiReader
from windowpane.sources.playback import session_events
from windowpane.sources.player import PlaybackSettings
from windowpane.sources.reader import Reader

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
    """Of five tries of a prompt the last remains; the others are neither evictions of a policy nor regrets."""
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
    """Content that was never sent counts neither as added nor as used."""
    played = play(
        tmp_path,
        user("a", None, 10), reply("b", "a", 10), user("c", "b", 5_000), user("d", "b", 7), reply("e", "d", 18),
    )  # fmt: skip

    assert [data.added_tokens for data in played.of("pressure.measured") if data.phase == "final"][-1] <= 10
    assert played.used_tokens == 19


def test_a_branch_returns_when_the_agent_returns_to_it(tmp_path: Path) -> None:
    """The content of the other branch is removed, and that of the first one is in the window again."""
    played = play(
        tmp_path,
        user("a", None, 5, word="root"), reply("b", "a", 5, words="one"),
        user("c", "a", 5, word="other"), reply("d", "c", 10, words="two"),
        user("e", "b", 5, word="more"),
    )  # fmt: skip

    assert [data.tokens for data in played.of("history.rewound")] == [1, 6]
    assert [block.tokens for block in played.window.values() if block.content_type != "unattributed"] == [5, 1, 5]


def test_a_rewind_to_before_a_compaction_undoes_it(tmp_path: Path) -> None:
    """The summary is removed, and the content that it replaced returns up to that point."""
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
    """The agent sends it with the next call."""
    summary = entry("x", "b", "branch_summary", fromId="d", summary="tried and failed")
    played = play(
        tmp_path,
        user("a", None, 5), reply("b", "a", 5), user("c", "b", 9), reply("d", "c", 15),
        summary, user("e", "x", 2),
    )  # fmt: skip

    assert [block.content_type for block in played.window.values()][-2:] == ["summary", "user_message"]
    assert [data.tokens for data in played.of("history.rewound")] == [10]


def test_an_unknown_parent_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    """A file whose beginning was cut off is read as it stands."""
    played = play(tmp_path, user("a", None, 5), reply("b", "a", 5), user("c", "gone", 5))

    assert not played.of("history.rewound")
    assert [problem.field for problem in played.read.problems] == ["parentId"]


@pytest.mark.parametrize("kind", ["label", "thinking_level_change", "custom", "session_info"])
def test_entries_without_content_are_links_of_the_tree(tmp_path: Path, kind: str) -> None:
    """An entry after them follows the content before them."""
    played = play(tmp_path, user("a", None, 5), entry("x", "a", kind), reply("b", "x", 5), user("c", "x", 2))

    assert [data.tokens for data in played.of("history.rewound")] == [1]
    assert [data.last_kept for data in played.of("history.rewound")] == ["b0"]
