from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PATIENCE_SECONDS = 60.0


def run(body: str) -> str:
    """Return what a program prints that ends by a stop request; a lost one would block the tests themselves."""
    program = f"""
        import os, signal, threading
        from windowpane.effects.stop_request import StopRequest
        stop = StopRequest()
        {textwrap.indent(textwrap.dedent(body).strip(), " " * 8).strip()}
        print("stopped", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ran = subprocess.run(command, timeout=PATIENCE_SECONDS, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_a_signal_that_interrupts_the_wait_ends_it() -> None:
    assert run("threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGTERM]).start()\nstop.wait()") == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a thread")
def test_a_signal_that_does_not_interrupt_the_main_thread_ends_the_wait() -> None:
    """As one that comes between the start of the wait and the system call: Python runs its handler afterwards."""
    body = """
        def send():
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        threading.Timer(0.2, send).start()
        stop.wait()
    """
    assert run(body) == "stopped"


def test_signals_that_come_at_any_moment_of_short_waits_end_them() -> None:
    """The handler of one may interrupt the code that waits while it holds any lock."""
    body = """
        sent = threading.Timer(0.2, signal.raise_signal, [signal.SIGTERM])
        sent.start()
        while not stop.wait(0.0):
            pass
        for _ in range(20_000):
            stop.is_set = False
            signal.raise_signal(signal.SIGTERM)
            assert stop.wait(1e-9)
    """
    assert run(body) == "stopped"


def test_an_unset_request_returns_after_its_time() -> None:
    assert run("assert not stop.wait(0.01)") == "stopped"
