"""The situation of the agent: the facts that it needs to go on after a compaction.

They are taken from what the agent did, not guessed from prose: the files that it changed and read last, the
commands that failed and were not run successfully later, the open items of its plan. Of prose only two kinds are
read: what the user asked for first and last, and decisions that state their reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from windowpane.core.names import file_name
from windowpane.core.tracking.marks import access_of, has_failed
from windowpane.core.vocabulary import Access
from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import authored
from windowpane.fidelity.languages import DECISION, REASON, pattern_of
from windowpane.fidelity.passages import MAXIMUM_CHARACTERS, MESSAGE_TYPES, Passage, sentences, unwrapped

FactKind = Literal[
    "rule", "goal", "decision", "open_work", "failed_command", "changed_file", "read_file", "name", "setting"
]
"""Kinds of facts; a name or a setting (`timeout=30s`) is one for summaries only."""
MAXIMUM_FILES: Final = 8
MAXIMUM_FAILURES: Final = 5
MAXIMUM_OPEN: Final = 20
MAXIMUM_DECISIONS: Final = 12
DECISION_CHARACTERS: Final = 240
"""Start of a sentence that is read: a fact is a line, not a page."""
READ_CHARACTERS: Final = 2_000
"""Start and end of a tool's output in which its exit code and its error are looked for."""
SCANNED_SENTENCES: Final = 2_000
"""Sentences that are searched for decisions, newest first."""
_EXIT_CODE: Final = re.compile(
    r'(?i)(?:\bexit(?:ed)?(?: with)?(?: code| status)|"exit_code")"?[:=]?\s{0,3}(\d{1,3})\b'
)
_FAULT: Final = pattern_of("fault")
_TRIVIAL: Final = re.compile(r"^\s*(?:import|from|except|raise|catch|File \"|at )\b|^\s*Traceback|^\W*$")
_PATCHED: Final = re.compile(r"\*\*\* (?:Update|Add) File: ([^\n\\\"]{1,300})")
_FILE: Final = re.compile(r"…?(?:[A-Za-z]:)?[\w@.+~/\\-]{0,300}\w\.[A-Za-z]\w{0,9}")
_COMMAND: Final = re.compile(r'"?(?:command|cmd|script)"?\s{0,4}:\s{0,4}')
_OPEN: Final = frozenset({"pending", "in_progress", "open", "todo", "blocked", "not_started"})
_PLAN_KEYS: Final = ("todos", "plan", "items", "tasks", "todo_list")
_ITEM_KEYS: Final = ("content", "step", "title", "description", "text", "task", "subject")
CUT_MARK: Final = re.compile(r"\n?\[… \d+ tokens [^\n]{0,400}…\]\n?")
"""Stands where a managed window cut a message or a result."""
LATEST_BLOCKS: Final = 20
"""Messages of the user and the model up to which open work is looked for: earlier work may be done."""
_OPEN_LABEL: Final = f"(?:{pattern_of('open_label').pattern})"
_OPEN_TITLE: Final = re.compile(rf"(?i)[#*\s]*{_OPEN_LABEL}[*\s]*:?[*\s]*")
"""A line that opens a list of open work."""
_LABELED: Final = re.compile(rf"(?i)\s*(?:[-*+]|\d+[.)])?\s*\**{_OPEN_LABEL}\**:\**\s+(\S.{{3,240}})")
_UNCHECKED: Final = re.compile(r"\s*[-*+] \[ \]\s+(\S.{3,240})")
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(\S.{3,240})")


class Fact(NamedTuple):
    """Something that the agent needs to go on."""

    kind: FactKind
    text: str
    block: str | None = None
    """Id of the block with the content: a read file, the output of a failed command."""


