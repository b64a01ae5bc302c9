"""Secrets in documents as tools show them: statements, property lists, listings, differences and logs."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from windowpane.core.redaction import redact

SECRET = "xK9fQ2mZ81LpQ0aaB7"


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO `users` (`id`, `api_token`, `owner`) VALUES (1,'{SECRET}','bob'),(2,'','eve');",
        f"insert into users (comment, password)\nvalues ('it''s, fine', '{SECRET}');",
        f"INSERT INTO t (id, password) VALUES (1, NULL), (2, '{SECRET}');",
        f"<key>auth_token</key>\n<string>{SECRET}</string>",
        f"<name>db.password</name><value>{SECRET}</value>",
        f"- **auth_token**: `{SECRET}`\n- **owner**: `bob`",
        f"- **Password:** {SECRET}\n",
        f"password: |-\n    {SECRET}\n",
        f"  - name: API_TOKEN\n    value: {SECRET}\n",
    ],
)
@pytest.mark.parametrize(
    "shown",
    [
        str,
        lambda text: json.dumps(text)[1:-1],
        lambda text: "".join(f"{n:6}\t{line}" for n, line in enumerate(text.splitlines(keepends=True), 1)),
        lambda text: "".join(f"+{line}" for line in text.splitlines(keepends=True)),
        lambda text: "".join(f"2026-03-01T10:00:00.1234567Z {line}" for line in text.splitlines(keepends=True)),
        lambda text: quote(text, safe=""),
    ],
    ids=["as it is", "JSON", "numbered", "difference", "log", "percent"],
)
def test_a_name_denotes_its_value_however_the_document_is_shown(text: str, shown) -> None:
    assert SECRET not in redact(shown(text)).text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_within_a_string_of_json_is_redacted(separator: str) -> None:
    rows = [["comment", "api_key", "owner"], ["two\nlines", "", "bob"], ["plain", SECRET, "eve"]]
    table = "\r\n".join(separator.join(f'"{cell}"' if "\n" in cell else cell for cell in row) for row in rows)
    text = json.dumps({"content": f"{table}\r\n", "is_error": False})

    assert redact(text).text == text.replace(SECRET, "[redacted:secret]")


@pytest.mark.parametrize(
    "text",
    [
        "curl -u deploy:'Rc5EA6M9.%i%B&gj' https://api.example.net",
        "curl -H 'Authorization: Bearer ''xzf1#wWXlVb&gj' https://api.example.net",
        "spring.datasource.password = cQQ6Y9PPK#B&gj\n",
        "POSTGRES_PASSWORD: Xk29#vQwe81&&B&gj\n",
    ],
)
def test_a_password_ends_where_its_syntax_ends_it(text: str) -> None:
    assert "&gj" not in redact(text).text or "&&" in text


@pytest.mark.parametrize("value", ["river-amber-copper-winter-42", "FEd99-fake_RTZXFg", "pRwAPc-your-nmI35"])
def test_a_password_can_contain_a_placeholder(value: str) -> None:
    assert redact(f"POSTGRES_PASSWORD={value}\n").text == "POSTGRES_PASSWORD=[redacted:password]\n"


@pytest.mark.parametrize(
    "text",
    [
        "POSTGRES_PASSWORD=your-password-here-1\n",
        "password: my-app-database-secret-2\n",
        "INSERT INTO tokens (token_count, owner) VALUES (12, 'bob1234567890');",
        "INSERT INTO users (password, owner) SELECT a, b FROM 'x1y2z3w4v5';",
        "<key>password</key>\n<string>changeme</string>",
        "- **password**: string, at least 8 characters",
        "password=$PASSWORD&&make build-2024",
        "token **= 2",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "part", ["&#61;", "password,a\\n", "insert into a (token, ", "\\u0041 " + "x" * 900 + "\n"]
)
def test_many_escapes_and_headers_take_linear_time(part: str) -> None:
    text = part * (200_000 // len(part))

    redact(text)


def test_a_value_far_from_the_escapes_of_its_text_is_found() -> None:
    filler = "one two three\n" * 1_000
    text = f"{filler}&quot;password&quot;: &quot;{SECRET}&quot;\n{filler}\\u0026 {filler}token={SECRET}"

    assert SECRET not in redact(text).text
    assert redact(text).text.count(filler) == 3
