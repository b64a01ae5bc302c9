"""Authorship: what the user typed and the model wrote, apart from the data that their messages carry.

Rules, goals, decisions and open work are taken from these two only, so nothing else reaches a model as text of
its own or of its user. Data is everything else: files, output of commands, messages of other agents, text that an
agent's program wrote, and what a message quotes or pastes. A paste without a mark of its end extends to the end
of the message: a rule that is missed costs less than a foreign one that is renewed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from windowpane.core.characters import harmless
from windowpane.core.names import ENCLOSING, GENERATED, WRAPPERS, is_generated
from windowpane.core.vocabulary import REPLY_TYPES, ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.languages import pattern_of

Author = Literal["user", "model"]

MAXIMUM_TEXT: Final = 400_000
"""Characters of one message that are read."""
END_CHARACTERS: Final = 200
"""End of a line that is searched for a remark on pasted text."""
_START_TAG: Final = re.compile(r"(?<!`)<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,500})?>|<!--")
_END_TAG: Final = re.compile(r"</([A-Za-z][\w:.-]{0,60})\s{0,20}>|-->")
_MARKUP_START: Final = re.compile(r"[\s\ufeff\u200b]{0,100}<[A-Za-z!/?]")
_FENCE: Final = re.compile(r"\s{0,100}(?:(?:[-*+]|\d{1,3}[.)])\s{1,10})?(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_ITEM: Final = re.compile(r"(\s{0,100}(?:[-*+•]|\d{1,3}[.)])\s{1,4})\S")
_QUOTED: Final = re.compile(
    r"\s{0,100}(?:(?:[-*+]|\d{1,3}[.)])\s{1,4})?[>＞│┃»]|\s{0,20}\d{1,6}(?:→|\t| ?[|│] )|[\w./-]{1,200}:\d{1,6}:"
)
"""A quoted line, or one with the number that a viewer or a search gives it."""
_QUOTES: Final = {'"': '"', "“": "”", "«": "»", "„": "“", "「": "」", "‘": "’"}
_CLOSING_QUOTES: Final = frozenset(_QUOTES.values())
_PUNCTUATION: Final = " \t.,;:!?"
CODE_INDENT: Final = 4
"""Columns beyond the text around it from which a line is code."""
_SENTENCE_ENDS: Final = ".!?:。！？："
_PASTED: Final = re.compile(
    # the prompt of a shell: what follows is its output
    r"\s{0,20}(?:\$ \S|[➜❯λ] |[\w.-]{1,40}@[\w.-]{1,60}[: ][^\n]{0,100}[$#%] |PS [A-Z]:\\|[A-Z]:\\[^>\n]{0,100}>)"
    # the log of a program, the trace of a failure, the message of a compiler
    r"|\W{0,3}(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)  ?\d{1,2} \d\d:\d\d)"
    r"|\[?(?:INFO|WARN|ERROR|DEBUG|TRACE|FATAL)\b\]?[:\s]|\[(?:WARNING|CRITICAL|NOTICE)\]"
    r"|npm (?:ERR!|(?:WARN|error|warn)\b)|Traceback \(most|\s{1,20}File \"|\s{1,20}at \S{1,200} ?\("
    r"|(?:error|warning)(?:\[\w{1,20}\])?: |##\[|::(?:error|warning|notice)|remote: |(?:FAILED|PASSED) \S"
    # a patch, a conversation, a mail
    r"|diff --git |@@ -\d|(?:---|\+\+\+) (?:[ab]/|/dev/null)|(?:Human|User|Assistant|System|AI) ?: "
    r"|(?:From|Sent|Subject|Message-ID): \S"
)
"""The first line of a text that no user types."""
_LINE_NUMBER: Final = re.compile(r"(?m)^(\s{0,20}\d{1,6})\t")
"""The number that `cat -n` and viewers of files write before a line."""
_IDE_CONTEXT: Final = re.compile(r"\s{0,20}# (?:Context from my IDE setup|Files mentioned by the user):")
_IDE_REQUEST: Final = re.compile(r"(?m)^## My request(?: for Codex)?:")
"""Heading of what the user typed, after the files and the selection that Codex adds to the message."""
_FRONT_MATTER: Final = re.compile(r"\s{0,20}---\n[\w-]{1,40}:")
_REFERENCED: Final = "--- Content from referenced files ---"
_REFERENCED_END: Final = "--- End of content ---"
"""Lines around files that Gemini CLI and Qwen Code add to a message that names them with `@`."""
_INSIDE: Final = (_REFERENCED, *(start for start in GENERATED if len(start) >= 20))
"""Starts of lines that no user types: Claude Code adds its request for a summary to a message."""
_MEMORY_FILE: Final = re.compile(
    r"(?m)^Contents of \S|^# (?:claudeMd|AGENTS\.md instructions)\b|<user_instructions>|<INSTRUCTIONS>"
)
_WRAPPED: Final = tuple(f"<{name}" for name in WRAPPERS)
_LABEL: Final = re.compile(
    rf"(?im)^(\s{{0,20}})\[(?=(?:turn \d{{1,9}}, )?(?:{'|'.join(get_args(ContentType)).replace('_', ' ')})\b)"
)
COMMAND: Final = "<command-"
_COMMAND_OUTPUT: Final = "<local-command-"
LOADED: Final = "Launching skill"
"""Starts of the message and the tool result that Claude Code puts before the text of a command or skill."""


class Authored(NamedTuple):
    """A message, and what its author wrote of it."""

    block: Block
    author: Author
    text: str


def authored(blocks: Iterable[Block]) -> Iterator[Authored]:
    """Yield the messages among *blocks* that the user typed or the model wrote, each without the data in it.

    *blocks* are consecutive: a command or skill is followed by its text, which is a file of the repository, up to
    the model's reply.
    """
    is_loaded = is_referenced = False
    for block in blocks:
        text = block.text or ""
        if block.content_type in REPLY_TYPES:
            is_loaded = is_referenced = False
            if block.content_type == "assistant_response" and (own := own_text(text, "model")):
                yield Authored(block, "model", own)
        elif block.content_type == "tool_result":
            is_loaded = is_loaded or text.startswith(LOADED)
        elif block.content_type == "user_message":
            start = text.lstrip()
            if start.startswith((COMMAND, _COMMAND_OUTPUT)):
                is_loaded = start.startswith(COMMAND)
            elif not is_loaded and not is_referenced and (own := own_text(text, "user")):
                yield Authored(block, "user", own)
            if _REFERENCED in text or _REFERENCED_END in text:
                is_referenced = text.rfind(_REFERENCED) > text.rfind(_REFERENCED_END)


def typed_texts(blocks: Iterable[Block]) -> dict[str, str]:
    """Return what the user typed of the messages among *blocks*, by block id."""
    return {one.block.id: one.text for one in authored(blocks) if one.author == "user"}


def labeled(label: str, text: str) -> str:
    """Return a part of a transcript for a model, in which no line of *text* can pass for another label."""
    without_labels = _LABEL.sub(r"\1(", text)
    return f"[{label}]\n{without_labels}"


def is_written(block: Block) -> bool:
    """Return whether the user wrote a message, with or without data in it, and not the agent's program."""
    return block.content_type == "user_message" and bool(block.text) and not is_by_program(block.text or "")


