"""Probe fidelity against damaged copies of recorded texts, and against what agents used again afterwards."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np

from truth.damage import Kind, damaged, reworded, wrapped
from truth.recordings import Session
from truth.statistics import interval
from windowpane.core.digests import keyed_digester
from windowpane.core.events import BlockAdded, ContentCompressed, FidelityEvaluated
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import PROSE_TYPES, blocks_of
from windowpane.fidelity.probe import evaluate
from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events

SHARES: Final = (0.10, 0.25, 0.50)
KINDS: Final[tuple[Kind, ...]] = ("delete", "corrupt", "negate", "negate otherwise", "number")
COPIES: Final = 8
"""Damaged copies of each text, by kind and share."""
BLOCKS_A_TEXT: Final = 12
MINIMUM_CHARACTERS: Final = 3_000
TEXTS_A_SESSION: Final = 12
USED_AGAIN_TURNS: Final = 20
MINIMUM_USED: Final = 10
"""Compactions after which the agent used fewer names again are not correlated."""


TRIED: Final = """\
By the tuning half, at a tenth of the sentences. Pooled, a value has to differ more by the damage than from
summary to summary:

- deletion by coverage: a tenth lowers the share of the conversation that is visible by 2 to 6% of it, and
  undamaged summaries differ by 17 to 48% (standard deviation of the logarithm, by form of the share): 0.55 to
  0.59 for every form, with names, sentences or both. 0.90 needs a difference between summaries below 3%;
- deletion by gaps in quoted code, where two lines follow each other that did not in the conversation: 0.64,
  and 0.59 in the reporting half: agents shorten code themselves;
- deletion by the messages of the user that the summary repeats: 0.54, since summaries repeat 20 to 100% of them;
- the words in common with a whole sentence as evidence for or against a negation or a number, in place of the
  terms around it: pooled 0.64 for negation, since most of the doubt was about sentences that were right;
- evidence from plans, wishes, questions and `no` or `without` at full weight: about twice the doubt about
  undamaged summaries;
- a single shared term as context: up to 0.02 better pooled in the tuning half, as much worse in the other;
- evidence against a number from tool output: no better pooled. Its support is: without it counts are doubted;
- weights by rarity in place of equal ones: the same for deletion, 0.02 better to 0.02 worse for negation;
- numbers read with their units, ranges and line numbers, against an index of the words beside each number of the
  removed text: within a pair 0.97 in place of 0.94 in the tuning half, but 0.91 in place of 0.92 in the other
  (264 copies). The changes that stay unseen are counts that the summary made itself, indices, line numbers, and
  labels of which both values are real; a regression on 40 values of each number reaches 0.81 pooled;
