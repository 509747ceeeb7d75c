"""The checker's own copy of a scope holds no row that it was never shown in whole."""

from __future__ import annotations

import unittest

from protocol.ledger import ScopeLedger
from protocol.replica import Replica


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
