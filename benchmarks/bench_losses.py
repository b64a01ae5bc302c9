"""Measure what the probe finds in damaged summaries, and what it wrongly finds in undamaged ones.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_losses.py [FOLDER...]

Without folders the recordings are those of WINDOWPANE_SESSIONS_DIR and of `corpus` and `corpus-new` beside it,
and benchmarks/LOSSES.md is written. With folders of your own recordings, in any format that `windowpane import`
reads, the tables about your agent's summaries are printed. Constants were tuned on one half of the sessions by a
hash of their id; the tables report both halves. `losses/plants.py` makes the damage with no code of the product.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from bench_fidelity import import_cost
from losses.plants import cuts, harmless, plants, reversed_rule, with_line
from losses.rules import rows as rule_rows
from truth.recordings import Session, recorded_sessions, sessions_of

from windowpane.core.digests import keyed_digester
from windowpane.core.events import FidelityEvaluated
from windowpane.core.window.blocks import Block
from windowpane.fidelity.form import form_faults
from windowpane.fidelity.passages import sentences
from windowpane.fidelity.probe import evaluate
from windowpane.fidelity.rules import find_rules
from windowpane.fidelity.situation import is_written
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.records import CallSent, Compacted

HALVES: Final = ("tuning", "reporting")
VALUES_A_SUMMARY: Final = 30
RULES_A_SUMMARY: Final = 8
CUTS: Final = 8
"""Cut copies of each summary and kind."""
MINIMUM_CHARACTERS: Final = 500
HOST_CONTEXT: Final = ("<permissions instructions>", "<environment_context>")
"""In the context that Codex puts back after a compaction whose summary is encrypted: no summary to judge."""
DIGEST: Final = keyed_digester(b"losses")


PLANTED: Final = """\
Values of what the user wrote, of rules and of decisions, where the summary repeats them. A value that occurs
twice in its statement, list marks, lines of code and line numbers are not changed."""


@dataclass(frozen=True)
class Summary:
    """A recorded compaction with its summary."""

    half: str
    removed: tuple[Block, ...]
    visible: tuple[Block, ...]
    block: Block
    event: FidelityEvaluated

    @property
    def text(self) -> str:
        """The text of the summary."""
        return self.block.text or ""

    def judged(self, text: str) -> FidelityEvaluated:
        """Return the evaluation with another text in place of the summary's."""
        visible = [replace(block, text=text) if block is self.block else block for block in self.visible]
        return evaluate(self.removed, visible, digest=DIGEST)


def summaries_of(session: Session) -> Iterator[Summary]:
    """Yield the compactions of a session whose removed text and summary were recorded."""
    if not any(isinstance(record, Compacted | CallSent) for record in session.records):
        return
    found: list[tuple[tuple[Block, ...], tuple[Block, ...]]] = []

    def note(removed: Sequence[Block], visible: Sequence[Block], **_: Any) -> None:
        found.append((tuple(removed), tuple(visible)))

    playback = replace(playback_settings(DIGEST), evaluate=note)
    list(session_events(session.records, key=session.key, source=session.format, playback=playback))
    for removed, visible in found:
        written = [block for block in visible if block.content_type == "summary" and block.text]
        event = evaluate(removed, visible, digest=DIGEST)
        text = (written[-1].text or "") if written else ""
        is_summary = len(text) >= MINIMUM_CHARACTERS and not any(mark in text for mark in HOST_CONTEXT)
        if is_summary and event.score is not None:
            yield Summary(session.half, removed, visible, written[-1], event)


def contradictions_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of undamaged summaries."""
    lines = ["| half | compactions | with a contradiction | with damage to the form |", "|---|--:|--:|--:|"]
    for half in HALVES:
        own = [one for one in summaries if one.half == half]
        wrong = sum(one.event.facts_contradicted > 0 for one in own)
        lines.append(f"| {half} | {len(own)} | {wrong} | {sum(bool(one.event.form) for one in own)} |")
    return lines


def statements_of(summary: Summary) -> list[str]:
    """Return what the user wrote, rules and decisions, sentence by sentence."""
    written = [block.text or "" for block in summary.removed if is_written(block)]
    own = [sentence[:400] for text in written for sentence in sentences(text[:20_000])]
    own += [fact.text or "" for fact in summary.event.facts if fact.kind in ("rule", "decision")]
    return list(dict.fromkeys(own))


def planted_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of planted values and reversed rules."""
    chance = random.Random(3)
    found: dict[tuple[str, str], list[bool]] = {}
    for one in summaries:
        copies = plants(statements_of(one), one.text, chance)
        for copy in chance.sample(copies, min(VALUES_A_SUMMARY, len(copies))):
            facts = one.judged(copy.text).facts
            hit = any(fact.outcome == "contradicted" and copy.planted in (fact.text or "") for fact in facts)
            found.setdefault((f"wrong {copy.kind}", one.half), []).append(hit)
        rules = [rule.text for rule in find_rules(one.removed)]
        chance.shuffle(rules)
        plain = " ".join(one.text.lower().split())
        for rule in rules[:RULES_A_SUMMARY]:
            opposite = reversed_rule(rule)
            if opposite is None or rule.lower()[:40] in plain:
                continue
            facts = one.judged(with_line(one.text, opposite)).facts
            hit = any(fact.kind == "reversed" and rule in (fact.text or "") for fact in facts)
            found.setdefault(("reversed rule", one.half), []).append(hit)
    lines = ["| planted | half | copies | found |", "|---|---|--:|--:|"]
    lines += [
        f"| {kind} | {half} | {len(hits)} | {np.mean(hits):.1%} |"
        for (kind, half), hits in sorted(found.items(), key=lambda item: (item[0][0], HALVES.index(item[0][1])))
    ]
    return lines


