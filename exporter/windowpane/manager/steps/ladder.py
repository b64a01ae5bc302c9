"""The cascade: an ordered ladder of reductions, cheap ones first, each taken only while the window is too full.

The rungs are data. A session climbs those its settings name, in that order; another strategy joins by registering
a rung.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import BreakerOpened
from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.compaction import ENGINE_SHAPE, Shape
from windowpane.manager.plans.protection import GRADES
from windowpane.manager.settings import SAFETY_NET
from windowpane.manager.status import Action
from windowpane.manager.steps.compaction import compact
from windowpane.manager.steps.eviction import NOTHING, Outcome, cut_within_turn, evict
from windowpane.manager.steps.merging import merge_similar
from windowpane.manager.steps.new_window import roll
from windowpane.manager.steps.notes import carry_notes, may_note
from windowpane.manager.steps.progressive import let_age
from windowpane.manager.steps.subagent import delegate_history, may_delegate
from windowpane.manager.steps.tool_results import summarize_results

_log = logging.getLogger(__name__)


class Tally:
    """What a hook has done so far."""

    def __init__(self) -> None:
        self.action: Action = "none"
        self.done: list[str] = []
        self.freed = 0

    def note(self, action: Action, outcome: Outcome) -> None:
        """Add what a reduction did, if it did anything."""
        if outcome:
            self.action = action
            self.done.append(outcome.done)
            self.freed += outcome.freed_tokens


@dataclass(frozen=True, slots=True)
class Rung:
    """One reduction, and when it is due."""

    action: Action
    due: Callable[[Engine, Levels], bool]
    """Asked when the ladder reaches it, with what the rungs before have freed."""
    run: Callable[[Engine, WindowLimits, Levels], Effect[Outcome]]
    until_roll: bool = False
    """Whether it is left out where a new window begins: what it would do, that does too."""

    def is_due(self, engine: Engine, levels: Levels) -> bool:
        """Whether to take it now."""
        return not (self.until_roll and engine.used() >= levels.roll) and self.due(engine, levels)


def climb(engine: Engine, limits: WindowLimits, levels: Levels, tally: Tally) -> Effect[None]:
    """Take each rung that is due, in the order of the session's settings."""
    yield from take(engine.settings.ladder, engine, limits, levels, tally)


def take(
    ladder: Sequence[str | Rung], engine: Engine, limits: WindowLimits, levels: Levels, tally: Tally
) -> Effect[None]:
    """Take each rung of *ladder* that is due, in order; one that fails is passed over, and logged once."""
    for step in ladder:
        rung = RUNGS.get(step) if isinstance(step, str) else step
        if rung is None:
            raise ConfigurationError("compression.cascade", f"{step!r} is no rung", expected=", ".join(RUNGS))
        try:
            if rung.is_due(engine, levels):
                tally.note(rung.action, (yield from rung.run(engine, limits, levels)))
        except Exception:  # noqa: BLE001 (a policy, summarizer or strategy may be the user's code)
            name = step if isinstance(step, str) else rung.action
            if name not in engine.broken_rungs:
                engine.broken_rungs.add(name)
                _log.exception("%s failed; what comes after it on the ladder is tried instead", name)


