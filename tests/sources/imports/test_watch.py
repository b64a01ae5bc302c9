"""`windowpane watch` without a terminal: transcripts grow, the store keeps up, recent alerts go out."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.cli import watch as watching
from windowpane.core.events import (
    AlertFired,
    BlockAdded,
    Event,
    EventContext,
    NotificationDelivered,
    PressureMeasured,
)
from windowpane.exceptions import StoreError
from windowpane.sources.imports import follow, watch
from windowpane.sources.imports.follow import FollowedFile
from windowpane.sources.imports.importer import import_file
from windowpane.sources.imports.known_files import KnownFiles
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.watch import RETRY_SECONDS, WatchedSession, Watcher
from windowpane.sources.transcripts.discovery import all_readers, files_of
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter
from windowpane.store.writes import session_import

SESSION = "0a1b2c3d-0000-4000-8000-000000000001"
NOW = 1_767_261_600.0


class Channel:
    """Replaces the notifier: records the alerts it receives."""

    def __init__(self) -> None:
        self.told: list[Event] = []

    def write(self, batch: list[Event]) -> None:
        self.told += batch


class Scene:
    """A folder with one transcript, a store, and a watcher whose clock the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.folder = folder / "projects"
        self.folder.mkdir()
        self.path = self.folder / f"{SESSION}.jsonl"
        self.store = SqliteStore(folder / "windowpane.db")
        self.calls = 0
        self.watcher = self.watch()

    def watch(self) -> Watcher:
        watcher = Watcher(
            [self.folder], self.store, playback=self.playback(), since_seconds=3_600, clock=lambda: self.now,
        )  # fmt: skip
        watcher.notifier = Channel()  # type: ignore[assignment]
        return watcher

    def playback(self) -> Any:
        return playback_settings(self.store.digester(), limit_tokens=20_000)

    def write(
        self, calls: int, *, at: float | None = None, tokens: int = 500, text: str = "Reply", **more: Any
    ) -> None:
        """Add some calls to the session, with *more* fields in their rows."""
        at = self.now if at is None else at
        with self.path.open("a", encoding="utf-8") as file:
            for _ in range(calls):
                for row in self._rows(at, tokens, text):
                    file.write(json.dumps(row | more) + "\n")
                self.calls += 1
        os.utime(self.path, (at, at))

    def _rows(self, at: float, tokens: int, text: str) -> Iterator[dict[str, Any]]:
        number = self.calls
        stamp = datetime.fromtimestamp(at, UTC).isoformat()
        common = {"sessionId": SESSION, "parentUuid": None, "timestamp": stamp}
        yield {
            "type": "user",
            "uuid": f"u{number}",
            "message": {"role": "user", "content": f"R {number}"},
            **common,
        }
        reply = {"role": "assistant", "id": f"m{number}", "model": "claude-of-tests",
                 "usage": {"input_tokens": tokens * (number + 1), "output_tokens": 9},
                 "content": [{"type": "text", "text": f"{text} {number}"}]}  # fmt: skip
        yield {"type": "assistant", "uuid": f"a{number}", "message": reply, **common}

    def poll(self, *, after: float = 6.0) -> list[WatchedSession]:
        self.now += after
        return self.watcher.poll()

    def turns(self) -> int:
        row = self.store.session(SESSION)
        return 0 if row is None else row.turns

    def fired(self) -> list[str]:
        channel: Any = self.watcher.notifier
        return [event.data.alert for event in channel.told if isinstance(event.data, AlertFired)]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close()


def assert_as_imported(scene: Scene) -> None:
    """An import of the file changes nothing: what was followed is what it would have stored."""
    assert_unchanged(scene, sessions=1)


def assert_unchanged(scene: Scene, *, sessions: int) -> None:
    report = import_file(
        scene.path, AlertingStore(scene.store), playback=scene.playback(), readers=all_readers(complete=False)
    )
    assert [(outcome.appended, outcome.revised) for outcome in report.outcomes] == [(0, False)] * sessions


def test_a_growing_transcript_is_kept_up_with(scene: Scene) -> None:
    scene.write(3)
    scene.poll()
    assert scene.turns() == 2  # the last call may still go on
    scene.write(4)
    [seen] = scene.poll()

    assert scene.turns() == 6
    assert (seen.session_id, seen.pressure.utilization) == (SESSION, pytest.approx(0.15, abs=0.01))
    assert scene.poll() == []
    assert_as_imported(scene)


