"""Secrets in the columns of tables: the head names them, the rows hold them."""

from __future__ import annotations

import pytest

from windowpane.core.redaction import redact

SECRET = "xK9fQ2mZ81LpQ0aaB7"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("head", ["password", "token", "api_key", "Access Key", '"client_secret"'])
def test_a_column_of_secrets_is_redacted(head: str, separator: str) -> None:
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
    assert redact(text).text == text


@pytest.mark.parametrize(
    "row", ['7,"Doe, Jane",', '7,"said ""no, thanks""",', '7,"two\nlines",', "7,too,many,cells,", ""]
)
def test_a_row_with_quotation_marks_does_not_end_the_table(row: str) -> None:
    rows = f"id,comment,password\n{row}{'Pa55word!x' if row.count(',') < 4 else ''}\n8,plain,{SECRET}\n"
    if row:
        assert SECRET not in redact(rows).text


def test_a_table_in_markdown_is_redacted() -> None:
    text = f"| id | password | owner |\n|----|:---|---|\n| 1 | `{SECRET}` | bob |\n"

    assert redact(text).text == text.replace(SECRET, "[redacted:password]")


@pytest.mark.timeout(10)
def test_a_head_that_almost_fits_takes_linear_time() -> None:
    text = "password," + "a ," * 50 + "!\n1\n"

    assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        f" user │ password │ note\n──────┼──────────┼──────\n bob  │ {SECRET} │ x\n",
        f"┏━━━━━┳━━━━━━━━━━┓\n┃ who ┃ password ┃\n┡━━━━━╇━━━━━━━━━━┩\n│ bob │ {SECRET} │\n└─────┴──────────┘\n",
        f"╔═════╦══════════╗\n║ who ║ password ║\n╠═════╬══════════╣\n║ bob ║ {SECRET} ║\n╚═════╩══════════╝\n",
    ],
    ids=["psql", "rich", "double lines"],
)
def test_a_table_with_drawn_lines_is_redacted(text: str) -> None:
    assert redact(text).text == text.replace(SECRET, "[redacted:password]")