def situation(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the facts of *removed*: the newest of each kind."""
    results = _results(removed)
    yield from _goals(removed)
    yield from decisions(removed)
    yield from _open_work(removed)
    yield from islice(_failures(results), MAXIMUM_FAILURES)
    changed = _newest(_changed(removed))
    yield from changed
    names = {file_name(fact.text) for fact in changed}
    yield from _newest(fact for fact in _read(results) if file_name(fact.text) not in names)


def _goals(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the first sentence that the user wrote, and the first of the last message."""
    stated: list[Fact] = []
    for one in authored(removed):
        if one.author == "user":
            head = CUT_MARK.split(one.text, maxsplit=1)[0]
            texts = (part.strip("#*- ")[:MAXIMUM_CHARACTERS] for part in islice(sentences(head[:4_000]), 20))
            if first := min(filter(_is_statement, texts), key=lambda text: text.endswith(":"), default=""):
                stated.append(Fact("goal", first, one.block.id))
    yield from stated if len(stated) < 3 else (stated[0], stated[-1])


def _is_statement(text: str) -> bool:
    return sum(Passage(text).weights.values()) >= 3


def decisions(removed: Sequence[Block], *, most: int = MAXIMUM_DECISIONS, with_reason: bool = True) -> list[Fact]:
    """Return the newest sentences of the model and the user that decide something, and give the reason."""
    newest = (
        (one.block, sentence[:DECISION_CHARACTERS])
        for one in reversed([*authored(removed)])
        if DECISION.search(one.text)
        for sentence in reversed([*sentences(one.text)])
    )
    facts = {
        sentence: Fact("decision", sentence.replace("**", "").strip("#*- "), block.id)
        for block, sentence in islice(newest, SCANNED_SENTENCES)
        if DECISION.search(sentence) and (not with_reason or (REASON.search(sentence) and sentence[-1:] != ":"))
    }
    return [fact for fact in islice(facts.values(), most) if _is_statement(fact.text)]


def _open_work(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the open items of the agent's plan; without one in the latest blocks what messages list as open."""
    seen = 0
    for block in reversed(removed):
        seen += block.content_type in MESSAGE_TYPES
        if seen <= LATEST_BLOCKS and block.content_type == "tool_call" and (items := [*_items(block.text or "")]):
            undone = (Fact("open_work", text, block.id) for text, done in items if not done)
            yield from islice(undone, MAXIMUM_OPEN)
            return
    yield from (Fact("open_work", line) for line in open_work(removed)[-MAXIMUM_OPEN:])


def open_work(blocks: Sequence[Block]) -> list[str]:
    """Return the lines of the latest messages that list work as open, in order, each once.

    Such a line is an unchecked box, or names itself or its list so, in English.
    """
    latest = [one.text for one in authored(blocks)][-LATEST_BLOCKS:]
    return list(dict.fromkeys(line for text in latest for line in _open_lines(text)))


def _open_lines(text: str) -> Iterator[str]:
    in_list = False
    for line in unwrapped(text):
        marked = _UNCHECKED.fullmatch(line) or _LABELED.fullmatch(line)
        if match := marked or (in_list and _ITEM.fullmatch(line)):
            yield match[1].strip()
        elif line.strip():
            in_list = _OPEN_TITLE.fullmatch(line) is not None


def _items(arguments: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of a plan with whether each is done."""
    try:
        data: Any = json.loads(arguments) if '"status"' in arguments else None
    except ValueError:
        return
    lists = (data.get(key) for key in _PLAN_KEYS) if isinstance(data, dict) else ()
    for entry in next((one for one in lists if isinstance(one, list)), []):
        if isinstance(entry, dict) and isinstance(status := entry.get("status"), str):
            text = next((str(entry[key]) for key in _ITEM_KEYS if entry.get(key)), "")
            if text:
                yield text[:MAXIMUM_CHARACTERS], status not in _OPEN


def _results(removed: Sequence[Block]) -> list[tuple[Block, Block | None]]:
    """Return the results of tools with their calls, the newest first."""
    calls = {block.tool_call_id: block for block in removed if block.content_type == "tool_call"}
    results = (block for block in reversed(removed) if block.content_type == "tool_result")
    return [(block, calls.get(block.tool_call_id) if block.tool_call_id else None) for block in results]


def _failures(results: Sequence[tuple[Block, Block | None]]) -> Iterator[Fact]:
    """Yield the commands that failed and did not succeed later."""
    run = {""}
    for block, call in results:
        output = block.text or ""
        command = _command(call) if output and call is not None else ""
        program = " ".join(re.split(r"&&|;", re.split(r"[\"'$<]", command)[0])[-1].split()[:3])
        if program not in run and has_failed(output, call) and (fault := fault_in(output)):
            yield Fact("failed_command", f"{command[:160]}: {fault}", block.id)
        run.add(program)


def fault_in(output: str) -> str:
    """Return the line of an output that names the fault; empty where none does."""
    is_long = len(output) > 2 * READ_CHARACTERS
    text = f"{output[:READ_CHARACTERS]}\n{output[-READ_CHARACTERS:]}" if is_long else output
    faults = [
        line.strip()[:MAXIMUM_CHARACTERS]
        for line in text.split("\n")
        if _FAULT.search(line) and not _TRIVIAL.match(line) and not _EXIT_CODE.match(line.strip())
    ]
    return next(filter(_is_statement, faults), "") if any(Passage(line).exact for line in faults) else ""


def _command(call: Block) -> str:
    """Return the command that a call runs, on one line."""
    text = call.text or ""
    start = _COMMAND.search(text[:READ_CHARACTERS])
    if start is None:
        return ""
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start.end())
    except ValueError:
        return call.target or ""
    command = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""
    return " ".join(command.split())


def _changed(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the files that calls changed, the newest first."""
    for block in reversed(removed):
        if block.content_type == "tool_call":
            changed = block.target if _access(block) == "changes" else None
            paths = _PATCHED.findall(block.text or "") or [changed or ""]
            yield from (Fact("changed_file", path, block.id) for path in reversed(paths) if _FILE.fullmatch(path))


def _read(results: Sequence[tuple[Block, Block | None]]) -> Iterator[Fact]:
    """Yield the files whose content calls returned."""
    for block, caller in results:
        call = caller or block
        if call.target and _access(call) == "reads":
            paths = [word for word in (*_command(call).split(), call.target) if _FILE.fullmatch(word)]
            yield from (Fact("read_file", path, block.id) for path in paths[-1:])


def _access(call: Block) -> Access:
    return access_of(call.text, call.tool_name, call.target)


def _newest(files: Iterable[Fact]) -> list[Fact]:
    """Return the first of *files*, each once."""
    facts: dict[str, Fact] = {}
    for fact in files:
        if not any(one.endswith(f"/{fact.text}") or fact.text.endswith(f"/{one}") for one in facts):
            facts.setdefault(fact.text, fact)
        if len(facts) == MAXIMUM_FILES:
            break
    return list(facts.values())
