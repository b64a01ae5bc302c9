"""A session id that is itself a secret is not stored, and the session is found by it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from windowpane.cli import main
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_store

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fGhJ6k"
RUN = """
import sys
import windowpane
from windowpane.testing import chat_reply

running = windowpane.start(store=sys.argv[1], port=0, notify=[])
window = windowpane.ContextWindowManager(agent="a", model="gpt-4o", session_id=sys.argv[2])
window.add_user("question")
window.on_turn_start()
window.on_turn_end(chat_reply("certainly", input_tokens=1_000, output_tokens=5))
window.close()
assert running.flush(30)
windowpane.stop()
"""


def test_a_session_is_found_by_the_secret_that_it_was_given_as_its_id(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(store), TOKEN],
            env=os.environ | {"XDG_DATA_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    with closing(open_store(store)) as reader:
        row = reader.session(TOKEN)
        assert row is not None
        assert TOKEN not in row.session_id
        assert len(reader.sessions()) == 1
        assert len(reader.turns(TOKEN)) == 2
        assert reader.events(EventFilter(session_id=TOKEN))
        assert [found.session_id for found in reader.find_sessions(TOKEN)] == [row.session_id]
    shown = CliRunner().invoke(main, ["report", TOKEN, "--store", str(store)])
    assert shown.exit_code == 0, shown.output
    assert TOKEN not in shown.output
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in tmp_path.rglob("store.db*"))
