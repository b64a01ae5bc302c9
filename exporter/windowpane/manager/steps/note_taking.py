"""Note taking as a compression: the agent's notes replace the conversation they were written in, without a model.

The acceptance check requires that the notes retain half of the facts, without credit for content that can be
fetched again. If they do not, the next step of the cascade writes the summary.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.acceptance import FIDELITY_FLOOR
from windowpane.manager.step import StepResult
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.summary import Draft, SummaryInput, SummaryWriter, complete_summary

METHOD: Final = "notes"


def can_carry_notes(engine: Engine, levels: Levels) -> bool:
    """Return whether there are notes that have not been rejected."""
    return (
        bool(engine.notes.notes)
        and engine.reduction.rejected_notes != engine.notes.notes
        and engine.used() >= levels.evict
    )


def carry_notes(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    """Replace the older conversation by the notes, if they retain enough facts."""
    outcome = yield from compact(engine, limits, levels, trigger="pressure", writer=NOTES)
    if outcome:
        engine.reduction.rejected_notes = ()
    return outcome


def _draft(engine: Engine, source: SummaryInput) -> Effect[Draft]:
    """Return the notes with goal, progress and the handle of the original."""
    yield from ()
    engine.reduction.rejected_notes = engine.notes.notes
    return Draft(complete_summary(engine, engine.notes.text(), source.handle), METHOD)


NOTES: Final = SummaryWriter("note_taking", _draft, required=False, fidelity_floor=FIDELITY_FLOOR)
