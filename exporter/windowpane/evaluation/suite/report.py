"""The report of a fidelity suite, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator

from windowpane.evaluation.suite.run import CaseReport, SuiteReport
from windowpane.fidelity.judge.judge import JudgedQuestion, Judgment
from windowpane.fidelity.judge.questions import WEIGHTS

_MAXIMUM_CHARS = 100
_FATES = {"contradicted": "WRONG", "lost": "LOST", "recoverable": "RECOVERABLE"}


def text_report(report: SuiteReport) -> str:
    """Return scores by case and dimension, lost facts, and the verdict."""
    return "\n".join(_lines(report))


def _lines(report: SuiteReport) -> Iterator[str]:
    yield f"{report.suite}: compressor {report.compressor}, judge {report.judge}"
    yield ""
    width = max(len("case"), *(len(case.name[:40]) for case in report.cases), len("all cases"))
    head = "  ".join(f"{name.replace('_', ' '):>10}" for name in ("score", *WEIGHTS, "probe"))
    yield f"{'case':<{width}}  {head}  {'tokens':>16}"
    for case in report.cases:
        judged = case.judgment
        row = (judged.score, *case.dimensions.values(), case.probe)
        tokens = f"{case.tokens_before:,} → {case.tokens_after:,}"
        yield f"{case.name[:40]:<{width}}  {'  '.join(map(_ratio, row))}  {tokens:>16}"
    total = (report.score, *report.dimensions.values(), None)
    yield f"{'all cases':<{width}}  {'  '.join(map(_ratio, total))}"
    for case in report.cases:
        yield from _missing(case)
    yield ""
    failures = report.failures
    yield "failed: " + "; ".join(failures) if failures else f"passed: at least {report.minimum_score:.2f}"


def _missing(case: CaseReport) -> Iterator[str]:
    """Yield the questions of a case that the summary does not answer like the original."""
    missing = list(missed_lines(case.judgment))
    if missing:
        yield from ("", f"{case.name}:", *missing)


def missed_lines(judgment: Judgment) -> Iterator[str]:
    """Yield the questions that were not answered like the original, with both answers."""
    for item in judgment.judged:
        if item.fate != "kept":
            yield f"  {_FATES[item.fate]:<11} {item.question.kind:<12} {_short(item.question.text)}"
            yield f"{'':14}expected {_short(item.key)}; got {_short(_answer(item))}"
    for question in judgment.dropped:
        yield f"  dropped     {question.kind:<12} {_short(question.text)} (the original answers differently)"
    for question in judgment.unread:
        yield f"  unread      {question.kind:<12} {_short(question.text)} (no plain yes or no)"


def _answer(item: JudgedQuestion) -> str:
    return next((answer for answer in item.answers if answer), "nothing")


def _ratio(value: float | None) -> str:
    return f"{'–' if value is None else f'{value:.2f}':>10}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAXIMUM_CHARS else f"{line[: _MAXIMUM_CHARS - 1]}…"
