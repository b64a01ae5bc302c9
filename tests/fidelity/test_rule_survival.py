"""Rules followed through the compactions of a session."""

from __future__ import annotations

import pytest

from windowpane.core.events import ContentCompressed, Event, RulesFollowed
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import ContentType
from windowpane.fidelity.rule_comparison import ComparedText
from windowpane.fidelity.rule_survival import Defer, RuleFollower


class Agent:
    """A session whose rules are followed."""

    def __init__(self, defer: Defer | None = None) -> None:
        self.events: list[Event] = []
        self.tracker = SessionTracker(
            SessionInfo("s", "agent", "gpt-4o", "live", "stream"), emit=self.events.extend, digest=str
        )
        RuleFollower(self.tracker, digest=str, defer=defer)
        self.tracker.start()

    def add(self, text: str | None, content_type: ContentType = "user_message") -> None:
        self.tracker.add(content_type, text, 10)

    def compact(self, summary: str | None, *, keep: int = 0) -> None:
        tracker = self.tracker
        removed = [one for one in tracker.window if one.content_type != "system_prompt"]
        removed = removed[: len(removed) - keep]
        result = tracker.make_replacement("summary", summary, 5, replaces=removed[0].id)
        tracker.compress(
            ContentCompressed(
                "compaction", "auto", "accepted", 100, 5, removed=tuple(one.id for one in removed),
                results=(result.id,), method="agent",
            ),
            (result,),
        )  # fmt: skip

    @property
    def followed(self) -> list[RulesFollowed]:
        return [event.data for event in self.events if isinstance(event.data, RulesFollowed)]

    def call(self) -> None:
        self.add("All right.", "assistant_response")
        self.tracker.end_turn()

    def reply(self) -> RulesFollowed:
        number = len(self.followed)
        while len(self.followed) == number:
            self.call()
        return self.followed[-1]


RULE = "Never push to main."


@pytest.mark.parametrize(
    ("summary", "fate"),
    [
        ("The user said:\nnever push\nto **main**.", "kept"),
        ("Rules: do not ever push to main; tests are green.", "reworded"),
        ("The tests are green.", "lost"),
        ("You may push to main.", "contradicted"),
        ("Always push to main.", "contradicted"),
    ],
)
def test_a_rule_is_kept_reworded_lost_or_contradicted_by_the_summary(summary: str, fate: str) -> None:
    agent = Agent()
    agent.add(RULE)
    agent.compact(summary)

    followed = agent.reply()

    assert followed.user == {fate: 1}
    assert [(one.fate, one.text) for one in followed.outcomes] == [(fate, RULE)]
    claim = summary.rstrip(".") if fate == "contradicted" else None
    assert [one.contradicted_by and one.contradicted_by.rstrip(".") for one in followed.outcomes] == [claim]


def test_a_refused_evaluation_is_recorded_with_its_reason() -> None:
    agent = Agent(defer=lambda _measure, _characters: False)
    agent.add(RULE)
    agent.compact("The tests are green.")

    followed = agent.reply()

    assert (followed.reason, followed.outcomes) == ("too many evaluations wait", ())


def test_a_rule_that_the_program_puts_back_is_restored_and_one_that_the_user_repeats_is_lost() -> None:
    for content_type, fate in (("memory_injection", "restored"), ("user_message", "lost")):
        agent = Agent()
        agent.add(f"Contents of CLAUDE.md:\n- {RULE}", "memory_injection")
        agent.compact("The tests are green.")
        agent.add(RULE, content_type)  # type: ignore[arg-type]

        assert agent.reply().memory == {fate: 1}


def test_memory_that_was_removed_may_be_put_back_for_five_calls() -> None:
    for calls, fate in ((2, "restored"), (5, "lost")):
        agent = Agent()
        agent.add(f"Contents of CLAUDE.md:\n- {RULE}", "memory_injection")
        agent.compact("The tests are green.")
        for _ in range(calls):
            assert not agent.followed
            agent.call()
        agent.add(f"Contents of CLAUDE.md:\n- {RULE}", "memory_injection")
        agent.call()

        assert [followed.memory for followed in agent.followed] == [{fate: 1}]


def test_a_rule_whose_block_remains_is_kept() -> None:
    agent = Agent()
    agent.add("Always answer in German.", "system_prompt")
    agent.add("hello")
    agent.add(RULE)
    agent.compact("Greetings.", keep=1)

    followed = agent.reply()

    assert (followed.system, followed.user) == ({"kept": 1}, {"kept": 1})
    assert followed.survival == 1.0
    assert followed.unrecorded == ("memory",)


