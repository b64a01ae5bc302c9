"""The formats of recordings by name: each reader is loaded when a file or folder looks as if it were for it.

A reader recognizes its format by content. What is listed here only decides which readers are asked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, overload

from windowpane.sources.transcripts.databases import MAGIC
from windowpane.sources.transcripts.folders import FolderReader
from windowpane.sources.transcripts.reader import Reader

Marks = tuple[tuple[bytes, ...], ...]
"""Alternatives: a file may be of the format if its head contains every mark of one of them."""

_DATABASE: Final[Marks] = ((MAGIC,),)
_ZIP: Final = b"PK\x03\x04"


class Format(NamedTuple):
    """One reader and the signs of its format."""

    name: str
    """The reader's `format`."""
    reader: str
    """Module below this package, and class."""
    marks: Marks = ()
    file: str = ""
    """Expression for the names of files that may be of the format."""
    part: str = ""
    """Expression for `parent/folder/file` of the files of a folder that is one recording."""
    grows: bool = True
    """The recording grows while its session runs: the reader takes `complete`."""


FORMATS: Final = (
    Format("pi", "pi:PiReader", ((b'"session"', b'"cwd"'), (b'"parentId"', b'"message"', b'"role"'))),
    Format(
        "codex", "codex.reader:CodexReader",
        (
            (b'"session_meta"',), (b'"response_item"',), (b'"turn_context"',), (b'"event_msg"',),
            (b'"compacted"',),
            (b'"id"', b'"timestamp"', b'"instructions"'), (b'"id"', b'"timestamp"', b'"git"'),
        ),
    ),
    Format("codex", "codex.early:CodexDocumentReader", ((b'"session"', b'"items"'),), grows=False),
    Format(
        "qwen_code", "gemini.qwen:QwenReader",
        ((b'"parentUuid"', b'"parts"'), (b'"parentUuid"', b'"systemPayload"')),
    ),
    Format("claude_stream", "claude_code.stream:ClaudeStreamReader", ((b'"session_id"',),), grows=False),
    Format(
        "claude_code", "claude_code.reader:ClaudeCodeReader",
        ((b'"sessionId"',), (b'"message"', b'"uuid"'), (b'"file-history-snapshot"',)),
    ),
    Format("copilot_cli", "copilot_cli.reader:CopilotReader", ((b'"parentId"', b'"data"'),)),
    Format("copilot_cli", "copilot_cli.history:CopilotHistoryReader", ((b'"chatMessages"',),), grows=False),
    Format("gemini_cli", "gemini.reader:GeminiLinesReader", ((b'"projectHash"',),)),
    Format("gemini_cli", "gemini.reader:GeminiDocumentReader", ((b'"projectHash"',),)),
    Format(
        "cline", "cline.reader:ClineReader", file=r"api_conversation_history\.json",
        part=r".*/api_conversation_history\.json", grows=False,
    ),
    Format(
        "cline", "cline.session_reader:ClineSessionReader", file=r".*\.messages\.json",
        part=r".*\.messages\.json", grows=False,
    ),
    Format("goose", "goose.reader:GooseExportReader", ((b'"working_dir"', b'"conversation"'),), grows=False),
    Format(
        "goose", "goose.reader:GooseLinesReader", ((b'"working_dir"',), (b'"created"', b'"role"')), grows=False
    ),
    Format("goose", "goose.reader:GooseDatabaseReader", _DATABASE, grows=False),
    Format("opencode", "opencode.reader:OpencodeExportReader", ((b'"messages"', b'"info"'),)),
    Format("opencode", "opencode.stream:OpencodeStreamReader", ((b'"sessionID"', b'"part"'),), grows=False),
    Format("opencode", "opencode.reader:OpencodeStorageReader", part=r"message/[^/]*/msg_.*\.json"),
    Format("opencode", "opencode.reader:OpencodeDatabaseReader", _DATABASE),
    Format("pi", "openclaw:OpenClawDatabaseReader", _DATABASE),
    Format(
        "mini_swe_agent", "mini_swe_agent:MiniSweAgentReader", ((b'"trajectory_format"',), (b'"mini_version"',)),
        file=r".*\.traj\.json", grows=False,
    ),
    Format("swe_agent", "swe_agent:SweAgentReader", ((b'"environment"',),), file=r".*\.traj", grows=False),
    Format(
        "tau2_bench", "tau_bench:Tau2Reader",
        (
            (b'"simulations"',), (b'"user_info"',), (b'"agent_info"',), (b'"num_trials"',),
            (b'"task_id"', b'"termination_reason"'), (b'"task_id"', b'"agent_cost"'),
            (b'"task_id"', b'"user_cost"'),
        ),
        grows=False,
    ),
    Format(
        "tau_bench", "tau_bench:TauBenchReader", ((b'"task_id"', b'"traj"'), (b'"task_id"', b'"reward"')),
        grows=False,
    ),
    Format("aider", "aider.history:AiderHistoryReader", file=r".*\.md"),
    Format("aider", "aider.analytics:AiderAnalyticsReader", ((b'"event"', b'"properties"'),)),
    Format(
        "openhands", "openhands.reader:OpenHandsReader",
        (
            (b'"action"', b'"args"'), (b'"observation"', b'"extras"'), (b'"kind"', b'"source"'),
            (b'"history"', b'"metrics"'), (b'"instance_id"',), (b'"issue"',),
        ),
        part=r"[^/]*/events/.*\.json",
    ),
    Format(
        "otlp", "exchanges.otlp:OtlpReader",
        (
            (b'"resourceSpans"',), (b'"resourceLogs"',), (b'"resourceMetrics"',), (b'"resource_spans"',),
            (b'"resource_logs"',), (b'"resource_metrics"',), (b'"spanContext"',), (b'"context"', b'"attributes"'),
            (b'"trace_id"',),
        ),
        grows=False,
    ),
    Format(
        "litellm_logs", "exchanges.litellm:LiteLLMReader",
        ((b'"messages"', b'"response"'), (b'"input"', b'"response"'), (b'"call_type"',)),
        part=r".*-\d{9,11}\.\d{1,9}(-[0-9a-f]{4,32})?\.json.*", grows=False,
    ),
    Format(
        "api_exchanges", "exchanges.api_exchanges:ApiExchangesReader",
        ((b'"request"', b'"response"'), (b'"entries"',), (b'"interactions"',)), grows=False,
    ),
    Format("inspect_ai", "exchanges.inspect_ai:InspectReader", ((_ZIP,), (b'"eval"', b'"task"')), grows=False),
    Format(
        "langfuse", "exchanges.langfuse:LangfuseReader",
        ((b'"traceId"',), (b'"trace_id"',), (b'"projectId"', b'"observations"')), file=r"(?i:.*\.csv)",
        grows=False,
    ),
    Format("langsmith", "exchanges.langsmith:LangSmithReader", ((b'"run_type"', b'"inputs"'),), grows=False),
    Format(
        "openai_chat", "openai_chat:OpenAIChatReader", ((b'"role"', b'"content"'), (b'"role"', b'"tool_calls"')),
        grows=False,
    ),
)  # fmt: skip
"""One entry per reader, the most specific first."""
_PARTS: Final = tuple(re.compile(rf"\A(?:{one.part})", re.DOTALL) if one.part else None for one in FORMATS)
_FILES: Final = tuple(re.compile(rf"\A(?:{one.file})", re.DOTALL) if one.file else None for one in FORMATS)


