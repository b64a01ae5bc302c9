"""Rules: the standing instructions of the user, the system prompt and memory files.

A rule fixes how the agent has to act whenever a situation arises: what it never or always does, asks before, is
limited to. A request for one step, a question, a description, quoted code and tool output are not rules. Rules
are recognized by the grammar of a sentence, without a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from windowpane.core.vocabulary import ContentType, RuleSource
from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import (
    COMMAND,
    LOADED,
    has_memory_file,
    is_by_program,
    is_reminder,
    typed_texts,
)
from windowpane.fidelity.languages import pattern_of
from windowpane.fidelity.passages import sentences as units
from windowpane.fidelity.passages import unwrapped
from windowpane.fidelity.rule_grammar import LIST_MARK, Passage, Register, plain, rule_of, worded

SOURCE_OF: Final[dict[ContentType, RuleSource]] = {
    "user_message": "user",
    "system_prompt": "system",
    "memory_injection": "memory",
}
"""Sources of rules, by the content that states them."""
MAXIMUM_RULES: Final = 400
MAXIMUM_CHARACTERS: Final = 600
"""A longer sentence is pasted data."""
MINIMUM_CHARACTERS: Final = 8
HEAD_CHARACTERS: Final = 600
"""Characters at the start of a text by which its kind is recognized."""
MAXIMUM_TEXT: Final = 400_000
"""Characters of one block that are read."""
_NOT_INSTRUCTIONS: Final = pattern_of("not_instructions")
NOTICE_CHARACTERS: Final = 400
"""Shorter content that a hook adds, without lists and headings, is about the moment."""
_MARKDOWN: Final = re.compile(r"(?m)^\s*(?:[-*+#>]|\d{1,3}[.)])\s")
_REQUIREMENT: Final = re.compile(r"(?m)^#{2,4} Requirement: ")
_SPECIFICATION: Final = pattern_of("specification")
"""A specification, a design or its tasks: it obliges the product, not the agent."""
_PROMPT: Final = pattern_of("prompt_start")
_TYPED_END: Final = re.compile(r"(?<=[^\W_][.!?])(?<!e\.g\.|i\.e\.|etc\.)(?<! vs\.) +(?=[\"'`(]?[a-z])")
_STEPS: Final = pattern_of("steps_title")
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]+\*\*\s*$|<\w+>\s*$)")
_OUTPUT: Final = re.compile(
    r"<((?:local-command|bash|command|ide|tool)[_-]\w+|task-notification|system-output|diff|examples?)\b"
)
"""The start of the output of a command, or of an example."""
_LISTED: Final = re.compile(r"- [a-z][\w:.@/-]*: \S.{40,}$")
_LOCATED: Final = re.compile(r"- [\w:.@/-]+: .*\((?:file|Tools): ")
MAXIMUM_LISTED: Final = 5
"""So many lines `- name: description` are a list of skills, agents or tools."""
MAXIMUM_QUOTED: Final = 50_000
"""Characters of one output in which its end is looked for."""
_CODE: Final = re.compile(
    r"[{};\\]\s*$|^(?:RUN|COPY|ENV|ARG) \S|^[\w.]+\((?:.*\)$|['\"])"
    r"|^(?:import|from \S+ import|const|let \w+ =|var|def|class|func|package|return)\s|=>|^\s*[{}<\[]"
    r"|^/[/*]|^\w+: \w+$|^\w+=\S+$|^\d+:(?:\s|$)|^`[^`]*`(?:\s*[-–—:]|$)"
)
"""A line of code, data or markup, or the description of a command."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing instruction."""

    text: str
    """Its wording, on one line and without list marks and emphasis."""
    source: RuleSource
    block: str
    """Id of the block that states it."""


def find_rules(blocks: Sequence[Block]) -> tuple[Rule, ...]:
    """Return the rules that *blocks* state, in order, each wording once and at most `MAXIMUM_RULES`.

    The text of a skill or command that was loaded for one task is not read: it is a request.
    """
    rules: dict[str, Rule] = {}
    for block, source, text in instructing(blocks):
        for wording in rules_of(text, SOURCE_OF[block.content_type]):
            rules.setdefault(wording.casefold(), Rule(wording, source, block.id))
        if len(rules) >= MAXIMUM_RULES:
            break
    return tuple(rules.values())[:MAXIMUM_RULES]


