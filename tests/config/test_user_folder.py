"""The folder of a user's data on each platform."""

from __future__ import annotations

import sys

import pytest

from windowpane.config.user_folder import user_folder


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, "/home/ada/.local/share/windowpane"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/windowpane"),
        ("linux", {"XDG_DATA_HOME": "data"}, "/home/ada/.local/share/windowpane"),
        ("darwin", {}, "/home/ada/Library/Application Support/windowpane"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/data/windowpane"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/windowpane"),
        ("win32", {}, "/home/ada/AppData/Local/windowpane"),
    ],
)
def test_the_folder_follows_the_conventions_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)

    assert user_folder() == folder
