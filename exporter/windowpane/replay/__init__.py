"""Policy replay: recorded sessions simulated again under other policies, presets, windows and thresholds.

A `Source` gives a recording; a `Setup` says how it is managed, or which baseline stands in for management; a
`Run` is what came of one under the other. Nothing here writes events: results have tables of their own.
"""

from __future__ import annotations

from windowpane.replay.baselines import keep_last, truncate
from windowpane.replay.joining import JoinedSource
from windowpane.replay.matrix import Failure, Matrix, run_matrix
from windowpane.replay.meter import Measures
from windowpane.replay.recordings import FileSource, Recording, StoreSource, sources_of
from windowpane.replay.saving import replay_of
from windowpane.replay.setups import Setup, setups_of, thresholds_of, window_of
from windowpane.replay.simulate import Prepared, Run, simulate
from windowpane.replay.summary import Summary, summaries

__all__ = [
    "Failure",
    "FileSource",
    "JoinedSource",
    "Matrix",
    "Measures",
    "Prepared",
    "Recording",
    "Run",
    "Setup",
    "StoreSource",
    "Summary",
    "keep_last",
    "replay_of",
    "run_matrix",
    "setups_of",
    "simulate",
    "sources_of",
    "summaries",
    "thresholds_of",
    "truncate",
    "window_of",
]
