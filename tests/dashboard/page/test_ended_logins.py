"""A login that was ended stays ended: for every copy of its cookie, and after a restart."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane_dashboard.page import ended_logins
from windowpane_dashboard.page.ended_logins import LONGEST_SECONDS, SUFFIX, end, is_ended, prepare

LOGIN = {"iss": "https://login.internal", "sub": "1", "iat": 1_700_000_000, "nonce": "n1", "email": "ann@x.org"}
NEW = {**LOGIN, "iat": 1_700_000_060, "nonce": "n2"}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a dashboard that has just started."""
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "windowpane.db"))
    prepare()
    yield tmp_path / f"windowpane.db{SUFFIX}"
    ended_logins._unwritten.clear()


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_logins._unwritten.clear()
    monkeypatch.setattr(ended_logins, "_started_at", time.time())
    prepare()


def test_a_login_is_ended_and_no_other_one_of_the_same_user(file: Path) -> None:
    assert not is_ended(LOGIN)
    end(LOGIN)

    assert is_ended(dict(LOGIN))
    assert not is_ended(NEW)
    assert "ann@x.org" not in file.read_text()


def test_it_is_ended_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    end(LOGIN)
    restart(monkeypatch)

    assert is_ended(LOGIN)
    assert not is_ended(NEW)


def test_logins_that_cannot_count_any_more_are_removed(file: Path) -> None:
    file.write_text(json.dumps({"old": time.time() - LONGEST_SECONDS - 1, "recent": time.time() - 60}))
    end(LOGIN)

    assert len(json.loads(file.read_text())) == 2
    assert "recent" in file.read_text()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": "late"}'])
def test_where_the_file_cannot_be_kept_no_login_from_before_the_start_counts(
    file: Path, content: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(content)
    restart(monkeypatch)
    later = {**LOGIN, "iat": time.time() + 1, "nonce": "n3"}

    assert is_ended(LOGIN)
    assert not is_ended(later)
    end(later)
    assert is_ended(later)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
