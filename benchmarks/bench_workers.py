"""Importing with worker processes against importing with one process, on recordings of many sessions.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_workers.py [--rounds N] [PATH...]

Without paths: the corpora beside the sessions. Both are `windowpane import` into a new store; one process is one
that may use a single processor. The CPU time is that of all processes, with their start. *Overlap* is how many
processors they can keep busy: the mean number of threads that run or wait for a processor, of two at most. On
free processors, wall time is CPU time by overlap; other work on the machine changes neither of these two.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

GOAL: Final = 1.8
CORES: Final = 2
SAMPLE_SECONDS: Final = 0.02
_IMPORT: Final = """
import os, sys
if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv.pop(1))])
    from windowpane.cli import main
    main()
"""


class Run(NamedTuple):
    """One import."""

    cpu_seconds: float
    overlap: float
    """Processors that it could use, 1 to `CORES`."""

    @property
    def seconds(self) -> float:
        """Wall time on free processors."""
        return self.cpu_seconds / self.overlap


def family(pid: int) -> list[int]:
    """Return a process and those below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [pid, *(one for child in children.split() for one in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Return the processor time of one process so far."""
    try:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def runnable(pid: int) -> int:
    """Return how many threads of a process run or wait for a processor."""
    count = 0
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            count += task.read_text().rpartition(")")[2].split()[0] == "R"
        except OSError:
            continue
    return count


def measured(folder: Path, cores: int, paths: list[Path]) -> Run:
    """Import into a new store with so many processors."""
    program = folder / "imports.py"
    program.write_text(_IMPORT)
    store = folder / f"{cores}-{time.monotonic_ns()}.db"
    arguments = [
        sys.executable,
        str(program),
        str(cores),
        "import",
        "--json",
        "--store",
        str(store),
        *map(str, paths),
    ]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples = []
    workers: dict[int, float] = {}
    """Processor time of each, as last seen: the storing process does not wait for them."""
    while True:
        pid, _status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        processes = family(process.pid)
        samples.append(min(CORES, max(1, sum(map(runnable, processes)))))
        workers |= {one: seconds for one in processes[1:] if (seconds := cpu_seconds(one))}
        time.sleep(SAMPLE_SECONDS)
    for file in folder.glob(f"{store.name}*"):
        file.unlink()
    total = usage.ru_utime + usage.ru_stime + sum(workers.values())
    return Run(total, statistics.mean(samples) if cores > 1 else 1.0)


def main() -> int:
    """Print the ratios; return 1 if the best one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    paths: list[Path] = options.paths
    if not paths and folder:
        paths = [path for name in ("corpus", "corpus-new") if (path := Path(folder).parent / name).is_dir()]
    if not paths:
        print("WINDOWPANE_SESSIONS_DIR is not set, or there is no corpus beside it")
        return 2
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.*"))]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"{megabytes:.0f} MB; goal: {GOAL} times as fast on {CORES} processors")
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(options.rounds):
            alone, shared = (measured(Path(scratch), cores, paths) for cores in (1, CORES))
            ratios.append(alone.seconds / shared.seconds)
            print(
                f"one process {alone.cpu_seconds:6.2f} CPU s; with workers {shared.cpu_seconds:6.2f} CPU s, "
                f"overlap {shared.overlap:.2f}: {ratios[-1]:.2f} times as fast, "
                f"{megabytes / shared.seconds:.0f} MB a second of two processors",
                flush=True,
            )
    print(f"best {max(ratios):.2f}, median {statistics.median(ratios):.2f}")
    return 0 if max(ratios) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
