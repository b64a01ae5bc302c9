"""Policy replay: recorded sessions simulated again under other policies, presets, windows and thresholds.

A `RecordingSource` gives a recording, a `ReplaySetup` describes how its window is managed or which baseline
replaces management, and a `ReplayRun` is the result of one under the other. Nothing here writes events: results
are stored in separate tables.
"""

from __future__ import annotations

from windowpane.evaluation.replay.matrix import ReplayFailure, ReplayMatrix, run_matrix
from windowpane.evaluation.replay.meter import Measures
from windowpane.evaluation.replay.recordings import (
    FileSource,
    JoinedSource,
    Recording,
    RecordingSource,
    StoreSource,
    find_recordings,
)
from windowpane.evaluation.replay.results import SetupSummary, summarize_runs, to_stored_replay
from windowpane.evaluation.replay.setups import (
    ReplaySetup,
    combine_setups,
    parse_thresholds,
    parse_window,
    preset_names,
)
from windowpane.evaluation.replay.simulate import PreparedRecording, ReplayRun, keep_last, simulate, truncate

__all__ = [
    "FileSource",
    "JoinedSource",
    "Measures",
    "PreparedRecording",
    "Recording",
    "RecordingSource",
    "ReplayFailure",
    "ReplayMatrix",
    "ReplayRun",
    "ReplaySetup",
    "SetupSummary",
    "StoreSource",
    "combine_setups",
    "find_recordings",
    "keep_last",
    "parse_thresholds",
    "parse_window",
    "preset_names",
    "run_matrix",
    "simulate",
    "summarize_runs",
    "to_stored_replay",
    "truncate",
]
