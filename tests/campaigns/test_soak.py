"""Campaign: many managed agents of one process, in one session after another: nothing is lost, nothing grows."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.campaigns.conftest import Campaign
from tests.campaigns.faulted_agent import is_complete

from windowpane.store.embedded import SqliteStore

SESSION_TURNS = 20
"""Turns of a session before another takes its place; the sessions of the first agents are cut short."""
GROWTH = 1.1
"""Most that is held at the end, as a share of the most in the second quarter, in which sessions already end."""
_PROCESS = """
import json, os, sys, threading, urllib.request
sys.path[:0] = sys.argv[1:3]
from pathlib import Path
import windowpane
from faulted_agent import TimedAgent
folder, agents, turns, session_turns = Path(sys.argv[3]), *map(int, sys.argv[4:7])
running = windowpane.start(port=0, store=str(folder / "w.db"), notify=[])
def descriptors():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
def megabytes():
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return 0.0
started = 0
def start():
    global started
    started += 1
    return TimedAgent(folder, f"soak-{started}")
fleet = [start() for _ in range(agents)]
for turn in range(turns):
    longest = 0.0
    for number, agent in enumerate(fleet):
        if turn and (turn + number) % session_turns == 0:
            agent.close()
            fleet[number] = agent = start()
        longest = max(longest, agent.longest_hook_ms(1))
    with urllib.request.urlopen(running.url) as answer:
        lines = answer.read().count(b"\\n")
    print(json.dumps({
        "stored": running.flush(60.0), "longest": longest, "megabytes": megabytes(), "lines": lines,
        "threads": threading.active_count(), "descriptors": descriptors(),
    }), flush=True)
for agent in fleet:
    agent.close()
print(json.dumps({"stored": running.flush(60.0), "sessions": started}), flush=True)
windowpane.stop()
"""


@pytest.mark.timeout(0)
def test_soak_of_managed_agents(campaign: Campaign, tmp_path: Path) -> None:
    agents = campaign.attempts(sample=8, whole=1_000)
    turns = campaign.attempts(sample=3, whole=4 * SESSION_TURNS)
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS, str(here), str(here.parents[1]), str(tmp_path), str(agents), str(turns),
         str(SESSION_TURNS)],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    *rounds, end = map(json.loads, done.stdout.splitlines())
    sessions = [f"soak-{number}" for number in range(1, end["sessions"] + 1)]
    store = tmp_path / "w.db"
    held = sum(is_complete(store, session) for session in sessions)
    with closing(SqliteStore(store)) as opened:
        intact = opened.verify().intact
    later, last = rounds[len(rounds) // 4 : len(rounds) // 2], rounds[-1]
    most = max(one["megabytes"] for one in later)
    campaign.record(
        f"soak of {agents:,} managed agents in one process",
        tried=len(sessions),
        held=held,
        hook_ms=max(one["longest"] for one in rounds),
        note=f"sessions, {agents * turns:,} turns; {most:.0f} MB in the second quarter, "
        f"{last['megabytes']:.0f} at the end; {last['threads']} threads, {last['descriptors']} descriptors, "
        f"{last['lines']:,} lines a scrape",
    )

    assert all(one["stored"] for one in (*rounds, end))
    assert held == len(sessions)
    assert intact
    if campaign.whole:  # a sample ends before everything was met once
        for name in ("threads", "descriptors", "lines", "megabytes"):
            assert last[name] <= max(one[name] for one in later) * GROWTH, name
