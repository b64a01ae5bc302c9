"""The recorded conversation without a manager, and which of its earlier content each call needed again.

The history holds the blocks that each call would have sent had nothing ever been removed. The needs are computed
once per session from the recording alone, so every setup is measured against the same needs. A call needs earlier
content that it fetched again, by the rule of a session's own regrets (`core.tracking.regret`), or used by name:
its reply holds a rare identifier, one that at most three pieces of content hold then (`core.window.references`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from windowpane.core.limits import REGRET_MINIMUM_TOKENS
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking.regret import RESTATED_TYPES, can_be_fetched, changed_target
from windowpane.core.vocabulary import REPLY_TYPES
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import (
    IDENTIFIERS_PER_BLOCK,
    INDEXED_TYPES,
    MAXIMUM_HOLDERS,
    argument_values,
    identifiers,
)
from windowpane.evaluation.replay.recordings import Recording
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.manager.drivers import BlockingWindow
from windowpane.manager.settings import EngineSettings

UNBOUNDED_TOKENS: Final = 2**48
NEVER: Final = -1
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
    """One recorded model call: the blocks before it, which of them are new, and its reply."""

    number: int
    """From 1."""
    span: WindowSpan
    start: int
    """Index of the first block added since the call before."""
    end: int
    """Index behind the last block before the call."""

    @property
    def history(self) -> Sequence[Block]:
        """Every block added before this call and not cleared."""
        return self.span.blocks[: self.end]

    @property
    def arrived(self) -> Sequence[Block]:
        """The blocks added since the call before, with the reply to that one."""
        return self.span.blocks[self.start : self.end]

    @property
    def reply(self) -> Iterator[Block]:
        """The blocks of the model's reply."""
        blocks = self.span.blocks
        for index in range(self.end, len(blocks)):
            if blocks[index].content_type not in REPLY_TYPES:
                return
            yield blocks[index]


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """Every recorded call with the blocks before it."""

    calls: tuple[RecordedCall, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all content that was ever added."""
        return sum(block.tokens for call in self.calls for block in call.arrived)


def content_key(block: Block) -> str:
    """Return the identity of a block's content, the same in every window."""
    return block.digest or f"{block.content_type}:{block.tokens}"


def history_of(recording: Recording, counter: TokenCounter, digest: Digester) -> RecordedHistory:
    """Return the recorded conversation as blocks with counts, groups and exchanges."""
    spans: list[WindowSpan] = []
    calls: list[RecordedCall] = []

    def record_call(manager: BlockingWindow) -> None:
        window_id = manager.status().window_id
        blocks = manager.blocks()
        if not spans or spans[-1].window_id != window_id:
            spans.append(WindowSpan(window_id))
        span = spans[-1]
        start = len(span.blocks)
        span.blocks.extend(blocks[start:])
        calls.append(RecordedCall(len(calls) + 1, span, start, len(blocks)))

    options = RerunOptions(
        recording.key,
        UNBOUNDED_TOKENS,
        counter,
        digest,
        source="replay",
        settings=_UNMANAGED,
        watch=record_call,
    )
    for _ in managed_events(recording.records, key=recording.key, options=options):
        pass
    return RecordedHistory(tuple(calls))


# -- needs ----------------------------------------------------------------------------------------------------

Match = Literal["digest", "call", "identifier"]


class Need(NamedTuple):
    """Earlier content that a call needed."""

    content: str
    """The `content_key` of the content."""
    match: Match
    names: tuple[str, ...] = ()
    """For `identifier`: the identifiers that the reply used."""
    changed_at: int = NEVER
    """For content that was fetched again: the call, from 0, whose reply last changed what it was read from."""


class CallNeeds(NamedTuple):
    """The needs of one call."""

    returned: tuple[Need, ...]
    """Content that was added again before the call."""
    used: tuple[Need, ...]
    """Content that its reply fetched again or used by name."""


def find_needs(history: RecordedHistory) -> list[CallNeeds]:
    """Return the needs of every call, in order; cleared content is no longer needed."""
    needs: list[CallNeeds] = []
    index, span = _ContentIndex(), None
    for call in history.calls:
        if call.span is not span:
            index, span = _ContentIndex(), call.span
        needs.append(index.add(call))
    return needs


class _ContentIndex:
    """The content of one span, by key, fetching call and identifier."""

    def __init__(self) -> None:
        self._calls: dict[str, Block] = {}
        self._fetched: set[str] = set()
        """Content that may be fetched again."""
        self._result_of: dict[str, Block] = {}
        """The results among it, by the digest of the call that fetched them."""
        self._changed: dict[str, int] = {}
        """By target, the call whose reply last changed it."""
        self._holders: dict[str, dict[str, None]] = {}

    def add(self, call: RecordedCall) -> CallNeeds:
        returned = []
        for block in call.arrived:
            key = content_key(block)
            if key in self._fetched:
                returned.append(self._need(block, "digest"))
            self._index(block, key, call.number - 2)
        reply = list(call.reply)
        return CallNeeds(tuple(returned), (*self._fetched_again(reply), *self._used_by_name(reply)))

    def _index(self, block: Block, key: str, replied: int) -> None:
        fetching = self._calls.get(block.tool_call_id or "")
        if block.content_type == "tool_call" and block.tool_call_id:
            self._calls[block.tool_call_id] = block
            if (target := changed_target(block)) is not None:
                self._changed[target] = replied
        elif _is_need(block) and can_be_fetched(block):
            self._fetched.add(key)
            if block.content_type == "tool_result" and fetching is not None:
                self._result_of[fetching.digest] = block
        if block.text and block.content_type in INDEXED_TYPES:
            names = identifiers(block.text)
            if len(names) > IDENTIFIERS_PER_BLOCK:
                names.sort(key=lambda name: (len(self._holders.get(name, ())), -len(name)))
            for name in names[:IDENTIFIERS_PER_BLOCK]:
                self._holders.setdefault(name, {})[key] = None

    def _fetched_again(self, reply: Iterable[Block]) -> list[Need]:
        """Results of earlier calls with the same tool and arguments."""
        results = (self._result_of.get(block.digest) for block in reply if block.content_type == "tool_call")
        return [self._need(result, "call") for result in results if result is not None]

    def _need(self, block: Block, match: Match) -> Need:
        return Need(content_key(block), match, changed_at=self._changed.get(block.target or "", NEVER))

    def _used_by_name(self, reply: Iterable[Block]) -> list[Need]:
        used: dict[str, list[str]] = {}
        for block in reply:
            text = block.text or ""
            for name in identifiers(argument_values(text) if block.content_type == "tool_call" else text):
                holders = self._holders.get(name, {})
                if len(holders) <= MAXIMUM_HOLDERS:
                    for key in holders:
                        used.setdefault(key, []).append(name)
        return [Need(key, "identifier", tuple(dict.fromkeys(names))) for key, names in used.items()]


def _is_need(block: Block) -> bool:
    """Return whether content of this size and type is a need where it returns."""
    return block.tokens >= REGRET_MINIMUM_TOKENS and block.content_type not in RESTATED_TYPES