def is_by_program(text: str) -> bool:
    """Return whether an agent's program wrote a message in the user's name; it starts its own with a tag."""
    return is_generated(text) or _MARKUP_START.match(ENCLOSING.sub("", text[:MAXIMUM_TEXT])) is not None


def is_reminder(text: str) -> bool:
    """Return whether an agent's program wrote a message, and no memory file is in it."""
    is_own = is_generated(text) or text.lstrip().startswith(_WRAPPED)
    return is_own and not has_memory_file(text)


def has_memory_file(text: str) -> bool:
    """Return whether a memory file is in a message that an agent's program wrote."""
    return _MEMORY_FILE.search(text) is not None


@lru_cache(maxsize=256)  # the same messages are read at each compaction
def own_text(text: str, author: Author) -> str:
    """Return what the author of a message wrote of it, without data; empty if nothing."""
    if author == "user":
        if is_by_program(text) or _FRONT_MATTER.match(text):
            return ""
        if _IDE_CONTEXT.match(text):
            text = _IDE_REQUEST.split(text)[-1] if _IDE_REQUEST.search(text) else ""
        text = ENCLOSING.sub("\n", text)
    text = text[:MAXIMUM_TEXT].removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    own = "\n".join(line or "" for line in _without_pastes(_Scan(text).lines(), author))
    return own if own.strip() else ""


Lines = list[str | None]
"""Lines of a message; None for data."""


def _without_pastes(lines: Lines, author: Author) -> Lines:
    """Return *lines* without a quotation or a paste that nothing but a remark on it marks."""
    for number, line in enumerate(lines):
        if not line or line.isspace():
            continue
        if author == "user" and (line.lstrip().startswith(_INSIDE) or _PASTED.match(line)):
            return lines[:number]
        following = _first(lines[number + 1 :])
        if (":" in line or "：" in line) and (match := pattern_of("quoted").search(line)) is not None:
            if following or line[match.end() :].strip("*_` \t"):
                return [*lines[:number], line[: match.end()]]
        elif author == "user" and pattern_of("pasted").search(line.rstrip()[-END_CHARACTERS:]) is not None:
            if following:
                return lines[: number + 1]
            if following == "" and None not in lines[:number]:
                return lines[number:]
    return lines


def _first(lines: Lines) -> str | None:
    """Return the first line that is not blank: None for data, empty without one."""
    return next((line for line in lines if line is None or line.strip()), "")


