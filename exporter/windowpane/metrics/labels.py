"""Names from outside to label values: safe characters, and never more values than a scrape can bear.

Agent and model names come from whoever runs the agent, or from a recording; nothing else of a session ever
becomes a label without being one of an enumeration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.protocols import ModelCatalog
from windowpane.metrics.metric import OTHER, Label

AGENT_NAMES: Final = 50
"""Distinct agent names before the rest share `other`."""
NAME_CHARACTERS: Final = 64

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


def safe_name(name: str) -> str:
    """*name* with every character outside `[A-Za-z0-9_.-]` replaced, at most 64 of them; `other` for none."""
    return _UNSAFE.sub("_", name[:NAME_CHARACTERS]) or OTHER


class AdmittedNames:
    """The first *cap* distinct names as they are, every later one as `other`.

    *admitted* are names that were let in before, by another process or an earlier run.
    """

    def __init__(self, cap: int = AGENT_NAMES, *, admitted: Iterable[str] = ()) -> None:
        self._cap = cap
        self._names = {safe_name(name) for name in admitted}

    def __call__(self, name: str) -> str:
        """The label value for *name*."""
        safe = safe_name(name)
        if safe in self._names:
            return safe
        if len(self._names) >= self._cap:
            return OTHER
        self._names.add(safe)
        return safe

    @property
    def names(self) -> frozenset[str]:
        """Every name let in so far."""
        return frozenset(self._names)


class Enumeration:
    """A label's value where its enumeration has it, else `other`."""

    def __init__(self, label: Label) -> None:
        self._values = frozenset(label.values)

    def __call__(self, name: str) -> str:
        """The label value for *name*."""
        return name if name in self._values else OTHER


def bound(label: Label) -> Callable[[str], str]:
    """What keeps the values of *label* within its declaration."""
    return Enumeration(label) if label.values else AdmittedNames(label.cap)


@dataclass(frozen=True, slots=True)
class LabelPolicy:
    """How a session's agent and model become labels; both functions return a bounded set of values."""

    agent: Callable[[str], str] = field(default_factory=AdmittedNames)
    model: Callable[[str], str] = field(default_factory=AdmittedNames)


def model_label(catalog: ModelCatalog) -> Callable[[str], str]:
    """A model's name as *catalog* writes it; `other` for a model it does not know."""

    def label(model: str) -> str:
        info = catalog.lookup(model) if model else None
        return OTHER if info is None else info.name

    return label
