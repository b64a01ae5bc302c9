"""Findings: the line that reports the result of a tool call, a failure before anything else.

A line reports a failure if it starts as an error message does, or contains a word of one. Source code that
handles errors (`except ImportError:`, `return fmt.Errorf(…)`) does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from windowpane.core.window.blocks import Block

FINDING_CHARS: Final = 140
READ_CHARACTERS: Final = 60_000
"""Characters at either end of a result that are read."""
SCANNED_LINES: Final = 40
"""Lines at either end that are searched for a count."""
MAXIMUM_FAILURES: Final = 200
"""Lines with a word of a failure that are compared."""
LINE_CHARACTERS: Final = 1_000
OTHER_FAILURES: Final = 3
"""Failures of one result beside the first."""

_WORD: Final = re.compile(r"[Ee]rror|ERROR|[Ee]xception|[Ff]ailed|FAIL|[Ff]atal|FATAL|panic|[Dd]enied")
_LABEL: Final = (
    r"(?:[\w.]*(?:Error|Exception)|[Ee]rror(?:\[\w+\]|(?: [A-Z]+\d+))?|ERROR|FATAL|CRITICAL|[Ff]atal"
    r"|FAIL(?:ED|URE)?|--- FAIL|panic)"
)
_PREFIX: Final = r"(?:(?:E|npm|\[[^\]]{1,40}\]|[\d:.,TZ/-]{8,40}|[\w./\\-]{1,160}[:(]\d+[:,\d)]*:?|[✗✘❌×]) +)*"
_MESSAGE: Final = re.compile(rf"\s*<tool_use_error>|\s*{_PREFIX}{_LABEL}(?:: *|\] *| +(?=\S*\d)|\s*$)(?!=)")
_NONE: Final = re.compile(r"\b(?:0|[Nn]o|without) (?:failed|failures?|errors?)\b")
_SUMMARY: Final = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b")
_CODE: Final = re.compile(
    r"(?:\s|\\[nt]){0,80}(?:\d{1,9}[→|\t]|//|#|/?\*|[-+](?![-\d])"
    r"|(?:[\w./-]{1,200}[:-]\d{1,9}[:-]\s{0,80})?(?:except|raise|throw|return|if|elif|else|catch|func|def|class|import|from|const|let|var"
    r"|try|for|with|assert|export|async|await|type|self)\b)"
)
"""The beginning of a line of source code, numbered or not, of a search or a patch."""
_CODE_PART: Final = re.compile(r"[{;,(\\]\s*$|:=|\w\(\)|\w\(\\?[\"']")
_LISTED: Final = re.compile(r"\s*[\w./-]+[:-]\d+[:-]")
"""A line of a search."""
_EXIT: Final = re.compile(
    r"^(?:(?:Process|Command) )?[Ee]xit(?:ed)?(?: with)?(?: code| status)?[: ]+(\d{1,5})\b"
    r"|\"exit_code\": ?(\d{1,5})\b",
    re.MULTILINE,
)
_ENVELOPE: Final = re.compile(r"\A(?:[A-Z][\w ]{1,30}: [^\n]{0,80}\n|Process exited[^\n]{0,60}\n){1,8}Output:\n")
"""Lines that Codex writes before the output of a command."""
_REMINDER: Final = "<system-reminder>"
"""Starts what Claude Code adds after the content of a file."""
_COMPILER: Final = re.compile(r"^(?:\[[^\]\n]{1,40}\] )?[\w./\\-]{1,160}\.\w{1,5}:\d+:\d+:? +\S.*", re.MULTILINE)
"""A message of a compiler or linter, which may contain no word of a failure."""
_LOCATION: Final = re.compile(r'File "([^"\n]{1,200})", line (\d+)|\b([\w./-]{1,160}\.\w{1,5}):(\d+)\b')
_NUMBER: Final = re.compile(r"\d+")
_TOKENS: Final = re.compile(r"[\w.\-]+")
_ALSO: Final = " (also "
MAXIMUM_OTHERS: Final = 24
"""Numbers of earlier messages that are listed after the last one of the same wording."""
_LOCATION_CHARACTERS: Final = 600
"""Characters before a message in which its place is searched."""
_COUNT: Final = re.compile(
    r"\b\d+\s+(?:file|match|result|test|error|warning|line|item|row|reference|passed|failed|found)\w*"
    r"|\b[Ff]ound\b.{0,20}\d",
)
_NUMBERED: Final = re.compile(r"\s*(\d{1,7})[→\t:-]")
_MATCH: Final = re.compile(r"([\w./\\@\[\]-]*[/\\.][\w./\\@\[\]-]*?)[:-]\d+[:-]")
"""A line of a search in several files."""
LISTED_RATIO: Final = 0.8
"""Share of the lines by which an output is the content of a file, or the result of a search."""
_BARE: Final = re.compile(r"[\s{}\[\]()<>,;:=*#\-_|\"'`]*")


class _Line(NamedTuple):
    rank: int
    start: int
    text: str


def finding_of(text: str) -> str:
    """Return the most telling line of a tool result: its failures, else a count, else the first with words."""
    if failures := failures_of(text):
        return "; ".join(failures)
    text = _output_of(_read(text))
    if listing := _listing_of(text):
        return listing
    lines = text[:20_000].split("\n", SCANNED_LINES)[:SCANNED_LINES]
    if len(text) > 20_000 or len(lines) == SCANNED_LINES:
        lines += text[-20_000:].rsplit("\n", SCANNED_LINES)[1:]
    counting = (line for line in lines if _COUNT.search(line[:2_000]) and not _CODE.match(line[:2_000]))
    readable = (line for line in lines if not _BARE.fullmatch(line[:200]))
    return next(map(_short, chain(counting, readable)), "")


def failures_of(text: str) -> list[str]:
    """Return the failures that a tool result reports: one with its place and exit status, then others as short.

    The first is the first line that starts as an error message, else the first that counts failures, else the
    first that mentions one. The others start as an error message, and differ in more than numbers.
    """
    text = _read(text)
    exit_line = _EXIT.search(text)
    code = int(exit_line[1] or exit_line[2]) if exit_line else None
    output = _output_of(text)
    least = 2 if code == 0 or _listing_of(output) else 1
    lines = [line for line in _failures(output) if line.rank >= least]
    best = max(lines, key=lambda line: line.rank, default=None)
    if code and (best is None or best.rank < _RANKS) and (located := _COMPILER.search(output)):
        best = _Line(2, located.start(), located[0])
    if best is None:
        return [_short(_line_at(text, exit_line.start()))] if exit_line and code else []
    message = _short(best.text)
    notes = [_location(output, best)] if best.rank == _RANKS else []
    if code and exit_line and exit_line[0] not in message:
        notes.append(f"exit {code}")
    notes = [note for note in notes if note and note not in message]
    others = {_wording(one): one for one in (_short(line.text) for line in lines if line.rank == _RANKS)}
    others.pop(_wording(message), None)
    first = f"{message} ({', '.join(notes)})" if notes else message
    return [first, *(other for other in islice(others.values(), OTHER_FAILURES) if other not in message)]


def grouped_failures(lines: Iterable[str]) -> list[str]:
    """Return each message once; of those that differ in numbers only the last, with the numbers of the others."""
    groups: dict[str, tuple[str, dict[str, None]]] = {}
    for line in lines:
        message, _, also = line.partition(_ALSO)
        key = _wording(message)
        before, others = groups.pop(key, ("", {}))
        for number in (*_numbers_in(before), *filter(None, also.removesuffix(")").split(", "))):
            others[number] = None
        groups[key] = message, others
    return [_with_others(message, others) for message, others in groups.values()]


def _wording(message: str) -> str:
    """Return a message without its numbers: those with the same wording are alike."""
    return _NUMBER.sub("#", message)


def _numbers_in(message: str) -> list[str]:
    """Return the words with digits."""
    return [word.strip(".-") for word in _TOKENS.findall(message) if _NUMBER.search(word)]


def _with_others(message: str, others: Iterable[str]) -> str:
    own = set(_numbers_in(message))
    listed = [number for number in others if number not in own][-MAXIMUM_OTHERS:]
    return f"{message}{_ALSO}{', '.join(listed)})" if listed else message


def failures_in(blocks: Iterable[Block]) -> list[str]:
    """Return the failures that the texts of *blocks* report, in order."""
    return [failure for block in blocks for failure in failures_of(block.text or "")]


def is_failure(line: str) -> bool:
    """Return whether a line reports a failure rather than code that handles one."""
    return _rank(line) > 0 or _FAILED.search(line[:LINE_CHARACTERS]) is not None


_FAILED: Final = re.compile(r"\b[Ee]xit(?:ed)?(?: with)?(?: code| status)?[: ]+[1-9]")
_RANKS: Final = 3
MENTION_CHARACTERS: Final = 120
"""A longer line that only mentions a failure is prose or data."""


def _rank(line: str) -> int:
    line = line[:LINE_CHARACTERS]
    if not _WORD.search(line) or _CODE.match(line):
        return 0
    if _MESSAGE.match(line):
        return _RANKS
    if len(line) > MENTION_CHARACTERS or _LISTED.match(line) or _CODE_PART.search(line):
        return 0
    if _SUMMARY.search(line):
        return 2
    return 0 if _NONE.search(line) else 1


def _failures(text: str) -> Iterator[_Line]:
    seen = -1
    for _, match in zip(range(MAXIMUM_FAILURES), _WORD.finditer(text), strict=False):
        if match.start() < seen:
            continue
        start = text.rfind("\n", 0, match.start()) + 1
        line = _line_at(text, start)
        seen = start + len(line)
        if rank := _rank(line):
            yield _Line(rank, start, line)


def _read(text: str) -> str:
    if len(text) > 2 * READ_CHARACTERS:
        text = f"{text[:READ_CHARACTERS]}\n{text[-READ_CHARACTERS:]}"
    if text.startswith(("{", "[")) and "\\n" in text:  # an output within JSON
        text = text.replace("\\n", "\n").replace('\\"', '"')
    return text


def _output_of(text: str) -> str:
    """Return a result without what the agent's program wrote before and after it."""
    start = _ENVELOPE.match(text)
    end = text.rfind(_REMINDER) if text.rstrip().endswith(_REMINDER.replace("<", "</")) else len(text)
    return text[start.end() if start else 0 : end].strip("\n") or text


