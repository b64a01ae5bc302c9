"""Archive and checkpoints on disk."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.agents import managers as managing
from windowpane.agents.managers import ContextWindowManager, default_dependencies
from windowpane.core.events import CheckpointRejected, CheckpointSaved
from windowpane.core.redaction import redact
from windowpane.effects.background_writer import writer_named
from windowpane.exceptions import CorruptCheckpointError, StaleCheckpointError
from windowpane.manager.files.archive import FileArchive
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.plans.checkpoint import bootstrap, checksum, decode, encode
from windowpane.testing import ManualClock, RecordingSink, chat_reply, in_memory_dependencies


def plain(text: str) -> str:
    return text


def document(version: int, *, window: int = 1, goal: str = "Migrate") -> dict[str, Any]:
    made: dict[str, Any] = {
        "schema": 1,
        "session_id": "s1",
        "agent": "a",
        "model": "m",
        "window_id": window,
        "version": version,
        "turn": 3,
        "goal": goal,
        "constraints_given": ["never touch config.ts"],
        "used_tokens": 10,
        "limit_tokens": 100,
        "sections": {"state": ["next: auth.ts"], "decisions": ["use fetch"]},
        "handles": [],
    }
    made["checksum"] = checksum(made)
    return made


def test_an_original_is_returned_unchanged(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path, redact=plain, clock=ManualClock())
    text = "first\r\nsecond\n\ttab ☃ \ud800"
    archive.put("session", "wp:b1", text)

    assert archive.get("session", "wp:b1") == text
    assert archive.get("session", "wp:b2") is None
    assert archive.get("other", "wp:b1") is None


def test_originals_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """Files have mode 0600, folders 0700."""
    archive = FileArchive(tmp_path / "archive", redact=plain, clock=ManualClock())
    archive.put("session", "wp:b1", "text")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]

    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700


def test_secrets_are_redacted_before_they_are_kept(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path, redact=lambda text: redact(text).text, clock=ManualClock())
    archive.put("s", "h", "token ghp_" + "a1B2" * 9 + " end")
    kept = archive.get("s", "h")

    assert kept is not None
    assert "ghp_" not in kept
    assert "[redacted:" in kept


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a/b", ".", "x" * 500, "\x00"])
def test_a_name_from_outside_stays_within_the_folder(tmp_path: Path, name: str) -> None:
    archive = FileArchive(tmp_path / "in", redact=plain, clock=ManualClock())
    archive.put(name, name, "text")

    assert archive.get(name, name) == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_originals_are_deleted_a_day_after_the_last_was_written(tmp_path: Path) -> None:
    archive = FileArchive(tmp_path, redact=plain, clock=ManualClock(1_000_000.0))
    for session, written in (("old", 1_000_000 - 90_000), ("new", 1_000_000 - 80_000)):
        archive.put(session, "h", "text")
        os.utime(tmp_path / session, (written, written))

    assert archive.prune() == 1
    assert archive.get("old", "h") is None
    assert archive.get("new", "h") == "text"


def test_a_process_that_runs_for_weeks_deletes_expired_originals_too(tmp_path: Path) -> None:
    def remains(folder: Path) -> bool:
        old = folder / "archive" / "old"
        old.mkdir(parents=True, exist_ok=True)
        os.utime(old, (1, 1))
        default_dependencies("gpt-5", data_folder=folder)
        assert writer_named(f"prune {folder}").settle()
        return old.exists()

    assert [remains(tmp_path / name) for name in ("a", "a", "b", "a")] == [False, True, False, True]
    managing._pruned[tmp_path / "a"] -= managing.PRUNE_SECONDS
    assert not remains(tmp_path / "a")


def test_an_older_generation_is_rejected(tmp_path: Path) -> None:
    store = FileCheckpoints(tmp_path, redact=plain)
    store.save(document(2), "# two")
    with pytest.raises(StaleCheckpointError):
        store.save(document(1), "# one")
    with pytest.raises(StaleCheckpointError):
        store.save(document(2, goal="another writer"), "# two again")

    loaded = store.load("s1").document
    assert loaded is not None
    assert (loaded["version"], loaded["goal"]) == (2, "Migrate")


def test_a_later_window_is_newer_for_any_version(tmp_path: Path) -> None:
    store = FileCheckpoints(tmp_path, redact=plain)
    store.save(document(9, window=1), "")
    store.save(document(10, window=2), "")

    assert (store.load("s1").document or {})["window_id"] == 2


def test_a_crash_while_writing_keeps_the_previous_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileCheckpoints(tmp_path, redact=plain)
    store.save(document(1), "# one")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("windowpane.manager.files.checkpoints.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.save(document(2), "# two")
    monkeypatch.undo()

    assert (store.load("s1").document or {})["version"] == 1
    assert not list(tmp_path.glob(".writing-*"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"schema": 1}', b'{"schema": 99}'])
def test_a_corrupt_checkpoint_gives_way_to_the_generation_before(tmp_path: Path, damage: bytes) -> None:
    store = FileCheckpoints(tmp_path, redact=plain)
    store.save(document(1), "# one")
    store.save(document(2), "# two")
    (tmp_path / "s1.json").write_bytes(damage)

    assert (store.load("s1").document or {})["version"] == 1
    (tmp_path / "s1.previous.json").write_bytes(damage)
    with pytest.raises(CorruptCheckpointError):
        store.load("s1")


def test_a_checkpoint_older_than_the_generation_before_is_rejected_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "s1.json").write_bytes(encode(document(4)))
    (tmp_path / "s1.previous.json").write_bytes(encode(document(7)))

    loaded = FileCheckpoints(tmp_path, redact=plain).load("s1")

    assert loaded.document == document(7)
    assert [rejection.version for rejection in loaded.rejected] == [4]


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_any_changed_byte_is_noticed(position: int, value: int) -> None:
    raw = bytearray(encode(document(3)))
    position %= len(raw)
    if raw[position] == value:
        return
    raw[position] = value
    try:
        decoded = decode(bytes(raw))
    except CorruptCheckpointError:
        return

    assert decoded == document(3)


def test_a_bootstrap_is_bounded() -> None:
    made = document(1)
    made["sections"]["artifacts"] = [f"src/file_{n}.py" for n in range(5_000)]
    text = bootstrap(made, max_characters=600)

    assert "next: auth.ts" in text
    assert len(text) <= 600


def test_the_markdown_is_for_people(tmp_path: Path) -> None:
    sink = RecordingSink()
    store = FileCheckpoints(tmp_path, redact=plain)
    from dataclasses import replace

    dependencies = replace(in_memory_dependencies(sink), checkpoints=store)
    with ContextWindowManager(
        agent="a",
        model="m",
        limit_tokens=8_192,
        session_id="s1",
        task_goal="Migrate it",
        dependencies=dependencies,
    ) as window:
        window.add_user("Next: migrate src/auth.ts. You must never touch config.ts.")
        for n in range(12):
            window.on_turn_start()
            window.on_turn_end(chat_reply(f"step_{n} " * 100, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", "output " * 1_400, f"c{n}")
    text = (tmp_path / "s1.md").read_text()

    assert "## Goal\nMigrate it" in text
    assert "never touch config.ts" in text
    assert sink.of(CheckpointSaved)
    assert sink.of(CheckpointRejected) == []
    assert json.loads((tmp_path / "s1.json").read_text())["goal"] == "Migrate it"


def test_the_default_dependencies_keep_everything_under_one_folder(tmp_path: Path) -> None:
    dependencies = default_dependencies("gpt-4o", data_folder=tmp_path)
    with ContextWindowManager(agent="a", model="gpt-4o", dependencies=dependencies) as window:
        window.add_user("hello")
        decision = window.on_turn_start()

    assert decision.status.limit_tokens == 128_000
    assert decision.status.zone == "green"
