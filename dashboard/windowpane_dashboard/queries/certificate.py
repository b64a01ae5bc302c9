"""A dated certificate of one verification of the audit chain, as text for an auditor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.core.version import package_version
from windowpane.store.records import Verification
from windowpane.store.writes.chain import Head
from windowpane.text.formats import count, utc

LISTED_BROKEN: Final = 100


def certificate(result: Verification, heads: Sequence[Head], *, store: str, at: float) -> str:
    """Return the text: what was checked, when, with which result, and the last head of the store-wide chain.

    An auditor who keeps it can show later that no event was changed since.
    """
    if not result.intact:
        state = f"BROKEN in {count(len({one.session_id for one in result.broken}), 'session')}"
    elif result.keyed:
        state = "INTACT, with a key: alteration would show"
    else:
        state = "INTACT, without a key: accidents show, deliberate alteration may not"
    lines = [
        "Certificate of verification",
        "",
        f"Date             {utc(at)}",
        f"Store            {store}",
        f"Program          windowpane {package_version()}",
        f"Result           {state}",
        f"Checked          {count(result.events, 'event')} of {count(result.sessions, 'session')}",
        f"Compared rows    {'yes' if result.projections else 'no'}: what the pages show against the events",
        f"Explained gaps   {result.explained_gaps:,}",
        f"Accepted         {count(result.unkeyed_events, 'event')} recorded without the key",
        f"Last head        {f'number {heads[-1].id}, hash {heads[-1].hash}' if heads else 'none'}",
        "",
        "The last head is chained to the heads of all sessions before it. Keep this file outside the store: as",
        "long as `windowpane audit heads` lists the same hash, nothing before it was changed. Verify again with:",
        "windowpane audit verify",
    ]
    if result.broken:
        lines += ["", "Broken links"]
        lines += [
            f"  {one.session_id} revision {one.revision}, seq {one.seq}: {one.problem}"
            for one in result.broken[:LISTED_BROKEN]
        ]
    return "\n".join(lines) + "\n"
