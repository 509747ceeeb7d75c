"""Pushes that a server once took wrongly, in as few requests as show it."""

from __future__ import annotations

import random
import unittest
import uuid
from typing import Any

from protocol.violation import Verdict
from protocol.wire import Wire
from support.pusher import SCOPE, Pusher
from support.server_process import ServerProcess


class ChainTests(unittest.TestCase):
    def test_a_chain_that_reaches_below_acked(self) -> None:
        """The operation that is named took effect, and only what is named by that one is forgotten (W32, W34, W35)."""
        with ServerProcess.temporary() as server:
            pusher, lane = Pusher(server), uuid.uuid4().hex

            def push(acked: int, *operations: dict[str, Any]) -> list[dict[str, Any]]:
                body = {"scope": SCOPE, "clientId": "pusher-0001", "acked": {lane: acked}, "operations": operations}
                return list(pusher.ask("POST", "/sync/push", body)[2]["results"])

            def edit(number: int, **base: int) -> dict[str, Any]:
                operation = {"lane": lane, "number": number, "type": "upsert", "entity": "task", "id": "t1"}
                return {**operation, **base, "fields": {"title": str(number)}}

            push(0, edit(1))
            push(0, edit(2, baseVersion=1, baseNumber=1))
            push(1)
            self.assertEqual("applied", push(1, edit(3, baseVersion=1, baseNumber=2))[0]["status"])


class AnswerTests(unittest.TestCase):
    def test_an_insert_overwrites_only_what_was_written(self) -> None:
        """`overwrote` lists what somebody else had written (W36); nobody wrote this field."""
        with ServerProcess.temporary() as server:
            results = []
            for number, field in enumerate(("title", "note")):
                pusher = Pusher(server)
                operation = {"lane": pusher.lane, "number": 1, "type": "upsert", "entity": "task", "id": "t1"}
                operations = [{**operation, "fields": {field: "x"}}]
                body = {"scope": SCOPE, "clientId": f"pusher-000{number}", "operations": operations}
                results += pusher.ask("POST", "/sync/push", body)[2]["results"]
            self.assertNotIn("overwrote", results[1])

    def test_a_number_out_of_range_is_a_400(self) -> None:
        """Out of range: 400 limit_out_of_range (W9)."""
        with ServerProcess.temporary() as server:
            pusher = Pusher(server)
            wire = Wire([server.url], pusher.token, "pusher-0001", {}, Verdict(), random.Random(1))
            operation = f'{{"lane":"{pusher.lane}","number":0,"type":"delete","entity":"task","id":"t1"}}'
            body = f'{{"scope":"{SCOPE}","clientId":"pusher-0001","operations":[{operation}]}}'
            status = wire.post("/sync/push", SCOPE, body.encode()).status
            wire.close()
            self.assertEqual(400, status)
