"""The kinds of tokens that all passes share."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Set

import pytest

from windowpane.core.vocabulary import ContentType
from windowpane.fidelity import facts
from windowpane.fidelity.facts import FactFinder
from windowpane.fidelity.tokens import TOKEN, TOKEN_KINDS


def test_remembered_tokens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TOKEN_KINDS, "_maximum", 10)
    TOKEN_KINDS.clear()
    for number in range(100):
        assert TOKEN_KINDS[f"module_{number}.py"] == "path"
    assert TOKEN_KINDS["a" * 1_000] is None

    assert len(TOKEN_KINDS) <= 10
    assert "a" * 1_000 not in TOKEN_KINDS


@pytest.mark.parametrize("content_type", ["tool_result", "assistant_response"])
def test_a_key_and_its_number_are_in_one_line(content_type: ContentType) -> None:
    finder = FactFinder()
    finder.read(0, content_type, "timeout =\n30 seconds\nretries = 4")

    assert {fact.text for fact in finder.names(10)} == {"retries=4"}


def test_tokens_are_read_whole() -> None:
    assert TOKEN.findall("see ./src/app-1.py, $HOME and x=--y. 50%!") == [
        "see", "./src/app-1.py", "$HOME", "and", "x", "=", "--y", "50%",
    ]  # fmt: skip


def test_names_that_a_tool_printed_once_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full window of logs has tens of thousands of them, and a hook of the agent waits for its facts."""
    weighed: list[int] = []

    class Counted(facts._Mentions):
        def __init__(self, blocks: Iterable[facts._ReadBlock], names: Set[str]) -> None:
            weighed.append(len(names))
            super().__init__(blocks, names)

    monkeypatch.setattr(facts, "_Mentions", Counted)
    finder = FactFinder()
    for n in range(100):
        lines = "\n".join(f"opened src/module_{n}_{line}.py" for line in range(50))
        finder.read(n, "tool_result", f"{lines}\nread src/app.py", turn=n)
    finder.read(100, "assistant_response", "I changed src/main.py", turn=100)
    names = {fact.text for fact in finder.facts()}

    assert names == {"src/app.py", "src/main.py"}
    assert weighed == [2]


def test_what_is_remembered_of_texts_is_no_work_for_pythons_search_for_cycles() -> None:
    """It comes at any time, also in a hook, and looks at all that it tracks: of each name in a window 20 ms."""
    gc.collect()
    before = len(gc.get_objects())
    readings = [
        facts.read_text("tool_result", "\n".join(f"read_{n}_{line}(key_{n}_{line}=7)" for line in range(100)))
        for n in range(50)
    ]
    gc.collect()

    assert sum(len(reading.names) for reading in readings) >= 10_000
    assert len(gc.get_objects()) - before < 1_000
