"""Prints the alerts that Alertmanager posts, one line each; it replaces a pager in the compose file.

Requires only Python. The last part of the path is the receiver's name.
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAXIMUM_BYTES = 4_000_000
LABELS = ("agent", "model", "instance", "channel", "sink")


def line(receiver: str, alert: dict[str, Any]) -> str:
    """Return one alert as a line for a log."""
    labels, notes = alert.get("labels", {}), alert.get("annotations", {})
    identity = " ".join(f"{name}={labels[name]}" for name in LABELS if name in labels)
    text = (
        f"[{receiver}] {alert.get('status', '?')} {labels.get('severity', '?')} {labels.get('alertname', '?')} "
        f"{identity}: {notes.get('summary', '')} | {notes.get('runbook_url', '')} | {notes.get('link', '')}"
    )
    return "".join(character if character.isprintable() else " " for character in text)


class Inbox(BaseHTTPRequestHandler):
    """Receives Alertmanager's webhook and responds to probes."""

    def do_GET(self) -> None:
        """Respond to a probe."""
        self._respond(200)

    def do_POST(self) -> None:
        """Print the alerts of one message."""
        size = int(self.headers.get("Content-Length", "0"))
        if size > MAXIMUM_BYTES:
            self._respond(413)
            return
        try:
            alerts = json.loads(self.rfile.read(size))["alerts"]
            lines = [line(self.path.rsplit("/", 1)[-1], alert) for alert in alerts]
        except (ValueError, KeyError, TypeError, AttributeError):
            self._respond(400)
            return
        for text in lines:
            print(text, flush=True)
        self._respond(200)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # named by the base class
        """Only alerts are printed."""

    def _respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    """Listen until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9095)
    arguments = parser.parse_args()
    with ThreadingHTTPServer((arguments.address, arguments.port), Inbox) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