def instructing(blocks: Sequence[Block]) -> Iterator[tuple[Block, RuleSource, str]]:
    """Yield the blocks that may state rules, with their sources and the text that does.

    Of a user's message that is what the user typed. Of the agent's program it is a memory file, not a reminder.
    """
    typed = typed_texts(blocks)
    previous = ""
    for block in blocks:
        text = block.text or ""
        source = SOURCE_OF.get(block.content_type)
        if source == "user" and is_by_program(text):
            source, text = "memory", text if has_memory_file(text) else ""
        if source == "memory":
            is_loaded = previous.lstrip().startswith((COMMAND, LOADED))
            text = "" if is_loaded or is_reminder(text) else text
        elif source == "user":
            text = typed.get(block.id, "")
        if source is not None and text:
            yield block, source, text
        previous = (block.text or "")[:40]


@lru_cache(maxsize=64)
def rules_of(text: str, source: RuleSource) -> tuple[str, ...]:
    """Return the wordings of the rules that one text states; the same texts are read at each compaction."""
    if (register := _register_of(text, source)) is None:
        return ()
    passages = _passages(_without_code(text[:MAXIMUM_TEXT]))
    wordings = (rule_of(one, register) for one in passages if len(one.text) <= MAXIMUM_CHARACTERS)
    return tuple(wording for wording in wordings if wording and len(wording) <= MAXIMUM_CHARACTERS)


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text; an item of a list that forbids with its heading."""
    return map(worded, _passages(_without_code(text[:MAXIMUM_TEXT])))


def _register_of(text: str, source: RuleSource) -> Register | None:
    """Return the register of a text; None if it does not instruct."""
    head = text[:HEAD_CHARACTERS].lstrip()
    is_design = source == "memory" and (_SPECIFICATION.search(head) or _REQUIREMENT.search(text))
    if is_design or _NOT_INSTRUCTIONS.match(head):
        return None
    if source == "system":
        return "prompt"
    is_request = source == "user" or (len(text) < NOTICE_CHARACTERS and not _MARKDOWN.search(text))
    return "instructions" if not is_request else "pasted" if _PROMPT.match(head) else "request"


def _passages(text: str) -> Iterator[Passage]:
    """Yield the sentences of *text*, in chat with a small letter too, each with its place in lists and steps."""
    heading, in_steps, is_step = "", False, False
    for line in unwrapped(text):
        if not line or line.isspace():
            continue
        mark = LIST_MARK.match(line)
        item = mark is not None and mark["item"] is not None
        is_heading = not item and _HEADING.match(line) is not None
        is_step = (item and mark is not None and mark["number"] is not None) or (is_step and line[0].isspace())
        sentences = [plain(part) for unit in units(line) for part in _TYPED_END.split(unit)]
        for sentence in sentences:
            if len(sentence) >= MINIMUM_CHARACTERS and not _CODE.search(sentence):
                yield Passage(sentence, heading if item else "", is_heading, is_step or in_steps)
        if is_heading or (not item and line.rstrip().endswith((":", ":**", "："))):
            heading = sentences[-1] if sentences else ""
        if is_heading:
            in_steps = _STEPS.match(line) is not None


def _without_code(text: str) -> str:
    """Return *text* without quoted code, output of commands, quotations, tables, and lists of skills."""
    lines = [line for line in _unquoted(text) if not _LOCATED.match(line)]
    listed = list(filter(_LISTED.match, lines))
    if len(listed) <= MAXIMUM_LISTED:
        return "\n".join(lines)
    return "" if sum(map(len, listed)) > sum(map(len, lines)) / 2 else "\n".join(_unlisted(lines))


def _unlisted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that are not in a list of skills; an item extends to a blank line or another list."""
    is_listed = False
    for line in lines:
        if not line.strip() or line.startswith(("- ", "#")):
            is_listed = _LISTED.match(line) is not None
        if not is_listed:
            yield line


def _unquoted(text: str) -> Iterator[str]:
    """Yield the lines outside fences and outside the output of commands; a blank one in place of those."""
    end = ""
    position = 0
    for line in text.split("\n"):
        position += len(line) + 1
        start = line.lstrip(" \t")
        if end:
            if start.startswith(end) if end[0] in "`~" else end in line:
                end = ""
            continue
        if start.startswith(("```", "~~~")):
            end = start[:3]
        elif start.startswith("<") and (opened := _OUTPUT.match(start)) is not None:
            closing = f"</{opened[1]}>"
            if closing not in start and text.find(closing, position, position + MAXIMUM_QUOTED) >= 0:
                end = closing
        elif not start.startswith((">", "│", "|")):
            yield line
            continue
        yield ""
