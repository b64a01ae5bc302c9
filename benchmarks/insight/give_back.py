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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from bench_insight import write_section  # noqa: E402
from tests.providers.coding_agents import AGENTS, CLAUDE, Agent, ScriptedModel, plain_environment, windowpane  # noqa: E402
from tests.providers.formats import Call, Reply  # noqa: E402
from tests.providers.loopback import Request, loopback_provider  # noqa: E402
from tests.providers.npm_programs import release  # noqa: E402
from tests.providers.test_given_back import install_give_back, run_trusting_hooks  # noqa: E402
from truth.recordings import recorded_sessions  # noqa: E402

from windowpane.core.digests import keyed_digester  # noqa: E402
from windowpane.core.events import RulesFollowed  # noqa: E402
from windowpane.models.tokens.characters import estimate_by_characters  # noqa: E402
from windowpane.sources.imports.pipeline import playback_settings  # noqa: E402
from windowpane.sources.transcripts.playback import session_events  # noqa: E402
from windowpane.store.embedded import SqliteReader  # noqa: E402
from windowpane.store.filters import EventFilter  # noqa: E402

COMMAND: Final = (sys.executable, "-m", "windowpane", "hook", "give-back")
BOUNDARY: Final = {"claude_code": b'"subtype":"compact_boundary"', "codex": b'"type":"compacted"'}
LOST: Final = ("contradicted", "lost")
EXPLAINED: Final = (
    "Recorded compactions, with the output of the hook at that moment. *Given though visible* are rules that the "
    "summary or the agent's program put back anyway: Claude Code runs the hook before it records its summary, so "
    "the hook cannot leave these out. No recording shows regrets with the hook."
)
SCRIPTED: Final = (
    "Sessions against a scripted provider, each with and without the hook: the user gives two rules; the model "
    "reads three to six plans and lists most of their steps as open; one more reply follows, which Claude Code "
    "keeps. The summary has half of the rules and steps by chance. Then, as the script has it, the model reads a "
    "plan again if its prompt does not have the plan's step: regrets show whether the text reaches the model and "
    "has the right lines, not how a real model uses it. Means with the least and the most. *Given twice* is in "
    "the summary, too; *restored, too* is in the program's memory file, which Claude Code and Codex send again."
)
SESSIONS: Final = 6
PARALLEL: Final = 3
RULES: Final = ("From now on always use tabs.", "Never touch config.py.")
MEMORY_RULE: Final = "Always sign your commits."
PROMPT: Final = f"Improve app.py. {' '.join(RULES)}"
STEPS: Final = (
    "Rename the cache key in app.py.", "Add a test for an empty file.", "Close the socket after a timeout.",
    "Remove the second reader of settings.", "Log the name of the queue.", "Raise the limit of retries to five.",
)  # fmt: skip
MEASURES: Final = ("regrets", "survived", "tokens")
LISTED_SHARE: Final = 0.7
SUMMARY_SHARE: Final = 0.5
FILLER: Final = "A line of the plan.\n" * 100
FULL_TOKENS: Final = 40_000
"""Reported input of the call before the compaction, above the level in Codex's settings."""
SUMMARY: Final = "The app was read and edited."


# -- real agents ----------------------------------------------------------------------------------------------


class _Model(ScriptedModel):
    """A scripted model that reads plans, lists their steps, and later reads again what its prompt lacks."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        agent, chance = AGENTS[name], Random(seed)
        super().__init__(agent, folder)
        steps = STEPS[: chance.randint(3, len(STEPS))]
        self.listed = [step for step in steps if chance.random() < LISTED_SHARE]
        self.in_summary = [text for text in (*RULES, *steps) if chance.random() < SUMMARY_SHARE]
        self._plans = {step: _read_call(agent, number) for number, step in enumerate(steps)}
        self._steps = iter([*self._plans.values(), None, None])
        self._replies = iter([(self._list_of_work(), False), ("I start with the first step.", True)])
        self._is_planned = False
        for number, step in enumerate(steps):
            (folder / f"plan-{number}.txt").write_text(FILLER + f"{step}\n" + FILLER)

    def _reply(self, request: Request) -> Reply:
        kind = self.agent.kind(request)
        is_compacted = any(one == "summary" for one, _ in self.requests)
        if kind == "main" and is_compacted and not self._is_planned:
            self._is_planned = True
            seen = [*self.in_summary, json.dumps(request.body)]  # only the provider can read Codex's summary
            self._steps = iter(
                call for step, call in self._plans.items() if not any(step in text for text in seen)
            )
        reply = super()._reply(request)
        if kind == "summary":
            return replace(reply, text=reply.text.replace(SUMMARY, " ".join([SUMMARY, *self.in_summary])))
        if kind == "main" and not is_compacted and not reply.calls:
            text, is_last = next(self._replies)
            return replace(reply, text=text, input_tokens=FULL_TOKENS if is_last else reply.input_tokens)
        return reply

    def _list_of_work(self) -> str:
        boxes = "\n".join(f"- [ ] {step}" for step in self.listed)
        return f"I have read the plans. Remaining:\n{boxes}" if boxes else "I have read the plans."


def _read_call(agent: Agent, number: int) -> Call:
    """Return the call that reads a plan: with Claude Code a tool for files, and a command in turn."""
    name = f"plan-{number}.txt"
    if agent is not CLAUDE:
        return Call("exec_command", {"cmd": f"cat {name}"}, "call")
    if number % 2:
        return Call("Bash", {"command": f"cat {name}", "description": "Read a plan"}, "toolu")
    return Call("Read", {"file_path": f"{{folder}}/{name}"}, "toolu")


@dataclass(frozen=True)
class Run:
    """One session of an agent that was compacted once."""

    rules: int
    survived: int
    """Rules that are visible in the first call after the compaction."""
    regrets: int
    tokens: int
    """Tokens that the hook added."""
    given: int
    """Rules and steps that the hook gave back."""
    repeated: int
    """Those of them that the summary has, too."""
    restored: int
    """Of the given ones, those that the agent's program restores by itself."""