def test_a_transcript_is_stored_without_being_held(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(watch, "IN_MEMORY_BYTES", 1_000)
    held: list[int] = []
    pieces = FollowedFile.pieces

    def counted(followed: FollowedFile, until: float = math.inf) -> Iterator[list[Event]]:
        for piece in pieces(followed, until):
            held.append(sum(isinstance(event.data, BlockAdded) for event in piece))
            yield piece

    monkeypatch.setattr(FollowedFile, "pieces", counted)
    scene.write(60)
    scene.poll()
    scene.write(3)
    scene.poll()

    assert scene.turns() == 62
    assert max(held) < 10
    assert_as_imported(scene)


@pytest.mark.parametrize("limit", [1_000, 10**9])
def test_a_transcript_is_read_once_when_its_watch_starts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(watch, "IN_MEMORY_BYTES", limit)
    fed, feed = [], FollowedFile._feed

    def counted(followed: FollowedFile, lines: bytes) -> None:
        fed.append(len(lines))
        feed(followed, lines)

    monkeypatch.setattr(FollowedFile, "_feed", counted)
    scene.write(60)
    scene.poll()
    assert sum(fed) == scene.path.stat().st_size

    fed.clear()
    scene.watcher = scene.watch()
    scene.write(3)
    scene.poll()
    assert sum(fed) == scene.path.stat().st_size
    assert scene.turns() == 62
    assert_as_imported(scene)


@pytest.mark.parametrize("limit", [1_000, 10**9])
def test_every_session_of_a_transcript_is_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(watch, "IN_MEMORY_BYTES", limit)
    monkeypatch.setattr(follow, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(session_import, "CHUNK_EVENTS", 10)
    for number in range(12):
        scene.write(2)
        scene.write(1, isSidechain=True, agentId=f"a{number % 3}")
    stored = {session.session_id for session in scene.poll()}
    assert len(stored) == 4
    assert_unchanged(scene, sessions=4)

    scene.write(2)
    scene.write(2, isSidechain=True, agentId="a1")
    assert len(scene.poll()) == 2
    assert_unchanged(scene, sessions=4)


def test_a_rewritten_transcript_that_is_not_held_becomes_a_revision(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "IN_MEMORY_BYTES", 1_000)
    scene.write(20)
    scene.write(20, isSidechain=True, agentId="a1")
    scene.poll()
    lines = scene.path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if "R 5" not in line and "Reply 5" not in line]
    scene.path.write_text("".join(kept), encoding="utf-8")
    scene.write(4)
    scene.poll()

    row = scene.store.session(SESSION)
    assert row is not None
    assert row.revision == 2
    assert_unchanged(scene, sessions=2)


def test_a_poll_returns_the_last_state_of_a_session_however_much_was_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates, update = [], Watcher._update

    def counted(watcher: Watcher, event: Event) -> WatchedSession | None:
        updates.append(event)
        return update(watcher, event)

    monkeypatch.setattr(Watcher, "_update", counted)
    scene.write(40)
    first = scene.poll()
    scene.write(40)
    second = scene.poll()

    assert len(updates) == 2
    assert [session.pressure.used_tokens for session in (*first, *second)] == [
        event.data.used_tokens for event in updates if isinstance(event.data, PressureMeasured)
    ]


def test_a_still_file_is_finished(scene: Scene) -> None:
    scene.write(3)
    scene.poll()
    scene.poll(after=130)
    assert scene.turns() == 3

    scene.write(2)
    scene.poll()
    assert scene.turns() == 4
    row = scene.store.session(SESSION)
    assert row is not None
    assert row.revision == 1


def test_a_concurrent_import_does_not_duplicate_events(scene: Scene) -> None:
    scene.write(3)
    scene.poll()
    scene.write(3)
    import_file(
        scene.path, AlertingStore(scene.store), playback=scene.playback(), readers=all_readers(complete=True)
    )
    scene.write(3)
    scene.poll()

    assert scene.turns() == 8
    assert_as_imported(scene)
    assert scene.store.verify().intact


def test_watching_again_continues(scene: Scene) -> None:
    scene.write(3)
    scene.poll()
    scene.watcher = scene.watch()
    scene.write(3)
    scene.poll()

    assert scene.turns() == 5
    assert_as_imported(scene)


def test_a_rewritten_transcript_becomes_a_revision(scene: Scene) -> None:
    scene.write(4)
    scene.poll()
    scene.path.unlink()
    scene.calls = 0
    scene.write(1, at=NOW)
    scene.write(4, text="Other")
    scene.poll()

    row = scene.store.session(SESSION)
    assert row is not None
    assert row.revision == 2
    assert row.turns == 4


def test_a_rewritten_transcript_without_a_call_of_the_stored_session_is_another_session(scene: Scene) -> None:
    scene.write(4)
    scene.poll()
    scene.path.unlink()
    scene.calls = 0
    scene.write(5, text="Other")
    scene.poll()
    scene.write(2, text="Other")
    scene.poll()

    first, other = sorted(scene.store.sessions(), key=lambda row: row.turns)
    assert (first.session_id, first.revision, first.turns) == (SESSION, 1, 3)
    assert (other.revision, other.turns) == (1, 6)
    assert other.session_id.startswith(f"{SESSION}~")
    assert scene.watcher.sessions.keys() == {SESSION, other.session_id}
    scene.poll(after=600)
    assert sorted(row.turns for row in scene.store.sessions()) == [3, 7]


def test_recent_alerts_go_out_and_old_ones_do_not(scene: Scene) -> None:
    scene.write(8, tokens=2_400, at=NOW - 3_000)
    scene.poll()
    assert scene.fired() == []
    assert scene.store.alerts(AlertFilter(session_id=SESSION))

    scene.path.unlink()
    scene.path = scene.folder / "1a1b2c3d-0000-4000-8000-000000000002.jsonl"
    scene.calls = 0
    scene.write(8, tokens=2_400)
    scene.poll()
    told = scene.fired()
    scene.poll()

    assert "output_reserve" in told
    assert scene.fired() == told


def test_old_files_wait_until_they_change(scene: Scene) -> None:
    scene.write(3, at=NOW - 10_000)
    scene.poll()
    assert scene.turns() == 0

    scene.write(2)
    scene.poll()
    assert scene.turns() == 4


def test_a_bad_file_does_not_stop_the_rest(scene: Scene) -> None:
    for name, content in (("a.jsonl", b"\x00\xff" * 50), ("b.jsonl", b""), ("c.json", b'{"x": 1}')):
        (scene.folder / name).write_bytes(content)
        os.utime(scene.folder / name, (NOW, NOW))
    scene.write(3)
    scene.poll()

    assert scene.turns() == 2


def test_a_delivery_s_record_is_not_a_foreign_change(scene: Scene) -> None:
    scene.write(3)
    scene.poll()
    context = EventContext(SESSION, "claude-code", "m", 2, 1, "claude_code", "elsewhere")
    scene.watcher.record_deliveries(
        [Event(context, 0, scene.now, NotificationDelivered("compaction_soon", 1, "json", "firing"))]
    )
    scene.write(3)
    scene.poll()

    assert scene.turns() == 5
    assert_as_imported(scene)


def test_a_folder_that_appears_later_is_followed(scene: Scene) -> None:
    later = scene.folder / "later"
    watcher = Watcher(
        [later], scene.store, playback=scene.playback(), since_seconds=3_600, clock=lambda: scene.now,
    )  # fmt: skip
    assert watcher.poll() == []

    later.mkdir()
    scene.path = later / scene.path.name
    scene.write(2)
    scene.now += 6

    assert [session.session_id for session in watcher.poll()] == [SESSION]


def test_watch_waits_on_a_machine_without_recordings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    followed: list[Watcher] = []
    monkeypatch.setattr(watching, "follow", lambda watcher, *_, **__: followed.append(watcher))

    result = CliRunner().invoke(main, ["watch", "--port", "0", "--store", str(tmp_path / "w.db")])

    assert result.exit_code == 0, result.output
    assert "waiting for the first session" in result.output
    assert tmp_path / ".claude" / "projects" in followed[0]._paths


def test_watch_once_prints_a_line_a_session(scene: Scene, tmp_path: Path) -> None:
    scene.now = time.time()
    scene.write(3)
    result = CliRunner().invoke(
        main, ["watch", str(scene.folder), "--once", "--limit", "20000", "--store", str(tmp_path / "other.db")]
    )

    assert result.exit_code == 0, result.output
    assert f"claude-code {SESSION}"[:24] in result.output
    assert "[#" in result.output or "[." in result.output


def test_top_lists_live_sessions(scene: Scene, tmp_path: Path) -> None:
    scene.write(3)
    scene.poll()
    arguments = ["top", "--once", "--store", str(tmp_path / "windowpane.db")]

    assert "No session is live" in CliRunner().invoke(main, arguments).output
    assert "R 0" in CliRunner().invoke(main, [*arguments, "--all"]).output


@pytest.mark.parametrize("still", [False, True], ids=["growing", "finished"])
def test_events_that_could_not_be_stored_are_stored_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, still: bool
) -> None:
    scene.write(3)
    scene.poll()
    fails = pytest.MonkeyPatch()
    for name in ("extend_session", "import_session"):
        fails.setattr(scene.store, name, _locked)
    scene.write(2)
    scene.poll(after=300.0 if still else 6.0)
    fails.undo()

    scene.poll(after=RETRY_SECONDS)
    scene.write(1)
    scene.poll()

    assert scene.turns() == 5  # the last call may still go on
    assert_as_imported(scene)


