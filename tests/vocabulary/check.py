"""Check names and prose against the words of this project: `python tests/vocabulary/check.py [PATH…]`.

Checked are the names that Python files define, docstrings, comments, texts with a space in them (help, errors,
page labels), and Markdown outside code. `words.toml` lists the words, their replacements, and the exceptions with
their reasons. Prints `file:line: word -> replacement` for each finding and exits with 1 when there is one.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RULES = Path(__file__).with_name("words.toml")
SUFFIXES = (".py", ".md")
TESTS = ("tests/", "benchmarks/")
"""Folders in which only names of functions and classes, docstrings and comments are checked."""
PAGES = re.compile(r"(docs/)?[^/]+\.md")
"""What users read first: checked against the constructions too."""
QUESTION = re.compile(r"(What|Whether|How|Where|Who|Whose|When|Which|Why|As `[^`]+`,?)(?=\s)")
OPENING = "a first sentence that names the thing, or an imperative"
SHOWN = re.compile(
    r"dashboard/|exporter/windowpane/(report/|alerts/(rules|guidance)|text/(events|losses|terms|labels))"
    r"|docs/(dashboard|tutorial)"
)
"""Texts about a session that users read: checked against the terms of the pages too."""
NAME_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class Finding:
    """One word to replace."""

    path: str
    line: int
    word: str
    replacement: str
    context: str
    """The name, or the text around the word: exceptions are matched against it."""

    def __str__(self) -> str:
        """Return the line to print."""
        return f"{self.path}:{self.line}: {self.word} -> {self.replacement}  [{self.context}]"


class Vocabulary:
    """The replacements for names and for prose, and the exceptions."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self._names: dict[str, str] = {}
        self._whole: dict[str, str] = rules["whole_names"]
        self._prose = _compiled(rules["prose"])
        self._constructions = _compiled(rules["constructions"])
        self._shown = _compiled(rules["shown"])
        for replacement, words in rules["names"].items():
            self._names |= dict.fromkeys(words, replacement)
        self._allowed = [(entry["files"], re.compile(entry["text"])) for entry in rules["allowed"]]
        assert all(entry["reason"] for entry in rules["allowed"])

    def in_name(self, path: str, line: int, name: str) -> Iterator[Finding]:
        """Find words of a defined name, compared part by part."""
        if name.strip("_") in self._whole:
            yield Finding(path, line, name, self._whole[name.strip("_")], name)
        parts = [part.lower() for part in NAME_PART.findall(name)]
        pairs = [f"{first}_{second}" for first, second in pairwise(parts)]
        for part in (*parts, *pairs):
            if part in self._names:
                yield Finding(path, line, part, self._names[part], name)

    def in_prose(self, path: str, line: int, text: str, *, is_shown: bool = False) -> Iterator[Finding]:
        """Find words and phrases of running text; the context is the words around each."""
        constructions = self._constructions if PAGES.fullmatch(path) else []
        shown = self._shown if is_shown and SHOWN.match(path) else []
        for pattern, replacement in (*self._prose, *constructions, *shown):
            for match in pattern.finditer(text):
                around = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
                at = line + text.count("\n", 0, match.start())
                yield Finding(path, at, match[0].lower(), replacement, around)

    def allows(self, finding: Finding) -> bool:
        """Return whether an exception covers the finding."""
        return any(fnmatch(finding.path, files) and text.search(finding.context) for files, text in self._allowed)


def _compiled(table: dict[str, list[str]]) -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE), replacement)
        for replacement, patterns in table.items()
    ]


def check_python(vocabulary: Vocabulary, path: str, source: str) -> Iterator[Finding]:
    """Check the names a module defines, its docstrings, comments and texts."""
    tree = ast.parse(source)
    yield from vocabulary.in_name(path, 1, Path(path).stem)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    in_tests = path.startswith(TESTS)
    for node in ast.walk(tree):
        if not in_tests or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for line, name in _defined_names(node):
                yield from vocabulary.in_name(path, line, name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_docstring = id(node) in docstrings
            if is_docstring and (match := QUESTION.match(node.value)):
                yield Finding(path, node.lineno, match[0], OPENING, node.value.partition("\n")[0])
            if is_docstring or (" " in node.value and not in_tests):
                yield from vocabulary.in_prose(path, node.lineno, node.value, is_shown=not is_docstring)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from vocabulary.in_prose(path, token.start[0], token.string)


def _defined_names(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield node.lineno, name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
            yield node.lineno, name
        case _:
            pass


def check_markdown(vocabulary: Vocabulary, path: str, text: str) -> Iterator[Finding]:
    """Check a document, without its code."""
    without_blocks = re.sub(r"^```.*?^```", _only_newlines, text, flags=re.MULTILINE | re.DOTALL)
    yield from vocabulary.in_prose(path, 1, re.sub(r"`[^`\n]*`", "``", without_blocks), is_shown=True)


def _only_newlines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def findings(paths: Sequence[str]) -> list[Finding]:
    """Check the files that git knows under *paths*; all of them by default."""
    vocabulary = Vocabulary(tomllib.loads(RULES.read_text(encoding="utf-8")))
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[Finding, None] = {}
    for path in sorted(listed):
        file = ROOT / path
        if not path.endswith(SUFFIXES) or not file.is_file():
            continue
        check = check_python if path.endswith(".py") else check_markdown
        found |= dict.fromkeys(check(vocabulary, path, file.read_text(encoding="utf-8")))
    return sorted((one for one in found if not vocabulary.allows(one)), key=lambda one: (one.path, one.line))


def main(paths: Sequence[str]) -> int:
    """Print the findings; return the exit code."""
    found = findings([str(Path(path).resolve().relative_to(ROOT)) for path in paths])
    for one in found:
        print(one)
    print(f"{len(found)} words to replace" if found else "all words are as agreed", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
