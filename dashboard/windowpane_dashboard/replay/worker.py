"""A simulation in its own process, so that pages stay fast: `python -m windowpane_dashboard.replay.worker`.

Reads one request as JSON from standard input; writes one JSON object per line: `{"session", "done", "total"}` for
each step, at the end `{"replay"}` with the id of the stored result, or `{"error"}`.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass

import msgspec

from windowpane.config.paths import named_store
from windowpane.core.decoders import decode_json
from windowpane.evaluation.replay import (
    ReplaySetup,
    StoreSource,
    combine_setups,
    parse_thresholds,
    parse_window,
    run_matrix,
    to_stored_replay,
)
from windowpane.exceptions import ConfigurationError, WindowpaneError
from windowpane.store.open import open_store


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The values of the form: what to simulate."""

    store: str
    sessions: tuple[str, ...]
    policies: tuple[str, ...]
    presets: tuple[str, ...]
    windows: tuple[str, ...]
    thresholds: str = ""
    """Comma-separated, such as `0.6, 0.5/0.75/0.9`; empty for the window's defaults."""
    name: str = ""

    def setups(self) -> list[ReplaySetup]:
        """Return every combination below compaction alone in each window. Raises `ConfigurationError`."""
        if not self.sessions:
            raise ConfigurationError("sessions", "none is chosen", expected="at least one session")
        if not self.windows:
            raise ConfigurationError("windows", "none is chosen", expected="a size such as 32k")
        zones = [part.strip() for part in self.thresholds.split(",") if part.strip()]
        limits = [parse_window(text) for text in self.windows]
        managed = combine_setups(
            limits=limits,
            policies=self.policies,
            presets=self.presets,
            thresholds=[parse_thresholds(text) for text in zones] or [None],
        )
        setups = [*(ReplaySetup(limit, "compact") for limit in dict.fromkeys(limits)), *managed]
        return sorted(setups, key=lambda setup: limits.index(setup.limit_tokens))

    def title(self) -> str:
        """Return the name of the result."""
        more = f" and {len(self.sessions) - 1} more" if len(self.sessions) > 1 else ""
        return self.name or f"{self.sessions[0]}{more}"

    def to_json(self) -> str:
        """Return the request as JSON for `from_json`."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> SimulationRequest:
        """Read a request that `to_json` wrote."""
        return decode_json(text, cls)


def main() -> None:
    """Simulate the request on standard input, store the result and report its id."""
    request = SimulationRequest.from_json(sys.stdin.read())
    try:
        _report(replay=_simulate(request))
    except WindowpaneError as error:
        _report(error=str(error))


def _simulate(request: SimulationRequest) -> str:
    store_name = named_store(request.store)
    sources = [StoreSource(store_name, session) for session in request.sessions]
    matrix = run_matrix(
        sources,
        request.setups(),
        progress=lambda session, done, total: _report(session=session, done=done, total=total),
    )
    stored = to_stored_replay(matrix, name=request.title(), at=time.time())
    if not matrix.runs:
        raise ConfigurationError("sessions", "; ".join(stored.row.notes[:3]) or "nothing could be replayed")
    with closing(open_store(store_name)) as store:
        store.save_replay(stored)
        store.flush()
    return stored.row.id


def _report(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
