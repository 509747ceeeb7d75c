"""What was found once, in as few requests as show it."""

from __future__ import annotations

import random
import resource
import socket
import time
import unittest
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from device import Device
from full_disk import SCOPE, Pusher
from ledger import ScopeLedger
from proxy import Asked, Given, Lie, Proxy
from replica import Replica
from report import patiently
from server_process import ServerProcess
from violation import Verdict
from wire import Wire

PATIENCE_SECONDS = 20
# No connection ends because its time is over, so that a slow machine can be waited for.
FOR_EVER = "limits: {firstRequestTimeout: 10m, idleTimeout: 10m, requestTimeout: 10m}\n"


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


class ReplicaTests(unittest.TestCase):
    def test_an_edit_of_a_lost_row_makes_no_row(self) -> None:
        """A copy that was begun anew holds a row in whole or not at all: a part at its version would stay for ever."""
        replica = Replica(ScopeLedger("box"))
        edit = {"type": "upsert", "entity": "note", "id": "n", "fields": {"body": "b"}}
        replica.take_verdict({**edit, "baseVersion": 3}, {"status": "applied", "version": 4}, "e")
        replica.take_verdict({**edit, "baseNumber": 1}, {"status": "applied", "version": 5}, "e")
        self.assertEqual({}, replica.live())
        replica.take_verdict(edit, {"status": "applied", "version": 6}, "e")
        self.assertEqual({("note", "n"): (6, {"body": "b"})}, replica.live())


class DeleteWhileUnderWay(Lie):
    """The truth, at a moment that is chosen: while the answer to an edit is under way, the app deletes the row."""

    def __init__(self, delete: Callable[[], None], loses_answer: bool):
        super().__init__()
        self.delete, self.loses_answer = delete, loses_answer

    def tell(self, asked: Asked, given: Given) -> None:
        kinds = [operation["type"] for operation in asked.json.get("operations", [])]
        if "upsert" in kinds and not self.told:
            self.told = 1
            self.delete()
        elif "delete" in kinds and self.loses_answer:
            self.loses_answer = False
            raise OSError("the answer is lost")


class InFlightTests(unittest.TestCase):
    def ends_with(self, config: str, loses_answer: bool) -> tuple[dict[str, str], list[Any]]:
        with ServerProcess.temporary(config) as server:
            device = Device(0, server.folder, server.url, server.secret, "in-flight", "1")
            device.sync()

            def run(statement: str) -> None:
                with device.open() as db:
                    db.execute(statement)
                db.close()

            with Proxy(server.url, DeleteWhileUnderWay(lambda: run("DELETE FROM task"), loses_answer)) as proxy:
                device.url = proxy.url
                run("INSERT INTO task VALUES ('t1', 'a', 0)")
                for _ in range(3):
                    device.sync()
            return device.contents(), device.status()["conflicts"]

    def test_a_delete_of_an_own_edit_is_not_undone_by_it(self) -> None:
        rows, conflicts = self.ends_with("entities: {task: {deletes: lose}, shared: {}}\n", loses_answer=False)
        self.assertEqual(({}, []), (rows, conflicts))

    def test_a_delete_of_an_own_edit_is_no_conflict_with_it(self) -> None:
        rows, conflicts = self.ends_with("entities: {task: {}, shared: {}}\n", loses_answer=True)
        self.assertEqual(({}, []), (rows, conflicts))


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


class ConnectionTests(unittest.TestCase):
    def test_whoever_is_idle_shuts_nobody_out(self) -> None:
        """More connections that say nothing than `limits.connections`, and nobody waits for them."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with ServerProcess.temporary(FOR_EVER) as server:
            pusher = Pusher(server)
            idle = [socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) for _ in range(1200)]
            self.assertEqual(200, pusher.push()[0])
            for each in idle:
                each.close()

    @unittest.skipUnless(Path("/proc/self/fd").exists(), "descriptors are counted in /proc")
    def test_a_request_line_of_200_kb_leaves_nothing_behind(self) -> None:
        """It is refused like any other request, and its descriptor comes back although the caller stays (W5, W7)."""
        with ServerProcess.temporary(FOR_EVER) as server:
            Pusher(server).push()
            time.sleep(1)  # until that connection is gone, which would be counted in place of the next one
            before = server.descriptors()
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as caller:
                caller.sendall(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = caller.recv(65_536)
                self.assertIn(b"application/problem+json", answer)
                self.assertIn(b"Tidemark-Protocol: 1", answer)
                self.assertIsNotNone(patiently(lambda: server.descriptors() <= before, PATIENCE_SECONDS))


if __name__ == "__main__":
    unittest.main()
