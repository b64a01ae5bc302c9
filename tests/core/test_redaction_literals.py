"""The one search of a text for literals, and the searches for runs of characters."""

from __future__ import annotations

import base64
import random
import re
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.redaction import literals, redact
from windowpane.core.redaction.character_classes import long_runs
from windowpane.core.redaction.literals import LiteralSearch, fold, positions_of

LITERALS = ("pass", "password", "word", "sk", "sk-", "k-", "://", "\x1b", "\u200b", "i̇")
KEY = "sk-proj-Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF"  # made up

WITHOUT_LIBRARY = """
import sys
sys.modules["ahocorasick"] = None
from windowpane.core.redaction import redact
print(redact(sys.argv[1]).text)
"""


@given(st.text(st.sampled_from("paswordk-:/İ漢\ud800\x1b\u200b\U0001f600 "), max_size=60))
def test_every_literal_is_found_at_every_position(text: str) -> None:
    folded = fold(text)
    expected = {
        literal: [at for at in range(len(folded)) if folded.startswith(literal, at)] for literal in LITERALS
    }

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(literals, "ahocorasick", None)
        without = LiteralSearch(LITERALS)
    occurrences = LiteralSearch(LITERALS).occurrences(folded)

    assert occurrences == {literal: positions for literal, positions in expected.items() if positions}
    assert without.occurrences(folded) == occurrences
    assert positions_of(("sk", "k-"), occurrences) == sorted(expected["sk"] + expected["k-"])


@given(st.text(st.sampled_from("aZ9+/_-= \n.é漢\ud800"), max_size=80), st.integers(0, 30))
def test_long_runs_are_those_of_an_expression(text: str, repeated: int) -> None:
    text = f"{text}{'a1' * repeated}{text}"

    assert long_runs(text) == [match.span() for match in re.finditer(r"[A-Za-z0-9+/_-]{20,}", text)]


def test_secrets_beside_any_character_are_replaced_where_they_are() -> None:
    for beside in ("İ", "\U0001f600", "\ud800", "\x00", "ß"):
        assert redact(f"{beside} {KEY} {beside}").text == f"{beside} [redacted:openai_key] {beside}"


def test_literals_inside_of_data_are_chance() -> None:
    token = "AIza" + KEY[8:].replace("-", "") + "Zx9"
    characters = random.Random(7).choices(string.ascii_letters + string.digits, k=600)
    data = "".join(characters)

    assert redact(token).counts == {"google_key": 1}
    assert redact(data[:90] + token + data[90:]).counts == {"google_key": 1}
    assert not redact(data[:300] + token + data[300:]).counts


def test_a_word_of_letters_is_no_token() -> None:
    assert redact("set sk-ant-your-key-goes-here, then run").text == "set sk-ant-your-key-goes-here, then run"
    assert redact("set sk-ant-" + "kqWzXvTbRmLpYdGhJnFc" * 2).counts == {"anthropic_key": 1}
    assert redact('{"n":1,"k":"sk-ant-kqWzXvTbRmLpYdGhJnFc"}').counts == {"anthropic_key": 1}


def test_base64_is_decoded_wherever_it_starts() -> None:
    encoded = base64.b64encode(f"OPENAI_API_KEY={KEY}".encode()).decode()

    for text in (f"x={encoded}", f'{{"data":"{encoded}"}}', f"{encoded[:40]}\n{encoded[40:]}"):
        assert "[redacted:" in redact(text).text
        assert encoded[:20] not in redact(text).text


def test_texts_are_redacted_where_the_library_cannot_be_imported() -> None:
    text = f"export OPENAI_API_KEY={KEY} https://user:hunter2hunter2@db.test/"
    command = [sys.executable, "-c", WITHOUT_LIBRARY, text]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.rstrip("\n") == redact(text).text
    assert done.stdout.count("[redacted:") == 2
