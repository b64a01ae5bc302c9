"""Secrets in the columns of tables: the head names them, the rows hold them."""

from __future__ import annotations

import pytest

from windowpane.core.redaction import redact

SECRET = "xK9fQ2mZ81LpQ0aaB7"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("head", ["password", "token", "api_key", "Access Key", '"client_secret"'])
def test_a_column_of_secrets_is_redacted(head: str, separator: str) -> None:
    """In each row, and nowhere else."""
    rows = [
        ["user", head, "created"],
        ["alice", SECRET, "2024-01-01"],
        ["bob", f'"{SECRET[::-1]}"', "2024-01-02"],
    ]
    found = redact("\r\n".join(separator.join(row) for row in rows))

    assert SECRET not in found.text
    assert SECRET[::-1] not in found.text
    assert sum(found.counts.values()) == 2
    assert "alice" in found.text
    assert "2024-01-02" in found.text


@pytest.mark.parametrize(
    "text",
    [
        f"key,value\n{SECRET},1\n",
        f"token_count,name\n{SECRET},1\n",
        f"token,lemma\nrunning,run\n\n{SECRET},1\n",
        f"send(user, token)\n{SECRET},1\n",
        f"token\n{SECRET}\n",
    ],
)
def test_other_columns_stay(text: str) -> None:
    """Keys of rows, counts, words, code, and a line that is not a row of the table."""
    assert redact(text).text == text
