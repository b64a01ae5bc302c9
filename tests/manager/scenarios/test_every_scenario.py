"""Every scenario from 1 to 132 is a test of the engine, or is listed with the reason why it does not apply."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from not_applicable import NOT_APPLICABLE

TESTS = Path(__file__).resolve().parents[1]
SCENARIO = re.compile(r"scenario_(\d{3})")
ALL = set(range(1, 133))


def covered() -> dict[int, list[str]]:
    """Scenario numbers in the names of test functions and in the ids of their parameters."""
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                names = [node.name]
            elif isinstance(node, ast.keyword) and node.arg == "id" and isinstance(node.value, ast.Constant):
                names = [str(node.value.value)]
            for name in names:
                for number in SCENARIO.findall(name):
                    found.setdefault(int(number), []).append(f"{path.name}: {name}")
    return found


def test_every_scenario_is_tested_or_listed_and_none_is_both() -> None:
    """132 numbers, each on exactly one side."""
    numbers = set(covered())

    assert sorted(ALL - numbers - set(NOT_APPLICABLE)) == []
    assert sorted(numbers & set(NOT_APPLICABLE)) == []
    assert sorted((numbers | set(NOT_APPLICABLE)) - ALL) == []


def test_what_does_not_apply_says_why() -> None:
    """A reason is a sentence, not a word."""
    assert all(len(reason.split()) >= 8 for reason in NOT_APPLICABLE.values())


def test_a_scenario_s_test_says_what_it_shows() -> None:
    """Behind the number its name has the behaviour."""
    bare = [name for names in covered().values() for name in names if re.search(r"scenario_\d{3}$", name)]

    assert bare == []
