"""Models for a suite: functions that a user names, and a judge that matches strings without a model."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.prompts import ANSWER, COMPARE
from windowpane.fidelity.passages import TOKEN, terms_of

EXPECTED: Final = "module:function or file.py:function"
STRING_MATCH: Final = "string-match (no model)"
"""Name of the string-matching judge beside its scores."""
ANSWER_LINES: Final = 3
_FENCED: Final = re.compile(r"<<<content (\w+)\n(.*?)\n\1 content>>>", re.DOTALL)
_SENTENCE_SHARE: Final = 0.6
"""Share of the shorter answer's words that the other must have for the two to agree."""
_MINIMUM_OVERLAP: Final = 0.3
"""Share of a question's words that a line must contain to be an answer."""


def load_callable(reference: str, *, option: str) -> Callable[..., Any]:
    """Import the function that *reference* names, a `module:function` or `file.py:function`.

    Runs the code of the module; modules are also searched in the current folder. Raises `ConfigurationError`
    about *option* for a missing module or function.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise ConfigurationError(option, f"{reference!r} is invalid", expected=EXPECTED)
    if module_name.endswith(".py"):
        value: Any = _from_file(Path(module_name), option)
    else:
        value = _from_name(module_name, option)
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise ConfigurationError(option, f"{module_name} has no function {attribute}", expected=EXPECTED)
    function: Callable[..., Any] = value
    return function


def _from_name(name: str, option: str) -> ModuleType:
    try:
        with _current_folder_on_path():
            return importlib.import_module(name)
    except Exception as error:
        raise _failed(name, option, error) from error


@contextmanager
def _current_folder_on_path() -> Iterator[None]:
    """Search modules in the current folder too, last and while the block runs: none replaces a library's."""
    here = str(Path.cwd())
    if here in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        with suppress(ValueError):  # the module has removed it
            sys.path.remove(here)


def _from_file(path: Path, option: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigurationError(option, f"file not found: {path}", expected=EXPECTED)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(str(path), option, error) from error
    return module


def _failed(name: str, option: str, error: Exception) -> ConfigurationError:
    problem = f"cannot import {name} ({type(error).__name__}: {error})"
    return ConfigurationError(option, problem, expected=EXPECTED)


def string_match(system: str, user: str) -> str:
    """Answer a judge's prompt by matching words: proves that a suite runs, without measuring recall.

    Returns the lines nearest to a question, or whether two answers share their words. Raises `ValueError` for any
    other prompt.
    """
    fenced = [body for _, body in _FENCED.findall(user)]
    if system == COMPARE and len(fenced) == 2:
        return "yes" if _same(fenced[0], fenced[1]) else "no"
    if system == ANSWER and len(fenced) == 1:
        return _nearest(user.rsplit("Question: ", 1)[-1], fenced[0])
    raise ValueError("the string-matching judge only answers questions and compares answers")


string_match.name = STRING_MATCH  # type: ignore[attr-defined]  # its name in events and reports


def _nearest(question: str, material: str) -> str:
    terms = _terms(question)
    rated = []
    for number, line in enumerate(material.splitlines()):
        overlap = len(terms & _terms(line)) / max(1, len(terms))
        if overlap >= _MINIMUM_OVERLAP:
            rated.append((overlap, number, line.strip()))
    best = sorted(rated, reverse=True)[:ANSWER_LINES]
    return " / ".join(line for _, _, line in best) or "UNKNOWN"


def _same(first: str, second: str) -> bool:
    """Return whether the longer answer has the names, numbers and most words of the shorter one."""
    shorter, longer = sorted((_terms(first), _terms(second)), key=len)
    names = {token for token in shorter if not token.isalpha()}
    return bool(shorter) and names <= longer and len(shorter & longer) >= _SENTENCE_SHARE * len(shorter)


@lru_cache(maxsize=8_192)
def _terms(text: str) -> frozenset[str]:
    """Return the terms of a line; each is compared with many questions."""
    return frozenset(term.text for term in terms_of(text)) or frozenset(map(str.lower, TOKEN.findall(text)))
