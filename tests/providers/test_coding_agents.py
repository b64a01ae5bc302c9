"""Coding agents from npm do the same task; each door records one session, counted to the token."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.providers.coding_agents import AGENTS, TOGETHER, Cell, cells, play, together_cell
from tests.providers.npm_programs import NotInstalledError, npm_program
from tests.sampling import EVERYTHING

KNOWN_FAULTS: dict[tuple[str, str], str] = {
    ("opencode", "otlp"): "opencode 1.18 ends without sending the spans of its last seconds",
}
"""Doors that are known to count wrong by a limit of the agent; a door that counts right must not be listed."""
pytestmark = [
    pytest.mark.timeout(1800),  # the first run installs the programs
    pytest.mark.skipif(not EVERYTHING, reason="large programs: make test-all"),
]


def require(agent: str) -> None:
    """Install the agent's program, or skip with the reason."""
    try:
        npm_program(AGENTS[agent].program)
    except NotInstalledError as error:
        if os.environ.get("WINDOWPANE_REQUIRE_SERVERS"):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("agent", AGENTS)
def test_every_door_records_one_session_to_the_token(agent: str, tmp_path: Path) -> None:
    require(agent)

    outcome = play(agent, tmp_path / "run")

    assert wrong(agent, cells(outcome)) == expected_faults(agent, AGENTS[agent].doors), cells(outcome)


@pytest.mark.parametrize("agent", AGENTS)
def test_all_doors_together_record_one_session_to_the_token(agent: str, tmp_path: Path) -> None:
    require(agent)

    outcome = play(agent, tmp_path / "run", together=True)

    cell = together_cell(outcome)
    assert wrong(agent, {TOGETHER: cell}) == expected_faults(agent, [TOGETHER]), cell


def wrong(agent: str, found: dict[str, Cell]) -> set[tuple[str, str]]:
    """Return the doors that recorded something else than the provider reported."""
    return {(agent, door) for door, cell in found.items() if not cell.is_right}


def expected_faults(agent: str, doors: list[str] | tuple[str, ...]) -> set[tuple[str, str]]:
    """Return the doors that are known to be wrong."""
    return {(agent, door) for door in doors if (agent, door) in KNOWN_FAULTS}
