"""The task whose checkpoint is frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from windowpane.agents.managers import ContextWindowManager
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.testing import RecordingSink, in_memory_dependencies

TASK_ID = "migration"
GOAL = "Migrate from axios to fetch"


def open_task(folder: Path) -> ContextWindowManager:
    """Return a manager of the task, whose checkpoints are in *folder*."""
    checkpoints = FileCheckpoints(folder, redact=str)
    return ContextWindowManager(
        agent="migrator",
        model="gpt-4o",
        task_id=TASK_ID,
        task_goal=GOAL,
        constraints=["no new dependency"],
        success_criteria=["the tests pass"],
        dependencies=replace(in_memory_dependencies(RecordingSink()), checkpoints=checkpoints),
    )
