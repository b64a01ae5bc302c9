"""`windowpane search`: a word in captured texts, and the life of the block that held it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from windowpane.cli import main

RECORDING = "claude_code/compact_small_a6"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, sessions_dir: Path) -> Path:
    """A store with one recorded session and its texts."""
    path = tmp_path_factory.mktemp("search") / "windowpane.db"
    recording = next(sessions_dir.glob(f"{RECORDING}*"))
    result = CliRunner().invoke(main, ["import", "--capture", "--store", str(path), str(recording)])
    assert result.exit_code in (0, 3), result.output
    return path


def search(store: Path, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["search", "--store", str(store), *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_part_of_a_word_is_found_with_its_turn(store: Path) -> None:
    output = search(store, "ontinue", "--limit", "3")

    assert " turn " in output
    assert "ontinue" in output.lower()
    assert "captured." in output


def test_the_life_of_a_block_has_its_turns(store: Path) -> None:
    assert "Added as" in search(store, "ontinue", "--limit", "1", "--life")
    document = json.loads(search(store, "ontinue", "--limit", "1", "--life", "--json"))
    (steps,) = document["lives"].values()
    assert steps[0]["step"] == "added"


def test_without_captured_texts_the_way_to_capture_is_shown(tmp_path: Path, sessions_dir: Path) -> None:
    """The store of an import without capture explains why nothing can be found."""
    path = tmp_path / "windowpane.db"
    recording = next(sessions_dir.glob(f"{RECORDING}*"))
    CliRunner().invoke(main, ["import", "--store", str(path), str(recording)])

    assert "windowpane import --capture" in search(path, "anything")


def test_capture_can_be_configured(tmp_path: Path, sessions_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWPANE_CAPTURE", "1")
    path = tmp_path / "windowpane.db"
    recording = next(sessions_dir.glob(f"{RECORDING}*"))
    CliRunner().invoke(main, ["import", "--store", str(path), str(recording)])

    assert "ontinue" in search(path, "ontinue", "--limit", "1").lower()
