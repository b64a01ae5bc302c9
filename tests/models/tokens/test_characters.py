"""Estimates from characters."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.models.tokens import counter_for
from windowpane.models.tokens.characters import estimate_by_characters, looks_like_code

ENGLISH = (
    "Compaction replaces the conversation with a summary when the window is nearly full. Whoever reads the "
    "summary must be able to go on with the work, so decisions, file names and open questions stay. "
) * 8
PYTHON = (
    "def evict(blocks: list[Block], *, target: int) -> Plan:\n"
    '    """Blocks to drop."""\n'
    '    return Plan(drop=[b for b in blocks if b.score["age"] > 0.5][:target], reason="age")\n'
) * 8
CHINESE = "当上下文窗口接近满时，压缩会用摘要替换对话。读到摘要的人必须能够继续工作。" * 20
RUSSIAN = "Когда окно почти заполнено, сжатие заменяет разговор кратким изложением. " * 20
BASE64 = base64.b64encode(hashlib.sha512(b"signature").digest() * 6).decode()
EMOJI = "😀🎉🚀" * 50


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [(ENGLISH, 1.4), (PYTHON, 1.4), (CHINESE, 1.6), (RUSSIAN, 1.8), (EMOJI, 2.2), (BASE64, 1.4)],
    ids=["English", "Python", "Chinese", "Russian", "emoji", "base64"],
)
def test_an_estimate_is_near_the_exact_count(text: str, tolerance: float) -> None:
    """In each script the estimate is within its tolerance of o200k's count, as a factor."""
    factor = estimate_by_characters(text) / counter_for("gpt-4o", wait=True).count(text)

    assert 1 / tolerance < factor < tolerance


def test_code_is_distinguished_from_prose() -> None:
    assert looks_like_code(PYTHON)
    assert looks_like_code('{"tool": "bash", "arguments": {"command": "ls -la"}}')
    assert not looks_like_code(ENGLISH)
    assert not looks_like_code(CHINESE)
    assert not looks_like_code("")


@given(text=st.text(st.characters(codec=None, categories=None), max_size=200), more=st.text(max_size=20))
def test_an_estimate_is_positive_and_bounded(text: str, more: str) -> None:
    estimate = estimate_by_characters(text)

    assert (estimate == 0) == (text == "")
    assert estimate <= 2 * len(text) + 1
