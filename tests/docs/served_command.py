"""Stands in PATH as `windowpane`: runs the real command, and stops one that serves as soon as it is up.

Ports are replaced by free ones, and addresses of all interfaces by loopback.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

PORTS = {
    "dashboard": ("--port",), "demo": ("--port", "--metrics-port"), "serve": ("--port", "--otlp-port"),
    "top": (), "watch": ("--port",),
}  # fmt: skip
"""Commands that run until Ctrl-C, with their options of ports."""
PRINTED = {("check", 4), ("", 2)}
"""Codes of commands that did what they do: an alert fired, and the help where there is no terminal."""
INTERRUPTED = (0, 1, 128 + signal.SIGINT, -signal.SIGINT)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def with_free_ports(options: tuple[str, ...], words: list[str]) -> list[str]:
    words = ["127.0.0.1" if word == "0.0.0.0" else word for word in words]
    for option in options:
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
        if option != "--otlp-port" or "--otlp" in words:
            words += [option, free_port()]
    return words


def main() -> int:
    words = sys.argv[1:]
    command = words[0] if words else ""
    real = [sys.executable, "-m", "windowpane"]
    if command not in PORTS or "--once" in words:
        code = subprocess.run([*real, *words], check=False).returncode
        return 0 if (command, code) in PRINTED else code
    process = subprocess.Popen(
        [*real, *words[:1], *with_free_ports(PORTS[command], words[1:])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    timer = threading.Timer(120, process.kill)
    timer.start()
    is_up = False
    for line in process.stdout:
        print(line, end="", flush=True)
        if not is_up and (command == "top" or "http://" in line or "https://" in line):
            is_up = True
            process.send_signal(signal.SIGINT)
    timer.cancel()
    code = process.wait()
    return 0 if is_up and code in INTERRUPTED else code or 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
