"""The plugin of Claude Code: valid, installed by the program itself, and at work in a session."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.providers.coding_agents import CLAUDE, ROOT, ScriptedModel, plain_environment, rows_of, wait_for
from tests.providers.formats import Call
from tests.providers.loopback import loopback_provider
from tests.providers.npm_programs import npm_program
from tests.providers.test_coding_agents import pytestmark as large
from tests.providers.test_coding_agents import require
from tests.providers.test_mcp_agents import run, strings

pytestmark = large


def test_one_installation_sets_the_hooks_and_the_server(tmp_path: Path) -> None:
    require("claude-code")
    home, work, programs = (tmp_path / name for name in ("home", "work", "bin"))
    for folder in (home, work, programs):
        folder.mkdir()
    script = programs / "windowpane"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m windowpane "$@"\n')
    script.chmod(0o755)
    (work / "notes.txt").write_text("A line of notes.\n")
    model = ScriptedModel(CLAUDE, work)
    status = Call("mcp__plugin_windowpane_windowpane__window_status", {}, "toolu")
    wait = Call("Bash", {"command": "sleep 5", "description": "Wait for the server"}, "toolu")
    model._steps = iter([wait, status, None])
    program = npm_program("claude")
    with loopback_provider() as provider:
        provider.responder = model
        environment = plain_environment(home) | CLAUDE.environment(home, provider.url, provider.url)
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        run([program, "plugin", "validate", "--strict", ROOT], work, environment)
        run(
            [program, "plugin", "validate", "--strict", ROOT / "integrations" / "claude-code-plugin"],
            work,
            environment,
        )
        run([program, "plugin", "marketplace", "add", ROOT], work, environment)
        run([program, "plugin", "install", "windowpane@windowpane"], work, environment)
        arguments = [
            one.replace("Read Edit", f"Read Edit {status.name}") for one in CLAUDE.arguments(0, "Read notes.txt.")
        ]
        run([program, *arguments], work, environment)

    settings = json.loads((home / ".claude" / "settings.json").read_text(encoding="utf-8"))
    assert settings["statusLine"]["command"].endswith("hook status")
    store = home / ".local" / "share" / "windowpane" / "windowpane.db"
    assert any("after 1 turn, " in text for text in strings(model.requests[-1][1].body))
    assert wait_for(lambda: [row.turns for row in rows_of(store)] == [3])  # imported by the hook at the end
