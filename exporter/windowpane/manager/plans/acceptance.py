"""The gate every compression passes before it is applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.manager.plans.summary import HEADINGS, Section

MINIMUM_PROGRESS: Final = 0.10
"""Share of the window's tokens a compression has to free when it misses its target."""
FIDELITY_FLOOR: Final = 0.5
_CALL_MARKS: Final = ("<tool_call>", "<function_calls>", '"tool_calls":', "<invoke ")


@dataclass(frozen=True, slots=True)
class Offer:
    """A compression that could be applied; tokens as counted at ingest."""

    text: str
    tokens_before: int
    """Of the content it replaces."""
    tokens_after: int
    window_before: int
    """Of the window without what is sent with every call."""
    target_tokens: int
    """Likewise."""
    required_sections: Sequence[Section] = ()
    pinned: Sequence[str] = ()
    """Texts it has to hold word for word, such as the goal."""
    fidelity: float | None = None


class _Fault(NamedTuple):
    wrong: bool
    reason: str


def reject(offer: Offer) -> str:
    """Why *offer* may not be applied; empty when it may."""
    return next((reason for wrong, reason in _faults(offer) if wrong), "")


def _faults(offer: Offer) -> Iterator[_Fault]:
    yield _Fault(not offer.text.strip(), "empty")
    yield _Fault(offer.tokens_after >= offer.tokens_before, "not smaller")
    yield _Fault(any(mark in offer.text for mark in _CALL_MARKS), "calls a tool")
    for section in offer.required_sections:
        yield _Fault(HEADINGS[section] not in offer.text, f"section missing: {section}")
    yield _Fault(any(pinned not in offer.text for pinned in offer.pinned), "pinned text missing")
    saved = offer.tokens_before - offer.tokens_after
    missed = offer.window_before - saved > offer.target_tokens
    yield _Fault(missed and saved < MINIMUM_PROGRESS * offer.window_before, "too little progress")
    if offer.fidelity is not None:
        yield _Fault(offer.fidelity < FIDELITY_FLOOR, f"fidelity {offer.fidelity:.2f} is below {FIDELITY_FLOOR}")
