"""Measure what `windowpane hook give-back` changes, with real agents and on recorded compactions.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/insight/give_back.py [recordings] [agents]

Writes two sections of benchmarks/INSIGHT.md. Claude Code and Codex run from npm against a scripted
provider, with and without the hook. On recordings the hook's command reads each recording as it was when the
hook would have run: Claude Code runs it before it records the compaction, Codex after. `agents`
needs npm.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from bench_insight import write_section  # noqa: E402
from tests.providers.coding_agents import AGENTS, CLAUDE, ScriptedModel, plain_environment, windowpane  # noqa: E402
from tests.providers.loopback import Reply, Request, loopback_provider  # noqa: E402
from tests.providers.npm_programs import npm_program, release  # noqa: E402
from tests.providers.test_mcp_agents import run  # noqa: E402
from truth.recordings import recorded_sessions  # noqa: E402

from windowpane.core.digests import keyed_digester  # noqa: E402
from windowpane.core.events import ContentRegretted, RulesFollowed  # noqa: E402
from windowpane.models.tokens.characters import estimate_by_characters  # noqa: E402
from windowpane.sources.imports.pipeline import playback_settings  # noqa: E402
from windowpane.sources.transcripts.playback import session_events  # noqa: E402
from windowpane.store.embedded import SqliteReader  # noqa: E402
from windowpane.store.interface import EventFilter  # noqa: E402

COMMAND: Final = (sys.executable, "-m", "windowpane", "hook", "give-back")
BOUNDARY: Final = {"claude_code": b'"subtype":"compact_boundary"', "codex": b'"type":"compacted"'}
LOST: Final = ("contradicted", "lost")
RULES: Final = ("From now on always use tabs.", "Never touch config.py.")
PROMPT: Final = f"Improve app.py. {' '.join(RULES)}"
EXPLAINED: Final = (
    "Recorded compactions, with the output of the hook at that moment. *Given though visible* are rules that the "
    "summary or the agent's program put back anyway: Claude Code runs the hook before it records its summary, so "
    "the hook cannot leave these out. No recording shows regrets with the hook."
)
SCRIPTED: Final = (
    "One session each against a scripted provider: its user gives two rules; it reads a file, is compacted and "
    "reads the file again, as the script has it: regrets are the same by design. *Given twice* are rules that "
    "the summary has, too. Codex keeps the messages of its user, so no rule had to be followed (–)."
)
SUMMARY: Final = "The app was read and edited."


# -- real agents ----------------------------------------------------------------------------------------------


class _Model(ScriptedModel):
    """A scripted model whose summary contains some of the rules; after it, the file is read again."""

    def __init__(self, name: str, folder: Path, kept: Sequence[str]) -> None:
        agent = AGENTS[name]
        super().__init__(agent, folder)
        self._steps = iter([*agent.steps[:2], None, agent.steps[0], None])
        self._kept = kept

    def _reply(self, request: Request) -> Reply:
        reply = super()._reply(request)
        if self.requests[-1][0] == "summary" and self._kept:
            return replace(reply, text=reply.text.replace(SUMMARY, f"{SUMMARY} {' '.join(self._kept)}"))
        return reply


@dataclass(frozen=True)
class Run:
    """One session of an agent that was compacted once."""

    fates: dict[str, int]
    given_tokens: int
    repeated: int
    """Given rules that the summary has, too."""
    regrets: int


def agent_run(name: str, kept: Sequence[str], *, installs: bool) -> Run:
    """Run an agent through a compaction whose summary has the rules *kept*."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        (work / "notes.txt").write_text("A line of notes.\n" * 1_500)
        agent, model = AGENTS[name], _Model(name, work, kept)
        prompts = [PROMPT, "/compact", "Go on."] if agent is CLAUDE else [PROMPT, "Go on."]
        with loopback_provider() as provider:
            provider.responder = model
            agent.home(home, provider.url, provider.url)
            environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
            if installs:
                _install(name, home, work, environment)
            trust = [] if agent is CLAUDE else ["--dangerously-bypass-hook-trust"]
            for number, prompt in enumerate(prompts):
                first, *rest = agent.arguments(number, prompt)
                run([npm_program(agent.program), first, *trust, *rest], work, environment)
        kinds = [kind for kind, _ in model.requests]
        after = next(one for kind, one in model.requests[kinds.index("summary") :] if kind == "main")
        given = re.search(r"Added by Windowpane.*?(?=\"[,}])", json.dumps(after.body))
        text = json.loads(f'"{given[0]}"') if given else ""
        store = Path(folder, "imported.db")
        windowpane(["import", home / agent.recordings[0], "--store", store], environment, work, codes=(0, 3))
        reader = SqliteReader(store)
        payloads = [
            one.event.data for one in reader.events(EventFilter(types=("rules.followed", "content.regretted")))
        ]
        reader.close()
    (rules,) = [data for data in payloads if isinstance(data, RulesFollowed)]
    return Run(
        dict(rules.user), estimate_by_characters(text) if text else 0, sum(rule in text for rule in kept),
        sum(isinstance(data, ContentRegretted) for data in payloads),
    )  # fmt: skip


