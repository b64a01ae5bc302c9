"""Claude Code and Codex compact a conversation: with the hook, the rules of the user are in the next call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.providers.coding_agents import AGENTS, CLAUDE, Agent, ScriptedModel, plain_environment, windowpane
from tests.providers.loopback import Request, loopback_provider
from tests.providers.npm_programs import npm_program
from tests.providers.test_coding_agents import pytestmark as large
from tests.providers.test_coding_agents import require
from tests.providers.test_mcp_agents import run

from windowpane.core.events import RulesFollowed
from windowpane.store.embedded import SqliteReader
from windowpane.store.filters import EventFilter

pytestmark = large
PROMPT = "Improve app.py. From now on always use tabs. Never touch config.py."


@pytest.mark.parametrize(("installs", "fate"), [(True, "restored"), (False, "lost")])
def test_rules_that_claude_code_would_lose_are_given_back(installs: bool, fate: str, tmp_path: Path) -> None:
    require("claude-code")

    request, rules = compacted("claude-code", [PROMPT, "/compact", "Go on."], tmp_path, installs=installs)

    assert ("Added by Windowpane" in json.dumps(request.body)) is installs
    assert ("- Never touch config.py." in json.dumps(request.body)) is installs
    assert rules.user == {fate: 2}
    assert "lost" not in rules.memory  # Claude Code sends its memory files again


def test_codex_runs_the_same_hook_and_keeps_the_messages_of_its_user(tmp_path: Path) -> None:
    require("codex")

    request, rules = compacted("codex", [PROMPT, "Go on."], tmp_path, installs=True)

    assert "Never touch config.py" in json.dumps(request.body)
    assert "lost" not in rules.user


def compacted(name: str, prompts: list[str], folder: Path, *, installs: bool) -> tuple[Request, RulesFollowed]:
    """Compact a session; return the first call after it, and what became of the rules."""
    agent, home, work = AGENTS[name], folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    (work / "notes.txt").write_text("A line of notes.\n" * 1_500)
    model = ScriptedModel(agent, work)
    model._steps = iter([*agent.steps[:2], None, None])
    with loopback_provider() as provider:
        provider.responder = model
        agent.home(home, provider.url, provider.url)
        environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
        if installs:
            install_give_back(name, home, work, environment)
        run_trusting_hooks(agent, prompts, work, environment)
    kinds = [kind for kind, _ in model.requests]
    following = next(request for kind, request in model.requests[kinds.index("summary") :] if kind == "main")
    store = folder / "imported.db"
    windowpane(["import", home / agent.recordings[0], "--store", store], environment, work, codes=(0, 3))
    reader = SqliteReader(store)
    events = reader.events(EventFilter(types=("rules.followed",)))
    reader.close()
    (data,) = [one.event.data for one in events]
    assert isinstance(data, RulesFollowed)
    return following, data


def install_give_back(name: str, home: Path, work: Path, environment: dict[str, str]) -> None:
    """Install the hook as documented: written for Claude Code, pasted for Codex."""
    if name == CLAUDE.name:
        windowpane(["hook", "install", "--write", "--give-back"], environment, work)
        return
    settings = json.JSONDecoder().raw_decode(windowpane(["hook", "install", "--give-back"], environment, work))[0]
    hooks = {"SessionStart": [one for one in settings["hooks"]["SessionStart"] if "matcher" in one]}
    (home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))


def run_trusting_hooks(agent: Agent, prompts: list[str], work: Path, environment: dict[str, str]) -> None:
    """Run an agent with one prompt after the other."""
    trust = [] if agent is CLAUDE else ["--dangerously-bypass-hook-trust"]
    for number, prompt in enumerate(prompts):
        first, *rest = agent.arguments(number, prompt)
        run([npm_program(agent.program), first, *trust, *rest], work, environment)