- the doubts about a statement's names, negations and numbers combined, in place of the largest: no difference.
"""


@dataclass(frozen=True)
class Compaction:
    """A recorded compaction with its summary, and what the agent wrote in the turns after it."""

    removed: tuple[Block, ...]
    visible: tuple[Block, ...]
    score: float | None
    names_kept: float | None
    """Share of the key facts that are kept, by how likely each is needed again."""
    later: tuple[Block, ...]


def fidelity_section(sessions: Sequence[Session]) -> list[str]:
    """Return the tables of fidelity over the reporting half, and the relation to what followed over all."""
    every = {session.key: list(compactions_of(session)) for session in sessions}
    halves = {session.key: session.half for session in sessions}
    compactions = [own for key, own in every.items() if own and halves[key] == "reporting"]
    texts = [[pair for one in own for pair in texts_of(one)][:TEXTS_A_SESSION] for own in compactions]
    texts = [own for own in texts if own]
    return [
        *_damage_table(texts),
        "",
        *_summary_table(compactions),
        "",
        *_real_lines(compactions),
        *_relation_lines([own for own in every.values() if own]),
        "",
        "### Tried for single summaries without their undamaged text, and not taken",
        "",
        TRIED,
    ]


def compactions_of(session: Session) -> Iterator[Compaction]:
    """Yield the compactions of a session whose removed text and summary were recorded."""
    if not any(isinstance(event.data, ContentCompressed) for event in session.events):
        return
    evaluated: list[tuple[tuple[Block, ...], tuple[Block, ...], FidelityEvaluated]] = []
    later: list[list[Block]] = []

    def probe(removed: Sequence[Block], visible: Sequence[Block], **options: Any) -> FidelityEvaluated:
        event = evaluate(removed, visible, **options)
        evaluated.append((tuple(removed), tuple(visible), event))
        later.append([])
        return event

    playback = replace(playback_settings(keyed_digester(b"truth")), evaluate=probe)
    for event in session_events(session.records, key=session.key, source=session.format, playback=playback):
        if isinstance(event.data, BlockAdded) and later:
            block, after = event.data.block, later[-1]
            if not after or block.turn - after[0].turn <= USED_AGAIN_TURNS:
                after.append(block)
    for (removed, visible, event), after in zip(evaluated, later, strict=True):
        yield Compaction(removed, visible, event.score, event.key_facts, tuple(after))


def texts_of(compaction: Compaction) -> Iterator[tuple[list[Block], Block]]:
    """Yield spans of the removed prose and the summary itself, each with a copy to damage."""
    summary = next((block for block in compaction.visible if block.content_type == "summary"), None)
    if summary is not None and summary.text:
        yield list(blocks_of(summary.text)), summary
    removed = compaction.removed
    prose = [block for block in removed if block.content_type in PROSE_TYPES and len(block.text or "") > 120]
    for start in range(0, len(prose) - BLOCKS_A_TEXT, BLOCKS_A_TEXT):
        own = prose[start : start + BLOCKS_A_TEXT]
        text = "\n\n".join(block.text or "" for block in own)
        if len(text) >= MINIMUM_CHARACTERS:
            yield own, replace(own[-1], content_type="summary", text=text)


def used_again(compaction: Compaction) -> float | None:
    """Return the share of the removed names used again within 20 turns that the summary has; None below 10."""
    removed = _names(compaction.removed)
    wrote = [block for block in compaction.later if block.content_type in ("tool_call", "assistant_response")]
    used = removed & _names(wrote)
    summary = _names([block for block in compaction.visible if block.content_type == "summary"])
    return len(used & summary) / len(used) if len(used) >= MINIMUM_USED else None


def _names(blocks: Sequence[Block]) -> set[str]:
    texts = ((block.text or "").replace("\\n", "\n") for block in blocks)
    words = {token for text in texts for token in TOKEN.findall(text)}
    return {word for word in words if TOKEN_KINDS[word] in ("path", "identifier")}


def _score(removed: Sequence[Block], copy: Block, text: str) -> float:
    score = evaluate(removed, [replace(copy, text=text)], digest=str).score
    assert score is not None
    return score


def _damage_table(texts: Sequence[Sequence[tuple[list[Block], Block]]]) -> list[str]:
    chance = random.Random(11)
    undamaged: list[list[float]] = []
    changes: dict[str, list[float]] = {"wrapped at 60": [], "reworded": []}
    scores: dict[tuple[Kind, float], list[list[tuple[float, float]]]] = {}
    for own in texts:
        undamaged.append([])
        row: dict[tuple[Kind, float], list[tuple[float, float]]] = {}
        for removed, copy in own:
            text = copy.text or ""
            whole = _score(removed, copy, text)
            undamaged[-1].append(whole)
            changes["wrapped at 60"].append(abs(whole - _score(removed, copy, wrapped(text))))
            changes["reworded"].append(abs(whole - _score(removed, copy, reworded(text, chance))))
            for kind in KINDS:
                for share in SHARES:
                    for _ in range(COPIES):
                        changed = damaged(text, kind, share, chance)
                        if changed is not None:
                            row.setdefault((kind, share), []).append((whole, _score(removed, copy, changed)))
        for key, pairs in row.items():
            scores.setdefault(key, []).append(pairs)
    count = sum(map(len, undamaged))
    lines = [
        f"{count} texts of {len(texts)} sessions, each against copies of itself. AUC: the probability that an",
        "undamaged copy scores higher than a damaged one, ties counting half.",
        "",
        "| damage | sentences | AUC within a text | AUC pooled | mean loss of score |",
        "|---|--:|--:|--:|--:|",
    ]
    for (kind, share), pairs in scores.items():
        lines.append(f"| {kind} | {share:.0%} | {' | '.join(_measures(pairs))} |")
    lines += ["", "| harmless change | mean change of score | 95% of texts | largest |", "|---|--:|--:|--:|"]
    for name, values in changes.items():
        lines.append(f"| {name} | {np.mean(values):.3f} | {np.quantile(values, 0.95):.3f} | {max(values):.3f} |")
    return lines


def _measures(pairs: Sequence[Sequence[tuple[float, float]]]) -> list[str]:
    """Return both areas and the mean loss of undamaged and damaged scores by session."""
    within = interval(pairs, lambda own: float(np.mean([(a > b) + 0.5 * (a == b) for a, b in own])))
    lost = interval(pairs, lambda own: float(np.mean([a - b for a, b in own])))
    return [within.text(), interval(pairs, _auc).text(), lost.text()]


def _auc(pairs: Sequence[tuple[float, float]]) -> float:
    whole, changed = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    return float(((whole[:, None] > changed) + 0.5 * (whole[:, None] == changed)).mean())


def _summary_table(compactions: Sequence[Sequence[Compaction]]) -> list[str]:
    """Return the table of recorded summaries against damaged copies, judged by what they really replaced."""
    chance = random.Random(11)
    pairs: dict[tuple[Kind, float], list[list[tuple[_Judged, _Judged]]]] = {}
    for own in compactions:
        row: dict[tuple[Kind, float], list[tuple[_Judged, _Judged]]] = {}
        for one in own:
            summary = next((block for block in one.visible if block.content_type == "summary"), None)
            if one.score is None or summary is None or not summary.text:
                continue
            others = [block for block in one.visible if block is not summary]
            whole = _judged(one.removed, [*others, summary])
            for kind in KINDS:
                for share, copies in ((0.10, COPIES), (0.25, 1), (0.50, 1)):
                    for _ in range(copies):
                        changed = damaged(summary.text, kind, share, chance)
                        if changed is not None:
                            copy = _judged(one.removed, [*others, replace(summary, text=changed)])
                            row.setdefault((kind, share), []).append((whole, copy))
        for key, of_session in row.items():
            pairs.setdefault(key, []).append(of_session)
    lines = [
        "Recorded summaries against damaged copies, judged by the conversations that they replaced. A share is",
        "of the sentences that it can be done to: negating a tenth of those with a verb of the list",
        "changes about 2% of all sentences of a summary. *negate otherwise* and *number* are by a second",
        "generator: other auxiliaries, short forms and opposites, and numbers without names.",
        "",
        "| damage | sentences | pairs | value | AUC within a summary | AUC pooled | mean loss |",
        "|---|--:|--:|---|--:|--:|--:|",
    ]
    for (kind, share), judged in pairs.items():
        for name in _Judged._fields:
            own_pairs = [[(getattr(a, name), getattr(b, name)) for a, b in own] for own in judged]
            cells = f"| {kind} | {share:.0%} | {sum(map(len, judged))} | {name}"
            lines.append(f"{cells} | {' | '.join(_measures(own_pairs))} |")
    return [*lines, "", *_limit_of_deletion(pairs["delete", 0.10])]


def _limit_of_deletion(judged: Sequence[Sequence[tuple[_Judged, _Judged]]]) -> list[str]:
    """Return why a tenth that is missing cannot be seen without the undamaged summary."""
    whole = np.array([own[0][0].score for own in judged])
    lost = float(np.mean([a.score - b.score for own in judged for a, b in own]))
    spread = float(whole.std())
    expected = NormalDist().cdf(lost / (spread * math.sqrt(2)))
    needed = lost / (NormalDist().inv_cdf(0.90) * math.sqrt(2))
    return [
        f"Deletion, pooled: undamaged summaries score {whole.mean():.2f} with a standard deviation of",
        f"{spread:.3f}, and a tenth of the sentences is worth {lost:.3f} of the score. With such a spread the",
        f"AUC over different summaries is expected at {expected:.2f}; 0.90 needs summaries that differ by",
        f"{needed:.3f} or less. Authors keep very different shares of a conversation, and a summary that omits",
        "a tenth more is as common as one that had a tenth deleted. It is a limit of the data: compare a score",
        "with those of the agent's earlier compactions, as the alert does.",
    ]


class _Judged(NamedTuple):
    """Score and faithfulness of one summary."""

    score: float
    faithfulness: float


def _judged(removed: Sequence[Block], visible: Sequence[Block]) -> _Judged:
    event = evaluate(removed, visible, digest=str)
    return _Judged(event.score or 0.0, 1.0 if event.faithfulness is None else event.faithfulness)


def _real_lines(compactions: Sequence[Sequence[Compaction]]) -> list[str]:
    scores = [one.score for own in compactions for one in own if one.score is not None]
    low, middle, high = np.quantile(scores, [0.1, 0.5, 0.9])
    spread = f"{low:.2f} to {high:.2f} (10 to 90%), median {middle:.2f}"
    return [f"Recorded summaries score {spread}, in {len(scores)} compactions.", ""]


def _relation_lines(compactions: Sequence[Sequence[Compaction]]) -> list[str]:
    """Return the correlations with the share of names used again that the summaries have, over all sessions."""
    intro = (
        f"Rank correlation with the share of names used again within {USED_AGAIN_TURNS} turns that the summary "
        "has, over the compactions of all sessions:"
    )
    lines = [intro, ""]
    values: dict[str, Callable[[Compaction], float | None]] = {
        "the score": lambda one: one.score,
        "the share of key facts kept": lambda one: one.names_kept,
        "the length of the summary": lambda one: float(_summary_length(one)),
    }
    for name, value in values.items():
        pairs = [
            [(x, y) for one in own if (x := value(one)) is not None and (y := used_again(one)) is not None]
            for own in compactions
        ]
        pairs = [own for own in pairs if own]
        lines.append(f"- {name}: {interval(pairs, _rank_correlation).text()}, {sum(map(len, pairs))} compactions")
    return lines


def _summary_length(compaction: Compaction) -> int:
    return sum(len(block.text or "") for block in compaction.visible if block.content_type == "summary")


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    ranks = np.array([np.argsort(np.argsort(values)) for values in zip(*pairs, strict=True)])
    return float(np.corrcoef(ranks)[0, 1])
