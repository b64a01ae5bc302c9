"""Words of six languages, compared without their inflection, and a summary of a session in each of them."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import NamedTuple

import pytest
from fidelity_blocks import block, digest

from windowpane.fidelity.languages import language_of, stem
from windowpane.fidelity.probe import evaluate


class Session(NamedTuple):
    """Messages of a session, and a summary with a wrong number and without one of two rules."""

    goal: str
    rules: tuple[str, str]
    decision: str
    summary: str


SESSIONS = {
    "German": Session(
        "Bitte stelle den Client der Rechnungen auf httpx um und erhöhe das Zeitlimit von upload_invoice auf 45"
        " Sekunden.",
        ("Committe niemals direkt auf den Branch main.", "Frag mich immer, bevor du eine Datei löschst."),
        "Wir haben entschieden, fetch_all in src/client/api.py zu behalten, weil die Tests es noch brauchen.",
        "1. Auftrag: den Client der Rechnungen auf httpx umstellen, das Zeitlimit von upload_invoice auf 90"
        " Sekunden erhöhen.\n2. Regeln: Committe niemals direkt auf den Branch main.\n3. Entscheidung: fetch_all"
        " in src/client/api.py bleibt, weil die Tests es noch brauchen.",
    ),
    "French": Session(
        "Passe le client des factures à httpx et porte le délai de upload_invoice à 45 secondes, s'il te plaît.",
        ("Ne pousse jamais sur la branche main.", "Demande-moi toujours avant de supprimer un fichier."),
        "Nous avons décidé de garder fetch_all dans src/client/api.py parce que les tests en ont encore besoin.",
        "1. Demande : passer le client des factures à httpx et porter le délai de upload_invoice à 90 secondes.\n"
        "2. Règles : Ne pousse jamais sur la branche main.\n3. Décision : garder fetch_all dans src/client/api.py"
        " parce que les tests en ont encore besoin.",
    ),
    "Spanish": Session(
        "Cambia el cliente de las facturas a httpx y sube el límite de upload_invoice a 45 segundos, por favor.",
        ("Nunca hagas push a la rama main.", "Pregúntame siempre antes de borrar un archivo."),
        "Hemos decidido mantener fetch_all en src/client/api.py porque las pruebas todavía lo necesitan.",
        "1. Petición: cambiar el cliente de las facturas a httpx y subir el límite de upload_invoice a 90"
        " segundos.\n2. Reglas: Nunca hagas push a la rama main.\n3. Decisión: mantener fetch_all en"
        " src/client/api.py porque las pruebas todavía lo necesitan.",
    ),
    "Chinese": Session(
        "请把发票客户端迁移到 httpx，并把 upload_invoice 的超时时间改为45秒。",
        ("不要推送到 main 分支。", "删除文件之前必须先问我。"),
        "我们决定保留 src/client/api.py 里的 fetch_all，因为测试还需要它。",
        "1. 任务：把发票客户端迁移到 httpx，并把 upload_invoice 的超时时间改为90秒。\n"
        "2. 规则：不要推送到 main 分支。\n3. 决定：保留 src/client/api.py 里的 fetch_all，因为测试还需要它。",
    ),
    "Japanese": Session(
        "請求書クライアントを httpx に移行し、upload_invoice のタイムアウトを45秒に変更してください。",
        ("mainブランチに直接プッシュしないでください。", "ファイルを削除する前に必ず確認してください。"),
        "テストがまだ使うので、src/client/api.py の fetch_all を残すことにしました。",
        "1. 依頼：請求書クライアントを httpx に移行し、upload_invoice のタイムアウトを90秒に変更する。\n"
        "2. ルール：mainブランチに直接プッシュしないでください。\n"
        "3. 決定：テストがまだ使うので、src/client/api.py の fetch_all を残す。",
    ),
}


@pytest.mark.parametrize(
    "words", ["stop stops stopped stopping", "retry retries retried", "commit commits committed"]
)
def test_the_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize("language", SESSIONS)
def test_a_summary_in_any_of_the_languages_is_measured(language: str) -> None:
    session = SESSIONS[language]
    said = [block(f"{session.goal}\n\n{' '.join(session.rules)}", "user_message"), block(session.decision, n=1)]
    event = evaluate(said, [block(session.summary, "summary", n=9)], digest=digest)
    fates = {(fact.kind, (fact.text or "").partition("\n")[0]): fact.outcome for fact in event.facts}

    assert language_of(session.goal + session.decision) in (language, None)
    assert event.unmeasured == ()
    assert fates["wrong_number", session.goal] == "contradicted"
    assert [fates["rule", rule] for rule in session.rules] == ["kept", "lost"]
    assert fates["decision", session.decision] == "kept"
    assert [fact.kind for fact in event.facts[:2]] == ["rule", "wrong_number"]  # the worst first: a lost rule


@pytest.mark.parametrize("language", SESSIONS)
def test_the_right_value_in_any_of_the_languages_is_no_fault(language: str) -> None:
    session = SESSIONS[language]
    said = [block(f"{session.goal}\n\n{' '.join(session.rules)}", "user_message"), block(session.decision, n=1)]
    summary = session.summary.replace("90", "45")

    assert evaluate(said, [block(summary, "summary", n=9)], digest=digest).facts_contradicted == 0


def test_a_phrase_that_starts_at_a_word_has_no_second_alternative() -> None:
    """The start is tested once for all such phrases, so it would be tested for that one too."""
    data = tomllib.loads(files("windowpane.fidelity").joinpath("languages.toml").read_text(encoding="utf-8"))
    phrases = {line for language in data.values() for text in language.values() for line in text.splitlines()}
    bounded = [line for line in phrases if line.startswith(r"\b")]

    assert bounded
    for phrase in bounded:
        rest = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", phrase)
        while (shorter := re.sub(r"\([^()]*\)", "", rest)) != rest:
            rest = shorter
        assert "|" not in rest, phrase
