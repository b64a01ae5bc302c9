"""ClickHouse's HTTP interface over chdb, the same engine inside this process; it runs in chdb's virtualenv.

Usage: python tests/servers/clickhouse_http.py PORT FOLDER USER PASSWORD

It passes statements, parameters and data through and interprets none of them: `query`, `database`, `param_*` and
settings in the address or as a form, inserts in the native format, compressed or not, and errors with their code.
"""

from __future__ import annotations

import re
import sys
import tempfile
from base64 import b64encode
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl, urlsplit

import chdb
import lz4.frame

TRANSPORT = {
    "database", "query", "client_protocol_version", "enable_http_compression", "compress", "decompress",
    "session_id", "query_id",
    "wait_end_of_query", "send_progress_in_http_headers", "http_headers_progress_interval_ms",
    "buffer_size",
}  # fmt: skip
"""Parameters of a request that the engine does not know as settings."""
INSERT = re.compile(rb"\s*INSERT INTO .* FORMAT Native\n", re.IGNORECASE)


def decompressed(body: bytes) -> bytes:
    """Return the content of all frames: the client compresses each block of an insert as one."""
    pieces = []
    while body:
        frame = lz4.frame.LZ4FrameDecompressor()
        pieces.append(frame.decompress(body))
        body = frame.unused_data or b""
    return b"".join(pieces)


def form(content_type: str, body: bytes) -> dict[str, str]:
    """Return the fields of a form, in which a client sends the parameters of a long query."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    fields = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        fields[str(part.get_param("name", header="Content-Disposition"))] = content.decode()
    return fields


class Engine:
    """One connection to the engine; requests take turns."""

    def __init__(self, folder: str) -> None:
        self._connection = chdb.connect(folder)
        self._lock = Lock()
        self._settings: dict[str, str] = {}
        self._database = "default"

    def run(self, statement: bytes, parameters: dict[str, str]) -> bytes:
        """Return the result of a request, in the format that it names."""
        with self._lock:
            self._use(parameters.get("database", "default"))
            for name, value in parameters.items():
                if name not in TRANSPORT and not name.startswith("param_") and self._settings.get(name) != value:
                    self._connection.query(f"SET {name} = '{value}'", "TabSeparated")
                    self._settings[name] = value
            insert = INSERT.match(statement)
            if insert is not None:
                return self._insert(insert.group().decode(), statement[insert.end() :])
            bound = {name[6:]: value for name, value in parameters.items() if name.startswith("param_")}
            return bytes(self._connection.query(statement.decode(), "TabSeparated", params=bound).bytes())

    def _use(self, database: str) -> None:
        if database != self._database:
            self._connection.query(f"USE `{database}`", "TabSeparated")
            self._database = database

    def _insert(self, statement: str, data: bytes) -> bytes:
        with tempfile.NamedTemporaryFile(suffix=".native") as file:
            file.write(data)
            file.flush()
            infile = statement.strip().removesuffix("FORMAT Native") + f"FROM INFILE '{file.name}' FORMAT Native"
            return bytes(self._connection.query(infile, "TabSeparated").bytes())


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits for the client's acknowledgement of the headers, 40 ms
    engine: Engine
    credentials: str

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/ping":
            self._send(200, b"Ok.\n", {})
        else:
            self._respond(b"")

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("Content-Encoding") == "lz4":
            body = decompressed(body)
        if self.headers.get_content_type() == "multipart/form-data":
            self._respond(b"", form(self.headers["Content-Type"], body))
        else:
            self._respond(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _respond(self, body: bytes, fields: dict[str, str] | None = None) -> None:
        if self.headers.get("Authorization") != self.credentials:
            self._fail("Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)", 403)
            return
        parameters = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)) | (fields or {})
        statement = parameters.get("query", "").encode()
        try:
            result = self.engine.run(statement + b"\n" + body if statement else body, parameters)
        except Exception as error:  # noqa: BLE001  # the client receives it, as it would from a server
            self._fail(str(error), 500)
            return
        self._send(200, result, {"X-ClickHouse-Format": "TabSeparated", "X-ClickHouse-Timezone": "UTC"})

    def _fail(self, message: str, status: int) -> None:
        code = re.search(r"Code: (\d+)", message)
        self._send(status, message.encode(), {"X-ClickHouse-Exception-Code": code.group(1) if code else "1000"})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Log nothing: pytest shows what failed."""


def main() -> None:
    """Serve until the process is ended."""
    port, folder, user, password = sys.argv[1:]
    Handler.engine = Engine(folder)
    Handler.credentials = f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
