"""The whole recorded conversation, unmanaged: what each call would have sent had nothing ever left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.core.window.blocks import Block
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.settings import EngineSettings
from windowpane.replay.managed import RerunOptions, managed_events
from windowpane.replay.recordings import Recording

UNBOUNDED_TOKENS: Final = 2**48
_UNMANAGED: Final = EngineSettings(
    cascade=(), archive=False, checkpoint=False, references=False, result_tokens=UNBOUNDED_TOKENS
)


@dataclass(slots=True)
class WindowSpan:
    """The blocks between two points at which the user cleared the window, in order."""

    window_id: int
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One recorded model call: which blocks stood before it and which of them are new, and its reply."""

    number: int
    """From 1."""
    span: WindowSpan
    start: int
    """Of what came in since the call before, in the stretch."""
    end: int

    @property
    def history(self) -> Sequence[Block]:
        """All that had come in, and was not cleared, before this call."""
        return self.span.blocks[: self.end]

    @property
    def arrived(self) -> Sequence[Block]:
        """What came in since the call before, with the reply to that one."""
        return self.span.blocks[self.start : self.end]

    @property
    def reply(self) -> Iterator[Block]:
        """What the model answered."""
        blocks = self.span.blocks
        for index in range(self.end, len(blocks)):
            if blocks[index].content_type not in REPLY_TYPES:
                return
            yield blocks[index]


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """Every recorded call with what had come before it."""

    calls: tuple[RecordedCall, ...]

    @property
    def tokens(self) -> int:
        """Of all content that ever came in."""
        return sum(block.tokens for call in self.calls for block in call.arrived)


def identity(block: Block) -> str:
    """Tells content from other content, in whatever window it stands."""
    return block.digest or f"{block.content_type}:{block.tokens}"


def history_of(recording: Recording, counter: TokenCounter, digest: Digester) -> RecordedHistory:
    """The recorded conversation as blocks with counts, groups and exchanges."""
    spans: list[WindowSpan] = []
    calls: list[RecordedCall] = []

    def sent(manager: BlockingWindow) -> None:
        window_id = manager.status().window_id
        blocks = manager.blocks()
        if not spans or spans[-1].window_id != window_id:
            spans.append(WindowSpan(window_id))
        span = spans[-1]
        start = len(span.blocks)
        span.blocks.extend(blocks[start:])
        calls.append(RecordedCall(len(calls) + 1, span, start, len(blocks)))

    rerun = RerunOptions(
        recording.key,
        UNBOUNDED_TOKENS,
        counter,
        digest,
        source="replay",
        settings=_UNMANAGED,
        watch=sent,
    )
    for _ in managed_events(recording.records, key=recording.key, rerun=rerun):
        pass
    return RecordedHistory(tuple(calls))
