"""Reports of `windowpane audit verify` about every tampering with a store, in every way of verifying it."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from tests.campaigns.conftest import Campaign
from tests.campaigns.tampered_store import (
    ENDED,
    KEY,
    LIVE,
    OTHER,
    YOUNG,
    StoreFile,
    make_session,
    make_store_file,
)
from tests.campaigns.tamperings import TAMPERINGS, WAYS, Report, Tampering, table
from tests.sampling import sampled

from windowpane.cli import main
from windowpane.store.audit import verification as audit
from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import KEY_VARIABLE, AuditKeys

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, StoreFile]:
    """The store recorded without a key and the one recorded with a key."""
    folder = tmp_path_factory.mktemp("stores")
    return {keyed: make_store_file(folder / f"keyed-{keyed}", keyed=keyed) for keyed in (False, True)}


def verify(file: StoreFile, *, key: bytes | None, heads: bool) -> tuple[int, str]:
    """Return the exit code and the output of `windowpane audit verify`."""
    arguments = ["audit", "verify", "--store", str(file.path), *(["--heads", str(file.heads)] if heads else [])]
    result = CliRunner().invoke(main, arguments, env={KEY_VARIABLE: None if key is None else key.decode()})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def verify_as(way: str, file: StoreFile) -> tuple[int, str]:
    """Verify in one of `WAYS`."""
    return verify(file, key=KEY if way.startswith("key") else None, heads=way.endswith("heads"))


def check(way: str, file: StoreFile, expected: Report) -> str:
    """Return in what the report of one way differs from the expected one; empty if in nothing."""
    code, output = verify_as(way, file)
    if expected is None:
        return "" if (code, "chain intact" in output) == (0, True) else f"{way}: exit {code}, {output}"
    return "" if code == 1 and expected in output else f"{way}: expected {expected!r}, exit {code}, {output}"


@pytest.mark.parametrize("way", WAYS)
def test_an_untouched_store_is_intact(originals: dict[bool, StoreFile], way: str) -> None:
    assert not check(way, originals[way.startswith("key")], None)


@pytest.mark.parametrize("tampering", sampled(TAMPERINGS, 40), ids=lambda one: f"{one.part}: {one.name}")
def test_each_way_of_verifying_reports_as_in_the_table(
    originals: dict[bool, StoreFile], tmp_path: Path, tampering: Tampering
) -> None:
    differences = []
    for keyed, ways in ((False, (0, 1)), (True, (2, 3))):
        file = originals[keyed].copy_to(tmp_path / f"keyed-{keyed}")
        tampering.apply(file)
        differences += [check(WAYS[way], file, tampering.reports[way]) for way in ways]

    assert not "\n".join(filter(None, differences))


def test_a_keyed_store_is_never_intact_without_its_key(originals: dict[bool, StoreFile], tmp_path: Path) -> None:
    for heads in (False, True):
        code, output = verify(originals[True], key=None, heads=heads)
        assert (code, "needs the audit key" in output) == (1, True)


def test_any_changed_value_of_the_record_or_its_rows_is_found(
    originals: dict[bool, StoreFile], campaign: Campaign
) -> None:
    random, attempts, missed = Random(7), campaign.attempts(sample=80, whole=1_500), []
    with originals[True].connect() as connection:
        for _ in range(attempts):
            connection.execute("BEGIN")
            change = change_any_value(connection, random)
            if audit.verify(connection, keys=AuditKeys(KEY)).intact:
                missed.append(change)
            connection.execute("ROLLBACK")
    campaign.record("a value changed in the store", tried=attempts, held=attempts - len(missed))

    assert not missed


def change_any_value(connection: sqlite3.Connection, random: Random) -> str:
    """Change one value of one row that has a protected one, and return which."""
    table = random.choice(("events", "sessions", "turns", "blocks", "alerts", "late_events", "heads"))
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    if not rows:
        return change_any_value(connection, random)
    found = connection.execute(f"SELECT * FROM {table} LIMIT 1 OFFSET {random.randrange(rows)}")
    names, row = [column[0] for column in found.description], found.fetchone()
    at = random.randrange(len(names))
    matches = " AND ".join(f'"{name}" IS ?' for name in names)
    statement = f'UPDATE {table} SET "{names[at]}" = ? WHERE {matches}'
    value = b"{}" if names[at] == "memory" else another(row[at], random)  # JSON: not every byte has a meaning
    try:
        connection.execute(statement, (value, *row))
    except sqlite3.IntegrityError:  # the value was that of another row's key
        return change_any_value(connection, random)
    if value == row[at]:
        return change_any_value(connection, random)
    return f"{table}.{names[at]}: {row[at]!r} to {value!r}"


def another(value: object, random: Random) -> object:
    """Return a value of the same type, or sometimes of another one."""
    if value in (None, b"") or random.random() < 0.1:
        return random.choice((1, 0.5, "text", b"bytes"))
    if isinstance(value, bytes) and value:
        position = random.randrange(len(value))
        return value[:position] + bytes([value[position] ^ 1]) + value[position + 1 :]
    return f"{value}x" if isinstance(value, str) else value + 1  # type: ignore[operator]  # a number


def test_the_documentation_has_the_table_of_these_tests() -> None:
    """The table in docs/audit.md is the one these tests check; WINDOWPANE_UPDATE_GOLDENS=1 writes it."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = r"(<!-- tamperings: [^>]*-->\n).*?(<!-- /tamperings -->)"
    expected, count = re.subn(
        pattern, lambda match: f"{match[1]}\n{table()}\n\n{match[2]}", text, flags=re.DOTALL
    )
    assert count == 1
    if os.environ.get("WINDOWPANE_UPDATE_GOLDENS"):
        PAGE.write_text(expected, encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == expected


def test_a_history_rewritten_without_the_key_does_not_become_intact_by_later_writes(
    originals: dict[bool, StoreFile], campaign: Campaign, tmp_path: Path
) -> None:
    random, attempts, missed = Random(11), campaign.attempts(sample=6, whole=300), []
    for attempt in range(attempts):
        file = originals[True].copy_to(tmp_path / str(attempt))
        rewritten = random.choice((ENDED, OTHER, LIVE, YOUNG))
        file.edit_body(rewritten, random.randrange(4))
        for session_id in (ENDED, OTHER, LIVE, YOUNG):
            file.rehash(session_id)
        file.rewrite_heads()
        if random.random() < 0.5:
            file.run("DELETE FROM heads")
        file.rebuild()
        for number in range(random.randint(1, 4)):
            write_with_the_key(file, random, number)
        for heads in (False, True):
            code, output = verify(file, key=KEY, heads=heads)
            if code != 1 or "chain intact" in output:
                missed.append((attempt, rewritten, heads, output))
    campaign.record(
        "history rewritten without the key, then written to with it", tried=attempts, held=attempts - len(missed)
    )

    assert not missed


def write_with_the_key(file: StoreFile, random: Random, number: int) -> None:
    """Write as a process does that has the key: a new session, more of an old one, retention, an export."""
    with closing(SqliteStore(file.path, audit_key=KEY)) as store:
        match random.randrange(4):
            case 0:
                store.append(make_session(f"later-{number}", 2))
            case 1:
                store.append(make_session(YOUNG, 6)[12:])
            case 2:
                store.prune(before=1.1e9, fold=lambda _base, _events: b"{}")
            case _:
                store.export_heads(file.path.with_name(f"heads-{number}.jsonl"))
