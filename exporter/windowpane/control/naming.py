"""Names worth keeping of what leaves: what an agent called a thing by, it is likely to call it by again.

A name is an identifier of some content (a path, a symbol, an id) that few blocks hold. Four of five names that
recorded agents took from content several turns old they had used before. So the names the agent used come first,
those it used last before the others; then the rare names of what leaves now, of the newest content first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from windowpane.window.blocks import Block
from windowpane.window.references import ReferenceIndex

NAMES: Final = 160
"""Given to a summary at most, which keeps those it has room for."""
UNUSED_NAMES_A_BLOCK: Final = 12


def names_leaving(references: ReferenceIndex, removed: Sequence[Block], carried: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of *removed* that nothing which stays is known by, least wanted first.

    *carried* are texts of earlier summaries, whose names leave with them unless they are named again.
    """
    gone = {block.id for block in removed}
    before = " ".join(carried)
    used = [
        name
        for name in references.used
        if (held := references.holders(name)) and gone.issuperset(held) or not held and name in before
    ]
    known = set(used)
    unused: list[str] = []
    for block in removed:
        names = [name for name in references.held(block.id) if name not in known]
        unused += [name for name in names if gone.issuperset(references.holders(name))][:UNUSED_NAMES_A_BLOCK]
    return tuple([*unused, *used][-NAMES:])