def cut_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of cut summaries against all undamaged ones, by the number of faults of their form."""
    chance = random.Random(5)
    lines = ["| cut | half | copies | found | AUC over different texts |", "|---|---|--:|--:|--:|"]
    for half in HALVES:
        own = [one.text for one in summaries if one.half == half]
        whole = np.array([len(form_faults(text)) for text in own])
        counts: dict[str, list[int]] = {}
        for text in own:
            for _ in range(CUTS):
                for kind, copy in cuts(text, chance):
                    counts.setdefault(kind, []).append(len(form_faults(copy)))
        for kind, faults in counts.items():
            cut = np.array(faults)
            area = ((cut[:, None] > whole) + 0.5 * (cut[:, None] == whole)).mean()
            lines.append(f"| {kind} | {half} | {len(cut)} | {(cut > 0).mean():.1%} | {area:.3f} |")
    return lines


def harmless_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of harmless copies."""
    chance = random.Random(7)
    changes: dict[str, list[float]] = {}
    new: dict[str, int] = {}
    for one in summaries:
        for kind, text in harmless(one.text, chance):
            event = one.judged(text)
            changes.setdefault(kind, []).append(abs((event.score or 0.0) - (one.event.score or 0.0)))
            new[kind] = new.get(kind, 0) + (event.facts_contradicted > one.event.facts_contradicted)
    lines = [
        "| change | summaries | mean change of score | largest | new contradictions |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {kind} | {len(values)} | {np.mean(values):.4f} | {max(values):.3f} | {new[kind]} |"
        for kind, values in changes.items()
    ]
    return lines


def kinds_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of the facts by kind and fate."""
    fates = ("kept", "recoverable", "lost", "contradicted")
    facts = [fact for one in summaries for fact in one.event.facts]
    lines = [f"| facts | {' | '.join(fates)} |", "|---|--:|--:|--:|--:|"]
    for kind in dict.fromkeys(fact.kind for fact in facts):
        counts = [sum(fact.kind == kind and fact.outcome == fate for fact in facts) for fate in fates]
        lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(map(str, counts))} |")
    return lines


def cost_line(summaries: Sequence[Summary]) -> str:
    """Return the CPU time of the probe by the text that it reads."""
    started = time.process_time()
    for one in summaries:
        one.judged(one.text)
    spent = time.process_time() - started
    megabytes = sum(block.chars for one in summaries for block in one.removed) / 1e6
    return (
        f"The probe takes {1e3 * spent / megabytes:.0f} ms of CPU time for a million characters of removed text."
    )


def document(summaries: Sequence[Summary], rules: Sequence[str] = (), import_cost: str = "") -> str:
    """Return the whole document."""
    parts = [
        "# What compactions lost: how far the probe can be trusted",
        f"{__doc__}".strip(),
        "`windowpane fidelity` shows the same for one recording, or for any text with its summary.",
        f"## Undamaged summaries\n\n{chr(10).join(contradictions_lines(summaries))}",
        "Each contradiction in an undamaged summary counts as false here.",
        f"## Planted values and reversed rules\n\n{chr(10).join(planted_lines(summaries))}",
        PLANTED,
        f"## Cut summaries\n\n{chr(10).join(cut_lines(summaries))}",
        "The form is judged without the text that was replaced. Lines missing within one section leave no trace.",
        f"## Harmless changes\n\n{chr(10).join(harmless_lines(summaries))}",
        f"## Rules\n\n{chr(10).join(rules)}" if rules else "",
        f"## Facts of these summaries\n\n{chr(10).join(kinds_lines(summaries))}",
        f"## Cost\n\n{cost_line(summaries)}",
        f"At import: {import_cost}." if import_cost else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def main(folders: Sequence[str]) -> int:
    """Write the document, or print it for other folders; 0 also where there are no recordings."""
    sessions = [one for name in folders for one in sessions_of(Path(name))] if folders else recorded_sessions()
    summaries = [summary for session in sessions for summary in summaries_of(session)]
    if not summaries:
        print("no compaction with its summary is recorded")
        return 0
    if folders:
        print(document(summaries))
    else:
        text = document(summaries, rule_rows(), f"{import_cost(sessions)}")
        Path(__file__).with_name("LOSSES.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