def _install(name: str, home: Path, work: Path, environment: dict[str, str]) -> None:
    if name == "claude-code":
        windowpane(["hook", "install", "--write", "--give-back"], environment, work)
        return
    settings = json.JSONDecoder().raw_decode(windowpane(["hook", "install", "--give-back"], environment, work))[0]
    hooks = {"SessionStart": [one for one in settings["hooks"]["SessionStart"] if "matcher" in one]}
    (home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))


def agent_rows() -> Iterator[str]:
    """Yield the table of real agents."""
    yield "| agent | in the summary | hook | rules of the user after it | tokens added | given twice | regrets |"
    yield "|---|--:|---|---|--:|--:|--:|"
    for name in ("claude-code", "codex"):
        for kept in ((), RULES[:1]) if name == "claude-code" else ((),):
            for installs in (False, True):
                one = agent_run(name, kept, installs=installs)
                fates = ", ".join(f"{count} {fate}" for fate, count in sorted(one.fates.items()) if count) or "–"
                agent, hook = f"{name} {release(AGENTS[name].program)}", "yes" if installs else "no"
                yield (
                    f"| {agent} | {len(kept)} of 2 rules | {hook} | {fates} "
                    f"| {one.given_tokens} | {one.repeated} | {one.regrets} |"
                )


# -- recordings -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compaction:
    """One recorded compaction, with what the hook prints at its moment."""

    agent: str
    rules: dict[str, str]
    """Rules of the user with what became of them without the hook."""
    given: str


def compactions() -> Iterator[Compaction]:
    """Yield the compactions of recordings whose rows and events agree on their number."""
    playback = playback_settings(keyed_digester(b"give back"))
    seen: set[tuple[str, str]] = set()
    for session in recorded_sessions():
        if session.format not in BOUNDARY or (session.format, session.key) in seen:
            continue
        seen.add((session.format, session.key))
        lines = session.path.read_bytes().splitlines(keepends=True)
        ends = [number for number, line in enumerate(lines) if _is_boundary(line, session.format)]
        if not ends:
            continue
        events = session_events(session.records, key=session.key, source=session.format, playback=playback)
        followed = [one.data for one in events if isinstance(one.data, RulesFollowed)]
        if len(followed) != len(ends):
            continue  # rewound, or of a sub-agent
        for end, data in zip(ends, followed, strict=True):
            cut = lines[: end + (session.format == "codex")]
            rules = {
                " ".join(one.text.split()): one.fate for one in data.outcomes if one.source == "user" and one.text
            }
            yield Compaction(session.format, rules, given_text(cut))


def _is_boundary(line: bytes, source: str) -> bool:
    compact = line.replace(b'": ', b'":')
    return BOUNDARY[source] in compact and b'"isSidechain":true' not in compact


def given_text(lines: Sequence[bytes]) -> str:
    """Return what the hook's command prints for a recording of these lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(b"".join(lines))
        document = json.dumps({"source": "compact", "transcript_path": str(path)})
        done = subprocess.run(COMMAND, input=document, capture_output=True, text=True, check=True)
    return "" if not done.stdout else str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])


def recorded_rows() -> Iterator[str]:
    """Yield the table of recorded compactions."""
    by_agent: defaultdict[str, list[Compaction]] = defaultdict(list)
    for one in compactions():
        by_agent[one.agent].append(one)
    yield (
        "| agent | compactions | with text | rules of the user | lost without the hook | of them given back "
        "| given though visible | tokens added, median (most) |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for agent, all_of in sorted(by_agent.items()):
        yield _recorded_row(agent, all_of)


def _recorded_row(agent: str, all_of: Sequence[Compaction]) -> str:
    given = [one for one in all_of if one.given]
    pairs: list[tuple[str, bool]] = [
        (fate, f"- {rule}" in one.given) for one in all_of for rule, fate in one.rules.items()
    ]
    lost = [is_given for fate, is_given in pairs if fate in LOST]
    visible = [is_given for fate, is_given in pairs if fate not in LOST]
    tokens = [estimate_by_characters(one.given) for one in given]
    size = f"{median(tokens):.0f} ({max(tokens)})" if tokens else "–"
    return (
        f"| {agent} | {len(all_of)} | {len(given)} | {len(pairs)} | {len(lost)} | {sum(lost)} "
        f"| {sum(visible)} of {len(visible)} | {size} |"
    )


PARTS: Final = {
    "recordings": lambda: write_section("Give back", [EXPLAINED, "", *recorded_rows()]),
    "agents": lambda: write_section("Give back with real agents", [SCRIPTED, "", *agent_rows()]),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