def _locked(*_: object, **__: object) -> bool:
    raise StoreError("another process kept the store locked")


@pytest.mark.timeout(20)
def test_what_is_not_a_file_is_skipped_with_one_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(tmp_path)
    scene.write(2)
    os.mkfifo(scene.folder / "pipe.jsonl")
    (scene.folder / "loop.jsonl").symlink_to("loop.jsonl")

    (session,) = scene.watcher.poll()
    scene.now += 60
    scene.watcher.poll()

    assert session.session_id == SESSION
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "skipped: a symbolic link to itself",
        "skipped: a pipe, not a regular file; save it as one first",
    ]
    scene.store.close()


# -- many files -----------------------------------------------------------------------------------------------


def copies(scene: Scene, *, series: int, ages: list[float]) -> list[Path]:
    """Write transcripts of further sessions, which changed so many seconds ago."""
    paths = []
    for number, age in enumerate(ages):
        path = scene.path.with_name(f"0a1b2c3d-0000-4000-8000-{series:010}{number:02}.jsonl")
        path.write_bytes(scene.path.read_bytes().replace(SESSION.encode(), path.stem.encode()))
        os.utime(path, (scene.now - age, scene.now - age))
        paths.append(path)
    return paths


def test_old_files_rest_and_a_resumed_one_is_read(scene: Scene) -> None:
    scene.write(2)
    old = copies(scene, series=1, ages=[50_000.0] * 20)
    for _ in range(3):
        scene.poll()
    assert {one.path for one in scene.watcher._resting} == set(old)
    assert [row.session_id for row in scene.store.sessions()] == [SESSION]

    os.utime(old[3], (scene.now, scene.now))
    scene.poll()
    assert scene.store.session(old[3].stem) is not None
    old[4].unlink()
    scene.poll()
    assert old[4] not in scene.watcher._files


