"""`windowpane fidelity`: what compactions lost, and an acceptance check of a compaction prompt for CI."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, not_
from pathlib import Path
from typing import Annotated

import click
from pydantic import AliasPath, BeforeValidator, Field

from windowpane.cli.documents import Document
from windowpane.cli.options import EXIT_FAILED, InvalidOption, json_option
from windowpane.cli.output import print_json
from windowpane.cli.shipped import FIDELITY_EXAMPLE, shipped_folder, write_files
from windowpane.config.loading import load_config
from windowpane.effects.model_calls import Model
from windowpane.evaluation.losses import Compaction, Loss, measure, recorded_compactions, written_summary
from windowpane.evaluation.losses import text_report as losses_report
from windowpane.evaluation.suite.document import load_suite
from windowpane.evaluation.suite.judges import EXPECTED as JUDGE_EXPECTED
from windowpane.evaluation.suite.judges import STRING_MATCH, load_callable, string_match
from windowpane.evaluation.suite.report import text_report
from windowpane.evaluation.suite.run import SuiteReport, SuiteSetup, run_suite
from windowpane.exceptions import ConfigurationError, WindowpaneError
from windowpane.fidelity.judge.sampling import JudgeSampling, SampledJudge
from windowpane.models.tokens import counter_for
from windowpane.text.losses import kind_label, soundness_text

CONFIGURED = "configured"
"""Value of `--judge` without a name."""
_EXISTING = click.Path(path_type=Path, exists=True, dir_okay=False)


def _write_example(ctx: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    if folder is None or ctx.resilient_parsing:
        return
    for path in write_files(shipped_folder(FIDELITY_EXAMPLE), folder, force=False):
        click.echo(path)
    ctx.exit()


@click.command("fidelity")
@click.argument("file", type=_EXISTING)
@click.option("--summary", type=_EXISTING, help="Summary that replaced the content of FILE.")
@click.option("--after", type=_EXISTING, help="What the agent did afterwards: which losses it needed again.")
@click.option("--all", "everything", is_flag=True, help="List recoverable and kept facts too.")
@click.option(
    "--judge",
    "judge_name",
    metavar="MODULE:FUNCTION",
    is_flag=False,
    flag_value=CONFIGURED,
    help="Judge, a callable (system, user) -> text; without a name that of the configuration. "
    f"Of a suite by default {STRING_MATCH}.",
)
@click.option(
    "--compressor",
    "compressor_name",
    metavar="MODULE:FUNCTION",
    help="Model that compresses, likewise; by default the extractive summarizer, which needs no model.",
)
@click.option("--prompt", "prompt_file", type=_EXISTING, help="System prompt for the compressor.")
@click.option(
    "--replicates",
    type=click.IntRange(min=3),
    default=3,
    show_default=True,
    help="Times each question is put to the judge.",
)
@click.option(
    "--min-score", type=click.FloatRange(0, 1), help="Minimum score, also instead of that of the suite."
)
@click.option(
    "--write-example",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    is_eager=True,
    expose_value=False,
    callback=_write_example,
    help="Write an example, a suite with its text and a judge, to DIR and exit.",
)
@json_option
@click.pass_context
def command(  # noqa: PLR0917  # click passes by name
    ctx: click.Context,
    file: Path,
    summary: Path | None,
    after: Path | None,
    judge_name: str | None,
    compressor_name: str | None,
    prompt_file: Path | None,
    replicates: int,
    min_score: float | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    """Show the facts that compactions lost and the faults of their summaries, the worst first; exit with 1 below
    the minimum score.

    FILE is a recorded session, whose compactions are measured; or any text or recording that --summary replaces,
    with "User:" and "Assistant:" before the messages of a text; or a suite of documents (.yaml), which are
    compressed and about which a judge answers questions. Recordings and summaries are measured without a model:
    faults that the probe does not find are possible. With --judge a model writes questions about what was removed
    (facts, files, work to continue, decisions), and answers each several times from the rest.

    Without --judge, answers about a suite are found by matching strings: that shows that the suite works, not
    what a model would recall. A function may also be given as file.py:function.

    \b
    Example:
      windowpane fidelity session.jsonl
      windowpane fidelity session.jsonl --judge judges.py:openai
      windowpane fidelity before.txt --summary summary.md --after after.txt
      windowpane fidelity --write-example example
      windowpane fidelity example/suite.yaml --min-score 0.85
    """
    if file.suffix not in (".yaml", ".yml") or summary is not None:
        if compressor_name or prompt_file:
            raise click.UsageError("--compressor and --prompt require a suite (.yaml)")
        judge = None if judge_name is None else _judge_named(judge_name, replicates)
        compactions = _compactions_in(file, summary, after)
        losses = list(measure(compactions, judge))
        _show_losses(ctx, losses, minimum_score=min_score, everything=everything, as_json=as_json)
        return
    if prompt_file is not None and compressor_name is None:
        raise click.UsageError("--prompt requires --compressor: the extractive summarizer has no prompt")
    try:
        loaded = load_suite(file)
        setup = SuiteSetup(
            counter=counter_for("", wait=True),
            judge=string_match if judge_name is None else _callable_named(judge_name),
            compressor=(
                None if compressor_name is None else load_callable(compressor_name, option="--compressor")
            ),
            prompt="" if prompt_file is None else prompt_file.read_text(encoding="utf-8"),
            replicates=replicates,
            minimum_score=min_score,
        )
    except ConfigurationError as error:
        raise InvalidOption(str(error)) from error
    report = run_suite(loaded, file.parent, setup, progress=lambda name: click.echo(f"… {name}", err=True))
    _show(report, as_json=as_json)
    if report.failures:
        ctx.exit(EXIT_FAILED)


def _show(report: SuiteReport, *, as_json: bool) -> None:
    if as_json:
        print_json(SuiteDocument.model_validate(report, from_attributes=True))
    else:
        click.echo(text_report(report))


def _callable_named(name: str) -> Model:
    """Return the judge of that name, or that of the configuration. Raises `ConfigurationError`."""
    if name != CONFIGURED:
        return load_callable(name, option="--judge")
    model = load_config().health_monitoring.judge.model
    if model is None:
        raise ConfigurationError("health_monitoring.judge.model", "is not set", expected=JUDGE_EXPECTED)
    return load_callable(model, option="health_monitoring.judge.model")


def _judge_named(name: str, replicates: int) -> SampledJudge:
    try:
        sampling = JudgeSampling(writes_questions=True, replicates=replicates)
        return SampledJudge(_callable_named(name), sampling)
    except ConfigurationError as error:
        raise InvalidOption(str(error)) from error


def _compactions_in(file: Path, summary: Path | None, after: Path | None) -> list[Compaction]:
    if after is not None and summary is None:
        raise click.UsageError("--after requires --summary: a recording has its own turns")
    try:
        return recorded_compactions(file) if summary is None else [written_summary(file, summary, after)]
    except WindowpaneError as error:
        raise click.ClickException(str(error)) from error


def _show_losses(
    ctx: click.Context, losses: Sequence[Loss], *, minimum_score: float | None, everything: bool, as_json: bool
) -> None:
    if as_json:
        print_json([_loss_document(loss) for loss in losses])
    else:
        click.echo(losses_report(losses, everything=everything))
    scores = [(loss.evaluated if loss.judged is None else loss.judged.event).score for loss in losses]
    if minimum_score is not None and any(score is None or score < minimum_score for score in scores):
        ctx.exit(EXIT_FAILED)


# -- JSON -----------------------------------------------------------------------------------------------------

QuestionText = Annotated[str, BeforeValidator(attrgetter("text"))]


class QuestionDocument(Document):
    """A question with its outcome."""

    question: str = Field(validation_alias=AliasPath("question", "text"))
    kind: str = Field(validation_alias=AliasPath("question", "kind"))
    dimension: str = Field(validation_alias=AliasPath("question", "measures"))
    expected: str = Field(validation_alias="key")
    outcome: str = Field(validation_alias="fate")
    credit: float
    answers: tuple[str, ...]


class CaseDocument(Document):
    """The result of one case of a suite."""

    name: str
    score: float | None = Field(validation_alias=AliasPath("judgment", "score"))
    dimensions: dict[str, float | None]
    probe: float | None
    tokens_before: int
    tokens_after: int
    judge_calls: int = Field(validation_alias=AliasPath("judgment", "calls"))
    reason: str = Field(validation_alias=AliasPath("judgment", "reason"))
    questions: tuple[QuestionDocument, ...] = Field(validation_alias=AliasPath("judgment", "judged"))
    dropped: tuple[QuestionText, ...] = Field(validation_alias=AliasPath("judgment", "dropped"))
    unread: tuple[QuestionText, ...] = Field(validation_alias=AliasPath("judgment", "unread"))


class SuiteDocument(Document):
    """The result of a suite."""

    suite: str
    judge: str
    compressor: str
    passed: Annotated[bool, BeforeValidator(not_)] = Field(validation_alias="failures")
    failures: tuple[str, ...]
    minimum_score: float
    score: float | None
    dimensions: dict[str, float | None]
    cases: tuple[CaseDocument, ...]


class JudgeDocument(Document):
    """A judge that could not be asked anything."""

    name: str = Field(validation_alias=AliasPath("event", "judge"))
    score: float | None = Field(validation_alias=AliasPath("event", "score"))
    reason: str = Field(validation_alias=AliasPath("event", "reason"))


class JudgedDocument(JudgeDocument):
    """The answers of a judge about one compaction."""

    spread: float | None = Field(validation_alias=AliasPath("judgment", "spread"))
    kinds: dict[str, float] = Field(validation_alias=AliasPath("judgment", "by_kind"))
    calls: int = Field(validation_alias=AliasPath("judgment", "calls"))
    questions: tuple[QuestionDocument, ...] = Field(validation_alias=AliasPath("judgment", "judged"))
    dropped: tuple[QuestionText, ...] = Field(validation_alias=AliasPath("judgment", "dropped"))
    unread: tuple[QuestionText, ...] = Field(validation_alias=AliasPath("judgment", "unread"))


class FactDocument(Document):
    """A fact of the removed content."""

    kind: str
    outcome: str
    text: str | None
    needed_again: str | None


class LossDocument(Document):
    """The losses of one compaction."""

    compaction: str
    score: float | None
    coverage: float | None
    reason: str
    form: tuple[str, ...]
    unmeasured: tuple[str, ...]
    soundness: str
    judge: JudgedDocument | JudgeDocument | None
    facts: tuple[FactDocument, ...]


def _loss_document(loss: Loss) -> LossDocument:
    facts = (
        FactDocument.of(fact, kind=kind_label(fact.kind), needed_again=loss.needed_again(fact) or None)
        for fact in loss.evaluated.facts
    )
    kind = JudgeDocument if loss.judged is None or loss.judged.judgment is None else JudgedDocument
    return LossDocument.of(
        loss.evaluated,
        compaction=loss.compaction.name,
        soundness=soundness_text(loss.evaluated, is_judged=loss.judged is not None),
        judge=None if loss.judged is None else kind.model_validate(loss.judged, from_attributes=True),
        facts=tuple(facts),
    )
