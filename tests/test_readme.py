"""The README says what is so: its tables, its commands, its links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from windowpane.cli import COMMANDS
from windowpane.config import load_config

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_tables_are_current() -> None:
    """Writing the tables again changes nothing."""
    text = README.read_text(encoding="utf-8")

    assert load(ROOT / "docs" / "make_tables.py").with_tables(text) == text


def test_every_command_it_shows_exists() -> None:
    """Each `windowpane WORD` in a code block is a command."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL))
    shown = set(re.findall(r"^(?:\.venv/bin/)?windowpane (\w+)", blocks, flags=re.MULTILINE))

    assert shown
    assert shown <= set(COMMANDS)


def test_it_has_exactly_two_make_targets_for_setting_up() -> None:
    """Setting up is `make demo` and `make test`, and both exist in the Makefile."""
    shown = re.findall(r"^make ([\w-]+)", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert shown == ["demo", "test"]
    assert set(shown) <= set(targets)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/how-it-works.md"])
def test_links_to_files_lead_somewhere(page: str) -> None:
    """Every relative link of a page names a file that exists."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]

    assert [link for link in links if link and not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_documented_configuration_is_valid(tmp_path: Path) -> None:
    """The YAML of the configuration page is read without an error."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    file = tmp_path / "windowpane.yaml"
    file.write_text(document, encoding="utf-8")

    config = load_config(file, environ={})

    assert config.pressure.velocity_window == 5
    assert config.max_context_tokens == 128_000
