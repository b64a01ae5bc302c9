"""Every regular expression of both packages takes linear time, whatever text it is given.

The expressions are found in the source: each call of `re.compile`, `re.search` and their like, and every
pattern or table of patterns that a module holds. Each runs over texts made from its parts, at two sizes: ten
times the text may take about ten times as long.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from re import _parser as parser  # type: ignore[attr-defined]
from typing import NamedTuple

import pytest
from tests.sampling import EVERYTHING

from windowpane.core.redaction import redact
from windowpane.core.redaction.literals import LiteralSearch
from windowpane.core.redaction.shape import Shape, Span
from windowpane.core.redaction.shapes import SHAPES

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "exporter" / "windowpane", ROOT / "dashboard" / "windowpane_dashboard")
FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
SMALL, LARGE = 500, 5_000
SLOWEST_GROWTH = 40.0
"""Ten times the text: linear work takes 10 times as long, quadratic 100 times."""
FREE_SECONDS = 0.01
"""A large text that takes less is not compared: the clock is too coarse."""
BOUNDED = {
    "windowpane.evaluation.suite.judges._FENCED": "a block ends with its own id, so the first opening matches",
}
"""Patterns that are not linear in themselves, with what bounds them."""


class Found(NamedTuple):
    """A pattern, and the name it is held by."""

    pattern: str
    flags: int
    name: str


def patterns_of_source(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the literal patterns in the calls of `re` functions of one file, with their flags."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (
            isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in FUNCTIONS
        ):
            continue
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            named = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            flags = sum(getattr(re, name) for name in ("IGNORECASE", "DOTALL", "MULTILINE") if name in named)
            yield node.args[0].value, flags


def patterns_held(value: object, depth: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the compiled patterns in a module's constants, also those inside tables."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value.pattern, value.flags & ~re.UNICODE
    elif depth < 4 and isinstance(value, dict):
        for part in value.values():
            yield from patterns_held(part, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from patterns_held(part, depth + 1)
    elif depth < 4 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from patterns_held(getattr(value, name, None), depth + 1)


@cache
def all_patterns() -> list[Found]:
    """Return every pattern of both packages, except those of the shapes of secrets."""
    held: list[Found] = []
    for folder in PACKAGES:
        for path in sorted(folder.rglob("*.py")):
            module = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
            if folder is PACKAGES[0] and "re.compile" in path.read_text(encoding="utf-8"):
                for name, value in vars(importlib.import_module(module)).items():
                    held += [Found(*pattern, f"{module}.{name}") for pattern in patterns_held(value)]
            held += [Found(*pattern, module) for pattern in patterns_of_source(path)]
    once = {(found.pattern, found.flags): found for found in reversed(held)}
    return [found for found in once.values() if found.name not in BOUNDED]


def example(tree: parser.SubPattern, repeats: int) -> str:
    """Return a text that *tree* matches, with each run repeated *repeats* times or as often as it may be."""
    return "".join(piece(str(operation), argument, repeats) for operation, argument in tree)


def piece(operation: str, argument: object, repeats: int) -> str:  # noqa: PLR0911
    match operation, argument:
        case "LITERAL", int(code):
            return chr(code)
        case "NOT_LITERAL", int(code):
            return "b" if chr(code) == "a" else "a"
        case "ANY", _:
            return "a"
        case "IN", list(choices):
            return character(choices)
        case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (low, high, body)):
            return example(body, repeats) * max(low, min(high, repeats))
        case "SUBPATTERN", (_, _, _, body):
            return example(body, repeats)
        case "ATOMIC_GROUP", body:
            return example(body, repeats)
        case "BRANCH", (_, branches):
            return example(branches[0], repeats)
    return ""


def character(choices: list[tuple[object, object]]) -> str:
    """Return a character of a class; of a negated one a letter that is probably in it."""
    for operation, argument in choices:
        match str(operation), argument:
            case "NEGATE", _:
                return "a"
            case "LITERAL", int(code):
                return chr(code)
            case "RANGE", (int(low), int()):
                return chr(low)
            case "CATEGORY", category:
                return {"DIGIT": "1", "SPACE": " ", "WORD": "a"}.get(str(category).rpartition("_")[2], "a")
    return "a"


def prefixes(tree: parser.SubPattern) -> Iterator[str]:
    """Yield examples of the pattern's beginnings: a match that fails at its last part is the costly one."""
    for count in range(1, len(tree) + 1):
        yield example(tree[:count], 3)
        yield example(tree[:count], 40)


