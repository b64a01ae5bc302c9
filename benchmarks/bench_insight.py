"""Measure context health, regrowth and the level at which to compact on recorded sessions.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_insight.py [--store FILE] [SECTION...]

The recordings are those of the folder that WINDOWPANE_SESSIONS_DIR names and of `corpus` and `corpus-new` beside
it, imported into a temporary store, or taken from FILE. Each section of benchmarks/INSIGHT.md is written by
itself: without names those of this script, and the others stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from truth.recordings import BESIDE

from windowpane.core.events import BlockAdded, MisstepObserved
from windowpane.core.vocabulary import MISSTEPS
from windowpane.evaluation.replay.advice_text import LEVEL_COLUMNS, advice_sentences, level_cells
from windowpane.evaluation.replay.compaction_threshold import read_advice
from windowpane.report.context_health import (
    MINIMUM_SESSIONS,
    NOUNS,
    SHARES,
    change_at,
    health_of,
    latest_sessions,
    read_session_health,
)
from windowpane.report.regrowth import Regrowth
from windowpane.report.session_report import gather
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.open import open_reader
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import intact_events

DOCUMENT: Final = Path(__file__).with_name("INSIGHT.md")
TITLE: Final = "# Insight into recorded sessions"
ALL_SESSIONS: Final = SessionFilter(order="recent", limit=10_000)
REFUSED: Final = "The user doesn't want to"


def write_section(title: str, lines: Sequence[str]) -> None:
    """Write one section of the document; the others stay as they are."""
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else f"{TITLE}\n"
    section = "\n".join([f"## {title}", "", *lines]).rstrip() + "\n"
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: f"{section}\n", text)
    else:
        text = f"{text.rstrip()}\n\n{section}"
    DOCUMENT.write_text(text.rstrip() + "\n", encoding="utf-8")


# -- context health -------------------------------------------------------------------------------------------


def health_section(store: EventReader, folders: Sequence[Path]) -> Iterator[str]:
    """Yield the lines about missteps by the fill of the window."""
    sessions = latest_sessions(store, SessionFilter())
    health = health_of([read_session_health(store, row, store.turns(row.session_id)) for row in sessions])
    yield f"{health.headline} {len(health.sessions)} sessions, {health.calls:,} calls with a known fill."
    yield from ("", *_rate_table("fill of the window", health.by_tenth))
    yield from ("", *_rate_table("compactions before the call", health.by_compactions))
    yield ""
    yield (
        "Missteps per 100 calls of all sessions; in brackets the quartiles of the sessions with ten calls there. "
        "Every change that is tried, each session compared with itself:"
    )
    yield from (
        "",
        "| misstep | from | sessions | before | after | interval of the difference | evident |",
    )
    yield "|---|---|--:|--:|--:|--:|---|"
    for misstep in MISSTEPS:
        for share in (*SHARES, None):
            one = change_at(health.sessions, misstep, share)
            where = "the first compaction" if share is None else f"{share:.0%} of the window"
            interval = f"{one.low:+.1f} to {one.high:+.1f}" if one.sessions >= MINIMUM_SESSIONS else "too few"
            yield (
                f"| {NOUNS[misstep]} | {where} | {one.sessions} | {one.before:.1f} | {one.after:.1f} "
                f"| {interval} | {'yes' if one.is_evident else ''} |"
            )
    yield from ("", *_recognition(store, folders))


def _rate_table(title: str, rows: Sequence[Any]) -> Iterator[str]:
    yield f"| {title} | calls | sessions | {' | '.join(NOUNS.values())} |"
    yield "|---|--:|--:|" + "--:|" * len(NOUNS)
    for row in rows:
        cells = []
        for misstep in MISSTEPS:
            spread = row.rates[misstep]
            text = "" if spread is None else f" ({spread[0]:.1f} to {spread[2]:.1f})"
            cells.append(f"{row.pooled[misstep]:.1f}{text}")
        yield f"| {row.label} | {row.calls:,} | {row.sessions} | {' | '.join(cells)} |"


def _recognition(store: EventReader, folders: Sequence[Path]) -> Iterator[str]:
    """Compare recognized tool errors with those that Claude Code states in its transcripts."""
    stated = dict(entry for folder in folders for entry in _stated_errors(folder))
    calls: dict[tuple[str, str], str] = {}
    failed: set[str] = set()
    for row in store.sessions(ALL_SESSIONS):
        query = EventFilter(session_id=row.session_id, types=("block.added", "misstep.observed"), limit=100_000)
        for one in intact_events(store.events_or_damage(query)):
            data = one.event.data
            if isinstance(data, BlockAdded) and data.block.content_type == "tool_result":
                calls[row.session_id, data.block.id] = data.block.tool_call_id or ""
            elif isinstance(data, MisstepObserved) and data.misstep == "error":
                failed.add(calls.get((row.session_id, data.block_id), ""))
    known = stated.keys() & set(calls.values())
    both = sum(stated[call] for call in known & failed)
    recognized, errors = len(known & failed), sum(stated[call] for call in known)
    if errors and recognized:
        yield (
            f"Tool errors are recognized by their text. Claude Code also states them: of {len(known):,} results "
            f"that state whether they failed, {errors} did; {both} of these are recognized "
            f"({both / errors:.0%}), and of {recognized} recognized ones {both} failed "
            f"({both / recognized:.0%}). Calls that the user refused count as corrections."
        )


def _stated_errors(folder: Path) -> Iterator[tuple[str, bool]]:
    for path in folder.rglob("*.jsonl"):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if '"is_error"' not in line:
                continue
            try:
                parts = json.loads(line)["message"]["content"]
            except (ValueError, KeyError, TypeError):
                continue
            for part in parts if isinstance(parts, list) else ():
                if isinstance(part, dict) and isinstance(part.get("is_error"), bool):
                    text = part.get("content")
                    if not (isinstance(text, str) and text.startswith(REFUSED)):
                        yield str(part.get("tool_use_id")), part["is_error"]


# -- regrowth -------------------------------------------------------------------------------------------------


def regrowth_section(store: EventReader, _folders: Sequence[Path]) -> Iterator[str]:
    """Yield the lines about the window after each compaction."""
    by_agent: dict[str, list[Regrowth]] = {}
    for row in store.sessions(ALL_SESSIONS):
        if row.compressions:
            regrown = (one.regrowth for one in gather(store, row).compressions if one.is_compaction)
            by_agent.setdefault(row.agent, []).extend(one for one in regrown if one is not None)
    yield "| agent | compactions | back at the level | turns until then | refilled by |"
    yield "|---|--:|--:|--:|---|"
    for agent, own in sorted(by_agent.items(), key=lambda item: -len(item[1])):
        back = [one.turns for one in own if one.is_back]
        yield f"| {agent} | {len(own)} | {len(back)} | {_spread(back)} | {_refilled(own)} |"
    yield ""
    yield (
        "Turns are the median with its quartiles, from three compactions on; the others ended, or were cleared, "
        "before the window was back. The share of each component is that of the tokens that were added since."
    )


def _spread(values: Sequence[int]) -> str:
    if len(values) < 3:
        return "too few"
    low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{median(values):.0f} ({low:.0f} to {high:.0f})"


def _refilled(regrown: Sequence[Regrowth]) -> str:
    grown: Counter[str] = Counter()
    for one in regrown:
        for part in one.components:
            grown[part.name] += part.tokens
    total = grown.total()
    return ", ".join(f"{name} {tokens / total:.0%}" for name, tokens in grown.most_common(3)) if total else "–"


# -- threshold ------------------------------------------------------------------------------------------------


def threshold_section(store: EventReader, _folders: Sequence[Path]) -> Iterator[str]:
    """Yield the lines about the level at which each agent should compact."""
    for advice in read_advice(store, SessionFilter()):
        yield f"**{advice.agent}.** {advice_sentences(advice)}"
        yield from ("", f"| {' | '.join(LEVEL_COLUMNS)} |", "|---|" + "--:|" * (len(LEVEL_COLUMNS) - 1))
        yield from (f"| {' | '.join(level_cells(advice, one))} |" for one in (advice.present, *advice.lower))
        yield ""
    yield (
        "The difference between the replay of the present level and the recordings is the error of the replay: "
        "it prices writes to the cache of an hour as those of five minutes. The recordings are of many projects."
    )


SECTIONS: Final[dict[str, Callable[[EventReader, Sequence[Path]], Iterator[str]]]] = {
    "Context health": health_section,
    "Regrowth": regrowth_section,
    "When to compact": threshold_section,
}


def main(arguments: Sequence[str]) -> int:
    """Write the sections; 0 also where there are no recordings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path)
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    given = parser.parse_args(arguments)
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not folder:
        print("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions; nothing done")
        return 0
    folders = [one for one in (Path(folder), *(Path(folder).parent / name for name in BESIDE)) if one.is_dir()]
    with TemporaryDirectory() as temporary:
        path = given.store or Path(temporary) / "insight.db"
        if given.store is None:
            command = [
                sys.executable,
                "-m",
                "windowpane",
                "import",
                "--json",
                "--store",
                str(path),
                *map(str, folders),
            ]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        store = open_reader(path)
        for title in given.sections or SECTIONS:
            write_section(title, list(SECTIONS[title](store, folders)))
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
