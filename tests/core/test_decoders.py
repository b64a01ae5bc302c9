"""Typed decoding by several threads, and the rule that one module does all of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.test_layers import MODULES

_PROGRAM = """
import sys, threading
import msgspec
from windowpane.core import decoders

class Inner(msgspec.Struct):
    number: int
    text: str | None = None
    numbers: tuple[int, ...] = ()

class Middle(msgspec.Struct):
    inner: tuple[Inner, ...]
    by_name: dict[str, Inner]
    last: Inner | None = None

class Outer(msgspec.Struct):
    middle: tuple[Middle, ...]
    name: str

value = {"middle": [{"inner": [{"number": 1}], "by_name": {}}], "name": "x"}
raw = msgspec.json.encode(value)
packed = msgspec.msgpack.encode(value)
barrier = threading.Barrier(8)

def run():
    barrier.wait()
    DECODE

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=run) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
_FORK = """
import os, signal, threading
import windowpane.effects.forks
from windowpane.core import decoders

held = threading.Event()
def prepare():
    with decoders.preparing:
        held.set()
        os.read(waits, 1)

waits, release = os.pipe()
threading.Thread(target=prepare).start()
held.wait(10)
threading.Timer(0.2, os.write, (release, b".")).start()
child = os.fork()
if child == 0:
    signal.alarm(10)
    os._exit(len(decoders.decode_json(b"[1]", list[int])) - 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""


@pytest.mark.parametrize(
    "decode",
    [
        "decoders.decode_json(raw, Outer)",
        "decoders.convert(value, Outer)",
        "decoders.json_decoder(Outer).decode(raw)",
        "decoders.msgpack_decoder(Outer).decode(packed)",
    ],
)
def test_threads_may_decode_a_type_for_the_first_time_together(decode: str) -> None:
    """Without the lock, 14 to 18 of 20 runs ended by a signal."""
    command = [sys.executable, "-c", _PROGRAM.replace("DECODE", decode)]
    for _ in range(3):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_waits_until_no_thread_prepares_a_type() -> None:
    subprocess.run([sys.executable, "-c", _FORK], timeout=30, check=True)


def _typed_uses(path: Path) -> list[str]:
    """Return the calls and imports by which a module decodes to a type with msgspec itself."""
    uses = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "msgspec":
            names = {alias.name for alias in node.names}
            uses += sorted(names & {"convert", "json", "msgpack", "toml", "yaml", "Decoder", "decode"})
        if not isinstance(node, ast.Call) or not (name := ast.unparse(node.func)).startswith("msgspec."):
            continue
        is_typed = (
            bool(node.args) if name.endswith(".Decoder") else any(one.arg == "type" for one in node.keywords)
        )
        if name == "msgspec.convert" or is_typed:
            uses.append(ast.unparse(node))
    return uses


def test_one_module_does_all_typed_decoding() -> None:
    uses = {module: _typed_uses(path) for module, path in MODULES.items()}

    assert uses["windowpane.core.decoders"]
    direct = {module for module, found in uses.items() if found}
    assert direct == {"windowpane.core.decoders"}
