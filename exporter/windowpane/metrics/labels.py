"""Labels of the metrics, and the rules that keep their values safe and few.

Agent and model names come from users or from a recording. Everything else of a session becomes a label only as a
member of an enumeration, so a scrape never grows without bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.protocols import ModelCatalog
from windowpane.core.vocabulary import (
    CACHE_BREAK_CAUSES,
    COMPONENTS,
    CONTENT_TYPES,
    MISSTEPS,
    RULE_FATES,
    RULE_SOURCES,
    ZONES,
)

AGENT_NAMES: Final = 50
"""Distinct agent names before the rest share `other`."""
NAME_CHARACTERS: Final = 64
OTHER: Final = "other"
"""Replaces a value outside a label's enumeration or beyond its cap."""

FILLS: Final = {"0.9": 0.9, "0.7": 0.7, "0.5": 0.5, "0": 0.0}
"""Starts of the ranges of a window's fill, the last first; each is a bound of `turn_utilization_ratio`."""
REMOVAL_CAUSES: Final = ("eviction", "compression")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class Label:
    """A label and its possible values."""

    name: str
    help: str
    values: tuple[str, ...] = ()
    """The whole enumeration; empty where names are admitted as they come, up to `cap`."""
    cap: int = 0
    """Distinct names admitted without an enumeration; later ones become `other`."""


LABELS: Final = {
    label.name: label
    for label in (
        Label(
            "agent", "the agent's name, at most 64 characters `[A-Za-z0-9_.-]`; `other` after the first 50 names",
            cap=50,
        ),
        Label("model", "the model's name in the model catalog, else `other`", cap=50),
        Label("component", "budget bucket", (*COMPONENTS, "output_reserved")),
        Label("zone", "pressure zone; `unknown` if the size of the window is unknown", (*ZONES, "unknown")),
        Label("tool", "name of the tool; `other` after the first 50 names", cap=50),
        Label("kind", "kind of the name", ("mcp_server", "skill", "memory_file")),
        Label(
            "name", "MCP server, skill, or file name of a memory file; `other` after the first 50", cap=50
        ),
        Label("window", "length of a window of a plan, such as `5h` or `7d`", cap=16),
        Label("from", "zone before the change", ZONES),
        Label("to", "zone after the change", ZONES),
        Label("bound", "early end, median and late end of the forecast's 10–90 band", ("p10", "p50", "p90")),
        Label("method", "evaluation method of the fidelity score", ("probe", "judge", "behavior")),
        Label(
            "state", "of a carried token, or of an alert", ("fresh", "stale", "duplicate", "firing", "resolved")
        ),
        Label("misstep", "kind of misstep", MISSTEPS),
        Label("fill", "start of the range of the fill; `unknown` without a limit", (*FILLS, "unknown")),
        Label("fate", "state of a standing instruction after a compaction", RULE_FATES),
        Label("rule_source", "author of a standing instruction", RULE_SOURCES),
        Label("policy", "eviction policy; `agent` for evictions by the agent itself", cap=16),
        Label("content_type", "content type of the block", CONTENT_TYPES),
        Label(
            "strategy", "compression strategy",
            (
                "tool_result_summarization", "progressive_summarization", "compaction", "note_taking",
                "subagent_delegation", "truncation", "semantic_merge",
            ),
        ),
        Label(
            "outcome", "result of the attempt",
            (
                "accepted", "rejected", "failed", "warned", "blocked", "reduced", "retried", "rolled", "saved",
                "loaded", "delivered",
            ),
        ),
        Label(
            "cause", "how the content was removed, or why a cached prefix was sent again",
            (*REMOVAL_CAUSES, *CACHE_BREAK_CAUSES),
        ),
        Label("type", "kind of token", ("input", "output", "cache_read", "cache_write", "reasoning")),
        Label("alert", "name of the alert", cap=64),
        Label("severity", "severity of the alert", ("info", "warning", "critical")),
        Label("session", "session id; only with the opt-in cap", cap=0),
        Label("hook", "hook of the window manager", cap=16),
        Label("sink", "sink that missed the event", cap=16),
        Label("reason", "reason for the drop", cap=16),
        Label("channel", "kind of notification channel, never its address", cap=32),
        Label("version", "release of Windowpane", cap=1),
        Label("python", "version of Python", cap=1),
    )
}  # fmt: skip
"""Every label by name, with its bounded values."""


def safe_name(name: str) -> str:
    """Return at most 64 characters of *name*, those outside `[A-Za-z0-9_.-]` replaced; `other` for no name."""
    return _UNSAFE.sub("_", name[:NAME_CHARACTERS]) or OTHER


class AdmittedNames:
    """Admits the first *cap* distinct names and maps every later one to `other`.

    *admitted* are names that another process or an earlier run admitted.
    """

    def __init__(self, cap: int = AGENT_NAMES, *, admitted: Iterable[str] = ()) -> None:
        self._cap = cap
        self._names = {safe_name(name) for name in admitted}

    def __call__(self, name: str) -> str:
        """Return the label value for *name*."""
        safe = safe_name(name)
        if safe in self._names:
            return safe
        if len(self._names) >= self._cap:
            return OTHER
        self._names.add(safe)
        return safe

    @property
    def names(self) -> frozenset[str]:
        """All names admitted so far."""
        return frozenset(self._names)


def value_limiter(label: Label) -> Callable[[str], str]:
    """Return a function that maps any text to an allowed value of *label*."""
    if not label.values:
        return AdmittedNames(label.cap)
    values = frozenset(label.values)
    return lambda name: name if name in values else OTHER


@dataclass(frozen=True, slots=True)
class LabelPolicy:
    """The functions that map a session's agent and model to labels; each returns a bounded set of values."""

    agent: Callable[[str], str] = field(default_factory=AdmittedNames)
    model: Callable[[str], str] = field(default_factory=AdmittedNames)


def model_label(catalog: ModelCatalog) -> Callable[[str], str]:
    """Return a function that maps a model to its name in *catalog*, and an unknown model to `other`."""

    def label(model: str) -> str:
        info = catalog.lookup(model) if model else None
        return OTHER if info is None else info.name

    return label
