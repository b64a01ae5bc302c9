"""The campaign harness: how much a fault is tried, and the record that becomes the reliability table.

`make test` runs each campaign as a bounded sample. `make campaign` runs the long form and writes
benchmarks/RELIABILITY.md from what the campaigns recorded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from windowpane.config.outputs import Tls

sys.path.insert(0, str(Path(__file__).parent))  # importlib mode does not add the folder of a test

from attacked_servers import AttackOn, start  # found by the path above

LONG_VARIABLE = "WINDOWPANE_CAMPAIGN"
RECORD_VARIABLE = "WINDOWPANE_CAMPAIGN_RECORD"


@dataclass(frozen=True)
class Campaign:
    """One run of the fault campaigns: sampled, or whole with every attempt recorded."""

    whole: bool
    record_path: Path | None

    def attempts(self, *, sample: int, whole: int) -> int:
        """Return how often to try a fault in this run."""
        return whole if self.whole else sample

    def record(
        self,
        fault: str,
        *,
        tried: int,
        held: int,
        lost: int = 0,
        hook_ms: float | None = None,
        hook_ms_without: float | None = None,
        note: str = "",
    ) -> None:
        """Record one row of the reliability table.

        *tried* and *held* count attempts, *lost* acknowledged events that were not found again. *hook_ms* is the
        longest call of an agent's hook during the fault, *hook_ms_without* the same without the fault.
        """
        if self.record_path is None:
            return
        row = {
            "fault": fault, "tried": tried, "held": held, "lost": lost,
            "hook_ms": hook_ms, "hook_ms_without": hook_ms_without, "note": note,
        }  # fmt: skip
        with self.record_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    """This run's campaign: a sample unless `make campaign` asks for the whole."""
    path = os.environ.get(RECORD_VARIABLE)
    return Campaign(bool(os.environ.get(LONG_VARIABLE)), Path(path) if path else None)


@pytest.fixture
def attack_on() -> Iterator[AttackOn]:
    """Starts the server of a name."""
    with ExitStack() as stack:
        yield lambda name, **options: start(name, stack, **options)


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory, require_server: Callable[[str], str]) -> Tls:
    folder = tmp_path_factory.mktemp("certificate")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            require_server("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate,
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return Tls(certificate=certificate, key=key)
