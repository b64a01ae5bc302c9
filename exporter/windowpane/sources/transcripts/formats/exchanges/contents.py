"""Whole calls as the pieces of content that each of them added, for readers of records that manage it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from windowpane.models.wire.calls import head_blocks, message_blocks
from windowpane.models.wire.messages import BlockSpec, Key
from windowpane.models.wire.replies import reply_blocks
from windowpane.sources.transcripts.records import (
    CallFailed,
    CallSent,
    ContentAdded,
    ModelCalled,
    Record,
    ReplyReceived,
    SessionOpened,
)


def contents_of(records: Iterable[Record]) -> Iterator[Record]:
    """Yield *records* with every whole call replaced by the content that is new in its session, and its usage.

    The agent's own removals are not among them.
    """
    seen: dict[str, Counter[Key]] = {}
    current: Counter[Key] = Counter()
    for record in records:
        if isinstance(record, SessionOpened):
            current = seen.setdefault(record.session_key, Counter())
            yield record
        elif isinstance(record, CallSent):
            call = record.call
            specs = [spec for message in call.messages for spec in message_blocks(call.shape, message)]
            yield from _added([*head_blocks(call), *specs], current, record.at)
        elif isinstance(record, ReplyReceived):
            reply = record.reply
            for spec in reply_blocks(reply):
                current[spec.key] += 1
                yield ContentAdded.of(spec, record.at)
            yield ModelCalled(
                reply.usage, reply.model, reply.cost_dollars, reply.latency_seconds, reply.stop_reason, record.at,
                reply.response_id or None,
            )  # fmt: skip
        elif not isinstance(record, CallFailed):
            yield record


def _added(specs: Iterable[BlockSpec], seen: Counter[Key], at: float | None) -> Iterator[ContentAdded]:
    """Yield the content of one call that exceeds what was *seen*: the same text may be sent several times."""
    sent: Counter[Key] = Counter()
    for spec in specs:
        sent[spec.key] += 1
        if sent[spec.key] > seen[spec.key]:
            seen[spec.key] += 1
            yield ContentAdded.of(spec, at)
