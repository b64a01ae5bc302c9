"""The pages of a session that several sources recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tests.store.conformance.test_same_sessions import record

from windowpane.report.session_report import gather
from windowpane.report.text import to_text
from windowpane.store.embedded import SqliteStore


def test_the_records_of_a_session_link_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: Callable[..., AppTest]
) -> None:
    path = tmp_path / "w.db"
    with closing(SqliteStore(path)) as store:
        store.append(record("proxy"))
        store.import_session(lambda: record("claude_code"))
        rows = [store.session(f"of-{source}") for source in ("claude_code", "proxy")]
        reports = [to_text(gather(store, row)) for row in rows if row is not None]
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))

    pages = [open_page("session", session=session) for session in ("of-claude_code", "of-proxy")]

    assert not any(page.exception for page in pages)
    assert "also recorded by proxy (of-proxy)" in reports[0]
    assert "the same session as of-claude_code, which counts for both" in reports[1]
    links = [[link.proto.label for link in page.get("page_link")] for page in pages]
    assert "Also recorded by proxy" in links[0]
    assert any("which counts for both" in label for label in links[1])
