"""Wrong numbers, wrong names and reversed statements in a replacement."""

from __future__ import annotations

import pytest

from windowpane.fidelity.passages import Passage
from windowpane.fidelity.soundness import Contradiction, contradictions


def wrong(statement: str, claim: str, *sources: str) -> list[Contradiction]:
    return list(contradictions([statement], [statement], Passage(claim), [statement, *sources]))


SETTINGS = {
    "English": ("Keep retries at 17.", "Retries stay at 19."),
    "German": ("Die Anzahl der Wiederholungen bleibt bei 17.", "Wiederholungen bleiben bei 19."),
    "French": ("Garde les tentatives à 17.", "Les tentatives restent à 19."),
    "Spanish": ("Mantén los reintentos en 17.", "Los reintentos quedan en 19."),
    "Chinese": ("重试次数保持为17次。", "重试次数是19次。"),
    "Japanese": ("リトライ回数は17回のままにしてください。", "リトライ回数は19回。"),
}
REVERSALS = {
    "English": ("Never push to main.", "Always push to main."),
    "German": ("Niemals auf main pushen.", "Immer auf main pushen."),
    "French": ("Ne jamais pousser sur main.", "Pousser toujours sur main."),
    "Spanish": ("Nunca subas cambios a main.", "Siempre subas cambios a main."),
    "Chinese": ("不要推送到main分支。", "要推送到main分支。"),
    "Japanese": ("mainブランチにプッシュしないでください。", "mainブランチにプッシュしてください。"),
}


@pytest.mark.parametrize("language", SETTINGS)
def test_a_wrong_number_is_found_with_the_one_it_replaces(language: str) -> None:
    statement, claim = SETTINGS[language]
    (one,) = wrong(statement, claim)

    assert (one.kind, one.value, one.replaced_by) == ("wrong_number", "17", "19")
    assert one.statement == statement
    assert one.claim == claim.rstrip("。")
    assert not wrong(statement, claim.replace("19", "17"))


@pytest.mark.parametrize("language", REVERSALS)
def test_a_reversed_rule_is_found(language: str) -> None:
    statement, claim = REVERSALS[language]

    assert [one.kind for one in wrong(statement, claim)] == ["reversed"]
    assert not wrong(statement, f"The user said: {statement}")


@pytest.mark.parametrize(
    ("statement", "claim"),
    [
        ("Store the cache under src/client/retry.py please.", "The cache is stored under src/client/retri.py."),
        ("Set it in config/version.json only.", "It is set in config/version.jsodmk."),
        ("Rename parse_records to read_records everywhere.", "parse_records becomes read_recards everywhere."),
        ("Use Python 3.12 in the base image.", "Python 3.11 in the base image."),
        ("The timeout of the upload is 30 seconds.", "The timeout of the upload is 60 seconds."),
        ("Use at most 17 retries for uploads.", "Uploads use at most nineteen retries."),
        ("Set the gateway timeout to 500 ms.", "Gateway timeout set to 500 s."),
        ("Rotate the signing keys every 30 days.", "Signing keys are rotated every 30 minutes."),
        ("The monthly budget for the cluster is $1,200.", "Monthly cluster budget: $12,000."),
        ("Pin the parser to v2.3.1 because 2.4 broke it.", "Parser pinned to v2.3.2 (2.4 broke it)."),
        ("Use ports 8000-8010 for the test workers.", "Test workers use ports 8000-8100."),
        ("Connect to the replica at db-replica:5433.", "Connects to the replica at db-replica:5432."),
        ("Work on the branch feature/billing-export.", "Work happens on branch feature/billing-import."),
        ("Chose Postgres over MySQL for its JSON.", "Chose MySQL over Postgres for its JSON."),
        ("Migrate the reports from Django to FastAPI.", "Migrate the reports from FastAPI to Django."),
        ("采用 Redis 而不是 Memcached，因为需要持久化。", "采用 Memcached 而不是 Redis，因为需要持久化。"),
        ("Enable compression for all responses.", "Disable compression for all responses."),
        ("Encrypt the backups before the upload.", "Encrypt the backups after the upload."),
        ("Do not touch the migrations folder.", "Do touch the migrations folder."),
        ("Ask before installing packages.", "Do not ask before installing packages."),
        ("Commits must not include generated files.", "Commits must include generated files."),
    ],
)
def test_what_the_statement_denies_is_found(statement: str, claim: str) -> None:
    assert wrong(statement, claim)


