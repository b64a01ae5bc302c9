"""Write what this release writes and reads, to be frozen: python -m tests.compatibility.make_release"""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import closing
from pathlib import Path

from tests.compatibility.made_events import made_events
from tests.compatibility.made_store import make_store, rows_of
from tests.compatibility.made_task import TASK_ID, open_task

from windowpane.core.codec import encode
from windowpane.store.embedded import SqliteReader

RELEASE = Path(__file__).parent / "release_0_1_0"


def main() -> None:
    """Write the files of the release."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windowpane.db"
        make_store(path, RELEASE / "heads.jsonl")
        with closing(SqliteReader(path)) as store:
            rows = json.dumps(rows_of(store), indent=1, sort_keys=True)
        (RELEASE / "rows.json").write_text(rows + "\n", encoding="utf-8")
        (RELEASE / "store.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        with open_task(Path(folder)) as window:
            window.add_user("go on")
            window.task.complete("read the old client")
        (RELEASE / "checkpoint.json").write_bytes((Path(folder) / f"{TASK_ID}.json").read_bytes())
    (RELEASE / "events.jsonl").write_bytes(b"".join(encode(event) + b"\n" for event in made_events()))


if __name__ == "__main__":
    main()
