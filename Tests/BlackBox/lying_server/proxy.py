"""A reverse proxy between checker and server that tells one lie, to see whether the checker notices."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP_HEADERS = {"connection", "content-length", "transfer-encoding", "content-encoding", "host", "accept-encoding"}


@dataclass
class Asked:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2]))

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body) if self.body else {}
        return value

    @property
    def scope(self) -> str:
        return str(self.query.get("scope") or self.json.get("scope", ""))


@dataclass
class Given:
    status: int
    headers: dict[str, str]
    json: dict[str, Any]


class Lie:
    """By default the truth. `told` counts the lies, since a lie that was never told proves nothing."""

    kinds: set[str] = set()
    # At most: the first violation ends the run, after a second or two, or more on a machine with much else to do.
    # What only the end of a run shows needs a short one.
    seconds: float = 180

    def __init__(self) -> None:
        self.told = 0
        self.lock = threading.Lock()

    def ask(self, asked: Asked) -> Given | None:
        """An answer that the server is never asked for."""
        return None

    def tell(self, asked: Asked, given: Given) -> None:
        """May change what was given."""


@dataclass
class Proxy:
    upstream: str
    lie: Lie
    url: str = ""
    _server: ThreadingHTTPServer | None = field(default=None, repr=False)

    def __enter__(self) -> "Proxy":
        proxy, parts = self, urllib.parse.urlsplit(self.upstream)
        address = (parts.hostname or "", parts.port or 80)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_HEADERS}
                asked = Asked(self.command, self.path, headers, body)
                with proxy.lie.lock:
                    given = proxy.lie.ask(asked)
                if given is None:
                    given = self.forward(asked)
                    if given.json:
                        with proxy.lie.lock:
                            proxy.lie.tell(asked, given)
                text = "" if given.json == {} else json.dumps(given.json, ensure_ascii=False, separators=(",", ":"))
                data = text.encode()
                self.send_response_only(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                if given.status != 304:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def forward(self, asked: Asked) -> Given:
                connection = http.client.HTTPConnection(*address, timeout=20)
                connection.request(asked.method, asked.target, asked.body or None, asked.headers)
                response = connection.getresponse()
                raw = response.read()
                connection.close()
                headers = {k: v for k, v in response.getheaders() if k.lower() not in HOP_HEADERS}
                return Given(response.status, headers, json.loads(raw) if raw else {})

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # because a client that goes away is part of the game

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
