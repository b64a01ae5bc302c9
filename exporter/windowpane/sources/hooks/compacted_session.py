"""The hook that runs after a compaction: its output is added to the window of the model."""

from __future__ import annotations

import json
import os
import sys

from windowpane.sources.hooks.input import read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windowpane.core.window.blocks import Block
    from windowpane.sources.transcripts.records import Compacted, ContentAdded, Record, Rewound


def print_given_back() -> None:
    """Print what the model of the session on standard input gets back; nothing without any, and for any error."""
    try:
        text = text_given_back(read_document())
    except Exception:  # noqa: BLE001  # a failure of a hook is shown to the user of the agent
        text = ""
    if text:
        added = {"hookEventName": "SessionStart", "additionalContext": text}
        sys.stdout.write(json.dumps({"hookSpecificOutput": added}) + "\n")


def text_given_back(document: dict[str, object]) -> str:
    """Return the text for the session that a hook's *document* names; empty without any."""
    transcript = document.get("transcript_path")
    if document.get("source") != "compact" or not isinstance(transcript, str) or not os.path.isfile(transcript):  # noqa: PTH113
        return ""
    from pathlib import Path

    from windowpane.models.tokens.characters import estimate_by_characters
    from windowpane.sources.hooks.given_back import given_back
    from windowpane.sources.transcripts.discovery import all_readers, reader_for
    from windowpane.sources.transcripts.reader import FileStats

    path = Path(transcript)
    records = reader_for(path, all_readers(complete=True)).read(path, stats=FileStats(), problems=[])
    session = _Conversation(records)
    return given_back(session.content, session.removed, session.visible, estimate_by_characters)


class _Conversation:
    """The content of the first session of a recording, without abandoned branches."""

    def __init__(self, records: Iterable[Record]) -> None:
        from windowpane.sources.transcripts.records import (
            Cleared,
            Compacted,
            ContentAdded,
            Rewound,
            SessionOpened,
        )

        self._entries: list[tuple[str, Block]] = []
        self._compactions: list[tuple[int, Compacted]] = []
        """Each with the number of entries before it."""
        self._agent = self._version = ""
        first: str | None = None
        inside = False
        for record in records:
            if isinstance(record, SessionOpened):
                first = first or record.session_key
                inside = record.session_key == first
                if inside:
                    self._agent, self._version = record.agent, record.agent_version or self._version
            elif not inside:
                continue
            elif isinstance(record, ContentAdded):
                self._entries.append((record.key, _block(record, len(self._entries))))
            elif isinstance(record, Compacted):
                self._compactions.append((len(self._entries), record))
            elif isinstance(record, Rewound):
                self._rewind(record)
            elif isinstance(record, Cleared):
                self._entries.clear()
                self._compactions.clear()

    @property
    def content(self) -> Sequence[Block]:
        """The whole conversation."""
        return [block for _, block in self._entries]

    @property
    def removed(self) -> Sequence[Block]:
        """The content since the compaction before the one that the program has just made."""
        start = self._compactions[-1][0] if self._compactions else 0
        if self._last_is_recorded:
            start = self._compactions[-2][0] if len(self._compactions) > 1 else 0
        return [block for _, block in self._entries[start:]]

    @property
    def visible(self) -> Sequence[Block]:
        """The summary and the content that was retained: before it is recorded, what the agent always retains."""
        if not self._last_is_recorded:
            from windowpane.core.agents import retains_last_reply

            return self._last_reply if retains_last_reply(self._agent, self._version) else []
        compacted = self._compactions[-1][1]
        retained = frozenset(compacted.kept_keys)
        blocks = [block for key, block in self._entries if key in retained]
        return [*blocks, _summary(compacted.summary)] if compacted.summary else blocks

    @property
    def _last_reply(self) -> Sequence[Block]:
        from itertools import dropwhile, takewhile

        from windowpane.core.vocabulary import REPLY_TYPES

        blocks = dropwhile(lambda block: block.content_type not in REPLY_TYPES, reversed(self.content))
        return [*takewhile(lambda block: block.content_type in REPLY_TYPES, blocks)]

    @property
    def _last_is_recorded(self) -> bool:
        """True if no content follows the last recorded compaction: Codex records it before its hook runs."""
        if not self._compactions:
            return False
        since = self._entries[self._compactions[-1][0] :]
        return not any(block.content_type in ("user_message", "assistant_response") for _, block in since)

    def _rewind(self, record: Rewound) -> None:
        if record.content_keys is not None:
            retained = frozenset(record.content_keys)
            self._entries = [entry for entry in self._entries if entry[0] in retained]
        else:
            keys = [key for key, _ in self._entries]
            last = record.last_kept_key
            end = len(keys) - keys[::-1].index(last) if last in keys else 0
            del self._entries[end:]
        self._compactions = [one for one in self._compactions if one[0] <= len(self._entries)]


def _block(record: ContentAdded, number: int) -> Block:
    from windowpane.core.window.blocks import Block

    text = record.text or ""
    return Block(
        f"b{number}",
        record.content_type,
        len(text) // 4,
        number,
        f"b{number}",
        1,
        "",
        len(text),
        "estimate",
        text,
    )


def _summary(text: str) -> Block:
    from windowpane.core.window.blocks import Block

    return Block("summary", "summary", len(text) // 4, 0, "summary", 1, "", len(text), "estimate", text)
