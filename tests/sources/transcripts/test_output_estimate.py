"""Outputs of calls whose recording states only the first usage of the stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, WordCounter, digest

from windowpane.core.events import TurnEnded, Usage
from windowpane.models.catalog import packaged_catalog
from windowpane.sources.transcripts.output_estimate import TOOL_CALL_TOKENS, estimated_output
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.playback_settings import PlaybackSettings

MODEL = "claude-sonnet-4-5"


def text(words: int) -> Json:
    return {"type": "text", "text": "word " * words}


def call(call_id: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "a.py"}}


def usage(total: int, output: int) -> Json:
    return {"input_tokens": 10, "cache_read_input_tokens": total - 10, "output_tokens": output}


def ended(read: Read) -> list[TurnEnded]:
    """Return the ended turns of a session whose tokens are its words."""
    playback = PlaybackSettings(
        digest=digest, counter_for=lambda _model: WordCounter(), catalog=packaged_catalog()
    )
    events = session_events(read.records, key="s", source="claude_code", playback=playback)
    return [event.data for event in events if isinstance(event.data, TurnEnded)]


def outputs(read: Read) -> list[tuple[int, int | None]]:
    """Return the output of each turn, and the recorded one where that is an estimate."""
    return [(turn.usage.output_tokens, turn.recorded_output_tokens) for turn in ended(read) if turn.usage]


def test_the_first_usage_of_a_stream_is_replaced_by_an_estimate(tmp_path: Path, transcript: Any) -> None:
    read = transcript().user("go").reply("m1", text(400), usage=usage(1_000, 3)).read(tmp_path)

    (turn,) = ended(read)
    assert turn.usage is not None
    assert (turn.usage.output_tokens, turn.recorded_output_tokens) == (400, 3)
    assert turn.cost_dollars == packaged_catalog().cost_dollars(MODEL, turn.usage, None)
    assert turn.cost_dollars > (packaged_catalog().cost_dollars(MODEL, Usage(10, 3, 990), None) or 0.0)


@pytest.mark.parametrize(
    ("lines", "stop"),
    [
        pytest.param([3, 400], None, id="a later line has the final usage"),
        pytest.param([3], "end_turn", id="the reply has ended"),
        pytest.param([390], None, id="as long as the visible reply"),
    ],
)
def test_a_final_usage_is_no_estimate(
    tmp_path: Path, transcript: Any, lines: list[int], stop: str | None
) -> None:
    rows = transcript().user("go")
    for output in lines:
        rows.reply("m1", text(400 // len(lines)), usage=usage(1_000, output), stop=stop)

    assert outputs(rows.read(tmp_path)) == [(lines[-1], None)]


def test_the_next_total_corrects_the_estimate(tmp_path: Path, transcript: Any) -> None:
    """The next call sends 620 tokens more, of which a result of a word explains one."""
    read = (
        transcript()
        .user("go")
        .reply("m1", text(400), call("t1"), usage=usage(1_000, 3))
        .result("t1")
        .reply("m2", text(1), usage=usage(1_620, 1))
        .read(tmp_path)
    )

    visible = 400 + 3 + TOOL_CALL_TOKENS
    assert outputs(read)[0][1] == 3
    assert visible < outputs(read)[0][0] <= 619


def test_a_total_after_a_message_of_the_user_is_not_compared(tmp_path: Path, transcript: Any) -> None:
    """A message comes with reminders that are not recorded."""
    read = (
        transcript()
        .user("go")
        .reply("m1", text(400), usage=usage(1_000, 3))
        .user("more")
        .reply("m2", text(1), usage=usage(1_620, 1))
        .read(tmp_path)
    )

    assert outputs(read)[0] == (400, 3)


def test_an_estimate_stays_near_the_visible_reply() -> None:
    assert estimated_output(400) == 400
    assert 400 < estimated_output(400, growth=50_000) <= 800
    assert 200 <= estimated_output(400, growth=-9_000) < 400
    assert estimated_output(400, growth=20_600, added_tokens=20_000) == pytest.approx(400, abs=5)


def test_the_window_is_measured_by_what_is_recorded(tmp_path: Path, transcript: Any) -> None:
    """An estimate by the next total would make that total known before its call."""
    rows = (
        transcript()
        .user("go")
        .reply("m1", text(400), call("t1"), usage=usage(1_000, 3))
        .result("t1")
        .reply("m2", text(1), usage=usage(1_620, 1))
    )
    playback = PlaybackSettings(
        digest=digest, counter_for=lambda _model: WordCounter(), catalog=packaged_catalog()
    )

    def measured() -> list[Any]:
        events = session_events(rows.read(tmp_path).records, key="s", source="claude_code", playback=playback)
        return [event.data for event in events if event.data.type == "pressure.measured"]

    before = measured()
    rows.rows[-1]["message"]["usage"] = usage(1_450, 1)
    assert [one.used_tokens for one in measured()][:3] == [one.used_tokens for one in before][:3]