def _listing_of(text: str) -> str:
    """Return which lines of a file, or how many matches of a search, an output shows; empty for another one."""
    lines = [line for line in text.split("\n") if line.strip() and line != "--"]
    numbers = [int(match[1]) for line in lines if (match := _NUMBERED.match(line))]
    if (
        len(numbers) > max(1, LISTED_RATIO * len(lines))
        and numbers == sorted(numbers)
        and numbers[0] < numbers[-1]
    ):
        return f"lines {numbers[0]} to {numbers[-1]}"
    files = [match[1] for line in lines if (match := _MATCH.match(line))]
    if len(files) > max(1, LISTED_RATIO * len(lines)):
        distinct = list(dict.fromkeys(files))
        return _short(f"{len(files)} lines of {len(distinct)} files: {', '.join(distinct)}")
    return ""


def _line_at(text: str, position: int) -> str:
    start, end = text.rfind("\n", 0, position) + 1, text.find("\n", position)
    return text[start : len(text) if end < 0 else end]


def _location(text: str, line: _Line) -> str:
    """Return file and line of a message: the last ones named in or before it."""
    if _LOCATION.search(line.text):
        return ""
    locations = list(_LOCATION.finditer(text, max(0, line.start - _LOCATION_CHARACTERS), line.start))
    return f"{locations[-1][1] or locations[-1][3]}:{locations[-1][2] or locations[-1][4]}" if locations else ""


def _short(line: str) -> str:
    line = " ".join(line[:LINE_CHARACTERS].split())
    return line if len(line) <= FINDING_CHARS else line[: FINDING_CHARS - 1] + "…"