def agent_run(name: str, seed: int, *, installs: bool) -> Run:
    """Run an agent through a compaction whose summary has a part of the rules and steps."""
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        agent, model = AGENTS[name], _Model(name, work, seed)
        (work / ("CLAUDE.md" if agent is CLAUDE else "AGENTS.md")).write_text(f"{MEMORY_RULE}\n")
        prompts = [PROMPT, "Start.", *(["/compact"] if agent is CLAUDE else []), "Go on."]
        with loopback_provider() as provider:
            provider.responder = model
            agent.home(home, provider.url, provider.url)
            environment = plain_environment(home) | agent.environment(home, provider.url, provider.url)
            if installs:
                install_give_back(name, home, work, environment)
            run_trusting_hooks(agent, prompts, work, environment)
        kinds = [kind for kind, _ in model.requests]
        after = next(one for kind, one in model.requests[kinds.index("summary") :] if kind == "main")
        body = json.dumps(after.body)
        found = re.search(r"Added by Windowpane.*?(?=\"[,}])", body)
        text = json.loads(f'"{found[0]}"') if found else ""
        store = Path(folder, "imported.db")
        windowpane(["import", home / agent.recordings[0], "--store", store], environment, work, codes=(0, 3))
        reader = SqliteReader(store)
        regrets = len(list(reader.events(EventFilter(types=("content.regretted",)))))
        reader.close()
    assert MEMORY_RULE in body, "the program restores its memory file"
    given = [one for one in (*RULES, *STEPS, MEMORY_RULE) if one in text]
    return Run(
        len(RULES), sum(rule in body or rule in model.in_summary for rule in RULES), regrets,
        estimate_by_characters(text) if text else 0, len(given), sum(one in model.in_summary for one in given),
        text.count(MEMORY_RULE),
    )  # fmt: skip


def agent_rows() -> Iterator[str]:
    """Yield the table of real agents, and the difference that the hook makes in each pair of sessions."""
    yield (
        "| agent | hook | sessions | regrets | rules visible | tokens added | given back | given twice "
        "| restored, too |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    differences = []
    for name in ("claude-code", "codex"):
        with ThreadPoolExecutor(PARALLEL) as pool:
            runs = {
                installs: [*pool.map(partial(agent_run, name, installs=installs), range(SESSIONS))]
                for installs in (False, True)
            }
        agent = f"{name} {release(AGENTS[name].program)}"
        for installs, own in runs.items():
            regrets, survived, tokens = ([getattr(one, key) for one in own] for key in MEASURES)
            yield (
                f"| {agent} | {'yes' if installs else 'no'} | {len(own)} | {_spread(regrets)} "
                f"| {_spread(survived)} of {len(RULES)} | {_spread(tokens)} | {sum(one.given for one in own)} "
                f"| {sum(one.repeated for one in own)} | {sum(one.restored for one in own)} |"
            )
        pairs = zip(runs[False], runs[True], strict=True)
        less = [without.regrets - with_hook.regrets for without, with_hook in pairs]
        differences.append(
            f"{name}: {_spread(less)} regrets fewer with the hook, each session compared with itself."
        )
    yield from ("", " ".join(differences))


def _spread(values: Sequence[int]) -> str:
    return f"{fmean(values):.1f} ({min(values)} to {max(values)})"


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
