"""The file of a fidelity suite, read strictly: an error names file, line and key, and says what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windowpane.config.loading import Layers
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.answers import read_answer
from windowpane.fidelity.judge.questions import Dimension, Question, QuestionKind

Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
Text = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class QuestionEntry(_Section):
    """One question with the answer the original gives."""

    ask: Text
    kind: QuestionKind
    expected: str = ""
    """Empty: the judge answers from the original."""
    dimension: Dimension | None = None

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if self.expected and read_answer(self.expected) is None:
            raise ValueError(f"expects {self.expected!r}, which is no answer; leave the question out instead")
        return self

    def question(self) -> Question:
        """As the judge takes it."""
        return Question(self.ask, self.kind, self.expected, self.dimension)


class SessionReference(_Section):
    """A recorded session, of any format that `windowpane import` reads."""

    file: Text
    key: str = ""
    """Of a file with several sessions; empty takes the first."""


class CaseEntry(_Section):
    """One text and what has to be known of it after it was compressed; the text is given in one of three ways."""

    name: Text
    goal: str = ""
    """Handed to the compressor, as the manager does."""
    original: str | None = None
    original_file: str | None = None
    session: SessionReference | None = None
    questions: tuple[QuestionEntry, ...] = ()
    """Empty: they are made from the facts of the text."""
    minimum_score: Ratio | None = None

    @model_validator(mode="after")
    def _has_one_text(self) -> Self:
        if sum(given is not None for given in (self.original, self.original_file, self.session)) != 1:
            raise ValueError("give exactly one of original, original_file and session")
        if self.original is not None and not self.original.strip():
            raise ValueError("original is empty")
        return self


class Suite(_Section):
    """A fidelity suite."""

    version: Literal[1] = 1
    name: Text
    minimum_score: Ratio = 0.85
    dimensions: dict[Dimension, Ratio] = Field(default_factory=dict)
    """Minimum of each dimension, beside that of the whole."""
    summary_tokens: Annotated[int, Field(ge=50)] = 1_000
    rounds: Annotated[int, Field(ge=1, le=20)] = 1
    """Compressions in a row, each of the summary so far and the next stretch of the text."""
    cases: Annotated[tuple[CaseEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [case.name for case in self.cases]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two cases are called {twice!r}")
        return self


def load_suite(path: Path) -> Suite:
    """The suite in *path*. Raises `ConfigurationError` about a key that is wrong or a file that is missing."""
    suite = Layers.read(path, environ={}).validated(Suite)
    for index, case in enumerate(suite.cases):
        named = case.original_file or (case.session.file if case.session else None)
        if named is not None and not (path.parent / named).is_file():
            key = "original_file" if case.original_file else "session.file"
            place = f"{path}: cases.{index}.{key}"
            raise ConfigurationError(place, f"there is no file {named}", expected="a path relative to the suite")
    return suite
