"""The fleet page tells what is really stored and really configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.store.sqlite import SqliteStore
from windowpane.text.formats import size
from windowpane_dashboard.queries.fleet import Retention, bytes_on_disk, configured_retention, retention_text


def test_the_size_is_that_of_the_files(small_store: SqliteStore) -> None:
    """The database and its log, as the file system counts them."""
    path = Path(small_store.path)

    found = bytes_on_disk(path)

    assert found == sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    assert found >= small_store.size().bytes


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (
            Retention(30, 2_000_000_000, frozenset()),
            "after 30 days without an event (default) or beyond 2.0 GB (default)",
        ),
        (
            Retention(1, 5_000_000, frozenset({"days"})),
            "after 1 day without an event (configured) or beyond 5.0 MB (default)",
        ),
        (
            Retention(0.5, 900, frozenset({"days", "bytes"})),
            "after 0.5 days without an event (configured) or beyond 900 B (configured)",
        ),
    ],
)
def test_a_limit_says_where_it_comes_from(kept: Retention, words: str) -> None:
    """Days and size, each the default or configured."""
    assert retention_text(kept) == words


def test_the_file_and_the_environment_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are those that `windowpane serve` would keep with the same settings."""
    file = tmp_path / "windowpane.yaml"
    file.write_text("store:\n  retention_bytes: 750000000\n")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(file))
    monkeypatch.setenv("WINDOWPANE_RETENTION_DAYS", "7")

    assert configured_retention() == Retention(7, 750_000_000, frozenset({"days", "bytes"}))


def test_the_page_shows_both(
    small_store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    said: Callable[..., str],
) -> None:
    """Size on disk, events, sessions and the limits stand below the table."""
    monkeypatch.setenv("WINDOWPANE_RETENTION_DAYS", "7")

    words = said(open_page("fleet")).replace("\\", "")

    assert f"Store: {size(bytes_on_disk(Path(small_store.path)))} on disk" in words
    assert "events of 3 sessions, no content" in words
    assert "after 7 days without an event (configured) or beyond 2.0 GB (default)" in words


def test_settings_that_cannot_be_read_are_said(
    small_store: SqliteStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    said: Callable[..., str],
) -> None:
    """The page stands, and names the trouble instead of a default."""
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "gone.yaml"))

    app = open_page("fleet")

    assert not app.exception
    assert "gone" in said(app)
    assert "(default)" not in said(app)
