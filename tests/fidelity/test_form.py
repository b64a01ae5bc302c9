"""Damage to the form of a summary."""

from __future__ import annotations

import pytest

from windowpane.fidelity.form import TEMPLATES, form_faults

FRAME = "This session is being continued from a previous conversation that ran out of context.\n"
WHOLE = FRAME + "\n".join(
    f"{number}. {title}:\n   - The first point about it.\n   - The second point about it."
    for number, title in enumerate(TEMPLATES["Claude Code"], 1)
)
SNAPSHOT = (
    "<state_snapshot>\n"
    + "\n".join(f"<{tag}>\nWhat is known about it.\n</{tag}>" for tag in TEMPLATES["Gemini CLI"])
    + "\n</state_snapshot>"
)


@pytest.mark.parametrize("text", [WHOLE, SNAPSHOT, "Port the client.\n\n- api.py is done\n- auth.py is open", ""])
def test_a_whole_summary_has_no_faults(text: str) -> None:
    assert form_faults(text) == ()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (WHOLE[: WHOLE.index("8. ")], "section missing: Current Work"),
        (WHOLE.replace("7. Pending Tasks:", "").replace("it.\n8", "it\n8"), "section missing: Pending Tasks"),
        (SNAPSHOT.replace("</state_snapshot>", ""), "<state_snapshot> is not closed"),
        ("1. one is done.\n2. two is done.\n5. five is done.", "numbering jumps from 2 to 5"),
        ("The fix:\n```py\nx = 1", "a code block is not closed"),
        ("All tests pass.\n## Next", "it ends with a heading"),
        ("All tests pass. The next step is to update the", "it ends within a sentence"),
        ("We read the notes, the plan, and", "it ends within a sentence"),
        ("- The parser fails on long lines,", "it ends within a sentence"),
        ("- The parser fails (in `api.py`, the", "it ends within a sentence"),
        ("- Die Datei enthält den Namen der", "it ends within a sentence"),
        ("See `api.py and the others.\nAll tests pass.", "a line has an open mark"),
    ],
)  # fmt: skip
def test_damage_is_named(text: str, fault: str) -> None:
    assert fault in form_faults(text)


def test_a_list_within_an_item_starts_anew() -> None:
    assert form_faults("1. one:\n   1. a.\n   2. b.\n2. two:\n   1. c.\n3. three.") == ()


@pytest.mark.parametrize(
    "end",
    [
        "api.py, src/tables/, docs/in", "src/tables/table_1.py, use_cache, de, la", "read, write, of",
        "error: suite.error,", "FnoxError::NotFound {", "val message: String =", "src/components/",
        "timeout=30; y", "Check how they handle this", "The docs, which the user asked for", "Regions US, DE",
        "What we work with",
    ],
)  # fmt: skip
def test_an_end_with_names_paths_or_code_is_whole(end: str) -> None:
    assert form_faults(f"## Goal\nPort the client.\n## Artifacts\n- {end}") == ()


def test_a_title_may_have_a_remark() -> None:
    assert form_faults(WHOLE.replace("Pending Tasks:", "Pending Tasks (from the plan):")) == ()


def test_faults_contain_nothing_of_the_summary() -> None:
    secret = "xyzzy"

    assert not [fault for fault in form_faults(f"## {secret}\n## {secret}\n`{secret} the") if secret in fault]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```go\n\treturn nil\n}\n```", "brackets of a code block do not match"),
        ("```go\nfunc f() {\n\tif x {\n}\n```", "brackets of a code block do not match"),
        ("- Done:\n- Next is the parser.", "a line announces what does not follow"),
        ("```go\nfunc f(\n}\n```", "brackets of a code block do not match"),
        ("It was:\n   ```go\n   x = 1\n```", "a code block ends at another indent"),
        ("1. one.\n2. two.\n3. three.\n2. two.", "numbering jumps from 3 to 2"),
        ("1. one.\n2. two.\n22. more.\n23. last.", "numbering jumps from 2 to 22"),
        ("9. nine is done.\n   - in a.py\n10. ten is done.", "numbering starts at 9"),
        ("## A\n- a\n## B\n- b\n## C\n   - c", "a list starts at its second level"),
        ("Analysis:\nThe parser fails.", "section missing: Summary"),
    ],
)
def test_what_missing_lines_leave_behind_is_damage(text: str, fault: str) -> None:
    assert form_faults(text) == (fault,)


@pytest.mark.parametrize(
    "text",
    [
        "```go\nfunc f() {\n\tif x {\n\t// ...\n```",
        "- Done:\n  - the parser\n- Next:\n\n  the lexer",
        '```py\nprint(")")\n```',
        "- Run `pytest -q\n  tests` and **all\nof it** passes.",
    ],
)
def test_excerpts_announced_lists_and_wrapped_marks_are_no_damage(text: str) -> None:
    assert form_faults(text) == ()
