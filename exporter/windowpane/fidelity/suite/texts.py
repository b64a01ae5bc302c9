"""The original texts of a suite's cases, as blocks: given in the suite, in a file, or as a recorded session."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.questions import blocks_of
from windowpane.fidelity.suite.document import CaseEntry, SessionReference
from windowpane.sources.discovery import all_readers, reader_for
from windowpane.sources.reader import FileStats
from windowpane.sources.records import ContentAdded, Record, SessionOpened


def original_of(case: CaseEntry, folder: Path, counter: TokenCounter) -> tuple[Block, ...]:
    """The blocks of the case's original. Raises `SourceError` or `ConfigurationError` where there is no text."""
    if case.session is not None:
        return tuple(_session_blocks(case.session, folder, counter))
    text = case.original
    if case.original_file is not None:
        path = folder / case.original_file
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(str(path), f"cannot be read ({error})", expected="a UTF-8 text") from error
    blocks = blocks_of(text or "")
    if not blocks:
        raise ConfigurationError(f"case {case.name!r}", "the original is empty", expected="some text")
    return blocks


def _session_blocks(reference: SessionReference, folder: Path, counter: TokenCounter) -> Iterator[Block]:
    path = folder / reference.file
    reader = reader_for(path, all_readers(complete=True))
    records = reader.read(path, stats=FileStats(), problems=[])
    found = False
    for number, content in enumerate(_content(records, reference.key)):
        if content.text:
            found = True
            yield _block(number, content, counter)
    if not found:
        wanted = f" under the key {reference.key!r}" if reference.key else ""
        raise ConfigurationError(str(path), f"holds no session with text{wanted}", expected="a recorded session")


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
