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

from windowpane.core.names import without_wrappers
from windowpane.core.tracking.missteps import has_failed
from windowpane.core.tracking.regret import access_of
from windowpane.core.window.blocks import Block
from windowpane.fidelity.languages import DECISION, REASON
from windowpane.fidelity.passages import MAXIMUM_CHARACTERS, Passage, sentences, unwrapped

FactKind = Literal[
    "rule", "goal", "decision", "open_work", "failed_command", "changed_file", "read_file", "name", "setting"
]
"""Kinds of facts; a name or a setting (`timeout=30s`) is one for summaries only."""
MAXIMUM_FILES: Final = 8
"""Files changed, and files read, the last ones."""
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
_FAULT: Final = re.compile(
    r"(?i)\b(?:error|failed|failure|fatal|panic|exception|cannot|undefined|not found|denied|refused|assert)"
    r"|\w(?:Error|Exception)\b"
)
_TRIVIAL: Final = re.compile(r"^\s*(?:import|from|except|raise|catch|File \"|at )\b|^\s*Traceback|^\W*$")
_PATCHED: Final = re.compile(r"\*\*\* (?:Update|Add) File: ([^\n\\\"]{1,300})")
_FILE: Final = re.compile(r"[\w@.+~/-]{0,300}\w\.[A-Za-z]\w{0,9}")
_COMMAND: Final = re.compile(r'"?(?:command|cmd|script)"?\s{0,4}:\s{0,4}')
_OPEN: Final = frozenset({"pending", "in_progress", "open", "todo", "blocked", "not_started"})
_PLAN_KEYS: Final = ("todos", "plan", "items", "tasks", "todo_list")
_ITEM_KEYS: Final = ("content", "step", "title", "description", "text", "task", "subject")
CUT_MARK: Final = re.compile(r"\n?\[… \d+ tokens [^\n]{0,400}…\]\n?")
"""Stands where a managed window cut a message or a result."""


class Fact(NamedTuple):
    """Something that the agent needs to go on."""

    kind: FactKind
    text: str
    block: str | None = None
    """Id of the block with the content: a read file, the output of a failed command."""


