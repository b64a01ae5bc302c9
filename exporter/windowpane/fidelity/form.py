"""Form: damage to a summary that can be seen without the text that it replaces.

A summary that was cut ends within a sentence, misses sections of its agent's template, skips numbers or a level
of its lists, announces what does not follow, or has open code blocks, brackets and tags. The faults contain
nothing of the summary, only headings of public templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

MINIMUM_SECTIONS: Final = 3
"""Sections of a template by which a text is recognized as written to it."""
MAXIMUM_GAP: Final = 8
"""A longer step between two numbers is not a gap of a list."""
MAXIMUM_START: Final = 40
"""A list that continues from a number up to this one has lost its start."""
ITEM_LINES: Final = 40
"""Lines after an item in which the next one is looked for."""
MAXIMUM_FAULTS: Final = 12
MAXIMUM_CHARACTERS: Final = 200_000
"""Start and end of a longer text that are looked at, half of it each."""
TEMPLATES: Final[dict[str, tuple[str, ...]]] = {
    "Claude Code": (
        "Primary Request and Intent", "Key Technical Concepts", "Files and Code Sections", "Errors and fixes",
        "Problem Solving", "All user messages", "Pending Tasks", "Current Work", "Optional Next Step",
    ),
    "Cline": (
        "Previous Conversation", "Current Work", "Key Technical Concepts", "Relevant Files and Code",
        "Problem Solving", "Pending Tasks and Next Steps",
    ),
    "Gemini CLI": ("overall_goal", "key_knowledge", "file_system_state", "recent_actions", "current_plan"),
}  # fmt: skip
"""Headings that agents ask their model for, in order."""
CLAUDE_CODE: Final = "This session is being continued from a previous conversation"
FRAME: Final = re.compile(
    rf"^(?:{CLAUDE_CODE}"
    r"|If you need specific details from before compaction"
    r"|(?:Please )?[Cc]ontinue the conversation from where (?:it|we) left"
    r"|Recent messages are preserved verbatim)[^\n]*$",
    re.MULTILINE,
)
"""Lines that an agent's program writes around a summary."""
_HEADING: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+\S|(?:Analysis|Summary):\s*$|\d{1,2}\.\s+\**[A-Z][^\n.!?]{2,60}:\**\s*$|\*\*[^*\n]{2,60}\*\*:?\s*$)"
)
_LEVEL: Final = re.compile(r"\s{0,3}(#{1,6})\s")
_NUMBERED: Final = re.compile(r"^(\s{0,12})(\d{1,2})[.)]\s+(\S?)")
_ITEM: Final = re.compile(r"( {0,40})(?:[-*+]|\d{1,2}[.)])\s+\S")
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`")
_BRACKET: Final = re.compile(r"[()\[\]{}]")
_CLOSING: Final = re.compile(r"\s*[)\]}]+[;,]?")
_TITLE: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s{0,2})?(?:\d{1,2}[.)]\s{0,2})?[*_]{0,2}(?:\d{1,2}[.)]\s{0,2})?"
    r"([A-Za-z][A-Za-z /&]{3,40})[*_]{0,2}(?::|\s{0,9}$)"
)
_TAG: Final = re.compile(
    r"(?m)^ {0,8}<(/?)(state_snapshot|summary|analysis"
    r"|overall_goal|key_knowledge|file_system_state|recent_actions|current_plan)>"
)
_ITEM_WITHIN: Final = re.compile(r"[^\s`] {2,40}(?:[-*+]|\d{1,2}\.) \S")
_ANALYSIS_OF_ITEMS: Final = re.compile(r"(?m)^Analysis:\s{1,9}[-*+] ")
"""The analysis of Claude Code starts with a sentence."""
_UNENDED: Final = re.compile(
    r"(?:[,(\[{“«/=+&]|\b(?:a|an|the|and|or|of|to|in|on|for|with|by|is|are|was|that|which|from|at|as|be|this|but"
    r"|der|die|das|und|oder|mit|für|von|zu|le|la|les|et|ou|de|du|des|el|los|y|o|con|para|que))$",
    re.IGNORECASE,
)


def form_faults(text: str) -> tuple[str, ...]:
    """Return what is damaged in the form of a summary, in its order; empty if nothing is."""
    if len(text) > MAXIMUM_CHARACTERS:
        half = MAXIMUM_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    body = FRAME.sub("", text).strip()
    if not body:
        return ()
    prose, code, is_open = _parts(body)
    lines = prose.split("\n")
    faults = dict.fromkeys(
        (
            *_missing_sections(prose, framed=CLAUDE_CODE in text),
            *(["Analysis has no start"] if _ANALYSIS_OF_ITEMS.search(prose) else ()),
            *_open_tags(body),
            *(["a code block is not closed"] if is_open else ()),
            *(["brackets of a code block do not match"] if any(map(_is_unbalanced, code)) else ()),
            *_numbering(lines),
            *_levels(lines),
            *(["a line announces what does not follow"] if _announces_nothing(lines) else ()),
            *_empty_headings(lines),
            *_broken_ends(lines, is_open=is_open),
        )
    )
    return tuple(faults)[:MAXIMUM_FAULTS]


class _Parts(NamedTuple):
    """A text without its code blocks, its code blocks, and whether the last of them is open."""

    prose: str
    code: list[str]
    is_open: bool