def test_rules_are_counted_by_the_number_of_their_compactions() -> None:
    agent = Agent()
    agent.add(f"{RULE} Always write tests first.")
    agent.compact(f"The user said: {RULE} Always write tests first.")
    agent.reply()
    agent.add("Do not edit generated files.")
    agent.compact(f"{RULE} Do not edit generated files.")

    followed = agent.reply()

    assert followed.compaction == 2
    assert followed.user == {"kept": 2, "lost": 1}
    assert (followed.followed_by_compactions, followed.visible_by_compactions) == ((1, 2), (1, 1))

    agent.compact("Nothing of note.")

    assert agent.reply().user == {"lost": 2}, "the one that was lost before is not lost again"


def test_without_the_text_of_the_summary_nothing_is_known() -> None:
    agent = Agent()
    agent.add(RULE)
    agent.compact(None)

    followed = agent.reply()

    assert followed.survival is None
    assert followed.reason == "the text of the summary was not recorded"
    assert followed.count() == 0


def test_a_new_window_ends_the_rules_of_the_one_before() -> None:
    agent = Agent()
    agent.add(RULE)
    agent.compact("The tests are green.")
    agent.tracker.roll("clear")
    agent.add("hello")
    agent.add("All right.", "assistant_response")

    assert not any(isinstance(event.data, RulesFollowed) for event in agent.events)


@pytest.mark.parametrize(
    ("rule", "reversal"),
    [
        ("Ask before you deploy to production.", "No need to ask before you deploy to production."),
        ("Retry a request 17 times at most.", "Retry a request 19 times at most."),
        ("Always run `mise test` before a commit.", "Always run `npm test` before a commit."),
        ("Include alt text for images.", "Do not include alt text for images."),
        ("Never push to a remote without asking me.", "Feel free to push to a remote, no need to ask."),
        ("Never push to a remote without asking me.", "Push to a remote without asking."),
        ("Ask before you drop a database table.", "Database tables may be dropped without asking."),
        ("Tests must pass before you open a request.", "Open a request before tests pass."),
        ("Always enable the cache of the proxy.", "Always disable the cache of the proxy."),
        ("Pushe niemals auf den Branch main.", "Pushe immer auf den Branch main."),
        ("Pushe niemals ohne Rückfrage auf main.", "Auf main pushen ist ohne Rückfrage erlaubt."),
        ("Ne pousse jamais sur main sans demander.", "Pas besoin de demander avant de pousser sur main."),
        ("Nunca hagas push a main sin preguntarme.", "No hace falta preguntar antes de hacer push a main."),
        ("未经我的同意不要推送到主分支。", "推送到主分支不需要我的同意。"),
        ("Ne pousse jamais sur la branche main.", "Tu peux pousser sur la branche main."),
        ("Nunca hagas push a la rama main.", "Puedes hacer push a la rama main."),
        ("不要推送到 main 分支。", "可以推送到 main 分支。"),
        ("mainブランチに直接プッシュしないでください。", "mainブランチに直接プッシュしてもよい。"),
    ],
)
def test_a_reversed_rule_is_contradicted_in_six_languages(rule: str, reversal: str) -> None:
    text = f"The tests are green.\n- {reversal}\nNext: the release."

    assert ComparedText([text]).match(rule).match == "contradicted"
    assert ComparedText([text.replace(reversal, rule)]).match(rule).match == "verbatim"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("Ask before you delete a database table.", "Do not delete a database table without asking."),
        ("Ask before you delete a database table.", "Never delete database tables unless the user confirmed."),
        ("Tests must pass before you open a request.", "Do not open a request before tests pass."),
        ("Only use the staging cluster for load tests.", "Load tests must not use another cluster than staging."),
        ("Do not modify the files under vendor/.", "Files outside vendor/ may be modified."),
        ("Always run the linter before committing.", "The linter was not run yet before committing."),
        ("The cache should never be disabled in tests.", "The cache should always be enabled in tests."),
        ("Lance toujours les tests avant de committer.", "Ne committe jamais sans lancer les tests."),
        ("不要修改 vendor 目录下的文件。", "没有修改 vendor 目录下的文件。"),
        ("コミットする前に必ずテストを実行してください。", "テストを実行せずにコミットしないこと。"),
    ],
)
def test_the_same_meaning_with_another_negation_and_a_report_do_not_contradict(rule: str, text: str) -> None:
    assert ComparedText([text]).match(rule).match != "contradicted"


def test_another_rule_of_the_same_form_does_not_contradict() -> None:
    agent = Agent()
    agent.add("Always run `mise lint` before a commit. Always run `mise test` before a commit.")
    agent.compact("Always run `mise lint` before a commit.")

    assert agent.reply().user == {"kept": 1, "lost": 1}
