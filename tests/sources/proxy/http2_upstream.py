"""An upstream on the loopback interface that speaks HTTP/2 only, over TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded


class Http2Upstream:
    """Answers every request with the same stream, and keeps the bodies of the requests."""

    def __init__(self, certificates: Path, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.bodies: list[bytes] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        self._context.set_alpn_protocols(["h2"])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(accepted,), daemon=True).start()

    def _answer(self, accepted: socket.socket) -> None:
        with self._context.wrap_socket(accepted, server_side=True) as connection:
            http2 = H2Connection(H2Configuration(client_side=False))
            http2.initiate_connection()
            connection.sendall(http2.data_to_send())
            bodies: dict[int, bytes] = {}
            while received := connection.recv(65_536):
                for event in http2.receive_data(received):
                    if isinstance(event, RequestReceived):
                        bodies[event.stream_id] = b""
                    elif isinstance(event, DataReceived):
                        bodies[event.stream_id] += event.data
                        http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, StreamEnded):
                        self.bodies.append(bodies.pop(event.stream_id))
                        headers = [
                            (":status", "200"),
                            ("content-type", "text/event-stream"),
                            ("x-request-id", "r"),
                        ]
                        http2.send_headers(event.stream_id, headers)
                        for piece in self._pieces:
                            http2.send_data(event.stream_id, piece)
                            connection.sendall(http2.data_to_send())
                        http2.end_stream(event.stream_id)
                connection.sendall(http2.data_to_send())
