"""One device's HTTP connection. It compares every answer with what the asker may know, whatever the answer is for."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import time
import urllib.parse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from protocol.violation import Verdict, Violation

SHOWN_BYTES = 1500
BACKOFF_SECONDS = 1.0
Headers = dict[str, str]


class Lost(Exception):
    """No answer, or one that says "later": the request may or may not have been taken."""


@dataclass(frozen=True)
class Answer:
    asked: str
    status: int
    headers: Headers
    body: bytes

    @cached_property
    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.body)
        except ValueError as error:
            raise Violation("malformed_answer", f"the body is not JSON: {error}", [str(self)]) from error
        if not isinstance(value, dict):
            raise Violation("malformed_answer", "the body is not an object", [str(self)])
        return value

    def expect(self, *statuses: int) -> dict[str, Any]:
        if self.status not in statuses:
            raise Violation("unexpected_answer", f"{self.status} instead of {statuses}", [str(self)])
        return self.json

    def __str__(self) -> str:
        body = self.body.decode("utf-8", "replace")
        return f"{self.asked} → {self.status} {body if len(body) < SHOWN_BYTES else body[:SHOWN_BYTES] + '…'}"


class Wire:
    def __init__(
        self,
        urls: Sequence[str],
        token: str,
        client_id: str,
        secrets: dict[str, bytes],
        verdict: Verdict,
        dice: random.Random,
    ):
        parts = [urllib.parse.urlsplit(url) for url in urls]
        self.addresses = [(part.hostname or "127.0.0.1", part.port or 80) for part in parts]
        self.address = self.addresses[0] if len(self.addresses) == 1 else dice.choice(self.addresses)
        self.token, self.client_id, self.verdict, self.dice = token, client_id, verdict, dice
        self.secrets = secrets  # of each scope, the bytes that only its data holds
        self.recent: deque[Answer] = deque(maxlen=40)
        self.cut = 0  # answers that were begun and not finished
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, scope: str | None, headers: Headers | None = None, **query: Any) -> Answer:
        if scope is not None:
            query = {"scope": scope, **query}
        # In an address a plus is a plus (W4), and a blank is %20.
        named = {k: v for k, v in query.items() if v is not None}
        text = urllib.parse.urlencode(named, doseq=True, quote_via=urllib.parse.quote)
        return self._ask("GET", f"{path}?{text}" if text else path, None, scope, headers or {})

    def post(self, path: str, scope: str, body: bytes, headers: Headers | None = None) -> Answer:
        return self._ask("POST", path, body, scope, {"Content-Type": "application/json", **(headers or {})})

    def put(self, path: str, scope: str, body: bytes, headers: Headers) -> Answer:
        text = urllib.parse.urlencode({"scope": scope}, quote_via=urllib.parse.quote)
        return self._ask("PUT", f"{path}?{text}", body, scope, {"Content-Type": "application/json", **headers})

    def send_and_leave(self, path: str, body: bytes) -> None:
        """Sends a request and closes before the answer, as a network does that goes away."""
        try:
            connection = http.client.HTTPConnection(*self.address, timeout=5)
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request("POST", path, body, headers)
            time.sleep(self.dice.choice((0, 0.002, 0.02)))
            connection.close()
        except OSError as error:
            raise Lost(str(error)) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if len(self.addresses) > 1:
            # Which node of a server answers makes no difference.
            self.address = self.dice.choice(self.addresses)

    def _ask(self, method: str, target: str, body: bytes | None, scope: str | None, more: Headers) -> Answer:
        headers = {"Authorization": f"Bearer {self.token}", "Tidemark-Client": self.client_id, **more}
        sent = body
        if body is not None and self.dice.random() < 0.2:
            sent, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        if self.dice.random() < 0.3:
            headers["Accept-Encoding"] = "gzip"
        asked = f"{method} {target}" + (f" {body.decode()}" if body else "")
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self.address, timeout=20)
            self._connection.request(method, target, sent, headers)
            response = self._connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            self.cut += isinstance(error, http.client.IncompleteRead)
            self.verdict.count("answers lost")
            raise Lost(f"{type(error).__name__}: {error}") from error
        if response.status != 304 and response.getheader("Content-Length") is None and not response.chunked:
            # Cut within the headers, which this client library takes for their end.
            self.close()
            self.verdict.count("answers lost")
            raise Lost("no end of the headers")
        got = {name.lower(): value for name, value in response.getheaders()}
        if got.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        answer = Answer(asked[:SHOWN_BYTES], response.status, got, raw)
        self.recent.append(answer)
        self.verdict.count("requests")
        self._watch(answer, scope)
        if response.status in (429, 503):
            self.verdict.count(f"answers {response.status}")
            if "retry-after" not in got:
                raise Violation("missing_header", f"{response.status} without Retry-After (W7)", [str(answer)])
            time.sleep(min(BACKOFF_SECONDS, float(got["retry-after"])))
            raise Lost(f"{response.status}")
        return answer

    def _watch(self, answer: Answer, scope: str | None) -> None:
        if answer.headers.get("tidemark-protocol") != "1" or "tidemark-declarations" not in answer.headers:
            raise Violation("missing_header", "every answer names protocol and declarations (W5, W10)", [str(answer)])
        if answer.status >= 400 and answer.headers.get("content-type") != "application/problem+json":
            raise Violation("malformed_answer", "an error is application/problem+json (W7)", [str(answer)])
        seen = answer.body + repr(answer.headers).encode()
        for other, secret in self.secrets.items():
            if other != scope and secret in seen:
                raise Violation("scope_leak", f"data of scope {other} in an answer about {scope} (I9)", [str(answer)])
