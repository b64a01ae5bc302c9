"""Functions, modules and returns on the way of an observed call and of an imported line to rows, and to a page.

    python benchmarks/call_path.py [--list] [--transitions] [--without-page] [--json]

Counts the package's own functions in all threads. *Functions* and *modules* are distinct. A *return* is a call
into a module that was entered earlier, from another one. A call is counted when eleven others came before it. A
line is counted as the difference between two imports of a transcript: with its last turn and without it. A page
is that of an imported session, drawn a second time, without what is cached of the first. `--list` prints the
modules in the order in which the call enters them, `--transitions` the most frequent steps from one module to
another on each way. Compare checkouts on one version of Python.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

PACKAGES: Final = ("/exporter/windowpane/", "/dashboard/windowpane_dashboard/")
LISTED_TRANSITIONS: Final = 25
MODEL: Final = "gpt-4o"
TURNS: Final = 12
ROUNDS: Final = 5
"""Ticks of background threads fall into some rounds; the smallest count of the rounds is without them."""

_entered: dict[int, list[CodeType]] = {}
"""Functions in the order of their calls, by thread."""
_is_recording = False


class Counts(NamedTuple):
    """Counts of one way."""

    functions: int
    modules: int
    returns: int


def _profile(frame: FrameType, event: str, _argument: Any) -> None:
    name = frame.f_code.co_filename
    if _is_recording and event == "call" and (PACKAGES[0] in name or PACKAGES[1] in name):
        _entered.setdefault(threading.get_ident(), []).append(frame.f_code)


def recorded(action: Any) -> list[CodeType]:
    """Return the functions that *action* enters, in order, one thread after the other."""
    global _is_recording  # noqa: PLW0603  # a profile function has no other way to know
    _entered.clear()
    _is_recording = True
    try:
        action()
    finally:
        _is_recording = False
    return [code for codes in _entered.values() for code in codes]


def returns(entered: list[CodeType]) -> int:
    """Return how often a module is entered again after another one."""
    left: set[str] = set()
    count, current = 0, ""
    for code in entered:
        module = code.co_filename
        if module != current:
            count += module in left
            left.add(current)
            current = module
    return count


def module_of(code: CodeType) -> str:
    """Return the path of a function's module within its package."""
    for package in PACKAGES:
        if package in code.co_filename:
            return code.co_filename.rpartition(package)[2]
    return code.co_filename


def transitions(entered: list[CodeType]) -> Counter[tuple[str, str]]:
    """Return how often one module is entered from another."""
    modules = [module for module, _ in groupby(map(module_of, entered))]
    return Counter(pairwise(modules))


def counts(entered: list[CodeType]) -> Counts:
    """Return the counts of one recorded way."""
    return Counts(len(set(entered)), len({code.co_filename for code in entered}), returns(entered))


def observed_call(folder: Path) -> list[list[CodeType]]:
    """Return the functions of an observed call until its rows are stored, once per round."""
    import windowpane  # after the profile function is set
    from windowpane.core.events import Usage
    from windowpane.models.tokens import counter_for
    from windowpane.models.wire.replies import Reply, ReplyPart
    from windowpane.sources.clients.calls import WatchedClient
    from windowpane.sources.conversations.conversations import Scope

    counter_for(MODEL, wait=True)  # else the count depends on how fast the vocabulary is loaded
    outputs = windowpane.start(store=str(folder / "calls.db"), port=0)
    client = WatchedClient(Scope("agent", limit_tokens=200_000))
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be careful."},
        {"role": "user", "content": "Find the timeout."},
    ]

    def call(number: int) -> None:
        watched = client.start("chat", {"model": MODEL, "messages": [dict(message) for message in messages]})
        assert watched is not None
        arguments, call_id = json.dumps({"n": number}), f"call_{number}"
        watched.record_reply(Reply((ReplyPart("tool_call", arguments, call_id, "read_file"),), Usage(1_000, 20)))
        assert outputs.flush(30)
        function = {"name": "read_file", "arguments": arguments}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
        )
        messages.append({"role": "tool", "tool_call_id": call_id, "content": f"{number}: the timeout is 30 s"})

    for number in range(TURNS - 1):
        call(number)
    try:
        return [recorded(lambda number=number: call(number)) for number in range(TURNS, TURNS + ROUNDS)]
    finally:
        windowpane.stop()


