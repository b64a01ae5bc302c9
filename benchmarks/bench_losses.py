"""Measure what the probe finds in damaged summaries, and what it wrongly finds in undamaged ones.

    WINDOWPANE_SESSIONS_DIR=... python benchmarks/bench_losses.py [FOLDER...]

Without folders the recordings are those of WINDOWPANE_SESSIONS_DIR and of `corpus` and `corpus-new` beside it,
and benchmarks/LOSSES.md is written. With folders of your own recordings, in any format that `windowpane import`
reads, the tables about your agent's summaries are printed. Constants were tuned on one half of the sessions by a
hash of their id; the tables report both halves. `losses/plants.py` makes the damage with no code of the product.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from bench_fidelity import import_cost
from losses.plants import cuts, harmless, plants, reversed_rule, with_line
from losses.rules import rows as rule_rows
from truth.recordings import BESIDE, MINIMUM_CALLS, Session, recorded_sessions, sessions_of

from windowpane.core.digests import keyed_digester
from windowpane.core.events import FidelityEvaluated
from windowpane.core.window.blocks import Block
from windowpane.evaluation.replay import PreparedRecording, ReplaySetup, find_recordings, simulate
from windowpane.fidelity.authorship import is_written
from windowpane.fidelity.form import form_faults
from windowpane.fidelity.passages import sentences
from windowpane.fidelity.probe import evaluate
from windowpane.fidelity.rules import find_rules
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.plans.summary import HEADINGS
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.records import CallSent, Compacted

HALVES: Final = ("tuning", "reporting")
VALUES_A_SUMMARY: Final = 30
RULES_A_SUMMARY: Final = 8
CUTS: Final = 8
"""Cut copies of each summary and kind."""
MINIMUM_CHARACTERS: Final = 500
EVERY: Final = 6
"""Of so many recordings one is managed again, for summaries that no model wrote."""
OWN_LIMIT: Final = 32_768
"""Tokens of the window that they are managed in."""
HOST_CONTEXT: Final = ("<permissions instructions>", "<environment_context>")
"""In the context that Codex puts back after a compaction whose summary is encrypted: no summary to judge."""
DIGEST: Final = keyed_digester(b"losses")
TEMPLATE_FAULT: Final = "section missing"
ROWS_CUT: Final = "lines in a row missing"
_START: Final = re.compile(r"\s*(?:$|[-*+|#>]|\d{1,2}[.)] )")
"""A line that starts an item, a heading or a table, or ends a paragraph."""

FORM: Final = """\
The form is judged without the text that was replaced. *Without a template*: the same texts, as of an agent whose
headings are not known; no missing section counts. *All kinds*: over all cut copies of the half."""
FAULTS: Final = f"""\
Share of the texts in which each fault is reported. *Recorded*: undamaged summaries that models wrote.
*Extractive*: undamaged ones that no model wrote, where every {EVERY}th recording is managed again in a window of
{OWN_LIMIT:,} tokens. *Ended early*: the same without their last sections, as of sessions that have none of these;
many end with a list of names or an excerpt of code. What is reported in these three is false, except where text
is really missing: the open mark among the recorded ones is one, whose agent lost the characters after it.
*Cut*: the copies of the table above."""
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


class Cut(NamedTuple):
    """A cut copy of a summary, and what is found in it."""

    half: str
    kind: str
    text: str
    """The whole summary."""
    copy: str
    faults: tuple[str, ...]


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


def cut_copies(summaries: Sequence[Summary]) -> Iterator[Cut]:
    """Yield the cut copies of all summaries."""
    chance = random.Random(5)
    for half in HALVES:
        for text in (one.text for one in summaries if one.half == half):
            for _ in range(CUTS):
                for kind, copy in cuts(text, chance):
                    yield Cut(half, kind, text, copy, form_faults(copy))


def cut_lines(summaries: Sequence[Summary], copies: Sequence[Cut]) -> list[str]:
    """Return the table of cut summaries against all undamaged ones, by the number of faults of their form."""
    lines = [
        "| cut | half | copies | found | AUC over different texts | found without a template |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for half in HALVES:
        whole = np.array([len(form_faults(one.text)) for one in summaries if one.half == half])
        own = [one for one in copies if one.half == half]
        for kind in (*dict.fromkeys(one.kind for one in own), ""):
            chosen = [one.faults for one in own if kind in (one.kind, "")]
            cut = np.array(list(map(len, chosen)))
            area = ((cut[:, None] > whole) + 0.5 * (cut[:, None] == whole)).mean()
            untaught = np.mean([any(kind_of_fault(fault) != TEMPLATE_FAULT for fault in one) for one in chosen])
            name = kind or "all kinds"
            found = (cut > 0).mean()
            lines.append(f"| {name} | {half} | {len(cut)} | {found:.1%} | {area:.3f} | {untaught:.1%} |")
    return lines


def unseen_line(copies: Sequence[Cut]) -> str:
    """Return what was cut where lines in a row are missing and nothing is found."""
    unseen = [one for one in copies if one.kind == ROWS_CUT and not one.faults]
    counts = Counter(map(kind_of_gap, unseen))
    shares = "; ".join(f"{number / len(unseen):.0%} {gap}" for gap, number in counts.most_common())
    return (
        f"Nothing is found in {len(unseen)} copies with lines missing in a row. The cut took: {shares}.\n"
        "Whole items leave no trace in the form."
    )


def kind_of_gap(cut: Cut) -> str:
    """Return what the lines are that a copy lacks."""
    whole, left = cut.text.split("\n"), cut.copy.split("\n")
    start = next((at for at, pair in enumerate(zip(whole, left, strict=False)) if pair[0] != pair[1]), len(left))
    end = start + len(whole) - len(left)
    fences = [line.lstrip().startswith("```") for line in whole]
    if sum(fences[:start]) % 2 and sum(fences[:end]) % 2:
        return "from one line of code to another"
    follows = left[start] if start < len(left) else ""
    before = left[start - 1] if start else ""
    if not sum(fences[:start]) % 2 and (_START.match(follows) or not before.strip()):
        return "whole items or paragraphs"
    return "others"


def kind_of_fault(fault: str) -> str:
    """Return a fault without its numbers and names."""
    return re.sub(r"<\w+>", "a tag", re.sub(r" (?:from|at) \d.*|: .*", "", fault))


def fault_lines(summaries: Sequence[Summary], own: Sequence[str], copies: Sequence[Cut]) -> list[str]:
    """Return the table of the faults of form: how often each is reported in undamaged and in cut texts."""
    groups = {
        "recorded": [form_faults(one.text) for one in summaries],
        "extractive": list(map(form_faults, own)),
        "ended early": [form_faults(text) for whole in own for text in ended_early(whole)],
        "cut": [one.faults for one in copies],
    }
    counts = {
        name: Counter(k for faults in group for k in set(map(kind_of_fault, faults)))
        for name, group in groups.items()
    }
    lines = [f"| fault | {' | '.join(groups)} |", "|---|--:|--:|--:|--:|"]
    lines.append(f"| texts | {' | '.join(f'{len(group):,}' for group in groups.values())} |")
    for fault in sorted(set().union(*counts.values()), key=lambda fault: (-counts["cut"][fault], fault)):
        cells = (f"{counts[name][fault] / max(1, len(group)):.1%}" for name, group in groups.items())
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    any_fault = (f"{sum(map(bool, group)) / max(1, len(group)):.1%}" for group in groups.values())
    return [*lines, f"| any | {' | '.join(any_fault)} |"]


def own_summaries(folders: Iterable[Path]) -> list[str]:
    """Return the summaries that the product writes without a model where recordings are managed again."""
    texts: dict[str, None] = {}

    def note(window: BlockingWindow) -> None:
        written = (block.text or "" for block in window.blocks() if block.content_type == "summary")
        texts.update(dict.fromkeys(text for text in written if len(text) >= MINIMUM_CHARACTERS))

    setup = ReplaySetup(OWN_LIMIT)
    for source in list(find_recordings(list(folders)))[::EVERY]:
        prepared = PreparedRecording(source.load())
        if len(prepared.history.calls) >= MINIMUM_CALLS and prepared.static_tokens <= setup.limits.usable_tokens:
            simulate(prepared, setup, watch=note, probe=False)
    return list(texts)


def ended_early(text: str) -> Iterator[str]:
    """Yield a summary of ours without its last section, without its last two, and so on, down to three."""
    starts = [at for heading in HEADINGS.values() if (at := text.find(f"\n{heading}\n")) >= 0]
    yield from (text[:at] for at in starts[3:])


def harmless_lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table of harmless copies."""
    chance = random.Random(7)
    changes: dict[str, list[float]] = {}
    new: Counter[str] = Counter()
    damaged: Counter[str] = Counter()
    for one in summaries:
        for kind, text in harmless(one.text, chance):
            event = one.judged(text)
            changes.setdefault(kind, []).append(abs((event.score or 0.0) - (one.event.score or 0.0)))
            new[kind] += event.facts_contradicted > one.event.facts_contradicted
            damaged[kind] += len(event.form) > len(one.event.form)
    lines = [
        "| change | summaries | mean change of score | largest | new contradictions | new damage to the form |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {kind} | {len(values)} | {np.mean(values):.4f} | {max(values):.3f} | {new[kind]} | {damaged[kind]} |"
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


def document(
    summaries: Sequence[Summary], own: Sequence[str], rules: Sequence[str] = (), import_cost: str = ""
) -> str:
    """Return the whole document."""
    copies = list(cut_copies(summaries))
    parts = [
        "# What compactions lost: how far the probe can be trusted",
        f"{__doc__}".strip(),
        "`windowpane fidelity` shows the same for one recording, or for any text with its summary.",
        f"## Undamaged summaries\n\n{chr(10).join(contradictions_lines(summaries))}",
        "Each contradiction in an undamaged summary counts as false here.",
        f"## Planted values and reversed rules\n\n{chr(10).join(planted_lines(summaries))}",
        PLANTED,
        f"## Cut summaries\n\n{chr(10).join(cut_lines(summaries, copies))}",
        FORM,
        unseen_line(copies),
        f"### Faults of the form\n\n{chr(10).join(fault_lines(summaries, own, copies))}",
        FAULTS,
        f"## Harmless changes\n\n{chr(10).join(harmless_lines(summaries))}",
        f"## Rules\n\n{chr(10).join(rules)}" if rules else "",
        f"## Facts of these summaries\n\n{chr(10).join(kinds_lines(summaries))}",
        f"## Cost\n\n{cost_line(summaries)}",
        f"At import: {import_cost}." if import_cost else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def main(names: Sequence[str]) -> int:
    """Write the document, or print it for other folders; 0 also where there are no recordings."""
    recordings = Path(os.environ.get("WINDOWPANE_SESSIONS_DIR", "."))
    folders = list(map(Path, names)) or [recordings, *(recordings.parent / name for name in BESIDE)]
    sessions = [one for folder in folders for one in sessions_of(folder)] if names else recorded_sessions()
    summaries = [summary for session in sessions for summary in summaries_of(session)]
    if not summaries:
        print("no compaction with its summary is recorded")
        return 0
    own = own_summaries(folder for folder in folders if folder.is_dir())
    if names:
        print(document(summaries, own))
    else:
        text = document(summaries, own, rule_rows(), f"{import_cost(sessions)}")
        Path(__file__).with_name("LOSSES.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
