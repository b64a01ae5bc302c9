"""Starts the dashboard's server; `windowpane dashboard` and `windowpane demo` call `run`."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

from windowpane.exceptions import WindowpaneError

APP: Final = Path(__file__).with_name("app.py")
DEFAULT_PORT: Final = 8501
DEFAULT_ADDRESS: Final = "127.0.0.1"


class DashboardError(WindowpaneError):
    """The dashboard cannot be started; the message says why and what to do."""


def run(store_path: Path, port: int = DEFAULT_PORT, address: str = DEFAULT_ADDRESS) -> None:
    """Serve the dashboard of *store_path* and block until stopped. Raises `DashboardError`.

    Listens on loopback unless told otherwise: the dashboard has no authentication of its own. Nothing is sent
    anywhere, no browser is opened, nothing is asked.
    """
    try:
        import streamlit as st
    except ImportError as error:
        raise DashboardError(
            "the dashboard is not installed; run: pip install 'windowpane[dashboard]'"
        ) from error
    check_port(port, address)
    os.environ["WINDOWPANE_STORE"] = str(store_path)
    st.App(APP).run(config=server_config(port, address))


def server_config(port: int, address: str) -> dict[str, object]:
    """Streamlit's settings, whatever the user's own configuration says."""
    return {
        "server.port": port,
        "server.address": address,
        "server.headless": True,
        "server.showEmailPrompt": False,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "viewer",
        "client.showErrorDetails": "none",
    }


def check_port(port: int, address: str) -> None:
    """Fail early where the port cannot be had. Raises `DashboardError`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise DashboardError(
                f"port {port} on {address} cannot be used ({error.strerror}); "
                f"choose another with: windowpane dashboard --port {port + 1}"
            ) from error
