"""The quota that a status line was given, recorded in a store on a server by a separate process.

A connection takes longer than a status line may.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence


def start_recording(store: str, rows: Sequence[Sequence[object]]) -> subprocess.Popen[bytes]:
    """Start to record rows of `store.quotas.row` in the store with this URL, without waiting for it."""
    process = subprocess.Popen(  # noqa: S603  # this program
        [sys.executable, "-P", "-m", __name__],  # -P: in any folder
        env={**os.environ, "WINDOWPANE_STORE": store},  # it may hold a password: no argument
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps(rows).encode())
    return process


def _record() -> None:
    from windowpane.store.open import open_store

    store = open_store(os.environ["WINDOWPANE_STORE"])
    try:
        store.record_quotas(json.load(sys.stdin))
    finally:
        store.close()


if __name__ == "__main__":
    _record()