def test_the_latest_files_come_first_and_a_long_poll_is_resumed(scene: Scene) -> None:
    scene.write(2)
    names = [path.stem for path in copies(scene, series=2, ages=[500.0 * number for number in range(6)])]
    scene.watcher._longest_poll_seconds = 0.0
    order = [session.session_id for _ in range(12) for session in scene.poll(after=0.1)]

    assert [name for name in order if name in names] == names


def test_many_old_folders_are_searched_at_the_cost_of_a_look_at_each(tmp_path: Path) -> None:
    known = KnownFiles([tmp_path])
    later = time.time() + 100
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one.jsonl").touch()
    first = known.search(later)
    assert known.search(later) is first

    (tmp_path / "a" / "b" / "two.jsonl").touch()
    (tmp_path / "a" / "one.jsonl").unlink()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "three.json").touch()
    assert [file.name for file in known.search(later)] == ["two.jsonl", "three.json"]
    assert known.search(later) == list(files_of([tmp_path]))


NEWEST = Path(__file__).parents[1] / "transcripts" / "data" / "newest"


@pytest.mark.parametrize(("status", "turns"), [("running", 1), ("completed", 2)])
def test_a_sub_agent_of_qwen_code_ends_with_the_status_in_the_file_beside_it(
    scene: Scene, status: str, turns: int
) -> None:
    """The file changes after the last row was read, and the recording no more."""
    (source,) = (NEWEST / "qwen_code_0.24.4").rglob("agent-*.jsonl")
    path = scene.folder / source.name
    sidecar = json.loads(source.with_suffix(".meta.json").read_text())
    path.with_suffix(".meta.json").write_text(json.dumps({**sidecar, "status": "running"}))
    path.write_bytes(source.read_bytes())
    os.utime(path, (NOW, NOW))
    scene.poll()
    path.with_suffix(".meta.json").write_text(json.dumps({**sidecar, "status": status}))
    scene.poll()

    (row,) = scene.store.sessions()
    assert row.turns == turns
    scene.path = path
    assert_as_imported(scene)


