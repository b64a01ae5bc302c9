"""Probe fidelity: how many of the facts that left can the model still see, without asking a model.

Facts of the removed text are looked up in what stays visible. Published measurements show that surviving
keywords overstate real recall, so this is a floor alarm and is always labelled `method="probe"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from windowpane.core.events import FactOutcome, FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import Fate
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import TOKEN, Fact, FactKind, extract

MINIMUM_COVERAGE: Final = 0.5
"""Below this share of removed tokens with known text a score would be a guess."""
SENTENCE_SHARE: Final = 0.6
"""Share of a sentence's words that one visible line must hold for it to count as kept."""
WEIGHTS: Final = (0.5, 0.25, 0.25)
"""Of key facts, continuity and decisions in the score; a dimension without facts gives its weight up."""
MAXIMUM_OUTCOMES: Final = 200

CREDIT: Final[dict[Fate, float]] = {"kept": 1.0, "recoverable": 0.5, "lost": 0.0, "contradicted": 0.0}
_CONTINUITY: Final[frozenset[FactKind]] = frozenset({"goal", "constraint", "open_work"})
WORST_FIRST: Final[tuple[Fate, ...]] = ("contradicted", "lost", "recoverable", "kept")


def evaluate(
    removed: Sequence[Block],
    visible: Sequence[Block],
    *,
    digest: Digester,
    recoverable: bool = False,
    facts: Sequence[Fact] | None = None,
    of: str | None = None,
) -> FidelityEvaluated:
    """How much of what *removed* said is still in *visible*; a share of facts, 0 to 1.

    *recoverable* says that the originals can be fetched by a handle the model can see; such facts count half.
    *facts* are those of *removed* where the caller has extracted them already. The score is None when less than
    half of the removed tokens had text, or when there was no fact in it. *of* is the compression's event id.
    """
    total = sum(block.tokens for block in removed)
    seen = sum(block.tokens for block in removed if block.text)
    coverage = seen / total if total else 0.0
    if coverage < MINIMUM_COVERAGE:
        reason = (
            f"the text of only {coverage:.0%} of the removed tokens was recorded" if total else "nothing removed"
        )
        return FidelityEvaluated("probe", None, coverage, of=of, reason=reason)
    if facts is None:
        facts = extract(removed)
    if not facts:
        return FidelityEvaluated("probe", None, coverage, of=of, reason="the removed text states no facts")
    return _scored(_judge(facts, visible, recoverable=recoverable), coverage=coverage, digest=digest, of=of)


def _judge(facts: Sequence[Fact], visible: Sequence[Block], *, recoverable: bool) -> list[tuple[Fact, Fate]]:
    sight = _Sight(facts, visible)
    missing: Fate = "recoverable" if recoverable else "lost"
    judged: list[tuple[Fact, Fate]] = []
    for fact in facts:
        if sight.shows(fact):
            judged.append((fact, "kept"))
        elif sight.contradicts(fact):
            judged.append((fact, "contradicted"))
        else:
            judged.append((fact, missing))
    return judged


def _scored(
    judged: Sequence[tuple[Fact, Fate]], *, coverage: float, digest: Digester, of: str | None
) -> FidelityEvaluated:
    key = _share(outcome for fact, outcome in judged if _dimension(fact) == 0)
    continuity = _share(outcome for fact, outcome in judged if _dimension(fact) == 1)
    decisions = _share(outcome for fact, outcome in judged if _dimension(fact) == 2)
    present = [
        (weight, share)
        for weight, share in zip(WEIGHTS, (key, continuity, decisions), strict=True)
        if share is not None
    ]
    counts = {name: sum(outcome == name for _, outcome in judged) for name in WORST_FIRST}
    listed = sorted(judged, key=lambda item: WORST_FIRST.index(item[1]))[:MAXIMUM_OUTCOMES]
    return FidelityEvaluated(
        method="probe",
        score=sum(weight * share for weight, share in present) / sum(weight for weight, _ in present),
        coverage=coverage,
        key_facts=key,
        continuity=continuity,
        decisions=decisions,
        facts=tuple(FactOutcome(fact.kind, outcome, digest(fact.text), fact.text) for fact, outcome in listed),
        facts_total=len(judged),
        facts_kept=counts["kept"],
        facts_recoverable=counts["recoverable"],
        facts_lost=counts["lost"],
        facts_contradicted=counts["contradicted"],
        of=of,
    )


def _dimension(fact: Fact) -> int:
    if fact.kind == "decision":
        return 2
    return 1 if fact.kind in _CONTINUITY else 0


def _share(outcomes: Iterable[Fate]) -> float | None:
    credit = [CREDIT[outcome] for outcome in outcomes]
    return sum(credit) / len(credit) if credit else None


class _Sight:
    """What the model can still see: tokens, base names, keyed numbers, and which line holds which wanted word."""

    def __init__(self, facts: Sequence[Fact], visible: Sequence[Block]) -> None:
        self._tokens: set[str] = set()
        self._lines: dict[str, set[int]] = {word: set() for fact in facts for word in fact.words}
        self._wanted_keys = {fact.text.split("=", 1)[0] for fact in facts if fact.kind == "number"}
        self._values: dict[str, set[str]] = {}
        base_names = [fact.text.rsplit("/", 1)[-1] for fact in facts if fact.kind == "path"]
        self._unique = {name for name in base_names if base_names.count(name) == 1}
        line_number = 0
        for block in visible:
            text = block.text
            if not text:
                continue
            if block.content_type == "tool_call":
                text = text.replace("\\n", "\n")
            for line in text.split("\n"):
                line_number += 1
                self._read(TOKEN.findall(line), line_number)
        self._bases = {token.rsplit("/", 1)[-1] for token in self._tokens if "/" in token} | self._tokens

    def _read(self, tokens: list[str], line_number: int) -> None:
        self._tokens.update(tokens)
        lines, wanted = self._lines, self._wanted_keys
        for place, token in enumerate(tokens):
            word = token.lower()
            if word in lines:
                lines[word].add(line_number)
            if token in wanted and place + 2 < len(tokens) and tokens[place + 1] in "=:":
                self._values.setdefault(token, set()).add(tokens[place + 2])

    def shows(self, fact: Fact) -> bool:
        if fact.words:
            return self._shows_sentence(fact.words)
        if fact.kind == "number":
            key, value = fact.text.split("=", 1)
            return value in self._values.get(key, ()) or (key in self._tokens and value in self._tokens)
        if fact.text in self._tokens:
            return True
        base = fact.text.rsplit("/", 1)[-1]
        return fact.kind == "path" and base in self._unique and base in self._bases

    def contradicts(self, fact: Fact) -> bool:
        """The key of a number now carries exactly one other value."""
        if fact.kind != "number":
            return False
        key, value = fact.text.split("=", 1)
        now = self._values.get(key)
        return now is not None and len(now) == 1 and value not in now

    def _shows_sentence(self, words: tuple[str, ...]) -> bool:
        votes: dict[int, int] = {}
        for word in words:
            for line in self._lines[word]:
                votes[line] = votes.get(line, 0) + 1
        return bool(votes) and max(votes.values()) >= SENTENCE_SHARE * len(words)
