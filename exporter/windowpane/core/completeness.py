"""The completeness of a source's record of a session, compared with another source's record of the same one.

Only records of different ranks can be one session: two recordings by agents, or a recording and a session that
replays it, are two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLOCK_SECONDS: Final = 600.0
"""Largest difference between the clocks of two machines that record one session."""
_RECORDING: Final = 5
RANKS: Final[Mapping[str, int]] = {
    "otlp": 1, "litellm_logs": 2, "api_exchanges": 2, "langfuse": 2, "langsmith": 2, "proxy": 3, "live": 4,
    "demo": _RECORDING,
}  # fmt: skip
"""Ranks of the sources that are not an agent's own recording."""


def rank(source: str) -> int:
    """Return how complete a source's record of a session is: the greater, the more complete."""
    return RANKS.get(source, _RECORDING)
