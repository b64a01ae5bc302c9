"""Names worth keeping of what leaves: what an agent called a thing by, it is likely to call it by again.

A name is an identifier of some content (a path, a symbol, an id) that few blocks hold. Of the names that
recorded agents took from content several turns old, most they had used before. So those the agent used come
first, the last used before the others, and then the names of what leaves now that nobody has used yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from windowpane.core.window.blocks import Block
from windowpane.core.window.references import IDENTIFIERS_PER_BLOCK, ReferenceIndex

MAXIMUM_NAMES: Final = 400
"""Given to a summary, which keeps those it has room for."""


def names_leaving(
    references: ReferenceIndex, removed: Sequence[Block], carried: Iterable[str] = ()
) -> tuple[str, ...]:
    """The names of *removed* that nothing which stays is known by, least wanted first.

    *carried* are the texts of earlier summaries: a name they say is kept on for as long as it is in use.
    """
    gone = {block.id for block in removed}
    before = "\n".join(carried)
    used = [name for name in references.used if _leaves(references, name, gone, before)]
    known = set(used)
    by_block = [
        [name for name in references.held(block.id) if name not in known and _leaves(references, name, gone)]
        for block in removed
    ]
    # The first names of every block before the last of any, so that one long listing does not take all the room.
    unused = [
        names[rank] for rank in reversed(range(IDENTIFIERS_PER_BLOCK)) for names in by_block if rank < len(names)
    ]
    return (*unused, *used)[-MAXIMUM_NAMES:]


def _leaves(references: ReferenceIndex, name: str, gone: set[str], before: str = "") -> bool:
    """Whether a name is known by blocks that leave alone, or by none any more but an earlier summary."""
    holders = references.holders(name)
    return gone.issuperset(holders) if holders else name in before