def _evict(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
    """Merge what is alike, where the policy does, and evict what is still too much."""
    policy = engine.settings.policy
    merged = NOTHING
    if policy is not None and policy.merges:
        merged = yield from merge_similar(engine, limits, levels)
    if merged and not merged.shortfall:
        return merged
    evicted = yield from evict(engine, limits, levels, grades=GRADES[:2], minimum_tokens=levels.minimum_saving)
    if not (merged and evicted):
        return merged or evicted
    return Outcome(
        f"{merged.done}; {evicted.done}", merged.freed_tokens + evicted.freed_tokens, evicted.shortfall
    )


def _evict_hard(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
    return evict(engine, limits, levels, grades=GRADES[2:], minimum_tokens=1)


def _evict_anything(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
    """Drop whatever may be dropped: nothing that can still leave may make a call impossible."""
    if engine.settings.policy is None:
        return NOTHING
    policy = replace(engine.settings.policy, drops="any")
    return (yield from evict(engine, limits, levels, grades=GRADES[2:], minimum_tokens=1, policy=policy))


def _compact(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
    return compact_unless_stopped(engine, limits, levels, trigger="pressure")


def compact_unless_stopped(
    engine: Engine, limits: WindowLimits, levels: Levels, *, trigger: str, shape: Shape = ENGINE_SHAPE
) -> Effect[Outcome]:
    """Compact, unless the breaker is open; reports when it opens now."""
    breaker = engine.breaker
    was_open = breaker.open
    if not breaker.due(engine.tracker.turn):
        if not was_open:
            engine.tracker.record(BreakerOpened(breaker.reason, breaker.attempts))
        return NOTHING
    return (yield from compact(engine, limits, levels, trigger=trigger, shape=shape))


def cascade_ladder(begins: Mapping[str, float]) -> tuple[str | Rung, ...]:
    """A ladder whose compression strategies begin at given utilizations; one that is not named is not used."""
    named = [_beginning(ratio, name) for name, ratio in sorted(begins.items(), key=lambda item: item[1])]
    return ("eviction", *named, "roll", *SAFETY_NET)


def _beginning(ratio: float, name: str) -> Rung:
    """The engine's rung from *ratio* on; one that begins where a new window would is taken before that."""
    rung = RUNGS[name]

    def due(engine: Engine, levels: Levels) -> bool:
        begin = levels.evict if engine.limits is None else engine.limits.at(ratio)
        if engine.used() < begin:
            return False
        return rung.due(engine, levels) if begin >= levels.roll else rung.is_due(engine, levels)

    return Rung(rung.action, due, rung.run)


def background_compaction(begin_ratio: float | None = None) -> Rung:
    """After a turn: compact where a call would otherwise have to wait for it.

    *begin_ratio* is the utilization from which compaction was chosen; it begins there, or where checkpoints do if
    that is before. Where none was chosen it begins there too, and wherever eviction fell short before the call
    that has just ended.
    """

    def due(engine: Engine, levels: Levels) -> bool:
        if engine.limits is None:
            return False
        levels, used = levels.above(engine.standing()), engine.used()
        if begin_ratio is None:
            return used >= levels.checkpoint or min(used, engine.sent) >= levels.evict
        return used >= max(levels.evict, min(levels.checkpoint, engine.limits.at(begin_ratio)))

    def run(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[Outcome]:
        return _compact(engine, limits, levels.above(engine.standing()))

    return Rung("compact", due, run)


def _cut(engine: Engine, limits: WindowLimits, _levels: Levels) -> Effect[Outcome]:
    return cut_within_turn(engine, target_used=limits.usable_tokens)


def _may_summarize(engine: Engine) -> bool:
    return bool(engine.settings.model) and not engine.breaker.open


def _may_compact(engine: Engine, levels: Levels) -> bool:
    """From where the user said, else wherever eviction fell short."""
    if is_left_to_turn_end(engine, levels):
        return False
    chosen = engine.settings.compact_ratio is not None
    return engine.used() >= (levels.compact if chosen else levels.evict)


def is_left_to_turn_end(engine: Engine, levels: Levels) -> bool:
    """Whether the conversation is compacted between turns, and this call can be made before that."""
    between = any(rung.action == "compact" for rung in engine.settings.after_turn)
    return between and engine.used() < max(levels.compact, levels.checkpoint)


def _worth_evicting(engine: Engine, levels: Levels) -> bool:
    """Below red a plan that was not worth applying is not made again before something has come since."""
    used, before = engine.used(), engine.fruitless_used
    if used < levels.evict:
        return False
    return before is None or used >= levels.compact or used >= before + max(1, levels.minimum_saving // 2)


RUNGS: Final[dict[str, Rung]] = {
    "eviction": Rung("evict", _worth_evicting, _evict),
    "tool_result_summarization": Rung(
        "compact",
        lambda engine, levels: _may_summarize(engine) and engine.used() >= levels.evict,
        summarize_results,
        until_roll=True,
    ),
    "progressive_summarization": Rung(
        "compact", lambda engine, levels: engine.used() >= levels.evict, let_age, until_roll=True
    ),
    "compaction": Rung("compact", _may_compact, _compact, until_roll=True),
    "note_taking": Rung("compact", may_note, carry_notes, until_roll=True),
    "subagent_delegation": Rung(
        "compact",
        lambda engine, levels: may_delegate(engine, levels) and not is_left_to_turn_end(engine, levels),
        delegate_history,
        until_roll=True,
    ),
    "roll": Rung("roll", lambda engine, levels: engine.used() >= levels.roll, roll),
    "hard_eviction": Rung("evict", lambda engine, levels: engine.used() > levels.ceiling, _evict_hard),
    "truncation": Rung("evict", lambda engine, levels: engine.used() > levels.ceiling, _cut),
    "last_eviction": Rung("evict", lambda engine, levels: engine.used() > levels.ceiling, _evict_anything),
}
"""Every rung by name. The default order is that of the settings."""