class FormatReaders(Sequence[Reader]):
    """The readers of all formats, in order; each is loaded when it is used."""

    def __init__(self, *, complete: bool | None = None) -> None:
        """*complete* is whether files are finished; see `discovery.all_readers`."""
        self._complete = complete
        self._loaded: dict[int, Reader] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the formats, each once."""
        return tuple(dict.fromkeys(one.name for one in FORMATS))

    def __len__(self) -> int:
        return len(FORMATS)

    @overload
    def __getitem__(self, index: int) -> Reader: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Reader]: ...
    def __getitem__(self, index: int | slice) -> Reader | Sequence[Reader]:
        """Return the reader at *index*."""
        if isinstance(index, slice):
            return [self._at(position) for position in range(*index.indices(len(self)))]
        return self._at(range(len(self))[index])

    def for_file(self, path: Path, head: bytes) -> Iterator[Reader]:
        """Yield the readers to ask about a file that starts with *head*: those it looks like, then the others."""
        unlikely = []
        for position in range(len(self)):
            if _is_likely(position, path, head):
                yield self._at(position)
            else:
                unlikely.append(position)
        yield from map(self._at, unlikely)

    def by_file_name(self, path: Path) -> Iterator[Reader]:
        """Yield the readers of formats that are recognized by the name of a file."""
        for position, pattern in enumerate(_FILES):
            if pattern is not None and pattern.fullmatch(path.name):
                yield self._at(position)

    def for_folder(self, folder: Path, names: Sequence[str]) -> Iterator[tuple[Reader, list[str]]]:
        """Yield the readers of which a folder is one recording, each with the *names* that are its parts."""
        for position, pattern in enumerate(_PARTS):
            if pattern is None:
                continue
            prefix = f"{folder.parent.name}/{folder.name}/"
            if any(pattern.fullmatch(prefix + name) for name in names):
                reader = self._at(position)
                assert isinstance(reader, FolderReader)
                if parts := reader.parts(folder, names):
                    yield reader, parts

    def _at(self, position: int) -> Reader:
        reader = self._loaded.get(position)
        if reader is None:
            one = FORMATS[position]
            module, name = one.reader.split(":")
            make: Any = getattr(import_module(f"{__package__}.{module}"), name)
            reader = cast("Reader", make(complete=self._complete) if one.grows else make())
            self._loaded[position] = reader
        return reader


def _is_likely(position: int, path: Path, head: bytes) -> bool:
    pattern = _FILES[position]
    if pattern is not None and pattern.fullmatch(path.name):
        return True
    return any(all(mark in head for mark in marks) for marks in FORMATS[position].marks)
