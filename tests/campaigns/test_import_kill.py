"""Campaign: an import with worker processes is killed at any moment; the next one completes the same store."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.campaigns.conftest import Campaign
from tests.sources.imports.made_sessions import stored_rows, write_sessions

from windowpane.store.embedded import SqliteStore

SESSIONS = 12
ABOUT_RUNS = ("store", "read_files")
"""Tables about the imports themselves: the number of transactions, and what the last one reported of a file."""
_IMPORT = """
import sys
from pathlib import Path
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.imports.workers import ReadingWorkers
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore
def no_time():
    return 0.0
if __name__ == "__main__":
    file, folder, processes = sys.argv[1:]
    store = SqliteStore(file, clock=no_time)
    playback = playback_settings(
        store.digester(), history=store.earlier_sessions, stored_projects=store.stored_project
    )
    with ReadingWorkers(store, playback=playback, processes=int(processes)) as workers:
        import_paths(
            [Path(folder)], AlertingStore(store), playback=playback, readers=all_readers(),
            memory=RememberedFiles(store, playback), workers=workers if int(processes) else None,
            progress=lambda *_, **__: print(*(one.process.pid for one in workers._workers), flush=True),
        )
    store.close()
"""


def test_killed_imports(campaign: Campaign, tmp_path: Path) -> None:
    sessions, chance = write_sessions(tmp_path / "sessions", SESSIONS, turns=60), random.Random(5)
    SqliteStore(tmp_path / "empty.db").close()
    alone = _import(tmp_path, "alone", sessions, 0)
    alone.communicate(timeout=300)
    expected = stored_rows(tmp_path / "alone.db")

    tried, faults = campaign.attempts(sample=1, whole=12), list[tuple[int, list[str], list[int]]]()
    for _ in range(tried):
        (tmp_path / "killed.db").unlink(missing_ok=True)
        pids = _killed(_import(tmp_path, "killed", sessions, 2), chance)
        again = _import(tmp_path, "killed", sessions, 2)
        again.communicate(timeout=300)
        rows = stored_rows(tmp_path / "killed.db")
        differing = [
            table for table in expected if table not in ABOUT_RUNS and rows.get(table) != expected[table]
        ]
        if again.returncode or differing or not _ended(pids):
            faults.append((again.returncode, differing, [pid for pid in pids if Path(f"/proc/{pid}").exists()]))

    campaign.record(
        "kill -9 of an import with workers", tried=tried, held=tried - len(faults),
        note="imported again: events, chain and all rows of sessions are those of one process",
    )  # fmt: skip
    assert not faults


def _import(folder: Path, name: str, sessions: Path, processes: int) -> subprocess.Popen[str]:
    file = folder / f"{name}.db"
    if not file.exists():
        shutil.copy(folder / "empty.db", file)
    program = folder / "imports.py"
    program.write_text(_IMPORT)
    command = [sys.executable, str(program), str(file), str(sessions), str(processes)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _killed(process: subprocess.Popen[str], chance: random.Random) -> list[int]:
    """Kill an import at a random moment and return the pids of its workers."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, SESSIONS))]
    killer = threading.Timer(chance.random() * 0.3, os.kill, (process.pid, signal.SIGKILL))
    killer.start()
    process.stdout.read()
    killer.join()
    process.wait(30)
    process.stdout.close()
    return [int(pid) for pid in lines[-1].split()]


def _ended(pids: list[int]) -> bool:
    """Return whether the processes end within some seconds."""
    ends_at = time.monotonic() + 30
    while time.monotonic() < ends_at:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False
