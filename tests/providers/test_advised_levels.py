"""Coding agents from npm compact at the level whose lines `windowpane advise` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.providers.coding_agents import AGENTS, Agent, ScriptedModel, plain_environment
from tests.providers.formats import Call, Reply
from tests.providers.loopback import Request, loopback_provider
from tests.providers.npm_programs import npm_program
from tests.providers.test_coding_agents import pytestmark as large
from tests.providers.test_coding_agents import require
from tests.providers.test_mcp_agents import run

from windowpane.core.agents import CLAUDE_CODE_AGENT, CODEX_AGENT, window_of
from windowpane.models.catalog import packaged_catalog
from windowpane.sources.installed_agents.settings import lines_for_level

pytestmark = large
STEP = 6_000
"""Tokens by which the window grows from call to call, at most."""
CALLS = 40
CALLS_A_PROMPT = {"gemini-cli": 3}
"""Gemini CLI compacts between prompts only."""
LEVELS = {"gemini-cli": (50_000, 80_000)}
"""Levels other than the usual ones: Gemini CLI masks outputs beyond 50,000 tokens."""
MAIN_AGENTS = ("claude-code", "codex", "gemini-cli", "qwen-code")
SUB_AGENTS = {CLAUDE_CODE_AGENT: "claude-code", CODEX_AGENT: "codex"}


class GrowingModel(ScriptedModel):
    """Calls commands with a large output in windows of one kind, until one is compacted."""

    def __init__(self, agent: Agent, folder: Path, kind: str) -> None:
        super().__init__(agent, folder)
        self.totals_before: list[int] = []
        """Totals of the calls of this kind before the compaction."""
        self._kind = kind
        self._steps = self._main_steps()

    def _main_steps(self) -> Iterator[Call | None]:
        if self._kind == "main":
            for number in range(CALLS):
                yield self._command(number)
                if (
                    number % CALLS_A_PROMPT.get(self.agent.name, CALLS)
                    == CALLS_A_PROMPT.get(self.agent.name, 0) - 1
                ):
                    yield None
            return
        yield next(step for step in self.agent.steps if step and step.name in ("Agent", "spawn_agent"))
        if self.agent.name == "codex":
            yield Call("wait_agent", {"timeout_ms": 120_000}, "call", "collaboration")

    def _command(self, number: int) -> Call:
        """Return the agent's last step with another command: agents stop a model that repeats one."""
        step = self.agent.steps[-1]
        assert step is not None
        name = "cmd" if "cmd" in step.arguments else "command"
        command = f"seq -f 'line %g of output {number}' 1 600"
        return replace(step, arguments={**step.arguments, name: command})

    @property
    def is_compacted(self) -> bool:
        """A summary was requested."""
        return any(call.kind == "summary" for call in self.played)

    def _reply(self, request: Request) -> Reply:
        grows = not self.is_compacted and len(self.totals_before) < CALLS
        if not grows:
            self._steps = iter(())
        ends, self.agent.subagent_call = (
            self.agent.subagent_call,
            self._command(len(self.totals_before)) if grows else None,
        )
        try:
            reply = super()._reply(request)
        finally:
            self.agent.subagent_call = ends
        if not self.is_compacted and self.played[-1].kind == self._kind:
            self.totals_before.append(reply.input_tokens + reply.output_tokens)
        return reply


@pytest.mark.parametrize(
    ("name", "level"),
    [(name, level) for name in (*MAIN_AGENTS, *SUB_AGENTS) for level in LEVELS.get(name, (80_000, 120_000))],
)
def test_an_agent_compacts_at_the_level_of_the_printed_lines(name: str, level: int, tmp_path: Path) -> None:
    program = SUB_AGENTS.get(name, name)
    require(program)
    agent, home, work = AGENTS[program], tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (work / "app.py").write_text("print(1)\n")
    model = GrowingModel(agent, work, "subagent" if name in SUB_AGENTS else "main")
    with loopback_provider() as provider:
        provider.responder = model
        agent.home(home, provider.url, provider.url)
        paste(name, level, agent.model, home)
        environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
        for number in range(CALLS // CALLS_A_PROMPT.get(name, CALLS) + 1):
            if not model.is_compacted:
                prompt = "Go on." if number else "Improve app.py."
                run([npm_program(agent.program), *agent.arguments(number, prompt)], work, environment)

    assert model.is_compacted
    assert abs(model.totals_before[-1] - level) < CALLS_A_PROMPT.get(name, 1) * STEP


def paste(name: str, level: int, model: str, home: Path) -> None:
    """Put the printed lines into the settings, in place of the same ones."""
    window = window_of(packaged_catalog(), model, name)
    lines = lines_for_level(name, level, limit_tokens=window[0] if window else None)
    assert lines is not None
    path = home / lines.file.removeprefix("~/")
    present = path.read_text() if path.exists() else ""
    if path.suffix == ".json":
        path.write_text(json.dumps(json.loads(present or "{}") | json.loads(lines.lines)))
        return
    key = lines.lines.partition(" ")[0]
    others = [line for line in present.splitlines() if not line.startswith(key)]
    path.write_text("\n".join([lines.lines, *others]) + "\n")
