"""The file of a fidelity suite, and the original texts of its cases.

The file is validated: an error names file, line, key and expectation. A text is part of the suite, a separate
file, or a recorded session.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from windowpane.config.layers import Layers
from windowpane.config.loading import validated
from windowpane.config.section import NUMBER, Ratio, Section
from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.facts import blocks_of
from windowpane.fidelity.judge.prompts import read_answer
from windowpane.fidelity.judge.questions import Dimension, Question, QuestionKind
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.formats.exchanges.contents import contents_of
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import ContentAdded, Record, SessionOpened

Text = Annotated[str, Field(min_length=1)]


class _Section(Section):
    model_config = ConfigDict(coerce_numbers_to_str=True)  # as in `expected: 30`


class QuestionEntry(_Section):
    """One question, with the answer that the original gives."""

    ask: Text
    kind: QuestionKind
    expected: str = ""
    """Empty if the judge answers from the original."""
    dimension: Dimension | None = None

    def _check(self) -> None:
        if self.expected and read_answer(self.expected) is None:
            raise ValueError(f"expects {self.expected!r}, which is not an answer; remove the question instead")

    def question(self) -> Question:
        """Return the question for the judge."""
        return Question(self.ask, self.kind, self.expected, self.dimension)


class SessionReference(_Section):
    """A recorded session, of any format that `windowpane import` reads."""

    file: Text
    key: str = ""
    """Selects one of several sessions in the file; empty takes the first."""


class CaseEntry(_Section):
    """One text, and the questions that its summary must still answer; the text is given in one of three ways."""

    name: Text
    goal: str = ""
    """Passed to the compressor, as the manager does."""
    original: str | None = None
    original_file: str | None = None
    session: SessionReference | None = None
    questions: tuple[QuestionEntry, ...] = ()
    """Empty if they are made from the facts of the text."""
    minimum_score: Ratio | None = None

    def _check(self) -> None:
        if sum(given is not None for given in (self.original, self.original_file, self.session)) != 1:
            raise ValueError("give exactly one of original, original_file and session")
        if self.original is not None and not self.original.strip():
            raise ValueError("original is empty")


class Suite(_Section):
    """A fidelity suite."""

    version: Literal[1] = 1
    name: Text
    minimum_score: Ratio = 0.85
    dimensions: dict[Dimension, Ratio] = Field(default_factory=dict)
    """Minimum score of each dimension, beside that of the whole."""
    summary_tokens: Annotated[int, Field(ge=50), NUMBER] = 1_000
    rounds: Annotated[int, Field(ge=1, le=20), NUMBER] = 1
    """Number of successive compressions, each of the summary so far and the next part of the text."""
    cases: Annotated[tuple[CaseEntry, ...], Field(min_length=1)]

    def _check(self) -> None:
        names = [case.name for case in self.cases]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"two cases have the name {duplicate!r}")


def load_suite(path: Path) -> Suite:
    """Load the suite in *path*. Raises `ConfigurationError` about an invalid key or a missing file."""
    suite = validated(Suite, Layers.read(path, environ={}))
    for index, case in enumerate(suite.cases):
        file = case.original_file or (case.session.file if case.session else None)
        if file is not None and not (path.parent / file).is_file():
            key = "original_file" if case.original_file else "session.file"
            location = f"{path}: cases.{index}.{key}"
            raise ConfigurationError(location, f"file not found: {file}", expected="a path relative to the suite")
    return suite


def original_of(case: CaseEntry, folder: Path, counter: TokenCounter) -> tuple[Block, ...]:
    """Return the original of a case as blocks. Raises `SourceError` or `ConfigurationError` without a text."""
    if case.session is not None:
        return tuple(_session_blocks(case.session, folder, counter))
    text = case.original
    if case.original_file is not None:
        path = folder / case.original_file
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(str(path), f"cannot be read ({error})", expected="a UTF-8 text") from error
    blocks = blocks_of(text or "", "user_message")
    if not blocks:
        raise ConfigurationError(f"case {case.name!r}", "the original is empty", expected="some text")
    return blocks


def _session_blocks(reference: SessionReference, folder: Path, counter: TokenCounter) -> Iterator[Block]:
    path = folder / reference.file
    reader = reader_for(path, all_readers(complete=True))
    records = contents_of(reader.read(path, stats=FileStats(), problems=[]))
    is_empty = True
    for number, content in enumerate(_content(records, reference.key)):
        if content.text:
            is_empty = False
            yield _block(number, content, counter)
    if is_empty:
        key = f" under the key {reference.key!r}" if reference.key else ""
        raise ConfigurationError(str(path), f"has no session with text{key}", expected="a recorded session")


def _content(records: Iterator[Record], key: str) -> Iterator[ContentAdded]:
    current = ""
    for record in records:
        if isinstance(record, SessionOpened):
            current = record.session_key
            key = key or current
        elif isinstance(record, ContentAdded) and current == key:
            yield record


def _block(number: int, content: ContentAdded, counter: TokenCounter) -> Block:
    text = content.text or ""
    return Block(
        id=f"b{number}",
        content_type=content.content_type,
        tokens=counter.count(text),
        turn=number + 1,
        group=f"b{number}",
        exchange=1,
        digest=blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        chars=len(text),
        count_source=counter.source,
        text=text,
        tool_name=content.tool_name,
    )