def situation(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the facts of *removed*: the newest of each kind."""
    calls = {
        block.tool_call_id: block for block in removed if block.content_type == "tool_call" and block.tool_call_id
    }
    yield from _goals(removed)
    yield from decisions(removed)
    yield from _open_work(removed)
    yield from _failures(removed, calls)
    changed = _last_files(_changed(removed))
    yield from changed.values()
    read = _last_files(_read(removed, calls), excluded=changed)
    yield from read.values()


def _goals(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the first sentence that the user wrote, and the first of the last message."""
    written = (
        (block, text)
        for block in removed
        if is_written(block) and (text := without_wrappers(CUT_MARK.split(block.text or "", maxsplit=1)[0]))
    )
    stated = [(block, first) for block, text in written if (first := _first_statement(text))]
    for block, text in {block.id: (block, text) for block, text in (stated[:1] + stated[-1:])}.values():
        yield Fact("goal", text, block.id)


def is_written(block: Block) -> bool:
    """Return whether the user wrote a message, not the agent's program, which starts its own with a tag."""
    return (
        block.content_type == "user_message"
        and bool(block.text)
        and not (block.text or "").lstrip().startswith("<")
    )


def _first_statement(text: str) -> str:
    heads = [sentence.strip("#*- ")[:MAXIMUM_CHARACTERS] for sentence in islice(sentences(text[:4_000]), 20)]
    stated = [head for head in heads if is_statement(head)]
    return next((head for head in stated if not head.endswith(":")), stated[0] if stated else "")


def is_statement(text: str) -> bool:
    """Return whether a text has enough terms to be looked up."""
    return Passage(text).weight >= 3


def decisions(removed: Sequence[Block], *, most: int = MAXIMUM_DECISIONS, with_reason: bool = True) -> list[Fact]:
    """Return the newest sentences of the model and the user that decide something, and give the reason."""
    texts = (
        block
        for block in reversed(removed)
        if block.content_type in ("assistant_response", "user_message")
        and block.text
        and DECISION.search(block.text)
    )
    newest = (
        (block, one[:DECISION_CHARACTERS]) for block in texts for one in reversed([*sentences(block.text or "")])
    )
    facts = {
        sentence: Fact("decision", sentence.strip("#*- "), block.id)
        for block, sentence in islice(newest, SCANNED_SENTENCES)
        if DECISION.search(sentence) and (not with_reason or REASON.search(sentence))
    }
    return [fact for fact in islice(facts.values(), most) if is_statement(fact.text)]


def _open_work(removed: Sequence[Block]) -> Iterator[Fact]:
    """Yield the items of the agent's last plan that are not done; without a plan what messages list as open."""
    plans = (block for block in reversed(removed) if block.content_type == "tool_call")
    for block in plans:
        items = list(_items(block.text or "")) if '"status"' in (block.text or "") else []
        if items:
            yield from islice(
                (Fact("open_work", text, block.id) for text, done in items if not done), MAXIMUM_OPEN
            )
            return
    yield from (Fact("open_work", line) for line in open_work(removed)[-MAXIMUM_OPEN:])


_WRITTEN: Final = ("user_message", "assistant_response")
LATEST_BLOCKS: Final = 20
"""Messages of the user and the model that are searched for open work: earlier ones may be done."""
_OPEN_NAMES: Final = (
    "to-?dos?", "next(?: steps?)?", "remaining(?: work| steps| tasks)?", "still (?:open|to do)",
    "open (?:work|tasks|items)",
)  # fmt: skip
_OPEN_LABEL: Final = f"(?:{'|'.join(_OPEN_NAMES)})"
_OPEN_TITLE: Final = re.compile(rf"(?i)[#*\s]*{_OPEN_LABEL}[*\s]*:?[*\s]*")
"""A line that opens a list of open work."""
_LABELED: Final = re.compile(rf"(?i)\s*(?:[-*+]|\d+[.)])?\s*\**{_OPEN_LABEL}\**:\**\s+(\S.{{3,240}})")
_UNCHECKED: Final = re.compile(r"\s*[-*+] \[ \]\s+(\S.{3,240})")
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(\S.{3,240})")


def open_work(blocks: Sequence[Block]) -> list[str]:
    """Return the lines of the latest messages that list work as open, in order, each once.

    Such a line is an unchecked box, or names itself or its list so, in English.
    """
    prose = (block.text or "" for block in reversed(blocks) if block.content_type in _WRITTEN)
    latest = list(islice(prose, LATEST_BLOCKS))[::-1]
    return list(dict.fromkeys(line for text in latest for line in _open_lines(text)))


def _open_lines(text: str) -> Iterator[str]:
    in_list = False
    for line in unwrapped(text):
        match = (
            _UNCHECKED.fullmatch(line) or _LABELED.fullmatch(line) or (_ITEM.fullmatch(line) if in_list else None)
        )
        if match is not None:
            yield match[1].strip()
        elif line.strip():
            in_list = _OPEN_TITLE.fullmatch(line) is not None


def _items(arguments: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of a plan with whether each is done."""
    try:
        data: Any = json.loads(arguments)
    except ValueError:
        return
    entries: list[Any] = (
        next((data[key] for key in _PLAN_KEYS if isinstance(data.get(key), list)), [])
        if isinstance(data, dict)
        else []
    )
    for entry in entries:
        if isinstance(entry, dict) and isinstance(status := entry.get("status"), str):
            text = next((str(entry[key]) for key in _ITEM_KEYS if entry.get(key)), "")
            if text:
                yield text[:MAXIMUM_CHARACTERS], status not in _OPEN


def _failures(removed: Sequence[Block], calls: dict[str, Block]) -> Iterator[Fact]:
    """Yield the commands that failed and did not succeed later, the newest first."""
    last: dict[str, Fact | None] = {}
    for block in removed:
        if block.content_type != "tool_result" or not block.text:
            continue
        call = calls.get(block.tool_call_id or "")
        command = _command(call) if call is not None else ""
        if not command:
            continue
        key = " ".join(command.split()[:3])
        last.pop(key, None)
        last[key] = (
            Fact("failed_command", f"{command}: {finding}", block.id)
            if has_failed(block.text, call) and (finding := finding_of(block.text))
            else None
        )
    yield from islice((fact for fact in reversed(last.values()) if fact is not None), MAXIMUM_FAILURES)


def finding_of(output: str) -> str:
    """Return the line of an output that names the fault; empty where none does."""
    text = (
        output
        if len(output) <= 2 * READ_CHARACTERS
        else f"{output[:READ_CHARACTERS]}\n{output[-READ_CHARACTERS:]}"
    )
    lines = [line.strip() for line in text.split("\n") if _FAULT.search(line) and not _TRIVIAL.match(line)]
    faults = [line for line in lines if not _EXIT_CODE.match(line) and Passage(line[:MAXIMUM_CHARACTERS]).exact]
    return (faults or [""])[-1][:MAXIMUM_CHARACTERS]


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
    return " ".join(command.split())[:160]


def _changed(removed: Sequence[Block]) -> Iterator[tuple[str, Fact]]:
    """Yield the files that calls changed, the newest first."""
    for block in reversed(removed):
        if block.content_type != "tool_call":
            continue
        paths = _PATCHED.findall(block.text or "") if "*** " in (block.text or "") else []
        if not paths and block.target and access_of(block) == "changes":
            paths = [block.target]
        yield from (
            (path, Fact("changed_file", path, block.id)) for path in reversed(paths) if _FILE.fullmatch(path)
        )


def _read(removed: Sequence[Block], calls: dict[str, Block]) -> Iterator[tuple[str, Fact]]:
    """Yield the files whose content calls returned, the newest first."""
    for block in reversed(removed):
        if block.content_type == "tool_result":
            call = calls.get(block.tool_call_id or "", block)
            if call.target and access_of(call) == "reads":
                path = call.target if _FILE.fullmatch(call.target) else _last_path(_command(call))
                if path:
                    yield path, Fact("read_file", path, block.id)


def _last_path(command: str) -> str:
    paths = [word for word in command.split() if _FILE.fullmatch(word)]
    return paths[-1] if paths else ""


def _last_files(files: Iterable[tuple[str, Fact]], excluded: Iterable[str] = ()) -> dict[str, Fact]:
    names = {base_name(path) for path in excluded}
    facts: dict[str, Fact] = {}
    for path, fact in files:
        if path not in facts and base_name(path) not in names:
            facts[path] = fact
            if len(facts) == MAXIMUM_FILES:
                break
    return facts


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rsplit("/", 1)[-1]