def _parts(text: str) -> _Parts:
    prose: list[str] = []
    blocks: list[list[str]] = []
    is_open = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            if not is_open:
                prose.append("`code`")
                blocks.append([])
            is_open = not is_open
        elif is_open:
            blocks[-1].append(line)
        else:
            prose.append(line)
    return _Parts("\n".join(prose), ["\n".join(lines) for lines in blocks], is_open)


def _is_unbalanced(code: str) -> bool:
    """Return whether code closes a bracket that it has not opened, or ends with one while others are open.

    An excerpt may break off, so that open brackets alone prove nothing.
    """
    plain, depth = _QUOTED.sub("", code).rstrip(), 0
    for bracket in _BRACKET.findall(plain):
        depth += 1 if bracket in "([{" else -1
        if depth < 0:
            return True
    return depth > 0 and _CLOSING.fullmatch(plain[plain.rfind("\n") + 1 :]) is not None


def _missing_sections(text: str, *, framed: bool) -> Iterator[str]:
    """Yield the sections of its template that a text lacks; one *framed* by Claude Code has its template."""
    titles = {match[1].casefold() for line in text.split("\n") if (match := _TITLE.match(line))}
    tags = {match[2] for match in _TAG.finditer(text)}
    if "analysis" in titles and "summary" not in titles:
        yield "section missing: Summary"
    for agent, sections in TEMPLATES.items():
        missing = [name for name in sections if name.casefold() not in titles and name not in tags]
        present = len(sections) - len(missing)
        if present >= max(MINIMUM_SECTIONS, len(missing)) or (framed and agent == "Claude Code"):
            yield from (f"section missing: {name}" for name in missing)
            return


def _levels(lines: list[str]) -> Iterator[str]:
    """Yield a fault where the list under a heading starts deeper than under most others."""
    written = [line for line in lines if line.strip()]
    depths = [
        len(item[1])
        for line, following in pairwise(written)
        if _HEADING.match(line) and (item := _ITEM.match(following))
    ]
    usual = Counter(depths).most_common(1)
    if len(depths) >= MINIMUM_SECTIONS and max(depths) > usual[0][0] + 1:
        yield "a list starts at its second level"


def _announces_nothing(lines: list[str]) -> bool:
    """Return whether an item ends with a colon, and no deeper one follows."""
    written = [line for line in lines if line.strip()]
    for line, following in zip(written, [*written[1:], ""], strict=True):
        item, after = _ITEM.match(line), _ITEM.match(following)
        is_announcing = item is not None and line.rstrip("*_ ").endswith(":") and not _HEADING.match(line)
        if item is not None and is_announcing and (not following or (after and len(after[1]) <= len(item[1]))):
            return True
    return False


def _open_tags(text: str) -> Iterator[str]:
    opened: dict[str, int] = {}
    for match in _TAG.finditer(text):
        opened[match[2]] = opened.get(match[2], 0) + (-1 if match[1] else 1)
    yield from (
        f"<{name}> is not closed" if count > 0 else f"<{name}> is not opened"
        for name, count in opened.items()
        if count
    )


class _List(NamedTuple):
    """The last number of a list, and its line."""

    number: int
    line: int


def _numbering(lines: list[str]) -> Iterator[str]:
    """Yield the gaps in numbered lists; a list within an item ends with it."""
    lists: dict[int, _List] = {}
    for index, line in enumerate(lines):
        match = _NUMBERED.match(line)
        if match is None:
            continue
        indent, number = len(match[1]), int(match[2])
        lists = {depth: own for depth, own in lists.items() if depth <= indent}
        before = lists.get(indent)
        if before is not None and 1 < number - before.number <= MAXIMUM_GAP:
            yield f"numbering jumps from {before.number} to {number}"
        if before is None and 1 < number <= MAXIMUM_START:
            following = lines[index + 1 : index + 1 + ITEM_LINES]
            if number <= MAXIMUM_GAP or any(own.startswith(f"{match[1]}{number + 1}. ") for own in following):
                yield f"numbering starts at {number}"
        lists[indent] = _List(number, index)


def _empty_headings(lines: list[str]) -> Iterator[str]:
    written = [line for line in lines if line.strip()]
    for line, following in zip(written, [*written[1:], ""], strict=True):
        if _HEADING.match(line) and (
            not following or (_HEADING.match(following) and _level(following) <= _level(line))
        ):
            yield "a heading has no text" if following else "it ends with a heading"


def _level(heading: str) -> int:
    match = _LEVEL.match(heading)
    if heading.startswith(("Analysis:", "Summary:")):
        return 0
    return len(match[1]) if match else 8 if heading.lstrip().startswith("**") else 7


def _broken_ends(lines: list[str], *, is_open: bool) -> Iterator[str]:
    """Yield the sentences that break off, at the end and within the text."""
    written = [line.strip() for line in lines if line.strip()]
    if written and not is_open and _UNENDED.search(written[-1]):
        yield "it ends within a sentence"
    for line in written:
        if line.count("`") % 2 or line.count("**") % 2:
            yield "a line has an open mark"
        if not line.startswith("|") and _ITEM_WITHIN.search(line):
            yield "an item starts within a line"
