"""Secrets behind an encoding, and values that only resemble placeholders."""

from __future__ import annotations

import base64
import gzip
import html
import json
import zlib

import pytest

from windowpane.core.events import BlockAdded, Event, TurnEnded, Usage
from windowpane.core.redaction import encodings, redact, stored_id
from windowpane.core.tracking.tracker import SessionTracker
from windowpane.core.tracking.turns import SessionInfo

PASSWORD = "kT7xQ2vLp9Wm"
TOKEN = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fGhJ6k"
CONFIG = f'{{"password": "{PASSWORD}", "port": "5432"}}'


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (CONFIG.encode().hex(), CONFIG.encode().hex()[30:50]),
        ("0x" + CONFIG.encode().hex().upper(), CONFIG.encode().hex().upper()[30:50]),
        (escaped(CONFIG), escaped(PASSWORD)),
        (json.dumps(escaped(CONFIG)), json.dumps(escaped(PASSWORD))[1:-1]),
        (CONFIG.replace('"', "\\u0022"), PASSWORD),
        ("".join(f"\\x{ord(character):02x}" for character in CONFIG), f"\\x{ord(PASSWORD[3]):02x}"),
        (html.escape(CONFIG), PASSWORD),
        ("".join(f"&#{ord(character)};" for character in CONFIG), "&#".join(f"{ord(c)};" for c in PASSWORD)),
        (base64.b64encode(gzip.compress(CONFIG.encode(), mtime=0)).decode(), "H4sI"),
        (base64.b64encode(zlib.compress(CONFIG.encode())).decode(), "eJ"),
        (base64.b64encode((CONFIG + " – ü").encode()).decode(), "eyJwYXNzd29yZCI6"),
        (f"export TOKEN={TOKEN[:20]}\\\n{TOKEN[20:]}\n", TOKEN[20:]),
        (f"saved to api_key-sk-{TOKEN[4:]}.txt", TOKEN[4:]),
    ],
)  # fmt: skip
def test_a_secret_behind_an_encoding_is_replaced(text: str, hidden: str) -> None:
    assert hidden in text
    assert hidden not in redact(text).text


@pytest.mark.parametrize("escape", ["&lt;b&gt;", "\\u0041 ", "\\x41 ", "\x1b[0m"])
def test_text_around_a_secret_stays(escape: str) -> None:
    text = f"{escape}first 'password: {PASSWORD}' and the rest stays"

    assert redact(text).text == text.replace(PASSWORD, "[redacted:password]")
    assert redact(text + escape).text == text.replace(PASSWORD, "[redacted:password]") + escape


@pytest.mark.parametrize(
    "value", ["Xk29#vQwe81", "Xk29-here-7vQ", "a7K.sample.9xQ2", "aB<9xQ7kk2", "$k9Xq#22mm", "%d7Xq#22mm"]
)
def test_a_password_with_symbols_or_the_word_of_a_placeholder_is_replaced(value: str) -> None:
    assert redact(f'POSTGRES_PASSWORD="{value}"').text == 'POSTGRES_PASSWORD="[redacted:password]"'
    assert value[-4:] not in redact("POSTGRES_PASSWORD=Xk29#vQwe81").text


@pytest.mark.parametrize(
    "text",
    [
        'PASSWORD="your-password-here-123"',
        'api_key="sk-your-sample-key-here"',
        "password: insert_your_password_here1",
        "password=$DB_PASSWORD_1",
        "password = %(db_password2)s",
        "password: bob1@example.com",
        "--- PASS: TestCheckpoint/#00 (0.00s)",
        html.escape('<input name="token" value="string">'),
        "sum " + "3a7f" * 16,
        "a long \\\n command \\\n continues",
    ],
)
def test_placeholders_and_encoded_prose_stay(text: str) -> None:
    assert redact(text).text is text


@pytest.mark.timeout(10)
def test_data_that_expands_enormously_is_not_read_on() -> None:
    bomb = base64.b64encode(zlib.compress(b"\0" * 50_000_000)).decode()

    assert redact(bomb * 3).text


def test_names_and_ids_of_events_hold_no_secret() -> None:
    events: list[Event] = []
    info = SessionInfo(TOKEN, f"agent {TOKEN}", TOKEN, "live", f"{TOKEN}/1", parent_session_id=TOKEN[::-1])
    tracker = SessionTracker(info, emit=events.extend, digest=str)
    tracker.add("tool_call", "{}", 3, tool_call_id=TOKEN, tool_name=TOKEN)
    tracker.add("tool_result", "done", 3, tool_call_id=TOKEN)
    tracker.end_turn(Usage(10, 5), stop_reason=f"refused {TOKEN}")
    tracker.flush()

    assert any(isinstance(event.data, BlockAdded) for event in events)
    assert any(isinstance(event.data, TurnEnded) for event in events)
    assert TOKEN not in repr(events)
    assert stored_id(TOKEN) != stored_id(TOKEN.replace("a", "b"))


def test_percent_encoding_is_decoded_only_around_what_separates_a_name_from_its_value() -> None:
    decoded: list[str] = []
    parts = (
        "quoted%20words",
        "a%22b%22c",
        "a%27b%27c",
        "key%3Avalue",
        "key%3dvalue",
        "a%22b%27c%3Ad%3De",
        "%20%21%40",
    )
    text = " ".join(parts)
    occurrences = {literal: [0] for literal in encodings.LITERALS}
    spans = list(encodings.percent_encoded_spans(text, occurrences, lambda part: bool(decoded.append(part))))

    assert spans == []
    assert decoded == ['a"b"c', "a'b'c", "key:value", "key=value", "a\"b'c:d=e"]


@pytest.mark.parametrize("digits", ["2" * 21, "0x" + "3" * 33, "7" * 20 + "a"])
def test_an_odd_number_of_hexadecimal_digits_is_ordinary_text(digits: str) -> None:
    text = f"request {digits} ended"

    assert redact(text).text is text


def test_a_secret_in_hexadecimal_that_lost_its_last_digit_is_replaced() -> None:
    digits = CONFIG.encode().hex()[:-1]

    assert digits[30:50] not in redact(f"xxd: {digits}").text
