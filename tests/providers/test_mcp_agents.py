"""Coding agents from npm add `windowpane mcp` as documented, and their scripted model calls its tools."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.providers.coding_agents import (
    AGENTS,
    ROOT,
    RUN_SECONDS,
    Agent,
    ScriptedModel,
    message_texts,
    plain_environment,
    rows_of,
    windowpane,
)
from tests.providers.formats import Call, Reply
from tests.providers.loopback import Request, loopback_provider
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
RULE = "Always use tabs."
FOUND = "the block of the last answer"
NOT_CONNECTED = "No such tool available"
MAXIMUM_WAITS = 20
WAIT = Call("Bash", {"command": "sleep 5", "description": "Wait for the server"}, "toolu")
SERVER = [sys.executable, "-m", "windowpane", "mcp", "--capture"]


@pytest.mark.parametrize("name", PREFIXES)
def test_an_agent_reads_its_own_window(name: str, tmp_path: Path) -> None:
    require(name)

    status, matches, text, removed, rules = play(name, tmp_path)

    assert "after 1 turn, " in status  # the model has called it in its second
    assert "filled by:" in status
    assert NOTES in matches
    assert "in the window" in matches
    assert "nothing was removed" in removed
    assert RULE in rules
    assert text.count(NOTES) > 1


@pytest.mark.parametrize("name", PREFIXES)
def test_an_agent_reads_a_recorded_session(name: str, tmp_path: Path) -> None:
    require(name)
    recording = tmp_path / "recorded.json"
    recording.write_text(json.dumps([{"role": "user", "content": f"{RULE} {NOTES * 40}"}]))
    environment = plain_environment(tmp_path / "home")
    windowpane(["import", "--capture", recording], environment, tmp_path)
    (row,) = rows_of(tmp_path / "home" / ".local" / "share" / "windowpane" / "windowpane.db")

    status, matches, text, removed, rules = play(name, tmp_path, "--session", row.session_id)

    assert row.session_id in status
    assert NOTES in matches
    assert "nothing was removed" in removed
    assert RULE in rules
    assert text.count(NOTES) > 1


class AskingModel(ScriptedModel):
    """Calls tools, one of them again until the program has connected the server."""

    def __init__(self, agent: Agent, folder: Path, calls: Iterable[Call]) -> None:
        super().__init__(agent, folder)
        self._steps = self._calls(deque(calls))
        self._sent = ""
        self.waits = 0

    def _calls(self, waiting: deque[Call]) -> Iterator[Call]:
        while waiting:
            call = waiting.popleft()
            if call.arguments.get("id") == FOUND:
                call = replace(call, arguments={"id": re.findall(r"\b(b\d+) ", self._sent)[-1]})
            yield call
            if NOT_CONNECTED in self._sent and self.waits < MAXIMUM_WAITS:
                self.waits += 1
                waiting.extendleft([call, WAIT])

    def _reply(self, request: Request) -> Reply:
        self._sent = message_texts(request.body)[-1]
        return super()._reply(request)


def play(name: str, folder: Path, *options: str) -> list[str]:
    """Run an agent whose model reads a file and calls each tool; return the answers that it got."""
    agent, (documented, prefix, namespace) = AGENTS[name], PREFIXES[name]
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir()
    (work / "notes.txt").write_text(NOTES * 40)
    kind = agent.steps[0].call_id  # type: ignore[union-attr]
    read = Call("exec_command", {"cmd": "cat notes.txt; sleep 5"}, kind) if name == "codex" else agent.steps[0]
    assert read is not None
    tools = (
        ("window_status", {}), ("removed_content", {"query": "8471"}), ("read_block", {"id": FOUND}),
        ("removed_content", {}), ("list_rules", {}),
    )  # fmt: skip
    calls = [read, *(Call(f"{prefix}{tool}", arguments, kind, namespace) for tool, arguments in tools)]
    model = AskingModel(agent, work, calls)
    with loopback_provider() as provider:
        provider.responder = model
        agent.home(home, provider.url, provider.url)
        environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
        environment["MCP_TIMEOUT"] = "100000"  # of Claude Code, for a machine under load
        program = npm_program(agent.program)
        add(documented, program, home, work, environment, options=options)
        prompt = f"Improve app.py. {RULE}"
        arguments = [one.replace("Read Edit", "Read Edit mcp__windowpane") for one in agent.arguments(0, prompt)]
        run([program, *arguments], work, environment)
    texts = list(dict.fromkeys(text for text in strings(model.requests[-1][1].body) if "<recorded-data>" in text))
    return [text for text in texts if text.count("<recorded-data>") == 1]


def add(
    documented: str, program: Path, home: Path, work: Path, environment: dict[str, str], *, options: Sequence[str]
) -> None:
    """Follow the documented line, with this interpreter's Windowpane."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    line = re.search(rf"\| {documented}\b[^|]*\| `(.*)` \|", page)[1]  # type: ignore[index]
    if line.startswith("{"):
        settings = home / ".config" / "opencode" / "opencode.json"
        added = json.loads(line)
        added["mcp"]["windowpane"] |= {
            "command": [*SERVER, *options],
            "environment": {"PYTHONPATH": environment["PYTHONPATH"]},
        }
        settings.write_text(json.dumps(json.loads(settings.read_text()) | added))
        return
    words = shlex.split(line)
    assert words[-2:] == ["windowpane", "mcp"]
    own = ["env", f"PYTHONPATH={environment['PYTHONPATH']}", *SERVER, *options]
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
