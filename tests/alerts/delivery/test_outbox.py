"""The messages that wait, in a file that several processes use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from windowpane.alerts.delivery.outbox import Outbox


def test_a_reader_of_the_file_blocks_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    with closing(Outbox(path)) as outbox:
        assert outbox.next_due("mail") is None
        with closing(sqlite3.connect(path)) as reader:
            assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
