"""Two releases write to one store: this one, and a later one that changes its tables in another process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.compatibility.made_store import KEY, session

from windowpane.exceptions import SchemaVersionError
from windowpane.store.embedded import SqliteStore

LATER_RELEASE = """
import sys
from contextlib import closing
from windowpane.store import migrations, tables

def migrate(database):
    database.execute("ALTER TABLE sessions ADD COLUMN weather text")
    database.execute("CREATE TABLE moods (session_id text PRIMARY KEY, mood text)")

migrations.MIGRATIONS = {2: migrate}
migrations.SCHEMA_VERSION = 2

from tests.compatibility.made_store import KEY, session
from windowpane.store.embedded import SqliteStore

with closing(SqliteStore(sys.argv[1], audit_key=KEY)) as store:
    print("open", flush=True)
    for line in sys.stdin:
        store.append(session(line.strip(), 3))
        print("stored", flush=True)
    assert store.verify().intact, store.verify().broken
    print(*sorted(row.session_id for row in store.sessions()), flush=True)
"""
ROOT = Path(__file__).parents[2]


class LaterRelease:
    """A process of the later release with the store open for writing."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", LATER_RELEASE, str(path)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._expect("open")

    def write(self, session_id: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{session_id}\n")
        self._process.stdin.flush()
        self._expect("stored")

    def close(self) -> list[str]:
        """End the process and return the sessions that it reads, after it has verified the store."""
        output, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        return output.split()

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word


def test_a_running_release_writes_on_after_a_later_one_has_changed_the_store(tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"
    with closing(SqliteStore(path, audit_key=KEY)) as store:
        store.append(session("before", 3))
        later = LaterRelease(path)
        for number in range(3):
            store.append(session(f"older-{number}", 3))
            later.write(f"later-{number}")
        expected = sorted(["before", *(f"{release}-{n}" for release in ("older", "later") for n in range(3))])

        assert store.verify().intact
        assert sorted(row.session_id for row in store.sessions()) == expected
    assert later.close() == expected


def test_an_older_release_does_not_open_or_change_the_store_of_a_later_one(tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"
    later = LaterRelease(path)
    later.write("later")
    later.close()
    before = path.read_bytes()

    with pytest.raises(SchemaVersionError, match=r"by a newer release .* upgrade the package"):
        SqliteStore(path, audit_key=KEY)

    assert path.read_bytes() == before
