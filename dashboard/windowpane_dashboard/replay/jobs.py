"""Simulations that run in parallel with the pages: one process each, read by a thread."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import Final

from windowpane_dashboard.replay.worker import SimulationRequest

logger = logging.getLogger(__name__)

WORKER: Final = (sys.executable, "-P", "-m", "windowpane_dashboard.replay.worker")


@dataclass(slots=True)
class SimulationJob:
    """The progress of one simulation; written by its thread, read by the pages."""

    title: str
    process: subprocess.Popen[str]
    done: int = 0
    total: int = 0
    session: str = ""
    """The session that finished last."""
    replay: str = ""
    """Id of the stored result; empty until then."""
    error: str = ""
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def running(self) -> bool:
        """True until a result or an error is reported."""
        return not (self.replay or self.error)

    @property
    def share(self) -> float:
        """Progress, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def stop(self) -> None:
        """Stop the process; nothing is stored."""
        self.error = self.error or "Stopped; nothing was stored."
        self.process.terminate()

    def wait(self, timeout_seconds: float) -> None:
        """Wait until the simulation ends."""
        if self.thread is not None:
            self.thread.join(timeout_seconds)


def start_simulation(request: SimulationRequest) -> SimulationJob:
    """Start a simulation and return its job."""
    process = subprocess.Popen(  # noqa: S603  # our own module; the request is passed on standard input
        WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    job = SimulationJob(request.title(), process)
    job.thread = threading.Thread(target=_follow, args=(job, request), name="windowpane-replay", daemon=True)
    job.thread.start()
    return job


def _follow(job: SimulationJob, request: SimulationRequest) -> None:
    pipes = job.process
    assert pipes.stdin is not None
    assert pipes.stdout is not None
    assert pipes.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(pipes.stderr or ()), daemon=True)
    reader.start()
    try:
        pipes.stdin.write(request.to_json())
        pipes.stdin.close()
        for line in pipes.stdout:
            _read_line(job, line)
    except OSError:
        logger.warning("the simulation ended early", exc_info=True)
    code = pipes.wait()
    reader.join(5)
    pipes.stdout.close()
    pipes.stderr.close()
    if job.running:
        logger.error("the simulation failed: %s", "".join(errors[-20:]))
        job.error = f"The simulation ended with code {code}; the dashboard's log has the details."


def _read_line(job: SimulationJob, line: str) -> None:
    """Read one line of the worker; lines that a library printed are skipped."""
    try:
        match json.loads(line):
            case {"replay": str(replay)}:
                job.replay = replay
            case {"error": str(error)}:
                job.error = job.error or error
            case {"session": str(session), "done": int(done), "total": int(total)}:
                job.session, job.done, job.total = session, done, total
    except ValueError:
        logger.debug("the simulation printed %r", line)
