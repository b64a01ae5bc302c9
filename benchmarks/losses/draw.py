"""Draw sentences of recordings to be read by hand, as rows of `rules.jsonl` without labels.

    WINDOWPANE_SESSIONS_DIR=... PYTHONPATH=benchmarks python benchmarks/losses/draw.py SEED [SOURCE...]

Drawn from all distinct sentences of user messages, system prompts and memory content, not from what the product
finds, without those that `rules.jsonl` has. Nothing of `windowpane.fidelity` is used.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from truth.recordings import recorded_sessions

from windowpane.core.events import BlockAdded

SOURCES: Final = {"user_message": "user", "system_prompt": "system", "memory_injection": "memory"}
NUMBER: Final = {"strong": 130, "cue": 45, "prose": 20, "other": 4}
"""Sentences of each stratum and source."""
MAXIMUM_WEIGHT: Final = 40
A_SESSION: Final = 5
"""Sentences of one session and stratum at most."""
AROUND: Final = 900
"""Characters of the document before and after a sentence, and of its start."""
CUE: Final = re.compile(
    r"(?i)\b(?:never|always|must|shall|should|don['’]?t|do not|not|only|avoid|ensure|make sure|before"
    r"|after|without|unless|ask|prefer|use|keep|no|limit|require[ds]?|need|needs|allowed|forbidden|prohibited|cannot|can['’]t|may"
    r"|if|when|whenever|every|each|all|any|follow|stop|wait|confirm|instead|at most|at least|remember|stick|add"
    r"|run|write|check|nie|nicht|immer|nur|muss|darf|jamais|pas|toujours|doit|nunca|siempre|debe|sin)\b|[不必须禁ずべ]"
)
STRONG: Final = re.compile(
    r"(?i)\b(?:never|always|must|shall|should|(?:do|does) not|(?:do|does|should|must)n['’]?t|only|avoid|ensure"
    r"|make sure|without|unless|prefer|ask|instead|at (?:most|least)|from now on|every time|remember|stick)\b"
)
CODE: Final = re.compile(r"[{};]\s*$|^\s*[|<>$/]|=>|^\s*\S+\s*[=(]|^\W*$|^\s*(?:import|from|def|class|const)\b")


def stratum_of(sentence: str) -> str:
    """Return `other` for code and data, `strong` or `cue` for prose with a word of rules, else `prose`."""
    letters = sum(map(str.isalpha, sentence))
    if CODE.search(sentence) or letters < 0.5 * len(sentence):
        return "other"
    if STRONG.search(sentence):
        return "strong"
    return "cue" if CUE.search(sentence) else "prose"


def sentences_in(text: str) -> list[tuple[int, str]]:
    """Return the sentences of a text with their positions, of lines as they stand."""
    pieces = re.finditer(r"[^\n]+?(?:[.!?](?=\s+[A-Z`\"*])|[。！？]|(?=\n)|\Z)", text)
    return [(one.start(), one.group().strip()) for one in pieces if len(one.group().strip()) >= 8]


def context(text: str, at: int, sentence: str) -> str:
    """Return the start of a document and the lines around a sentence."""
    start, end = text.rfind("\n", 0, max(0, at - AROUND)) + 1, text.find("\n", at + len(sentence) + AROUND)
    around = text[start : end if end >= 0 else len(text)][: 4 * AROUND]
    return around if start == 0 else f"{text[:300].rsplit(chr(10), 1)[0]}\n\n…\n\n{around}"


def main(seed: int, sources: Sequence[str]) -> None:
    """Print the drawn rows, and the number of sentences of each stratum to the error stream."""
    chance = random.Random(seed)
    path = Path(__file__).with_name("rules.jsonl")
    seen = {" ".join(json.loads(line)["sentence"].split()).lower() for line in path.read_text().splitlines()}
    pools: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for session in recorded_sessions():
        for event in session.events:
            block = event.data.block if isinstance(event.data, BlockAdded) else None
            if block is None or SOURCES.get(block.content_type) not in sources or not block.text:
                continue
            for at, sentence in sentences_in(block.text[:200_000]):
                plain = " ".join(sentence.split()).lower()
                if plain in seen:
                    continue
                seen.add(plain)
                row = {
                    "half": "users", "source": SOURCES[block.content_type], "stratum": stratum_of(sentence),
                    "session": session.key, "file": session.path.name, "origin": session.source,
                    "format": session.format, "procedure": False, "rule": None, "sentence": sentence,
                    "text": context(block.text, at, sentence),
                }  # fmt: skip
                pools[f"{row['source']}/{row['stratum']}"][session.key].append(row)
    for name, by_session in sorted(pools.items()):
        print(f'"{name}": {sum(map(len, by_session.values()))}', file=sys.stderr)
        taken = Counter[str]()
        for _ in range(NUMBER[name.partition("/")[2]]):
            open_keys = [key for key, rows in by_session.items() if rows and taken[key] < A_SESSION]
            weights = [min(MAXIMUM_WEIGHT, len(by_session[key])) for key in open_keys]
            key = chance.choices(open_keys, weights)[0]
            taken[key] += 1
            rows = by_session[key]
            print(json.dumps(rows.pop(chance.randrange(len(rows))), ensure_ascii=False))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or tuple(SOURCES.values()))