class _Scan:
    """Reads the lines of a text, and what is in fences, elements, quotations and indented code as data."""

    def __init__(self, text: str) -> None:
        self._text = text = _LINE_NUMBER.sub(r"\1→", text).expandtabs(CODE_INDENT)
        self._lines = text.split("\n")
        self._ends = {(match[1] or "").casefold(): match.span() for match in _END_TAG.finditer(text)}
        """The last end of each element: what an element holds cannot close it."""
        self._element_end = 0
        self._fences: list[str] = []
        """The marks of open fences; one with the name of a language opens inside another."""
        self._is_inline = False
        """The fence was opened behind other text, and is closed so."""
        self._margin = min((_indent(line) for line in self._lines if line.strip()), default=0)
        self._offset = self._margin
        """The indent of the text of the last list item."""
        self._is_blank = True
        self._is_code = False
        self._quote_ends: defaultdict[str, list[int]] = defaultdict(list)
        """The numbers of the lines that end a quotation which they did not start, by its mark."""
        self._quote_end = 0
        for number, line in enumerate(self._lines):
            end = line.rstrip(_PUNCTUATION)[-1:]
            if end in _CLOSING_QUOTES and line.count(end) == 1:
                self._quote_ends[end].append(number)

    def lines(self) -> Lines:
        """Return the lines, None for each that is data."""
        lines: Lines = []
        start = 0
        for number, line in enumerate(self._lines):
            lines.append(self._line(number, start))
            start += len(line) + 1
        return lines

    def _line(self, number: int, start: int) -> str | None:
        line = self._lines[number]
        if start + len(line) < self._element_end:
            return None
        if start < self._element_end:
            line, start = line[self._element_end - start :], self._element_end
        if self._is_fenced(line) or self._is_indented_code(line) or self._is_in_quotes(number):
            return None
        if _QUOTED.match(line) or harmless(line) != line:
            return None
        if line.count("```") % 2:
            self._fences, self._is_inline = ["```"], True
            return line[: line.rfind("```")]
        return self._outside_elements(line, start)

    def _is_fenced(self, line: str) -> bool:
        """Return whether a line is in a fence, or opens or closes one."""
        fence = _FENCE.fullmatch(line)
        if not self._fences:
            is_opened = fence is not None and not (fence["mark"][0] == "`" and "`" in fence["info"])
            if fence is not None and is_opened:
                self._fences, self._is_inline = [fence["mark"]], False
            return is_opened
        if self._is_inline:
            if self._fences[0] in line:
                self._fences.clear()
        elif fence is not None and fence["mark"].startswith(self._fences[-1]):
            if fence["info"].strip():
                self._fences.append(fence["mark"])
            else:
                self._fences.pop()
        return True

    def _is_indented_code(self, line: str) -> bool:
        if not line.strip():
            self._is_blank = True
            return False
        indent, item = _indent(line), _ITEM.match(line)
        if self._is_blank and item is None and indent < self._offset:
            self._offset = self._margin
        self._is_code = (self._is_blank or self._is_code) and indent >= self._offset + CODE_INDENT
        self._is_blank = False
        if item is not None and not self._is_code:
            self._offset = len(item[1])
        return self._is_code

    def _is_in_quotes(self, number: int) -> bool:
        """Return whether a line is within quotation marks that start one line and end that or another one."""
        line = self._lines[number].strip()
        closing = _QUOTES.get(line[:1])
        if closing is not None and number >= self._quote_end:
            is_closed = line[1:].rstrip(_PUNCTUATION).endswith(closing)
            ends = self._quote_ends.get(closing, [])
            following = bisect_right(ends, number)
            if is_closed:
                self._quote_end = number + 1
            elif line.count(closing) == (closing == line[0]) and following < len(ends):
                self._quote_end = ends[following] + 1
        return number < self._quote_end

    def _outside_elements(self, line: str, start: int) -> str | None:
        """Return what of a line is outside of elements.

        A sentence with an element inside is data as a whole: without it, its meaning would change.
        """
        if not line.strip():
            return line
        own: list[str] = []
        while (element := self._first_element(line, start)) is not None:
            before, self._element_end = line[: element[0]].rstrip(), element[1]
            if before and before[-1] not in _SENTENCE_ENDS:
                line = ""
                break
            own.append(before)
            line, start = line[self._element_end - start :], self._element_end
        if not _MARKUP_START.match(line):
            own.append(line)
        return "\n".join(part for part in own if part.strip()) or None

    def _first_element(self, line: str, start: int) -> tuple[int, int] | None:
        """Return where in the line the first element starts, and where in the text it ends at the latest."""
        for tag in _START_TAG.finditer(line):
            end_tag, end = self._ends.get((tag[1] or "").casefold(), (-1, -1))
            if end_tag >= start + tag.end():
                return tag.start(), end
            if not tag[1] or tag[1] in WRAPPERS:
                return tag.start(), len(self._text) + 1
        return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
