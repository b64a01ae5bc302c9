"""The command that installs an extra."""

from __future__ import annotations

import sys

import pytest

from windowpane.core.version import install_command


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ann/.cache/uv/archive-v0/7LEhpmxk", "uvx --from 'windowpane-observability[mcp]' windowpane"),
        (
            r"C:\Users\Ann\AppData\Local\uv\cache\archive-v0\7L",
            "uvx --from 'windowpane-observability[mcp]' windowpane",
        ),
        ("/home/ann/uv/project/.venv", "pip install 'windowpane-observability[mcp]'"),
    ],
)
def test_what_installs_an_extra_depends_on_the_environment(
    prefix: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)

    assert install_command("mcp") == command
