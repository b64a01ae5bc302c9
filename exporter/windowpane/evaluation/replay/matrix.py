"""Many sessions under many setups, shared out to several processes.

A worker loads one session, replays it under its setups and returns measures only, so memory is bounded by the
sessions in work, not by their number. Results are in the order of the request, whatever finished first.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Final, NamedTuple

from windowpane.effects.processes import without_current_folder
from windowpane.evaluation.replay.recordings import RecordingSource
from windowpane.evaluation.replay.setups import ReplaySetup
from windowpane.evaluation.replay.simulate import PreparedRecording, ReplayRun, simulate
from windowpane.exceptions import WindowpaneError

MAXIMUM_WORKERS: Final = 8
SETUPS_PER_TASK: Final = 12
"""Setups that one task replays a session under; more make further tasks."""

OnProgress = Callable[[str, int, int], object]
"""Receives the session of a finished task, the number of finished tasks and of all."""


class ReplayFailure(NamedTuple):
    """A session that could not be replayed, or a setup that it could not be replayed under."""

    session: str
    setup: str
    """Label of the setup; empty for all."""
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayMatrix:
    """The runs of every session under every setup, and those that failed."""

    runs: tuple[ReplayRun, ...]
    failures: tuple[ReplayFailure, ...] = ()


class _Task(NamedTuple):
    source: RecordingSource
    setups: tuple[ReplaySetup, ...]


class _Result(NamedTuple):
    runs: tuple[ReplayRun, ...]
    failures: tuple[ReplayFailure, ...]


def run_matrix(
    sources: Sequence[RecordingSource],
    setups: Sequence[ReplaySetup],
    *,
    workers: int | None = None,
    progress: OnProgress | None = None,
) -> ReplayMatrix:
    """Replay every session under every setup; one that fails never stops the rest.

    *workers* is the number of processes: None for one per processor, 1 for this process alone.
    """
    tasks = [_Task(source, part) for source in sources for part in _parts(setups)]
    count = min(len(tasks), MAXIMUM_WORKERS, (os.cpu_count() or 1) if workers is None else workers)
    done = _alone(tasks, progress) if count <= 1 else _shared(tasks, count, progress)
    return ReplayMatrix(
        tuple(run for part in done for run in part.runs),
        tuple(dict.fromkeys(failure for part in done for failure in part.failures)),
    )


def _parts(setups: Sequence[ReplaySetup]) -> Iterator[tuple[ReplaySetup, ...]]:
    for start in range(0, len(setups), SETUPS_PER_TASK):
        yield tuple(setups[start : start + SETUPS_PER_TASK])


def _alone(tasks: Sequence[_Task], progress: OnProgress | None) -> list[_Result]:
    done = []
    for number, task in enumerate(tasks, 1):
        done.append(_work(task))
        if progress is not None:
            progress(task.source.name, number, len(tasks))
    return done


def _shared(tasks: Sequence[_Task], workers: int, progress: OnProgress | None) -> list[_Result]:
    # A new interpreter per worker: a fork would copy the caller's threads.
    context = multiprocessing.get_context("spawn")
    with without_current_folder():
        pool = ProcessPoolExecutor(workers, mp_context=context)
        waiting: dict[Future[_Result], int] = {pool.submit(_work, task): at for at, task in enumerate(tasks)}
    with pool:
        done: list[_Result | None] = [None] * len(tasks)
        for number, future in enumerate(as_completed(waiting), 1):
            at = waiting[future]
            done[at] = future.result()
            if progress is not None:
                progress(tasks[at].source.name, number, len(tasks))
    return [part for part in done if part is not None]


def _work(task: _Task) -> _Result:
    name = task.source.name
    try:
        prepared = PreparedRecording(task.source.load())
    except (WindowpaneError, OSError) as error:
        return _Result((), (ReplayFailure(name, "", str(error)),))
    except Exception as error:  # noqa: BLE001 (a bug in one session must not cost all the others)
        return _Result((), (ReplayFailure(name, "", f"internal error, please report it: {error!r:.200}"),))
    if not prepared.history.calls:
        return _Result((), (ReplayFailure(name, "", "the recording holds no model call"),))
    runs, failures = [], []
    for setup in task.setups:
        obstacle = _obstacle(prepared, setup)
        if obstacle is not None:
            failures.append(ReplayFailure(name, setup.label, obstacle))
            continue
        try:
            runs.append(simulate(prepared, setup))
        except Exception as error:  # noqa: BLE001 (as above)
            failures.append(ReplayFailure(name, setup.label, f"internal error, please report it: {error!r:.200}"))
    return _Result(tuple(runs), tuple(failures))


def _obstacle(prepared: PreparedRecording, setup: ReplaySetup) -> str | None:
    """Return why a session cannot be replayed under a setup, or None."""
    if setup.reads_content and not prepared.recording.has_content:
        return "it reads content, which was not captured; import with --capture, or name the recording's file"
    static = prepared.static_tokens
    if static > setup.limits.usable_tokens:
        return f"system prompt and tools alone take {static:,} of {setup.limits.usable_tokens:,} usable tokens"
    return None
