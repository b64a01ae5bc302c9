"""The memory of the clues that parts of texts give the redactor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.redaction import Redaction, redact, redactor
from windowpane.core.redaction.clues import ClueMemory

SECRET = "sk-proj-Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF"  # made up
PIECES = (
    f"OPENAI_API_KEY={SECRET}", "password:", "hunter2!x9Q", "curl", "-u", "admin:tr0ub4dor&3", "Cookie:",
    "session=Zk3jQ9xLmN0pR7sT2vW5", "4111", "1111", "4111 1111 1111 1111", "CVV 123", "kind: Secret", "data:",
    "cGFzc3dvcmQ6IGh1bnRlcjIheDlR", "db:5432:shop:app:Zk3jQ9xLm", "https://bob:pa55w0rd@example.com/", "a", "İ",
    "author", "keyboard", "\n", "\t", "Authorization:", "Bearer", "AbCd1234EfGh5678IjKl", "PGPASSWORD=$X",
)  # fmt: skip


def redacted_by(memory: ClueMemory, text: str) -> Redaction:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redactor, "_CLUES", memory)
        return redact(text)


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", "\n", "="])), max_size=12))
def test_what_is_remembered_changes_no_redaction(pieces: list[tuple[str, str]]) -> None:
    """A text gives the same with an empty memory, with a full one, and with one that holds nothing."""
    text = "".join(piece + end for piece, end in pieces)
    memory = ClueMemory()
    for piece in PIECES:
        redacted_by(memory, f"{piece} and more")

    first = redacted_by(ClueMemory(), text)

    assert redacted_by(memory, text) == first
    assert redacted_by(memory, text) == first
    assert redacted_by(ClueMemory(maximum_parts=0), text) == first


def test_the_memory_is_bounded_and_holds_no_text() -> None:
    """Parts beyond the limit start it again; a secret is remembered by its hash only."""
    memory = ClueMemory(maximum_parts=50)

    for number in range(100):
        assert SECRET not in redacted_by(memory, f"part{number} of token={SECRET}{number}").text

    assert 0 < len(memory) <= 50
    assert "[redacted:" in redacted_by(memory, f"{' '.join(map(str, range(1_000)))} token={SECRET}").text
    assert len(memory) <= 50
    assert all(isinstance(key, int) for key in (*memory._plain, *memory._clues))
