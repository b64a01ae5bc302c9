"""Starting the dashboard: on loopback, quiet, with a clear message when it cannot."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from windowpane_dashboard.server import index_page as front
from windowpane_dashboard.server.background import _free_port, serving
from windowpane_dashboard.server.launch import (
    APP,
    DEFAULT_ADDRESS,
    DashboardError,
    check_port,
    routes,
    server_config,
)


def test_a_busy_port_is_reported_with_an_alternative() -> None:
    with socket.socket() as taken:
        taken.bind((DEFAULT_ADDRESS, 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(DashboardError, match=rf"port {port} .* windowpane dashboard --port {port + 1}"):
            check_port(port, DEFAULT_ADDRESS)


def test_a_free_port_is_accepted(free_port: Callable[[], int]) -> None:
    port = free_port()
    check_port(port, DEFAULT_ADDRESS)
    check_port(port, DEFAULT_ADDRESS)


def test_the_server_is_local_and_sends_nothing() -> None:
    config = server_config(8501, DEFAULT_ADDRESS)

    assert config["server.address"] == "127.0.0.1"
    assert config["server.port"] == 8501
    assert config["server.headless"] is True
    assert config["browser.gatherUsageStats"] is False
    assert config["server.showEmailPrompt"] is False
    assert config["runner.magicEnabled"] is False
    assert config["theme.light.textColor"] != config["theme.dark.textColor"]


def test_streamlit_knows_every_setting() -> None:
    """A misspelled option would only be reported at the start of the server."""
    from streamlit import config

    assert {name for name in server_config(1, "::1") if name not in config.get_config_options()} == set()
    assert APP.exists()


def test_each_page_has_a_document_that_names_the_server() -> None:
    pages = set(re.findall(r'url_path="([^"]+)"', APP.read_text(encoding="utf-8")))

    assert pages == set(front.PAGES)
    assert {f"/{name}" for name in pages} <= {route.path for route in routes()}
    assert front.document().count("BACKEND_BASE_URL") == 1
    assert front.document().index("BACKEND_BASE_URL") < front.document().index('type="module"')


def test_a_server_that_cannot_start_reports_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "streamlit.py").write_text("raise SystemExit('no server today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(DashboardError, match=r"did not start:\nno server today"), serving(tmp_path):
        pytest.fail("nothing answers")


def test_a_server_takes_the_wanted_port_or_another_where_it_is_in_use() -> None:
    with socket.socket() as other:
        other.bind((DEFAULT_ADDRESS, 0))
        other.listen()
        port = other.getsockname()[1]
        assert _free_port(port) != port

    assert _free_port(port) == port


def test_libraries_are_loaded_before_the_first_page() -> None:
    script = (
        "import gc, sys; from windowpane_dashboard.server.launch import WARM, warm_up; warm_up(); "
        "print(set(WARM) <= set(sys.modules), gc.get_freeze_count() > 100_000)"
    )

    page_text = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert page_text.stdout.split() == ["True", "True"]
    assert page_text.stderr == ""
