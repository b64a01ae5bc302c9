"""Notes as a compression: what the agent wrote down takes the place of the conversation it was written in.

Costs nothing. Whether the notes say enough is for the gate to judge: they have to keep half of the facts by
themselves, without credit for what can be fetched again. If they do not, another writer comes after them.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.step import StepResult
from windowpane.manager.steps.summary import Draft, SummaryInput, SummaryWriter, complete_summary

METHOD: Final = "notes"


def can_carry_notes(engine: Engine, levels: Levels) -> bool:
    """Whether there are notes that have not been found wanting."""
    return (
        bool(engine.notes.notes)
        and engine.reduction.rejected_notes != engine.notes.notes
        and engine.used() >= levels.evict
    )


def carry_notes(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the older conversation by the notes, if they say enough."""
    outcome = yield from compact(engine, limits, levels, trigger="pressure", writer=NOTES)
    if outcome:
        engine.reduction.rejected_notes = ()
    return outcome


def _draft(engine: Engine, source: SummaryInput) -> Effect[Draft]:
    """The notes whole, with goal, progress and where the original is."""
    yield from ()
    engine.reduction.rejected_notes = engine.notes.notes
    return Draft(complete_summary(engine, engine.notes.text(), source.handle), METHOD)


NOTES: Final = SummaryWriter("note_taking", _draft, required=False)
