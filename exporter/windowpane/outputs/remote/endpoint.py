"""The endpoint of `windowpane serve --ingest`: it answers when the events of a request are stored durably."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from windowpane.outputs.http.project_shares import Turns
from windowpane.outputs.http.request_bodies import BodyError, decompressed
from windowpane.outputs.http.routes import PostHandler, PostRequest, Response
from windowpane.outputs.remote.batches import (
    CONTENT_TYPE,
    MAXIMUM_RECORDS,
    PATH,
    Outcome,
    ReadBatch,
    RefusedRecord,
    read_batch,
)
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.store.writes.received import ReceivedBatch

JSON: Final = "application/json"
READ_AT_ONCE: Final = 2
"""Requests decompressed and decoded at once: each may take many times its size in memory."""
_UNPROCESSED: Final = 400


class IngestEndpoint:
    """Answers requests with batches."""

    def __init__(self, commits: GroupCommit) -> None:
        self._commits = commits
        self._reading = Turns(READ_AT_ONCE)

    @property
    def posts(self) -> dict[str, PostHandler]:
        """The path that it answers."""
        return {PATH: self.respond}

    async def respond(self, request: PostRequest) -> Response:
        """Store the events of a request, and name the records that are refused.

        The status is 400 where every record is.
        """
        try:
            _check_type(request)
            async with self._reading.slot(request.project):
                batch = await asyncio.to_thread(_read, request)
            received = ReceivedBatch(batch.events, batch.texts, request.project)
            receipt = await self._commits.put(received, size=batch.size)
        except BodyError as error:
            body = msgspec.json.encode({"problem": str(error)})
            return Response(error.status, body, JSON, error.headers)
        refused = [
            *batch.refused,
            *(
                RefusedRecord(record=batch.records[event.position], problem=event.problem)
                for event in receipt.refused
            ),
        ]
        repeated = len(batch.events) - receipt.stored - len(receipt.refused)
        outcome = Outcome(
            stored=receipt.stored, repeated=repeated, refused=tuple(sorted(refused, key=lambda one: one.record))
        )
        taken = len(batch.events) + len(batch.texts) - len(receipt.refused)
        return Response(200 if taken or not refused else _UNPROCESSED, outcome.model_dump_json().encode(), JSON)


def _read(request: PostRequest) -> ReadBatch:
    body = decompressed(request)
    if body.count(b"\n") > MAXIMUM_RECORDS:
        raise BodyError(413, f"the batch has more than {MAXIMUM_RECORDS:,} records")
    return read_batch(body)


def _check_type(request: PostRequest) -> None:
    given = (request.headers.get("Content-Type") or "").split(";")[0].strip().lower()
    if given != CONTENT_TYPE:
        raise BodyError(415, f"the Content-Type is {given or 'missing'!r}; expected {CONTENT_TYPE}")
