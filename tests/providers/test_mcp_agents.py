"""Coding agents from npm add `windowpane mcp` as documented, and their scripted model calls its tools."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.providers.coding_agents import AGENTS, ROOT, RUN_SECONDS, ScriptedModel, plain_environment
from tests.providers.formats import Call
from tests.providers.loopback import loopback_provider
from tests.providers.npm_programs import npm_program
from tests.providers.test_coding_agents import pytestmark as large
from tests.providers.test_coding_agents import require

pytestmark = large
PREFIXES = {
    "claude-code": ("Claude Code", "mcp__windowpane__", ""),
    "codex": ("Codex", "", "mcp__windowpane"),
    "gemini-cli": ("Gemini CLI", "mcp_windowpane_", ""),
    "opencode": ("opencode", "windowpane_", ""),
}
"""The name of each agent in the documentation, and what it puts before the names of the tools."""
NOTES = "The port is 8471."
SERVER = [sys.executable, "-m", "windowpane", "mcp", "--capture"]


@pytest.mark.parametrize("name", PREFIXES)
def test_an_agent_reads_its_own_window(name: str, tmp_path: Path) -> None:
    require(name)

    answers = play(name, tmp_path)

    status, matches, removed = answers
    assert "after 1 turn, " in status  # the model has called it in its second
    assert "filled by:" in status
    assert NOTES in matches
    assert "in the window" in matches
    assert "nothing was removed" in removed


def play(name: str, folder: Path) -> list[str]:
    """Run an agent whose model reads a file and calls the tools; return the tools' answers that it got."""
    agent, (documented, prefix, namespace) = AGENTS[name], PREFIXES[name]
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    (work / "notes.txt").write_text(NOTES * 40)
    kind = agent.steps[0].call_id  # type: ignore[union-attr]
    read = Call("exec_command", {"cmd": "cat notes.txt; sleep 5"}, kind) if name == "codex" else agent.steps[0]
    calls = [("window_status", {}), ("removed_content", {"query": "8471"}), ("removed_content", {})]
    steps = [read, *(Call(f"{prefix}{tool}", arguments, kind, namespace) for tool, arguments in calls), None]
    model = ScriptedModel(agent, work)
    model._steps = iter(steps)
    with loopback_provider() as provider:
        provider.responder = model
        agent.home(home, provider.url, provider.url)
        environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
        program = npm_program(agent.program)
        add(documented, program, home, work, environment)
        arguments = [
            one.replace("Read Edit", "Read Edit mcp__windowpane") for one in agent.arguments(0, "Improve app.py.")
        ]
        run([program, *arguments], work, environment)
    texts = list(dict.fromkeys(text for text in strings(model.requests[-1][1].body) if "<recorded-data>" in text))
    return [text for text in texts if text.count("<recorded-data>") == 1]


def add(documented: str, program: Path, home: Path, work: Path, environment: dict[str, str]) -> None:
    """Follow the documented line, with this interpreter's Windowpane."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    line = re.search(rf"\| {documented}\b[^|]*\| `(.*)` \|", page)[1]  # type: ignore[index]
    if line.startswith("{"):
        settings = home / ".config" / "opencode" / "opencode.json"
        added = json.loads(line)
        added["mcp"]["windowpane"] |= {
            "command": SERVER,
            "environment": {"PYTHONPATH": environment["PYTHONPATH"]},
        }
        settings.write_text(json.dumps(json.loads(settings.read_text()) | added))
        return
    words = shlex.split(line)
    assert words[-2:] == ["windowpane", "mcp"]
    own = ["env", f"PYTHONPATH={environment['PYTHONPATH']}", *SERVER]
    dashes = [] if "--" in words else ["--"]
    run([program, *words[1:-2], *([own[0], *dashes, *own[1:]] if dashes else own)], work, environment)


def run(command: list[Any], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout[-1500:]}\n{done.stderr[-1500:]}"


def strings(value: object) -> Iterator[str]:
    """Yield every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
