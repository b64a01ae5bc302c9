"""The names of tasks: what an agent started the task for whose id a later call reads."""

from __future__ import annotations

import json

from windowpane.store.reads.project_reader import EventReader
from windowpane.store.search.content import ContentFilter
from windowpane.text.labels import is_id

MAXIMUM_HITS = 50


def named_target(reader: EventReader, session_id: str, target: str | None) -> str | None:
    """Return the *target* of a call; of a task's id, the description in the call that started the task, if any.

    The result of that call is the first content with the id.
    """
    if target is None or not is_id(target):
        return target
    hits = reader.find_content(ContentFilter(target, session_id=session_id, limit=MAXIMUM_HITS)).hits
    results = [one for hit in hits for one in hit.occurrences if one.content_type == "tool_result"]
    if not results:
        return None
    life = reader.block_life(session_id, min(results, key=lambda one: one.turn).block_id)
    call = life and life.called_by
    arguments = reader.content(call.digest) if call and call.digest else None
    try:
        started = json.loads(arguments or "")
    except ValueError:
        return None
    name = started.get("description") if isinstance(started, dict) else None
    return name if isinstance(name, str) else None