def hostile_units(pattern: str, flags: int) -> list[str]:
    """Return the texts whose repetition could provoke backtracking in *pattern*."""
    tree = parser.parse(pattern, flags)
    units = {" ", "a", "1", "-", "=", '"', "\\", ".", "/", "a1", "\n", "x" * 30 + " ", *prefixes(tree)}
    chosen = sorted({unit for unit in units if unit})
    return chosen if EVERYTHING else sorted({" ", *chosen[len(pattern) % 4 :: 4]})


def calls_by_name() -> dict[str, set[str]]:
    """Return the methods that the sources call on each name."""
    calls: dict[str, set[str]] = {}
    called = re.compile(r"\b(\w+)\.(match|fullmatch|search|sub|findall|finditer|split)\(")
    for folder in PACKAGES:
        for path in folder.rglob("*.py"):
            for name, method in called.findall(path.read_text(encoding="utf-8")):
                calls.setdefault(name, set()).add(method)
    return calls


def methods_of(found: Found, calls: dict[str, set[str]]) -> set[str]:
    """Return how the sources call a pattern: one that is only matched at a position is not searched."""
    called = calls.get(found.name.rpartition(".")[2], set())
    at_position = called & {"match", "fullmatch"}
    return at_position if called and called == at_position else at_position | {"finditer"}


def seconds(run: Callable[[str], object], text: str) -> float:
    """Return the processor time of one run over *text*."""
    started = time.process_time()
    run(text)
    return time.process_time() - started


def grows_too_fast(run: Callable[[str], object], unit: str) -> bool:
    """Return True if ten times the text takes far more than ten times as long, and does so again."""
    small, large = (f"x{unit * max(1, size // len(unit))}\0" for size in (SMALL, LARGE))
    return all(
        (took := seconds(run, large)) > FREE_SECONDS
        and took > SLOWEST_GROWTH * max(min(seconds(run, small), seconds(run, small)), 1e-6)
        for _ in range(2)
    )


def runner(expression: re.Pattern[str], method: str) -> Callable[[str], object]:
    if method == "finditer":
        return lambda text: sum(1 for _ in expression.finditer(text))
    return getattr(expression, method)


@pytest.mark.timeout(300)
def test_every_expression_is_linear() -> None:
    slow, calls = [], calls_by_name()
    for found in all_patterns():
        expression = re.compile(found.pattern, found.flags)
        for method in methods_of(found, calls):
            run = runner(expression, method)
            slow += [
                (found.name, method, unit[:40])
                for unit in hostile_units(found.pattern, found.flags)
                if grows_too_fast(run, unit)
            ]

    assert not slow


def shape_spans(shape: Shape, literal: str, text: str) -> list[Span]:
    found = LiteralSearch([literal.lower()]).occurrences(text.lower())
    return list(shape.spans(literal, found.get(literal.lower(), ()), text))


def test_every_shape_of_a_secret_is_linear() -> None:
    slow = []
    for shape in SHAPES:
        for literal in shape.literals:
            units = [literal, f"{literal}a1", f" {literal}", *hostile_units(shape.pattern, 0)]
            run = partial(shape_spans, shape, literal)
            slow += [(shape.kind, unit[:40]) for unit in units if grows_too_fast(run, unit)]

    assert not slow


@pytest.mark.timeout(0)
@pytest.mark.skipif(not EVERYTHING, reason="only with WINDOWPANE_TEST_ALL")
def test_a_million_characters_are_redacted_in_linear_time() -> None:
    slow = []
    for literal in sorted({literal for shape in SHAPES for literal in shape.literals})[::20]:
        small, large = (f"{literal}a1" * (size // (len(literal) + 2)) for size in (100_000, 1_000_000))
        took = seconds(redact, large)
        if took > 1.0 and took > SLOWEST_GROWTH * seconds(redact, small):
            slow.append((literal, took))

    assert not slow


def test_patterns_are_discovered() -> None:
    modules = {found.name for found in all_patterns()}

    assert "windowpane.fidelity.passages._SENTENCE_END" in modules
    assert "windowpane.core.redaction.locations._LOCATIONS" in modules
    assert "windowpane_dashboard.style.sanitize" in modules


def test_a_quadratic_expression_is_noticed() -> None:
    frame = re.compile(r"^[\s\"'`*_#>(\[]+|[\s\"'`*_)\]]+$")

    assert grows_too_fast(runner(frame, "finditer"), " ")
    assert grows_too_fast(runner(re.compile(r"\s+$"), "finditer"), " ")
