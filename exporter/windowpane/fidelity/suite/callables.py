"""Finds the function that a user names as `module:function` or `file.py:function`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from windowpane.exceptions import ConfigurationError

EXPECTED = "module:function or file.py:function"


def load_callable(named: str, *, option: str) -> Callable[..., Any]:
    """The function *named*; modules are also looked for in the current folder.

    Runs the module's code, as importing it does. Raises `ConfigurationError` about *option* where there is no
    such module or function.
    """
    place, colon, attribute = named.rpartition(":")
    if not colon or not place or not attribute:
        raise ConfigurationError(option, f"{named!r}", expected=EXPECTED)
    module = _from_file(Path(place), option) if place.endswith(".py") else _from_name(place, option)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ConfigurationError(option, f"{place} has no function {attribute}", expected=EXPECTED)
    function: Callable[..., Any] = found
    return function


def _from_name(name: str, option: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise _failed(name, option, error) from error


def _from_file(path: Path, option: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigurationError(option, f"there is no file {path}", expected=EXPECTED)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(str(path), option, error) from error
    return module


def _failed(name: str, option: str, error: Exception) -> ConfigurationError:
    problem = f"cannot import {name} ({type(error).__name__}: {error})"
    return ConfigurationError(option, problem, expected=EXPECTED)
