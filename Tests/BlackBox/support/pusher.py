"""A client by requests of its own: a lane that pushes large records, and what it was told of each."""

from __future__ import annotations

import http.client
import json
import uuid
from typing import Any

from support.server_process import ServerProcess
from support.tokens import mint

SCOPE = "torture.full"
BIG_BYTES = 60_000


class Pusher:
    """One lane; a request is sent until it has its verdicts."""

    def __init__(self, server: ServerProcess):
        self.server, self.lane, self.number = server, uuid.uuid4().hex, 0
        self.token = mint(server.secret, "pusher", {SCOPE: "rw"})
        self.acknowledged: dict[str, str] = {}

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, dict[str, str], dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        found = json.loads(response.read())
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, found

    def push(self) -> tuple[int, dict[str, str], dict[str, Any]]:
        number, text = self.number + 1, f"{self.number}" + "y" * BIG_BYTES
        operation = {"lane": self.lane, "number": number, "type": "upsert", "entity": "big", "id": f"b{number}"}
        body = {"scope": SCOPE, "clientId": "pusher-0001", "operations": [{**operation, "fields": {"text": text}}]}
        status, headers, told = self.ask("POST", "/sync/push", body)
        if status == 200:
            self.number, self.acknowledged[f"b{number}"] = number, text
        return status, headers, told

    def held(self) -> dict[str, str]:
        rows: dict[str, str] = {}
        since, more = "", True
        while more:
            _, _, page = self.ask("GET", f"/sync/changes?scope={SCOPE}&limit=50{since}")
            rows |= {c["id"]: c["data"]["text"] for c in page["changes"] if c["entity"] == "big"}
            since, more = f"&since={page['nextSince']}", page["hasMore"]
        return rows
