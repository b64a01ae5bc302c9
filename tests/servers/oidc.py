"""A small OpenID Connect provider on loopback: discovery, keys, the authorization code flow, signed tokens.

It signs in at once the user that `Provider.claims` describes, as a provider does whose user is known already.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "windowpane", "the-secret-of-the-client"


@dataclass
class Provider:
    """The running provider, and the claims of the next user who signs in."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    issued_seconds_ago: float = 0.0
    """Age of the tokens that it issues."""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    """Addresses that users were sent back to."""

    @property
    def metadata_url(self) -> str:
        """The discovery document."""
        return f"{self.url}/.well-known/openid-configuration"

    def metadata(self) -> dict[str, Any]:
        """Return the discovery document."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, query: dict[str, str]) -> str:
        """Return the address that the user is sent back to."""
        code = secrets.token_urlsafe(16)
        issued = int(time.time() - self.issued_seconds_ago)
        self.codes[code] = {
            "iss": self.url, "aud": CLIENT_ID, "iat": issued, "exp": int(time.time()) + 3_600,
            "nonce": query.get("nonce"), **self.claims,
        }  # fmt: skip
        self.redirects.append(query["redirect_uri"])
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, code: str) -> dict[str, Any]:
        """Return the tokens of a code, once."""
        identity = jwt.encode({"alg": "RS256", "kid": "one"}, self.codes.pop(code), self.key)
        return {"access_token": "unused", "token_type": "Bearer", "expires_in": 3_600, "id_token": identity}


@contextmanager
def provider() -> Iterator[Provider]:
    """Run a provider while the block runs."""
    running = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/.well-known/openid-configuration":
                self._send(running.metadata())
            elif parts.path == "/jwks":
                self._send({"keys": [running.key.as_dict(private=False)]})
            elif parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", running.authorize(query))
                self.end_headers()
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            if urlsplit(self.path).path == "/token" and form.get("code") in running.codes:
                self._send(running.token(form["code"]))
            else:
                self.send_error(400)

        def _send(self, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
