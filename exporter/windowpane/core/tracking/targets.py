"""The target of a tool call: the file it names, else the command it runs; redacted, without further arguments.

Only the names are taken, never content: of a command its program and subcommand, as in `git commit`. A call with
neither may name the task or the skill that it reads. Injected content names its memory file or skill.
"""

from __future__ import annotations

import json
import re
from typing import Final

from windowpane.core.redaction import redact

MAXIMUM_TARGET_CHARACTERS: Final = 120
READ_CHARACTERS: Final = 4_096
"""Start of the arguments in which a target is looked for."""
MAXIMUM_REMEMBERED: Final = 4_096
"""Targets of which is remembered that they hold no secret: an agent works on the same files for hours."""

_STRING: Final = r'\s{0,4}:\s{0,4}\[?\s{0,4}"((?:[^"\\]|\\.){1,400}+)"'
_FILE: Final = re.compile(
    r'"(?:file_path|filePath|notebook_path|absolute_path|target_file|relative_path|filename|file|path)"' + _STRING
)
_COMMAND: Final = re.compile(r'(?:"(?:command|cmd|script)"|\bcmd)' + _STRING)
"""Also in a script that calls the tool, as in `exec_command({cmd: "ls"})`."""
_TASK: Final = re.compile(r'"(?:task_id|skill)"' + _STRING)
_ARGUMENT: Final = re.compile(r'\s{0,4},\s{0,4}"((?:[^"\\]|\\.){1,400}+)"')
_SHELL: Final = re.compile(r"(?:\S{0,80}/)?(?:ba|z|da)?sh")
_PATCHED: Final = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\n\\]{1,400})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PREFIX: Final = re.compile(
    r"\s{0,4}(?:cd\s[^&;|\n]{0,300}(?:&&|;|\n)|[A-Za-z_]\w{0,63}=\S{0,300}\s|sudo\s|env\s|time\s)"
)
_GIT_FOLDER: Final = re.compile(r"^\s{0,4}git\s{1,4}-C\s{1,4}\S{1,300}\s{1,4}")
_MAXIMUM_PREFIXES: Final = 8
_WORD: Final = re.compile(r"[A-Za-z][\w.-]{0,39}")
SKILL_TOOL: Final = "Skill"
"""The tool that the content of a skill belongs to, also where a user and not the model asked for it."""
_SKILL: Final = re.compile(
    r"Base directory for this skill: [^\n]{0,400}?([^\\/\n]{1,100})[\\/]?(?:\n|$)"
    r"|<skill>\s{0,4}<name>([^<\n]{1,100})</name>"
)
_MEMORY_FILE: Final = re.compile(
    r"(?:\s|<system-reminder>){0,4}Contents of ([^\n]{1,400}?)(?: \([^)\n]{1,100}\))?:(?:\n|$)"
)
_AGENTS_FILE: Final = re.compile(r"# AGENTS\.md instructions for ([^\n]{1,400})(?:\n|$)")
_PLAIN: Final[set[int]] = set()
"""The hashes of targets without a secret; not the targets, which are content of a session."""


def call_target(arguments: str) -> str | None:
    """Return the target that the *arguments* of a tool call name; None where they name none."""
    start = arguments[:READ_CHARACTERS]
    file = _FILE.search(start) or _PATCHED.search(start)
    if file is not None:
        return _redacted(_end(_unescaped(file[1])))
    command = _COMMAND.search(start)
    if command is not None:
        return _redacted(_program(_unescaped(_script(command, start))))
    task = _TASK.search(start)
    return None if task is None else _redacted(_unescaped(task[1]))


def skill_of(content: str) -> str | None:
    """Return the name of the skill that injected *content* is the text of; None for other content."""
    skill = _SKILL.match(content)
    return None if skill is None else _redacted(skill[1] or skill[2])


def memory_file_of(content: str) -> str | None:
    """Return the path of the memory file that injected *content* starts with; None where it names none.

    Claude Code writes `Contents of PATH`, Codex `# AGENTS.md instructions for FOLDER`.
    """
    agents = _AGENTS_FILE.match(content)
    if agents is not None:
        return memory_path(f"{agents[1].rstrip('/')}/AGENTS.md")
    memory = _MEMORY_FILE.match(content)
    return None if memory is None else memory_path(memory[1])


def memory_path(path: str) -> str | None:
    """Return the end of the *path* of a memory file, redacted."""
    return _redacted(_end(path))


def _end(path: str) -> str:
    """Return the end of a long path, with a mark in place of its start."""
    return path if len(path) <= MAXIMUM_TARGET_CHARACTERS else f"…{path[1 - MAXIMUM_TARGET_CHARACTERS :]}"


def _script(command: re.Match[str], arguments: str) -> str:
    """Return the command that a list such as `["bash", "-lc", "ls"]` runs, else the one it is."""
    if _SHELL.fullmatch(command[1]):
        option = _ARGUMENT.match(arguments, command.end())
        script = _ARGUMENT.match(arguments, option.end()) if option is not None else None
        if option is not None and script is not None and option[1].startswith("-"):
            return script[1]
    return command[1]


def _program(command: str) -> str:
    """Return the program of a shell command, with its subcommand where it has one."""
    for _ in range(_MAXIMUM_PREFIXES):
        prefix = _PREFIX.match(command)
        if prefix is None:
            break
        command = command[prefix.end() :]
    parts = _GIT_FOLDER.sub("git ", command, count=1).split(None, 2)[:2]
    if not parts:
        return ""
    program = parts[0].replace("\\", "/").rsplit("/", 1)[-1].strip("\"'();|&")
    if not _WORD.fullmatch(program):
        return ""
    return f"{program} {parts[1]}" if len(parts) > 1 and _WORD.fullmatch(parts[1]) else program


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _redacted(text: str) -> str | None:
    plain = _CONTROL.sub(" ", text).strip()
    number = hash(plain)
    if not plain or number in _PLAIN:
        return plain or None
    target = redact(plain).text.encode("utf-8", "replace").decode()[:MAXIMUM_TARGET_CHARACTERS]
    if target == plain:
        if len(_PLAIN) >= MAXIMUM_REMEMBERED:
            _PLAIN.clear()
        _PLAIN.add(number)
    return target or None
