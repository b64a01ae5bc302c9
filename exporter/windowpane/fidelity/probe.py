"""Probe fidelity: the share of removed facts that the model can still see, measured without asking a model.

Facts of the removed text are looked up in the visible text. Published measurements show that surviving keywords
overstate real recall, so this is a floor alarm and is always labeled `method="probe"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from windowpane.core.events import FactOutcome, FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.vocabulary import Fate
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import TOKEN, Fact, FactKind, extract_facts

Dimension = Literal["key_facts", "continuity", "decisions"]

MINIMUM_COVERAGE: Final = 0.5
"""Below this share of removed tokens with recorded text a score would be a guess."""
SENTENCE_SHARE: Final = 0.6
"""Share of a sentence's words that one visible line must hold for the sentence to count as kept."""
WEIGHTS: Final[dict[Dimension, float]] = {"key_facts": 0.5, "continuity": 0.25, "decisions": 0.25}
"""Weights of the dimensions; a dimension without facts gives its weight to the others."""
MAXIMUM_OUTCOMES: Final = 200
"""Facts listed in one event."""

CREDIT: Final[dict[Fate, float]] = {"kept": 1.0, "recoverable": 0.5, "lost": 0.0, "contradicted": 0.0}
SEVERITY: Final[tuple[Fate, ...]] = ("contradicted", "lost", "recoverable", "kept")
"""Fates, the most severe first."""
_CONTINUITY: Final[frozenset[FactKind]] = frozenset({"goal", "constraint", "open_work"})


class Outcome(NamedTuple):
    """The fate of one fact, or of one question of a judge."""

    kind: str
    fate: Fate
    text: str


def evaluate(
    removed: Sequence[Block],
    visible: Sequence[Block],
    *,
    digest: Digester,
    recoverable: bool = False,
    facts: Sequence[Fact] | None = None,
    of: str | None = None,
) -> FidelityEvaluated:
    """Return the share of the facts in *removed* that *visible* still states, 0 to 1, as an event.

    Facts count half if *recoverable*: the originals can be fetched by a handle that the model can see. *facts*
    are those of *removed* if the caller has extracted them already. The score is None if less than half of the
    removed tokens have text, or the text states no fact. *of* is the event id of the compression.
    """
    coverage = coverage_of(removed)
    if coverage < MINIMUM_COVERAGE:
        reason = missing_text(coverage) if any(block.tokens for block in removed) else "nothing removed"
        return FidelityEvaluated("probe", None, coverage, of=of, reason=reason)
    if facts is None:
        facts = extract_facts(removed)
    if not facts:
        return FidelityEvaluated("probe", None, coverage, of=of, reason="the removed text states no facts")
    fates = _fates(facts, visible, recoverable=recoverable)
    return as_event(
        "probe",
        [Outcome(fact.kind, fate, fact.text) for fact, fate in zip(facts, fates, strict=True)],
        {dimension: _share(facts, fates, dimension) for dimension in WEIGHTS},
        coverage=coverage,
        digest=digest,
        of=of,
    )


def coverage_of(removed: Sequence[Block]) -> float:
    """Return the share of the removed tokens whose text was recorded."""
    total = sum(block.tokens for block in removed)
    return sum(block.tokens for block in removed if block.text) / total if total else 0.0


def missing_text(coverage: float) -> str:
    """Return why a compression with this coverage has no score."""
    return f"the text of only {coverage:.0%} of the removed tokens was recorded"


def weighted_score(shares: Mapping[Dimension, float | None]) -> float | None:
    """Return the weighted mean of the dimensions that have a share; None if none has."""
    present = [(WEIGHTS[name], share) for name, share in shares.items() if share is not None]
    total = sum(weight for weight, _ in present)
    return sum(weight * share for weight, share in present) / total if present else None


def as_event(
    method: Literal["probe", "judge"],
    outcomes: Sequence[Outcome],
    shares: Mapping[Dimension, float | None],
    *,
    coverage: float,
    digest: Digester,
    of: str | None,
) -> FidelityEvaluated:
    """Return the event that reports *outcomes*; it lists the most severe ones."""
    fates = [outcome.fate for outcome in outcomes]
    listed = sorted(outcomes, key=lambda outcome: SEVERITY.index(outcome.fate))[:MAXIMUM_OUTCOMES]
    return FidelityEvaluated(
        method=method,
        score=weighted_score(shares),
        coverage=coverage,
        key_facts=shares.get("key_facts"),
        continuity=shares.get("continuity"),
        decisions=shares.get("decisions"),
        facts=tuple(FactOutcome(kind, fate, digest(text), text) for kind, fate, text in listed),
        facts_total=len(fates),
        facts_kept=fates.count("kept"),
        facts_recoverable=fates.count("recoverable"),
        facts_lost=fates.count("lost"),
        facts_contradicted=fates.count("contradicted"),
        of=of,
    )


def _fates(facts: Sequence[Fact], visible: Sequence[Block], *, recoverable: bool) -> list[Fate]:
    text = _VisibleText(facts, visible)
    missing: Fate = "recoverable" if recoverable else "lost"
    return [
        "kept" if text.states(fact) else "contradicted" if text.contradicts(fact) else missing for fact in facts
    ]


def _dimension(fact: Fact) -> Dimension:
    if fact.kind == "decision":
        return "decisions"
    return "continuity" if fact.kind in _CONTINUITY else "key_facts"


def _share(facts: Sequence[Fact], fates: Iterable[Fate], dimension: Dimension) -> float | None:
    credit = [CREDIT[fate] for fact, fate in zip(facts, fates, strict=True) if _dimension(fact) == dimension]
    return sum(credit) / len(credit) if credit else None


class _VisibleText:
    """Index of the visible text: tokens, base names, values of keys, and the lines of each wanted word."""

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
        for position, token in enumerate(tokens):
            word = token.lower()
            if word in lines:
                lines[word].add(line_number)
            if token in wanted and position + 2 < len(tokens) and tokens[position + 1] in "=:":
                self._values.setdefault(token, set()).add(tokens[position + 2])

    def states(self, fact: Fact) -> bool:
        if fact.words:
            return self._states_sentence(fact.words)
        if fact.kind == "number":
            key, value = fact.text.split("=", 1)
            return value in self._values.get(key, ()) or (key in self._tokens and value in self._tokens)
        if fact.text in self._tokens:
            return True
        base = fact.text.rsplit("/", 1)[-1]
        return fact.kind == "path" and base in self._unique and base in self._bases

    def contradicts(self, fact: Fact) -> bool:
        """Return whether the key of a number now has exactly one other value."""
        if fact.kind != "number":
            return False
        key, value = fact.text.split("=", 1)
        now = self._values.get(key)
        return now is not None and len(now) == 1 and value not in now

    def _states_sentence(self, words: tuple[str, ...]) -> bool:
        votes: dict[int, int] = {}
        for word in words:
            for line in self._lines[word]:
                votes[line] = votes.get(line, 0) + 1
        return bool(votes) and max(votes.values()) >= SENTENCE_SHARE * len(words)
