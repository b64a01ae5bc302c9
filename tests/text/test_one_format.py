"""Numbers are formatted in one place: `windowpane.text.formats`, and for tables `page.number_formats`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import windowpane
import windowpane_dashboard

PACKAGES = (Path(windowpane.__file__).parent, Path(windowpane_dashboard.__file__).parent)
READ = ("alerts", "cli", "report", "text", "queries", "charts", "page", "sections", "views")
"""Folders whose texts people read."""
HOME = {"text/formats.py", "page/number_formats.py"}
NOT_READ = {"report/svg.py": "coordinates of a drawing"}
DECIMALS = re.compile(r"[+,_]*\.\d+[feg%]")
"""The format of a number with decimals or of a percentage, as in `.2f`."""
IN_A_BROWSER = re.compile(r"%\.\d+[fd]|%%|^(compact|dollar|percent|localized|accounting)$")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for folder in READ:
            for path in sorted((package / folder).rglob("*.py")):
                name = path.relative_to(package).as_posix()
                if name not in HOME | NOT_READ.keys():
                    yield name, ast.parse(path.read_text(encoding="utf-8"))


def formats_of(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The formats in f-strings, in `"{:.2f}".format`, and of the number columns of tables."""
    for node in ast.walk(module):
        match node:
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=[ast.Constant(value=str(form))])):
                own = DECIMALS.fullmatch(form)
            case ast.Attribute(attr="format", value=ast.Constant(value=str(form))):
                own = DECIMALS.search(form)
            case ast.keyword(arg="format", value=ast.Constant(value=str(form))):
                own = IN_A_BROWSER.search(form)
            case _:
                continue
        if own:
            yield getattr(node, "lineno", 0), form


def test_no_module_has_a_number_format_of_its_own() -> None:
    own = [f"{name}:{line}: {form}" for name, module in modules() for line, form in formats_of(module)]

    assert own == []
