"""The endings of the files that SQLite keeps beside a database while it is in use."""

from __future__ import annotations

from typing import Final

WAL: Final = "-wal"
"""Of the write-ahead log."""
SHARED_MEMORY: Final = "-shm"
"""Of the log's index."""
