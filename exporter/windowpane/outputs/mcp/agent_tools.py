"""The tools and their answers.

Every answer is about the session that `find` returns for the caller: no argument of a tool names another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from windowpane.core.window.blocks import Block
from windowpane.core.window_tools import (
    MATCHES,
    REMOVALS,
    WINDOW_TOOLS,
    WindowTool,
    WindowToolError,
    bounded,
    marked,
    page_answer,
)
from windowpane.fidelity.rules import find_rules
from windowpane.models.tokens.characters import estimate_by_characters
from windowpane.report.own_window import (
    COMPRESSIONS,
    block_lines,
    match_lines,
    removal_lines,
    rule_lines,
    status_lines,
)
from windowpane.report.session_report import last_lost_facts, last_rule_fates, latest_compressions
from windowpane.store.search.content import ContentFilter

if TYPE_CHECKING:
    from windowpane.core.protocols import Clock
    from windowpane.store.reads.reader import Reader
    from windowpane.store.records import BlockRow, SessionRow

MAXIMUM_BLOCKS: Final = 500
"""Removed blocks that are read, the latest."""
MAXIMUM_QUERY: Final = 500
"""Characters of a search."""
NOT_CAPTURED: Final = (
    "No text of this session is stored: content capture is off. Your user turns it on with "
    "`windowpane mcp --capture`."
)


INSTRUCTIONS: Final = "How full your context window is, and the text that was removed from it."
"""Sent to every client at the start; many put it into the system prompt."""


AGENT_TOOLS: Final = (
    *WINDOW_TOOLS,
    WindowTool("list_rules", "Your standing instructions, and which of them your window still has.", {}),
)


def _is_own(tool_name: str | None) -> bool:
    """Return whether a tool is one of these, whatever a program puts before its name."""
    return tool_name is not None and any(tool_name.endswith(tool.name) for tool in AGENT_TOOLS)


@dataclass(frozen=True, slots=True)
class Caller:
    """The program that passes on a call, and what it adds to the model's arguments."""

    client: str
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OwnSession:
    """The session of a caller."""

    row: SessionRow
    note: str = ""
    """A doubt that the reader has to know; empty without one."""


class AgentTools:
    """Answers calls from a store. Used by one thread at a time."""

    def __init__(
        self,
        store: Reader,
        find: Callable[[Caller], OwnSession],
        *,
        originals: Callable[[str, str], str | None],
        clock: Clock = time.time,
    ) -> None:
        """*originals* returns the archived text of a session by its handle."""
        self._store = store
        self._find = find
        self._originals = originals
        self._clock = clock

    def call(self, name: str, arguments: Mapping[str, object], caller: Caller) -> str:
        """Return the answer of a tool, after the note on its session. Raises `WindowpaneError` without one."""
        session = self._find(caller)
        try:
            answer = self._answer(name, arguments, session.row)
        except WindowToolError as error:
            raise WindowToolError(f"{error}{session.note and f' ({session.note})'}") from error
        return f"{session.note}\n{answer}" if session.note else answer

    def _answer(self, name: str, arguments: Mapping[str, object], row: SessionRow) -> str:
        match name:
            case "window_status":
                return self._status(row)
            case "removed_content":
                query = str(arguments.get("query") or "").strip()
                return self._matches(row, query) if query else self._removed(row)
            case "read_block":
                return self._text(row, str(arguments.get("id") or ""), arguments.get("start") or 0)
            case "list_rules":
                return self._rules(row)
        raise WindowToolError(f"there is no tool {name!r}")

    def _status(self, row: SessionRow) -> str:
        turns = self._store.turns(row.session_id, first=max(1, row.turns - 1))
        ended = [turn for turn in turns if turn.used_final is not None]
        window = self._store.blocks_at(row.session_id, row.turns + 1)
        return marked(_bounded(status_lines(row, ended[-1] if ended else None, window, now=self._clock())))

    def _removed(self, row: SessionRow) -> str:
        compressions = latest_compressions(self._store, row.session_id, limit=COMPRESSIONS)
        lost = last_lost_facts(self._store, row.session_id)
        removed = self._store.removed_blocks(row.session_id, row.turns + 1, limit=MAXIMUM_BLOCKS)
        others = [
            block for block in removed if block.content_type != "unattributed" and not _is_own(block.tool_name)
        ]
        others.sort(key=lambda block: (-(block.turn_removed or 0), -block.tokens))
        return marked(_bounded(removal_lines(compressions, lost, others[:REMOVALS])))

    def _matches(self, row: SessionRow, query: str) -> str:
        """Return the blocks with the words of *query*, without the calls of these tools and their answers."""
        matches = self._store.find_content(ContentFilter(query[:MAXIMUM_QUERY], row.session_id, 4 * MATCHES))
        hits = [hit for hit in matches.hits if not _is_own(hit.occurrences[0].tool_name)]
        if not hits and not self._captured(row):
            raise WindowToolError(NOT_CAPTURED)
        lives = (
            (hit, self._store.block_life(row.session_id, hit.occurrences[0].block_id)) for hit in hits[:MATCHES]
        )
        lines = [line for hit, life in lives if life is not None for line in match_lines(hit, life)]
        more = [] if matches.is_whole and len(hits) <= MATCHES else ["there may be more: add a word"]
        return marked(_bounded([*lines, *more] or ["no captured text of this session has all of these words"]))

    def _rules(self, row: SessionRow) -> str:
        """Return the rules in what the user typed: a memory file is a file, and sent again by the program."""
        window = self._store.blocks_at(row.session_id, row.turns + 1)
        removed = self._store.removed_blocks(row.session_id, row.turns + 1, limit=MAXIMUM_BLOCKS)
        rows = sorted((*reversed(removed), *window), key=lambda one: one.turn_added)
        blocks = [_block(one, self._start_or_message(one)) for one in rows]
        if not any(block.text for block in blocks) and not self._captured(row):
            raise WindowToolError(NOT_CAPTURED)
        fates = last_rule_fates(self._store, row.session_id)
        digest = self._store.digester()
        rules = [rule for rule in find_rules(blocks) if rule.source == "user"]
        fates_by_text = {rule.text: fate for rule in rules if (fate := fates.get(digest(rule.text))) is not None}
        return marked(_bounded(rule_lines(rules, {one.block_id for one in window}, fates_by_text)))

    def _start_or_message(self, row: BlockRow) -> str | None:
        return self._store.content(row.digest) if row.content_type == "user_message" else row.preview

    def _captured(self, row: SessionRow) -> bool:
        return any(block.preview is not None for block in self._store.blocks_at(row.session_id, row.turns + 1))

    def _text(self, row: SessionRow, name: str, start: object) -> str:
        life = self._store.block_life(row.session_id, name)
        head, text = [], self._originals(row.session_id, name)
        if life is not None:
            head, text = block_lines(life), self._store.content(life.block.digest)
        if text is None:
            if life is None:
                raise WindowToolError(
                    f"this session has no block or handle {name[:80]!r}; removed_content lists them"
                )
            reason = "No text of this block is stored." if self._captured(row) else NOT_CAPTURED
            return f"{marked(_bounded(head))}\n{reason}"
        return page_answer(_bounded(head), text, start, estimate_by_characters)


def _block(row: BlockRow, text: str | None) -> Block:
    return Block(
        row.block_id, row.content_type, row.tokens, row.turn_added, row.group, row.exchange, row.digest,
        row.chars, "estimate", text,
    )  # fmt: skip


def _bounded(lines: Sequence[str]) -> str:
    return bounded(lines, estimate_by_characters)
