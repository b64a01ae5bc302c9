"""The end of a task: final summary, archived checkpoint, and the end of the session with its trend report."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import TrendReport
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import ArchiveCheckpoint, CallModel, Effect
from windowpane.effects.model_calls import fenced
from windowpane.fidelity.facts import extract_facts
from windowpane.manager.engine import Engine
from windowpane.manager.plans.checkpoint import goal_text
from windowpane.manager.plans.prompts import COMPACTION, SHORTER, transcript
from windowpane.manager.plans.summary import summarize
from windowpane.manager.settings import Summarizer
from windowpane.manager.steps.checkpoint import save_checkpoint
from windowpane.manager.steps.summary import complete_summary

_log = logging.getLogger(__name__)

FINAL_TOKENS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of a completed task."""

    summary: str
    report: TrendReport | None = None
    """None if the session had ended before."""
    unfinished: tuple[str, ...] = ()
    """Subtasks that were planned or in progress and never done."""


def complete(engine: Engine, summary: str) -> Effect[Completion]:
    """Summarize the task, save and archive its last checkpoint, end the session.

    If another session has continued the task, its newer checkpoint stays. No checkpoint is saved after that:
    the next session of the same task would resume from it.
    """
    summary = summary.strip() or (yield from _summary(engine))
    is_newest = yield from save_checkpoint(engine, "complete", completed=summary)
    if engine.settings.checkpoint and is_newest:
        yield ArchiveCheckpoint(engine.task.id, is_last=True)
    engine.settings = replace(engine.settings, checkpoint=False)
    return Completion(summary, engine.tracker.end("completed"), tuple(engine.task.record.unfinished))


def _summary(engine: Engine) -> Effect[str]:
    blocks = [block for block in engine.tracker.window if block.content_type != "system_prompt"]
    if engine.settings.model and blocks:
        prompt = f"{COMPACTION}\n{SHORTER.format(tokens=FINAL_TOKENS)}"
        reply = yield CallModel(prompt, fenced(transcript(blocks, engine.counter)))
        text = "" if reply.failed else complete_summary(engine, str(reply.value or ""), None)
        if text:
            return text
    return _written(engine, engine.settings.summarizer or summarize, blocks)


def _written(engine: Engine, summarizer: Summarizer, blocks: Sequence[Block]) -> str:
    """Return the summary written without a model; if the user's summarizer fails, by the embedded one."""
    try:
        return summarizer(
            extract_facts(blocks),
            goal=goal_text(
                engine.task.goal,
                engine.task.constraints,
                engine.task.record.success_criteria,
            ),
            previous=[block.text or "" for block in blocks if block.content_type == "summary"],
            progress=engine.progress(),
            max_tokens=FINAL_TOKENS,
            counter=engine.counter,
        )
    except Exception:
        if summarizer is summarize:
            raise
        _log.exception("the summarizer failed; the embedded one writes the final summary")
        return _written(engine, summarize, blocks)