@pytest.mark.parametrize(
    ("statement", "claim", "sources"),
    [
        pytest.param(
            "Keep retries at 17.", "Retries stay at 19.", ["Set retries to 19 after all."], id="changed later"
        ),
        pytest.param("Go ahead with phase 1.", "Phase 2 has not started.", ["phase 2 comes next"], id="labels"),
        pytest.param("The fix is at line 297.", "The fix is at line 302.", [], id="lines move"),
        pytest.param("Use pathlib for paths.", "1. Uses pathlib for paths. 2. Tests pass.", [], id="list marks"),
        pytest.param("Never commit secrets.", "Commits never include secrets.", [], id="reworded"),
        pytest.param("Don't use axios here.", "We avoid axios here.", [], id="another negation"),
        pytest.param(
            "Fix session_store.py today.", "Fixed session_store.py, see session_stores.", [], id="plural"
        ),
        pytest.param("Retry 3 times in upload.", "Retry 3 times in upload, 5 in login.", [], id="both"),
        pytest.param(
            "Move the reports from Django to FastAPI.",
            "FastAPI instead of Django for reports.",
            [],
            id="alternatives",
        ),
        pytest.param(
            "Use httpx instead of requests here.",
            "Use requests instead of httpx here.",
            ["No: requests instead of httpx."],
            id="alternatives changed later",
        ),
        pytest.param(
            "ame/workspaces/mono/packages/coding/src/theme.ts:427:10) at main of the command line program",
            "ckages/coding/src/theme.ts:427:10) at main of the command line program",
            [],
            id="a path that is cut at its start",
        ),
    ],
)
def test_what_agrees_or_has_another_reason_is_not_wrong(statement: str, claim: str, sources: list[str]) -> None:
    assert wrong(statement, claim, *sources) == []


def test_exchanged_alternatives_are_named() -> None:
    statement, claim = "Use httpx instead of requests here.", "Uses requests instead of httpx here."

    (one,) = contradictions([statement], [], Passage(claim), [statement])

    assert (one.kind, one.value, one.replaced_by) == ("reversed", "httpx", "requests")


def test_a_report_of_the_agent_cannot_be_reversed() -> None:
    """A report may be outdated; only rules and goals bind."""
    report = "The integration tests of the billing service do not pass."

    assert not list(contradictions([report], [], Passage(report.replace("do not ", "")), [report]))


def test_a_number_is_not_supported_by_a_longer_one() -> None:
    for source in ("Retries wait 190 ms.", "Retries wait 3.19 s."):
        assert wrong("Keep retries at 17.", "Retries stay at 19.", source)


def test_the_same_value_in_other_writing_is_no_contradiction() -> None:
    assert not wrong("Read at most 1,000 lines of the log.", "At most 1000 lines of the log are read.")
    assert not wrong("The limit is 30s for uploads.", "The limit is 30 seconds for uploads.")
    assert not wrong("Set the gateway timeout to 500 ms.", "Gateway timeout set to 0.5 s.")
    assert not wrong("The cache limit of the proxy is 2 GB.", "The cache limit of the proxy is 2048 MB.")
    assert not wrong("The limit is 1.5 million tokens.", "Limit: 1,500,000 tokens.")
    assert not wrong("Sample 5% of the requests.", "Samples a ratio of 0.05 of the requests.")
    assert not wrong("Use at most seventeen retries.", "At most 17 retries are used.")


def test_an_altered_web_address_is_not_supported_by_its_parts() -> None:
    stated = "Review https://example.com/team/app/pull/2 first."

    (one,) = wrong(stated, "The user asked to review https://example.com/team/app/pr/2 first.", "Open a pr.")
    assert one[-1] == "//example.com/team/app/pr/2"
