"""Form: damage to a summary that can be seen without the text that it replaces.

A summary that was cut ends within a sentence, misses sections of its agent's template, has lists whose numbers
skip or go back, announces what does not follow, or has code blocks, brackets and tags that do not match. The
faults contain nothing of the summary, only headings of public templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from windowpane.fidelity.languages import pattern_of

MINIMUM_SECTIONS: Final = 3
"""Sections of a template by which a text is recognized as written to it."""
MAXIMUM_GAP: Final = 8
"""After a longer step between two numbers the list has to continue: it may be a number in a sentence."""
MAXIMUM_NUMBER: Final = 40
"""A larger number is not that of an item."""
ITEM_LINES: Final = 40
"""Lines after an item in which the next one is looked for."""
MAXIMUM_FAULTS: Final = 12
END_CHARACTERS: Final = 80
"""End of a text that is read for a sentence that breaks off."""
OPEN_BLOCK: Final = "a code block is not closed"
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
_NUMBERED: Final = re.compile(r"^(\s{0,12})(\d{1,2})[.)]\s+(\S?)")
_ITEM: Final = re.compile(r"( {0,40})(?:[-*+]|\d{1,2}[.)])\s+\S")
_PARAGRAPH_START: Final = re.compile(r"\n(?=\s{0,40}(?:[-*+] |[|#>\n]|\d{1,2}[.)] ))")
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`")
_BRACKET: Final = re.compile(r"[()\[\]{}]")
_CLOSING_OF: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = re.compile(r"\s*[)\]}]+[;,]?")
_TITLE: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s{0,2})?(?:\d{1,2}[.)]\s{0,2})?[*_]{0,2}(?:\d{1,2}[.)]\s{0,2})?"
    r"([A-Za-z][A-Za-z /&]{3,40})(?: \([^()\n]{1,60}\))?[*_]{0,2}(?::|\s{0,9}$)"
)
_TAG: Final = re.compile(
    rf"(?m)^ {{0,8}}<(/?)(state_snapshot|summary|analysis|{'|'.join(TEMPLATES['Gemini CLI'])})>"
)
_UNENDED: Final = pattern_of("unended")
"""The end of a line within a sentence; a list of names, a path or code does not end so."""


def form_faults(text: str) -> tuple[str, ...]:
    """Return what is damaged in the form of a summary, in its order; empty if nothing is."""
    if len(text) > MAXIMUM_CHARACTERS:
        half = MAXIMUM_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    body = FRAME.sub("", text).strip()
    faults = dict.fromkeys(_faults(body, framed=CLAUDE_CODE in text)) if body else {}
    return tuple(faults)[:MAXIMUM_FAULTS]


def _faults(body: str, *, framed: bool) -> Iterator[str]:
    lines, code, block_fault = _parts(body)
    prose = "\n".join(lines)
    followed = list(pairwise((*filter(str.strip, lines), "")))
    yield from _missing_sections(prose, framed=framed)
    yield from _open_tags(body)
    if block_fault:
        yield block_fault
    if any(map(_is_unbalanced, code)):
        yield "brackets of a code block do not match"
    yield from _numbering(lines)
    headings = [pair for pair in followed if _HEADING.match(pair[0])]
    yield from _levels(headings)
    if any(map(_announces_nothing, followed)):
        yield "a line announces what does not follow"
    if not all(following for _, following in headings):
        yield "it ends with a heading"
    last = prose.rstrip().rpartition("\n")[2]
    is_open = _UNENDED.search(last[-END_CHARACTERS:]) or last.count("(") > last.count(")")
    if is_open and block_fault != OPEN_BLOCK:
        yield "it ends within a sentence"
    if any(part.count("`") % 2 or part.count("**") % 2 for part in _PARAGRAPH_START.split(prose)):
        yield "a line has an open mark"


def _parts(text: str) -> tuple[list[str], list[str], str | None]:
    """Return the lines outside code blocks, the code blocks, and what is wrong with the marks around these."""
    prose: list[str] = []
    blocks: list[list[str]] = []
    opened: int | None = None
    fault = None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if line.startswith("```", indent):
            if opened is None:
                prose.append("`code`")
                blocks.append([])
            elif opened != indent:
                fault = "a code block ends at another indent"
            opened = indent if opened is None else None
        elif opened is None:
            prose.append(line)
        else:
            blocks[-1].append(line)
    return prose, ["\n".join(lines) for lines in blocks], fault if opened is None else OPEN_BLOCK


def _is_unbalanced(code: str) -> bool:
    """Return whether code closes another bracket than the last open one, or ends with one while others are open.

    An excerpt may break off, so that open brackets alone prove nothing.
    """
    plain, awaited = _QUOTED.sub("", code).rstrip(), [""]
    for bracket in _BRACKET.findall(plain):
        if bracket in _CLOSING_OF:
            awaited.append(_CLOSING_OF[bracket])
        elif awaited.pop() != bracket:
            return True
    return len(awaited) > 1 and _CLOSING.fullmatch(plain[plain.rfind("\n") + 1 :]) is not None


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


def _levels(headings: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a fault where the list under a heading starts deeper than under most others."""
    depths = [len(item[1]) for _, following in headings if (item := _ITEM.match(following))]
    if len(depths) >= MINIMUM_SECTIONS and max(depths) > Counter(depths).most_common(1)[0][0] + 1:
        yield "a list starts at its second level"


def _announces_nothing(followed: tuple[str, str]) -> bool:
    """Return whether a line is an item that ends with a colon, and no deeper one follows."""
    line, following = followed
    item, after = _ITEM.match(line), _ITEM.match(following)
    if item is None or not line.rstrip("*_ ").endswith(":") or _HEADING.match(line):
        return False
    return not following or (after is not None and len(after[1]) <= len(item[1]))


def _open_tags(text: str) -> Iterator[str]:
    opened: Counter[str] = Counter()
    for match in _TAG.finditer(text):
        opened[match[2]] += -1 if match[1] else 1
    for name, count in opened.items():
        if count:
            yield f"<{name}> is not {'closed' if count > 0 else 'opened'}"


def _numbering(lines: list[str]) -> Iterator[str]:
    """Yield the gaps in numbered lists; a list within an item ends with it, and a new list starts at 1."""
    last: dict[int, int] = {}
    """The last number of the list at each indent."""
    for index, line in enumerate(lines):
        match = _NUMBERED.match(line)
        if match is None:
            continue
        indent, number = len(match[1]), int(match[2])
        last = {depth: own for depth, own in last.items() if depth <= indent}
        before = last.get(indent, 0)
        last[indent] = number
        if number in (1, before + 1) or number > MAXIMUM_NUMBER:
            continue
        following = lines[index + 1 : index + 1 + ITEM_LINES]
        if number - before <= MAXIMUM_GAP or any(
            own.startswith(f"{match[1]}{number + 1}. ") for own in following
        ):
            yield f"numbering jumps from {before} to {number}" if before else f"numbering starts at {number}"
