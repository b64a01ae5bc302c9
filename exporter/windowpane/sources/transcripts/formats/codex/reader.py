"""Codex's rollouts: one JSON Lines file a session.

`response_item` rows hold the content that the model saw and wrote; `event_msg` rows repeat their text for the
user and add the counts. A call's `token_count` comes after the results of its tool calls, so the input of the
next call is deferred until it has come. Usage is repeated in rows whose totals have not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from windowpane.core.agents import CODEX, CODEX_AGENT
from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import CODEX_ROLLOUT
from windowpane.sources.transcripts.formats.codex.envelope import (
    ROW_TYPES,
    folder_in,
    in_envelope,
    is_early_header,
)
from windowpane.sources.transcripts.formats.codex.items import ResponseItem, item_of, message_key
from windowpane.sources.transcripts.formats.codex.quota import quota_of
from windowpane.sources.transcripts.formats.codex.threads import (
    inherited_history,
    origin_of,
    parent_of,
    segment_key,
)
from windowpane.sources.transcripts.json_lines import count, head_rows, instant, mapping, sequence, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    QuotaStated,
    Rewound,
    SessionDescribed,
    SessionOpened,
)
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader, unnamed_key

MAXIMUM_DEFERRED: Final = 1_000
"""Content deferred at most while a call is open."""
MAXIMUM_MESSAGES: Final = 10_000
"""Messages that a compaction's survivors are compared with."""
USAGE_NAMES: Final = (
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
_BOOKKEEPING: Final = frozenset(
    {"compaction", "ghost_snapshot", "inter_agent_communication_metadata", "world_state"}
)
"""Items and rows that add nothing to a window; the row `compacted` follows an encrypted compaction."""
_ENDS_TASK: Final = frozenset({"task_complete", "turn_aborted", "turn_complete"})
_CONTEXT: Final = frozenset({"system_prompt", "memory_injection"})
"""Content that Codex sends before a message of the user."""
_REPEATED: Final = frozenset({"system_prompt", "memory_injection", "user_message", "media"})
"""Content that a compaction repeats where it survives."""
MAXIMUM_LIVE: Final = 20_000
"""Content that a rollback can remove, the latest."""


class _LiveContent(NamedTuple):
    key: str
    content_type: ContentType


class _Compaction(NamedTuple):
    compacted: Compacted
    sent_again: Sequence[ContentAdded]
    """Content that the agent sends again beside an encrypted summary."""


class CodexReader(TranscriptReader):
    """Reads the rollouts under `~/.codex/sessions`."""

    format: ClassVar[str] = "codex"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row has one of Codex's types and a `payload`, or starts an early rollout."""
        rows = head_rows(head)
        if not rows and path.suffix == ".jsonl":
            return b'"session_meta"' in head[:200] and b'"payload"' in head[:400]
        if rows and is_early_header(rows[0]):
            return True
        return any(text(row.get("type")) in ROW_TYPES and {"payload", "cwd"} & row.keys() for row in rows)

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return _Rollout(path, log, complete=complete)


class _Rollout(Transcript):
    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, log, complete=complete)
        self._session: SessionOpened | None = None
        self._limit: int | None = None
        self._replying = False
        """A model call is open: its reply has started, and its count is still to come."""
        self._reply_at: float | None = None
        self._response_id: str | None = None
        """Of the open call; it is stated before its count."""
        self._deferred: list[ContentAdded] = []
        self._compaction: _Compaction | None = None
        """The last compaction, until the size of the window after it is known."""
        self._totals: tuple[int, ...] | None = None
        self._last_total: int | None = None
        self._messages: dict[str, list[str]] = {}
        """Keys of the messages by their text, which survivors of a compaction repeat."""
        self._contents = 0
        self._live: list[_LiveContent] = []
        """The content of the conversation, in order."""
        self._quota: tuple[tuple[int, int], ...] | None = None
        """The plan's windows that were recorded last: minutes and percent."""
        self._uncounted = 0
        """Calls without a count."""
        self._user_messages = 0

    @property
    def opened(self) -> bool:
        return self._session is not None

    def names_session(self, row: dict[str, Any]) -> bool:
        return (in_envelope(row) or row).get("type") == "session_meta"

    def read_row(self, row: dict[str, Any]) -> None:
        enveloped = in_envelope(row)
        if enveloped is None:
            return
        kind, payload = enveloped.get("type"), enveloped.get("payload")
        if not isinstance(payload, dict):
            self.log.odd_line(self.line, "payload", "expected an object")
            return
        at = self.at(instant(row.get("timestamp")))
        if kind == "session_meta":
            self._meta(payload, at)
            return
        if self._session is None:
            self._open(unnamed_key(row), at)
        self._row(text(kind), payload, at)

    def _row(self, kind: str, payload: dict[str, Any], at: float | None) -> None:
        if kind == "response_item":
            item = item_of(payload, at)
            if item is not None:
                self._item(item)
            elif text(payload.get("type")) not in _BOOKKEEPING:
                self.report_unknown(text(payload.get("type")), "items")
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "turn_context":
            self._use_model(text(payload.get("model")))
        elif kind == "compacted":
            self._compact(payload, at)
        elif kind == "token_usage_record":
            self._response_id = text(payload.get("response_id")) or None
        elif kind not in _BOOKKEEPING:
            self.report_unknown(kind)

    def finish(self) -> None:
        if self._session is None:
            return
        if self.complete:
            self._end_call(None, None)
            self._close_compaction(None)
            self.stats.user_turns = self.stats.user_turns or self._user_messages
            if self._uncounted and not self.stats.usage.get("token_count_events"):
                self.stats.api_calls += self._uncounted
                self.log.unstated("the usage of the calls")
        elif self._replying or self._compaction is not None:
            self.report_deferred("the last model call or compaction is")

    def end_repeated(self) -> None:
        self._end_call(None, None)
        self._close_compaction(None)

    # -- rows -------------------------------------------------------------------------------------------------

    def _meta(self, payload: dict[str, Any], at: float | None) -> None:
        """Open the session of the first such row; a fork repeats the rows of the sessions it came from."""
        if self._session is not None:
            if self.inherited is None:
                self.log.odd(self.line, "session_meta", "another one in the same file, skipped")
            return
        key = text(payload.get("id")) or text(payload.get("session_id"))
        if not key:
            self.log.odd(self.line, "payload.id", "the session has no id; named by its content")
            key = unnamed_key(payload)
        if payload.get("history_base"):
            self.log.odd(self.line, "history_base", "starts with the rows of an earlier rollout: unattributed")
        key, folder = segment_key(payload, key), text(payload.get("cwd"))
        self._open(key, at, parent=parent_of(payload), folder=folder)
        origin = origin_of(payload)
        if origin:
            self.inherited = inherited_history(payload, origin, self.path, key=key)
            if self.inherited is None:
                self.report_copied("forked_from_id", f"({origin[:64]}) is not there")
        git = mapping(payload.get("git"))
        self.out.append(
            SessionDescribed(
                title=text(payload.get("thread_name")),
                folder=folder,
                repository=text(git.get("repository_url")),
                branch=text(git.get("branch")),
                agent_version=text(payload.get("cli_version")),
                at=at,
            )
        )
        instructions = text(mapping(payload.get("base_instructions")).get("text"))
        if instructions:
            self.out.append(ContentAdded("system_prompt", instructions, key="base_instructions", at=at))

    def _item(self, item: ResponseItem) -> None:
        stats = self.stats
        if item.counts:
            stats.messages += 1
        stats.content_chars += item.chars
        stats.tool_calls += item.tool_calls
        stats.max_tool_output_chars = max(stats.max_tool_output_chars, item.output_chars)
        self._user_messages += any(content.content_type == "user_message" for content in item.contents)
        if item.reply:
            if self._deferred:
                self._end_call(None, None)
            self._close_compaction(None)
            self._replying = True
            for content in item.contents:
                self._reply_at = content.at if content.at is not None else self._reply_at
                self._put(content)
            return
        for content in item.contents:
            self._describe_folder(content)
            self._add_input(content)

    def _describe_folder(self, content: ContentAdded) -> None:
        """Take the folder from the first description of the environment, where the header has none."""
        if self._session is not None and not self._session.folder and content.content_type == "memory_injection":
            folder = folder_in(content.text or "")
            if folder:
                self._session = replace(self._session, folder=folder)
                self.out.append(SessionDescribed(folder=folder, at=content.at))

    def _event(self, payload: dict[str, Any], at: float | None) -> None:
        kind = text(payload.get("type"))
        if kind == "token_count":
            self._state_quota(mapping(payload.get("rate_limits")), at)
            self._count(mapping(payload.get("info")), at)
        elif kind == "task_started":
            self._state_limit(count(payload.get("model_context_window")), at)
        elif kind == "user_message" or mapping(payload.get("item")).get("type") == "UserMessage":
            self.stats.user_turns += kind != "item_started"
        elif kind in _ENDS_TASK:
            self._end_call(None, at)
        elif kind == "thread_rolled_back":
            self._roll_back(count(payload.get("num_turns")), at)
        elif kind == "thread_name_updated":
            self.out.append(SessionDescribed(title=text(payload.get("thread_name")), at=at))

    def _state_quota(self, stated: dict[str, Any], at: float | None) -> None:
        """Record the plan's windows when a whole percent of one changed."""
        quota = quota_of(stated, at)
        if quota is None:
            return
        percents = tuple((one.minutes, round(one.used_ratio * 100)) for one in quota.windows)
        if percents != self._quota:
            self._quota = percents
            self.out.append(QuotaStated(quota, at))

    def _count(self, info: dict[str, Any], at: float | None) -> None:
        if not info:
            return
        stats = self.stats
        stats.add_usage(token_count_events=1)
        limit = count(info.get("model_context_window"))
        stats.usage["window"] = limit or stats.usage.get("window", 0)
        self._state_limit(limit, at)
        totals, last = info.get("total_token_usage"), mapping(info.get("last_token_usage"))
        sums = tuple(count(totals.get(name)) for name in USAGE_NAMES) if isinstance(totals, dict) else None
        repeated = sums is not None and sums == self._totals
        self._totals = sums
        total = count(last.get("input_tokens"))
        if not total:
            self._close_compaction(count(last.get("total_tokens")) or None)
        if repeated or not total:
            return
        stats.api_calls += 1
        stats.add_usage(**{name: count(last.get(name)) for name in USAGE_NAMES})
        stats.peak_context = max(stats.peak_context, total)
        self._last_total = count(last.get("total_tokens")) or None
        self._end_call(CODEX_ROLLOUT.read(last) or Usage(), at)

    # -- order ------------------------------------------------------------------------------------------------

    def _add_input(self, content: ContentAdded) -> None:
        if self._compaction is not None:
            self._close_compaction(None)
        if self._replying:
            self._deferred.append(content)
            if len(self._deferred) > MAXIMUM_DEFERRED:
                self._end_call(None, None)
        else:
            self._put(content)

    def _put(self, content: ContentAdded) -> None:
        """Add content under a key that no other content of the file has."""
        self._contents += 1
        key = f"{content.key or content.content_type}#{self._contents}"
        if content.content_type in _REPEATED:
            self._add_message_key(content.key, key)
        self._live.append(_LiveContent(key, content.content_type))
        del self._live[:-MAXIMUM_LIVE]
        self.out.append(replace(content, key=key))

    def _roll_back(self, turns: int, at: float | None) -> None:
        """Go back to before the last *turns* messages of the user, with the context that was sent for the first.

        The context above the first message of a session always stays.
        """
        users = [number for number, content in enumerate(self._live) if content.content_type == "user_message"]
        if not turns or not users:
            return
        self._end_call(None, at)
        self._close_compaction(None)
        cut = users[max(0, len(users) - turns)]
        while cut > users[0] and self._live[cut - 1].content_type in _CONTEXT:
            cut -= 1
        self.out.append(Rewound(self._live[cut - 1].key if cut else None, at))
        del self._live[cut:]

    def _end_call(self, usage: Usage | None, at: float | None) -> None:
        """End the open call and add the content deferred for it. A count without a reply is a call too."""
        if not self._replying and usage is None:
            return
        self._close_compaction(None)
        self._uncounted += usage is None
        when = self._reply_at if self._reply_at is not None else at
        self.out.append(ModelCalled(usage, self._model, at=when, response_id=self._response_id))
        self._replying, self._reply_at, self._response_id = False, None, None
        deferred, self._deferred = self._deferred, []
        for content in deferred:
            self._put(content)

    # -- compaction -------------------------------------------------------------------------------------------

    def _compact(self, payload: dict[str, Any], at: float | None) -> None:
        self.stats.compactions += 1
        self._end_call(None, at)
        self._close_compaction(None)
        kept_keys: dict[str, None] = {}
        repeated: set[str] = set()
        other: list[ContentAdded] = []
        survivors = [mapping(entry) for entry in sequence(payload.get("replacement_history"))]
        for survivor in survivors:
            if survivor.get("type") != "message":
                continue
            key = message_key(survivor)
            if key in self._messages:
                kept_keys.update(dict.fromkeys(() if key in repeated else self._messages[key]))
                repeated.add(key)
            else:
                item = item_of(survivor, at)
                other.extend(item.contents if item else ())
        summary = ""
        if not any(survivor.get("type") == "compaction" for survivor in survivors):
            written = [text(payload.get("message")), *(content.text or "" for content in other)]
            summary = "\n\n".join(part for part in written if part)
            other = []
        compacted = Compacted(
            "auto",
            tokens_before=self._last_total,
            summary=summary or None,
            kept_keys=("base_instructions", *kept_keys),
            at=at,
        )
        self._compaction = _Compaction(compacted, other)
        self._live = [content for content in self._live if content.key in kept_keys]

    def _close_compaction(self, tokens_after: int | None) -> None:
        compaction, self._compaction = self._compaction, None
        if compaction is None:
            return
        self.out.append(replace(compaction.compacted, tokens_after=tokens_after))
        for content in compaction.sent_again:
            self._put(content)

    # -- the session ------------------------------------------------------------------------------------------

    def _open(self, key: str, at: float | None, *, parent: str | None = None, folder: str = "") -> None:
        self.stats.sessions += 1
        agent = CODEX_AGENT if parent else CODEX
        self._session = SessionOpened(key, agent, parent_key=parent, at=at, folder=folder)
        self.out.append(self._session)

    def _use_model(self, model: str) -> None:
        opened = self._session
        if not model or model == self._model or opened is None:
            return
        if self._replying:
            self._end_call(None, None)
        self._model = model
        self._session = replace(opened, model=model)
        self.out.append(self._session)

    def _state_limit(self, limit: int, at: float | None) -> None:
        if limit and limit != self._limit:
            self._limit = limit
            self.out.append(LimitStated(limit, at))

    def _add_message_key(self, message: str, key: str) -> None:
        self._messages.setdefault(message, []).append(key)
        if len(self._messages) > MAXIMUM_MESSAGES:
            del self._messages[next(iter(self._messages))]
