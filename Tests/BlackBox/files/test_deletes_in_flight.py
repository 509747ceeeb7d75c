"""A row that the app deletes while the answer to its edit is under way."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from lying_server.proxy import Asked, Given, Lie, Proxy
from support.device import Device
from support.server_process import ServerProcess


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