def transcript(path: Path, turns: int) -> Path:
    """Write a Claude Code transcript of *turns* replies with a tool call each."""
    lines: list[dict[str, Any]] = [_line(0, "user", {"role": "user", "content": "Find the timeout."})]
    for number in range(1, turns + 1):
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Read",
            "input": {"file_path": f"/app/{number}.py"},
        }
        usage = {"input_tokens": 900 + number, "cache_read_input_tokens": 800, "output_tokens": 20}
        reply = {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [use],
            "usage": usage,
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": f"{number}: the timeout is 30 s",
        }
        lines.append(_line(2 * number - 1, "assistant", reply))
        lines.append(_line(2 * number, "user", {"role": "user", "content": [result]}))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def _line(number: int, kind: str, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s1",
        "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z", "cwd": "/app", "version": "2.1.0",
        "message": message,
    }  # fmt: skip


def imported_turn(folder: Path) -> tuple[list[CodeType], list[CodeType]]:
    """Return the functions of two imports: of a transcript without its last turn, and of the whole one."""
    from windowpane.core.digests import keyed_digester
    from windowpane.sources.imports.importer import import_paths
    from windowpane.sources.imports.pipeline import playback_settings
    from windowpane.sources.transcripts.discovery import all_readers
    from windowpane.store.embedded import SqliteStore

    def entered(turns: int, tag: str) -> list[CodeType]:
        path = transcript(folder / f"{turns}{tag}.jsonl", turns)
        settings = playback_settings(keyed_digester(b"benchmark"))
        with contextlib.closing(SqliteStore(folder / f"{turns}{tag}.db")) as store:

            def action() -> None:
                (report,) = import_paths([path], store, playback=settings, readers=all_readers())
                assert not report.error, report.error
                assert report.outcomes

            return recorded(action)

    entered(TURNS, "first")  # what is loaded once is loaded
    return entered(TURNS - 1, ""), entered(TURNS, "")


def turn_counts(without: list[CodeType], with_turn: list[CodeType]) -> Counts:
    """Return the counts that a turn adds."""
    more = Counter(with_turn) - Counter(without)
    return Counts(len(more), len({code.co_filename for code in more}), returns(with_turn) - returns(without))


def drawn_page(folder: Path) -> list[CodeType]:
    """Return the functions that draw the page of an imported session."""
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    from windowpane.core.digests import keyed_digester
    from windowpane.sources.imports.importer import import_paths
    from windowpane.sources.imports.pipeline import playback_settings
    from windowpane.sources.transcripts.discovery import all_readers
    from windowpane.store.embedded import SqliteStore
    from windowpane_dashboard.server.launch import APP

    database = folder / "page.db"
    with contextlib.closing(SqliteStore(database)) as store:
        settings = playback_settings(keyed_digester(b"benchmark"))
        import_paths([transcript(folder / "page.jsonl", TURNS)], store, playback=settings, readers=all_readers())
        (session,) = store.sessions()
    os.environ["WINDOWPANE_STORE"] = str(database)

    def draw() -> None:
        st.cache_resource.clear()
        st.cache_data.clear()
        page = AppTest.from_file(str(APP), default_timeout=300)
        page.switch_page("views/session.py")
        page.query_params["session"] = session.session_id
        page.run()
        assert not page.exception, page.exception

    draw()
    return recorded(draw)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the modules in the order of the call")
    parser.add_argument(
        "--transitions", action="store_true", help="print the most frequent steps between modules"
    )
    parser.add_argument("--without-page", action="store_true", help="count no page, which takes longest")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    threading.setprofile(_profile)
    sys.setprofile(_profile)
    with tempfile.TemporaryDirectory() as folder:
        ways = observed_call(Path(folder))
        without, with_turn = imported_turn(Path(folder))
        pages = [] if arguments.without_page else [drawn_page(Path(folder))]
    sys.setprofile(None)
    call = min(ways, key=returns)
    if arguments.list:
        print(*dict.fromkeys(map(module_of, call)), sep="\n")
    found = {
        "observed call": Counts(*(min(values) for values in zip(*map(counts, ways), strict=True))),
        "imported turn": turn_counts(without, with_turn),
    }
    if pages:
        found["drawn page"] = counts(*pages)
    if arguments.transitions:
        steps = (transitions(call), transitions(with_turn) - transitions(without), *map(transitions, pages))
        for name, way in zip(found, steps, strict=True):
            print(f"{name}:")
            for (left, entered), times in way.most_common(LISTED_TRANSITIONS):
                print(f"{times:>6}  {left} → {entered}")
    if arguments.json:
        print(json.dumps({name: one._asdict() for name, one in found.items()}))
        return
    for name, one in found.items():
        print(f"{name}: {one.functions} functions in {one.modules} modules, {one.returns} returns")


if __name__ == "__main__":
    main()
