"""The README and the docs are true: tables, commands, links."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import operator
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import click
import pytest

import windowpane
from windowpane.cli import main

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXPLANATIONS = ("window", "forecast", "losses", "cost")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]


@functools.cache
def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["metrics", "alerts", "dashboard", "tutorial"])
def test_the_generated_tables_are_current(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")

    assert load(ROOT / "docs" / "make_tables.py").with_table(name, text) == text


@pytest.mark.parametrize("page", PAGES)
def test_measured_values_are_those_of_the_results(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    values = load(ROOT / "benchmarks" / "write_values.py")

    assert values.with_values(text) == text
    assert text.count("<!-- measured ") == text.count("<!-- /measured -->")


def test_every_measured_value_is_on_a_page() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)

    assert set(re.findall(r"<!-- measured ([\w-]+):", text)) == set(
        load(ROOT / "benchmarks" / "write_values.py").VALUES
    )


def test_it_has_exactly_two_make_targets_for_setting_up() -> None:
    commands = re.findall(r"^make ([\w-]+)", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    if page.startswith("docs/"):  # the site has pages that are generated from the code
        links = [link for link in links if not link.startswith("reference/")]

    assert [link for link in links if link and not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_its_python_is_python(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    window = windowpane.ContextWindowManager(agent="docs", model="unknown", data_folder=tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("windowpane"):
                if page != "CONTRIBUTING.md":  # which is for readers of the modules behind the public names
                    assert node.module in ("windowpane", "windowpane.testing")
                home = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(home, name.name)] == []
            if isinstance(node, ast.Attribute) and re.fullmatch(r"window(\.\w+)+", path := ast.unparse(node)):
                operator.attrgetter(path.removeprefix("window."))(window)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "windowpane":
                assert node.attr in windowpane.__all__


@pytest.mark.parametrize("page", PAGES)
def test_the_options_of_its_commands_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        for line in re.findall(r"^(?:\.venv/bin/)?windowpane ([^#\n]+)", block, flags=re.MULTILINE):
            parts = line.split(" -- ")[0].split()  # what follows a bare `--` is another program
            command: click.Command = main
            while isinstance(command, click.Group) and parts:
                name = parts.pop(0)
                subcommand = command.get_command(click.Context(command), name)
                assert subcommand is not None, name
                command = subcommand
            options = {option for parameter in command.params for option in parameter.opts}
            assert {word.split("=")[0] for word in parts if word.startswith("--")} <= options, line


def test_how_it_works_names_what_exists() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    package = ROOT / "exporter" / "windowpane"
    folders = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    explanations = [text, *((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in EXPLANATIONS)]
    found = re.findall(r"`(\w+(?:\.\w+)+)`", "".join(explanations))
    names = {name for name in found if name.split(".")[0] in folders}

    assert folders == set(re.findall(r"`(\w+)/`(?=[^|\n]*\|[^|\n]+\|$)", text, flags=re.MULTILINE))
    assert len(names) > 20
    dashboard = ROOT / "dashboard" / "windowpane_dashboard"
    rooms = re.findall(r"^\| `(\w+)` \|", text.split("Its folders:")[1].split("\n## ")[0], flags=re.MULTILINE)
    assert set(rooms) == {path.parent.name for path in dashboard.glob("*/__init__.py")}
    for name in sorted(names):
        assert pkgutil.resolve_name(f"windowpane.{name}") is not None
