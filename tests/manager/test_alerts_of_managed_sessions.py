"""Alerts from the events of a managed session."""

from __future__ import annotations

from collections.abc import Iterable

from builders import filler, manager, talk, tool_turn

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import AlertFired, AlertResolved, ContentCompressed, PressureMeasured
from windowpane.testing import RecordingSink, chat_reply


class JudgedQuestion(RecordingSink):
    """A sink with the alert engine behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = AlertEngine()
        self.alerts: list[tuple[int, str, str]] = []
        """Turn, alert, and whether it fired or resolved."""

    def write(self, batch: Iterable[object]) -> None:
        """Keep and judge."""
        super().write(batch)  # type: ignore[arg-type]  # the manager hands over lists of events
        for event in self.engine.evaluate(list(batch)):  # type: ignore[arg-type]  # likewise
            if isinstance(event.data, AlertFired | AlertResolved):
                self.alerts.append((event.context.turn, event.data.alert, event.data.type.split(".")[1]))

    def about(self, alert: str) -> list[tuple[int, str]]:
        return [(turn, state) for turn, name, state in self.alerts if name == alert]


def reported(sink: JudgedQuestion, *totals: int) -> None:
    """A session whose provider counts these totals, turn after turn, out of 100,000."""
    with manager(sink, limit=100_000, thresholds=None) as window:
        window.add_user("hello")
        for total in totals:
            window._engine.tracker.measure("before")
            window.on_turn_end(chat_reply("ok", input_tokens=total))


def test_red_for_two_turns_is_quiet_the_third_alerts_and_it_clears_with_hysteresis() -> None:
    sink = JudgedQuestion()
    reported(sink, 91_000, 91_500, 92_000, 89_000, 80_000)

    assert sink.about("utilization") == [(3, "fired"), (5, "resolved")]


def test_the_eviction_rate_recovers() -> None:
    """It counts the last five turns, so it falls back to 0 once nothing is removed any more."""
    sink = JudgedQuestion()
    with manager(sink, limit=32_768, policy="fifo") as window:
        window.add_user("go")
        for n in range(16):
            tool_turn(window, n, result=filler(2_000, tag=f"r{n}x"))
        for n in range(16, 24):
            tool_turn(window, n, result="ok")
    rates = [event.eviction_rate for event in sink.of(PressureMeasured) if event.phase == "final"]

    assert max(rates) > 0
    assert rates[-1] == 0


def test_a_burst_of_three_times_the_usual_alerts_in_its_turn() -> None:
    """Turns of 2,000 tokens, then one of 15,000."""
    sink = JudgedQuestion()
    with manager(sink, limit=128_000) as window:
        for n in range(8):
            talk(window, filler(1_000, tag=f"q{n}x"), filler(1_000, tag=f"a{n}x"))
        window.add_user(filler(15_000))
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"))

    assert [turn for turn, state in sink.about("burn_rate_spike") if state == "fired"] == [9]


def test_compressions_that_do_not_compress_alert() -> None:
    sink = JudgedQuestion()
    with manager(sink, limit=100_000) as window:
        for n in range(4):
            block = window._engine.add("assistant_response", filler(1_000, tag=f"a{n}x"))
            window.on_turn_start()
            result = window._engine.tracker.make_replacement("summary", filler(1_000), 1_000, replaces=block.id)
            window._engine.tracker.compress(
                ContentCompressed(
                    "compaction", "test", "accepted", 1_000, 1_000, removed=(block.id,), results=(result.id,)
                ),
                (result,),
            )
            window.on_turn_end(chat_reply("ok"))

    assert any(state == "fired" for _, state in sink.about("compression_ratio"))
