"""Rules: the standing instructions of the user, the system prompt and memory files.

A rule fixes how the agent has to act whenever a situation arises: what it never or always does, asks before, is
limited to. A request for one step, a question, a description, quoted code and tool output are not rules. Rules are
recognized by the grammar of a sentence, without a model, in English, German, French, Spanish, Chinese and Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.passages import sentences as units
from windowpane.fidelity.rule_grammar import plain, states_rule
from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS

RuleSource = Literal["user", "system", "memory"]

SOURCE_OF: Final[dict[ContentType, RuleSource]] = {
    "user_message": "user",
    "system_prompt": "system",
    "memory_injection": "memory",
}
"""Sources of rules, by the content that states them."""
MAXIMUM_RULES: Final = 400
"""Rules of one conversation at most."""
MAXIMUM_CHARACTERS: Final = 400
"""A longer sentence is pasted data."""
MINIMUM_CHARACTERS: Final = 8
MAXIMUM_TEXT: Final = 400_000
"""Characters of one block that are read."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A standing instruction."""

    text: str
    """Its wording, on one line and without list marks and emphasis."""
    source: RuleSource
    block: str
    """Id of the block that states it."""
    values: frozenset[str]
    """The numbers, names, paths and quoted code that it fixes."""


def find_rules(blocks: Sequence[Block]) -> tuple[Rule, ...]:
    """Return the rules that *blocks* state, in order, each wording once and at most `MAXIMUM_RULES`."""
    rules: dict[str, Rule] = {}
    for block in blocks:
        source = SOURCE_OF.get(block.content_type)
        if source is None or not block.text:
            continue
        for text in _rules_of(block.text, source):
            rules.setdefault(text.casefold(), Rule(text, source, block.id, values_of(text)))
        if len(rules) >= MAXIMUM_RULES:
            break
    return tuple(rules.values())[:MAXIMUM_RULES]


def _rules_of(text: str, source: RuleSource) -> Iterator[str]:
    text = text[:MAXIMUM_TEXT]
    is_instructions = source == "system" or _INSTRUCTIONS.search(text[:600]) is not None
    for sentence in _sentences(text):
        if states_rule(sentence, is_request=source == "user", is_instructions=is_instructions):
            yield sentence


_INSTRUCTIONS: Final = re.compile(
    r"(?:CLAUDE|AGENTS?|GEMINI|COPILOT|copilot-instructions|CONVENTIONS)(?:\.local)?\.md\b|\.(?:cursor|windsurf|cline)rules"
    r"|/rules/[\w/.-]+\.mdc?\b|<INSTRUCTIONS>|\bkey rules\b|\bguidelines?\b",
)
"""The start of a memory file, or of a document that calls itself instructions."""


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of *text* outside quoted code, listings and the output of tools."""
    for unit in units(_without_code(text)):
        for part in _CJK_END.split(unit):
            sentence = plain(part)
            if MINIMUM_CHARACTERS <= len(sentence) <= MAXIMUM_CHARACTERS and not _CODE.search(sentence):
                yield sentence


_QUOTED: Final = re.compile(
    r"(?ms)^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)"
    r"|<(local-command-\w+|bash-\w+|task-notification|command-\w+|ide_\w+|system-output|diff|tool_\w+|example|examples)\b[^>]*>.*?(?:</\2>|\Z)"
    r"|^[ \t]*[>│|].*?$"
)
"""Quoted code, output of commands, quotations and tables."""


def _without_code(text: str) -> str:
    return _QUOTED.sub("\n", text)


_CJK_END: Final = re.compile(r"(?<=[。！？])")
_CODE: Final = re.compile(
    r"[{};]\s*$|^[\w.]+\(.*\)$|^(?:import|from|const|let|var|def|class|func|package|return)\s|=>|^\s*[{}<\[]|^/[/*]|^\w+: \w+$"
)
"""A line of code, data or markup."""


@lru_cache(maxsize=4_096)
def values_of(text: str) -> frozenset[str]:
    """Return the numbers, names, paths and quoted code of a sentence."""
    quoted = {code.strip() for code in _INLINE.findall(text)}
    names = {token for token in TOKEN.findall(_INLINE.sub(" ", text)) if TOKEN_KINDS[token] in _NAMES}
    return frozenset(quoted | names)


_INLINE: Final = re.compile(r"`([^`\n]{1,120})`")
_NAMES: Final = ("identifier", "number", "path")