def test_a_sub_agent_of_gemini_cli_ends_with_its_result(scene: Scene) -> None:
    (source,) = (NEWEST / "gemini_cli_0.61.0" / "chats").glob("*/*.jsonl")
    scene.path = scene.folder / source.name
    turns = []
    for content in (source.read_bytes(), b'{"$set": {"summary": "It has two lines."}}\n'):
        with scene.path.open("ab") as file:
            file.write(content)
        os.utime(scene.path, (NOW, NOW))
        scene.poll()
        turns += [row.turns for row in scene.store.sessions()]

    assert turns == [1, 2]
    assert_as_imported(scene)


def logged_call(number: int) -> tuple[str, str]:
    """Return the name and the content of the log of one call, as OpenHands' SDK writes it."""
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": f"text {place}"} for place in range(2 * number + 1)
    ]
    response = {
        "id": f"r{number}", "model": "model-of-tests",
        "choices": [{"message": {"role": "assistant", "content": f"text {2 * number + 1}"}}],
        "usage": {"prompt_tokens": 100 * (number + 1), "completion_tokens": 2},
    }  # fmt: skip
    log = {"messages": messages, "response": response, "cost": 0.1, "timestamp": NOW + number, "latency_sec": 0.5}
    return f"model-{1_757_000_000 + number}.500.json", json.dumps(log)


def test_a_folder_of_calls_is_kept_up_with(scene: Scene) -> None:
    folder = scene.folder / "logs"
    folder.mkdir()
    for number in range(3):
        name, content = logged_call(number)
        (folder / name).write_text(content)
        for path in (folder / name, folder):
            os.utime(path, (scene.now, scene.now))
        (seen,) = scene.poll()
        row = scene.store.session(seen.session_id)
        assert row is not None
        assert (row.turns, row.revision) == (number + 1, 1)
        assert scene.poll() == []
    assert seen.session_id == "litellm_logs:r0"


def test_a_session_that_always_fails_is_tried_ever_less_and_stops_no_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene.write(2)
    (other,) = copies(scene, series=7, ages=[0.0])
    stored, attempts = scene.store.import_session, []

    def failing(events: Any) -> Any:
        batch = list(events())
        if batch[0].context.session_id == SESSION:
            attempts.append(scene.now)
            raise IndexError("a batch that can never be stored")
        return stored(lambda: batch)

    monkeypatch.setattr(scene.store, "import_session", failing)
    for _ in range(700):
        scene.now += 6.0
        os.utime(scene.path, (scene.now, scene.now))
        scene.watcher.poll()

    pauses = [round(later - earlier, -1) for earlier, later in pairwise(attempts)]
    assert pauses[:5] == [60, 120, 240, 480, 900]
    assert set(pauses[4:]) == {900}
    assert "IndexError" in caplog.text
    assert scene.store.session(other.stem).turns == 2
    assert scene.store.session(SESSION) is None
    scene.store.close()


def test_a_recording_below_two_given_paths_is_found_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    one = tmp_path / "a" / "one.jsonl"
    one.touch()

    assert KnownFiles([tmp_path, tmp_path / "a", one]).search(time.time()) == [one]
