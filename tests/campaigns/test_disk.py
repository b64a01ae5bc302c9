"""Campaign: the disk is full for a while, or so slow that every sync takes a second."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.campaigns.conftest import Campaign
from tests.campaigns.faulted_agent import LONGEST_HOOK_MS, TimedAgent, is_complete

import windowpane
from windowpane.store.writes.spool import waiting_files
from windowpane.store.writes.write import Writer

DISK_BYTES = 6 * 2**20
SLOW_SECONDS = 0.6


class SmallDisk:
    """A folder whose disk can be filled and freed."""

    def __init__(self, folder: Path, *, is_mounted: bool) -> None:
        self.folder = folder
        self._is_mounted = is_mounted
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Leave no byte free; without a disk to fill, forbid files to grow."""
        if not self._is_mounted:
            largest = max(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, self._limits[1]))
            return
        for size in (2**16, 2**12, 1):
            with suppress(OSError), (self.folder / f"ballast-{size}").open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * size)

    def free(self) -> None:
        """Make room again."""
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)
        for file in self.folder.glob("ballast-*"):
            file.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small file system in memory where that can be mounted, else a folder under a limit of file sizes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    small = SmallDisk(folder, is_mounted=is_mounted)
    yield small
    small.free()
    windowpane.stop()
    if is_mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_disks(campaign: Campaign, disk: SmallDisk) -> None:
    tried, held = campaign.attempts(sample=1, whole=40), 0
    during, without = [], []
    for number in range(tried):
        store = disk.folder / f"{number}.db"
        running = windowpane.start(port=0, store=store, notify=[])
        agent = TimedAgent(disk.folder / "data", f"full-{number}")
        without.append(agent.longest_hook_ms(12))
        before = running.flush(20)
        disk.fill()
        during.append(agent.longest_hook_ms(12))
        was_reported = not running.flush(1)
        disk.free()
        recovered = running.flush(20)
        agent.close()
        at_end = running.flush(20)
        running.close()
        held += before and was_reported and recovered and at_end and is_complete(store, agent.session)
        for file in disk.folder.glob(f"{number}.db*"):
            file.unlink()

    campaign.record(
        "disk full for a while", tried=tried, held=held, hook_ms=max(during), hook_ms_without=max(without),
        note="flush() False meanwhile, True with every event afterwards",
    )  # fmt: skip
    assert held == tried
    assert max(during) < LONGEST_HOOK_MS


def test_processes_that_end_on_a_full_disk(campaign: Campaign, disk: SmallDisk) -> None:
    tried, held, longest = campaign.attempts(sample=1, whole=20), 0, 0.0
    for number in range(tried):
        store = disk.folder / f"end-{number}.db"
        running = windowpane.start(port=0, store=store, notify=[])
        agent = TimedAgent(disk.folder / "data", f"end-{number}")
        agent.close()
        acknowledged = running.flush(20)
        other = TimedAgent(disk.folder / "data", f"other-{number}")
        disk.fill()
        other.longest_hook_ms(6)
        started = time.perf_counter()
        running.close(4)
        longest = max(longest, time.perf_counter() - started)
        disk.free()
        held += acknowledged and longest < 5 and is_complete(store, agent.session)
        for file in [*disk.folder.glob(f"end-{number}.db*"), *waiting_files(store)]:
            file.unlink(missing_ok=True)

    campaign.record(
        "end of a process on a full disk", tried=tried, held=held, note=f"longest {longest:.1f} s of 4 s"
    )
    assert held == tried


def test_slow_disks(campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, held = campaign.attempts(sample=1, whole=15), 0
    during, without = [], []
    for number in range(tried):
        store = tmp_path / f"{number}.db"
        running = windowpane.start(port=0, store=store, notify=[])
        agent = TimedAgent(tmp_path / "data", f"slow-{number}")
        without.append(agent.longest_hook_ms(12))
        with monkeypatch.context() as slow:
            slow.setattr(os, "fsync", _slowed(os.fsync))
            slow.setattr(Writer, "append", _slowed(Writer.append))
            during.append(agent.longest_hook_ms(12))
        agent.close()
        at_end = running.flush(20)
        running.close()
        held += at_end and is_complete(store, agent.session)

    campaign.record(
        "disk that takes 0.6 s per sync",
        tried=tried,
        held=held,
        hook_ms=max(during),
        hook_ms_without=max(without),
    )
    assert held == tried
    assert max(during) < LONGEST_HOOK_MS


def _slowed(function: Callable[..., Any]) -> Callable[..., Any]:
    def slowed(*args: Any, **more: Any) -> Any:
        time.sleep(SLOW_SECONDS)
        return function(*args, **more)

    return slowed
