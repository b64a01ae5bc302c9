"""Recordings that are forked, resumed, edited, rewritten and grow, in any order: the audit chain stays intact."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from tests.campaigns.conftest import Campaign

from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore

RECORDINGS = (
    "claude_code/tiny_c9*", "claude_code/micro_ids*", "claude_code/compact_small*", "claude_code/small_progress*",
    "codex/rollout_small*", "codex/rollout_compact2*", "copilot_cli/events_tiny*", "openhands/v1_pr_events*",
    "pi/large-session*", "gemini_cli/session_small2*", "opencode/export_small*",
)  # fmt: skip
MAXIMUM_ROWS = 60
"""A history takes its rows from the start of a recording: each step verifies the whole store."""
STEPS = 8
MINIMUM_ROWS = 3
SESSION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|ses_[0-9A-Za-z]+")
"""The first one in a recording is that of its session."""
KEY = b"the audit key of the histories"


@dataclass(frozen=True)
class Recording:
    """The file of a session as its agent has written it so far."""

    name: str
    session_id: str
    document: dict[str, Any] | None
    """A JSON document whose list `messages` holds the rows; None for a file of JSON lines."""
    rows: list[Any]
    """Every row that the agent will write."""
    written: int

    def write(self, folder: Path) -> Path:
        """Write the rows that are there by now."""
        path, rows = folder / self.name, self.rows[: self.written]
        if self.document is None:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            path.write_text(json.dumps({**self.document, "messages": rows}))
        return path

    def with_id(self, session_id: str) -> Recording:
        """Return the recording as that of another session, which repeats every call."""

        def renamed(value: Any) -> Any:
            return json.loads(json.dumps(value).replace(self.session_id, session_id))

        name = f"{session_id}-{self.name.removeprefix(self.session_id)}"
        return Recording(name, session_id, renamed(self.document), renamed(self.rows), self.written)


def grown(recording: Recording, random: Random) -> Recording:
    """Return the recording with further rows."""
    return replace(recording, written=min(len(recording.rows), recording.written + random.randint(1, 8)))


def rewound(recording: Recording, random: Random) -> Recording:
    """Return the recording without its last rows, and with others to follow."""
    return replace(recording, written=max(MINIMUM_ROWS, recording.written - random.randint(1, 8)))


def without_a_row(recording: Recording, random: Random) -> Recording:
    """Return the recording rewritten without one of its rows."""
    if recording.written <= MINIMUM_ROWS:
        return grown(recording, random)
    gone = random.randrange(1, recording.written)
    rows = recording.rows[:gone] + recording.rows[gone + 1 :]
    return replace(recording, rows=rows, written=min(len(rows), recording.written + random.randint(0, 8)))


def edited(recording: Recording, random: Random) -> Recording:
    """Return the recording with one text of a row changed, and often further rows."""
    rows = deepcopy(recording.rows)
    texts = list(text_fields(rows[1 : recording.written]))
    if texts:
        holder, key = random.choice(texts)
        holder[key] = f"edited {random.randrange(9)}: {holder[key]}"
    return (
        grown(replace(recording, rows=rows), random) if random.random() < 0.7 else replace(recording, rows=rows)
    )


def text_fields(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each dictionary that holds a text of a message, with its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if key in ("text", "content", "message") and isinstance(item, str) and len(item) > 3:
            yield value, key
        else:
            yield from text_fields(item)


CHANGES = (grown, grown, rewound, without_a_row, edited, edited)


class History:
    """One store and the recordings that are imported into it."""

    def __init__(self, folder: Path, first: Recording, random: Random) -> None:
        folder.mkdir()
        self.steps: list[str] = []
        self._folder = folder
        self._random = random
        self._recordings = [first]
        self.store = SqliteStore(folder / "windowpane.db", audit_key=random.choice((None, KEY)))

    def take_step(self) -> str:
        """Change or add a recording, import what is there, and return what is broken; empty if nothing is."""
        random = self._random
        at = random.randrange(len(self._recordings))
        recording = self._recordings[at]
        if random.random() < 0.3:
            self.steps.append("fork")
            fork = recording.with_id(str(UUID(int=random.getrandbits(128), version=4)))
            self._recordings.append(grown(fork, random) if random.random() < 0.5 else fork)
        elif self.steps and random.random() < 0.15:
            self.steps.append("annotation")
            self._annotate()
        elif self.steps and random.random() < 0.1:
            self.steps.append("retention")
            self.store.prune(max_bytes=0)
        else:
            change = random.choice(CHANGES)
            self.steps.append(change.__name__)
            self._recordings[at] = change(recording, random)
        self._import()
        return "; ".join(f"{link.session_id}: {link.problem}" for link in self.store.verify().broken)

    def _annotate(self) -> None:
        for row in self.store.sessions()[:1]:
            self.store.add_note(row.session_id, 0, "a note")
            self.store.assign_project(row.session_id, self._random.choice(("shop", "bank")))

    def _import(self) -> None:
        some = self._random.sample(self._recordings, self._random.randint(1, len(self._recordings)))
        paths = [recording.write(self._folder) for recording in some]
        playback = playback_settings(
            self.store.digester(), history=self.store.earlier_sessions, stored_projects=self.store.stored_project
        )
        import_paths(paths, AlertingStore(self.store), playback=playback, readers=all_readers(), progress=ignore)


def ignore(*_: object, **__: object) -> None:
    """Show no progress."""


def recordings(folder: Path) -> list[Recording]:
    """Return the start of a recording of each format, with the id of its session."""
    found = []
    for pattern in RECORDINGS:
        path = next(iter(sorted(folder.glob(pattern))))
        text, document = path.read_text(), None
        if path.suffix == ".json":
            document = json.loads(text)
            rows = document["messages"]
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        session_id = SESSION_ID.search(text)
        assert session_id is not None
        found.append(Recording(path.name, session_id[0], document, rows[:MAXIMUM_ROWS], MINIMUM_ROWS))
    return found


def test_natural_histories_stay_intact(campaign: Campaign, sessions_dir: Path, tmp_path: Path) -> None:
    seeds, failures = recordings(sessions_dir), []
    tried = campaign.attempts(sample=len(RECORDINGS), whole=660)
    for number in range(tried):
        random = Random(number)
        first = seeds[number % len(seeds)]
        first = replace(first, written=min(len(first.rows), random.randint(MINIMUM_ROWS, 30)))
        history = History(tmp_path / str(number), first, random)
        with closing(history.store) as store:
            broken = next(filter(None, (history.take_step() for _ in range(STEPS))), "")
            if not broken:
                store.rebuild_projections()
                broken = "; ".join(link.problem for link in store.verify().broken)
        if broken:
            failures.append((number, first.name, history.steps, broken))
    campaign.record(
        "recordings forked, edited, rewound and grown",
        tried=tried,
        held=tried - len(failures),
        note=f"{STEPS} steps each, the store verified after each and after a rebuild",
    )

    assert not failures
