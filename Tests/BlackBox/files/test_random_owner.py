"""Days on which owners do anything at all to their files. `TIDEMARK_STRANGE_SEEDS=7-200` plays those."""

from __future__ import annotations

import os
import random

from files.file_test_case import FileTestCase
from files.random_owner import COLUMNS, RandomOwner, rows

STEPS = 25


def seeds() -> range:
    first, _, last = os.environ.get("TIDEMARK_STRANGE_SEEDS", "1-4").partition("-")
    return range(int(first), int(last or first) + 1)


class StrangeDayTests(FileTestCase):
    def test_nothing_of_it_is_lost(self) -> None:
        for seed in seeds():
            with self.subTest(seed=seed):
                self.play(seed)

    def play(self, seed: int) -> None:
        dice = random.Random(seed)
        owners: list[RandomOwner] = []
        for name in ("a", "b"):
            app = self.app(
                f"{name}{seed}", f"CREATE TABLE t({COLUMNS}); CREATE TABLE u(id TEXT PRIMARY KEY)", ("t", "u")
            )
            app.in_scope(f"days:{seed}")
            owners.append(RandomOwner(app, dice))
        for owner in owners:
            owner.write(20)
            self.moved(owner)
        for _ in range(STEPS):
            owner = dice.choice(owners)
            owner.act()
            if dice.random() < 0.4:
                self.assert_counted(owner.app)
            if dice.random() < 0.5:
                owner.done.append("sync")
                self.moved(owner)
        for owner in [*owners, *owners]:
            self.moved(owner)
        for owner in owners:
            for other in owners:
                found = rows(other.app, owner.app.sub)
                every = owner.expected.keys() | found.keys()
                pairs = {key: (owner.expected.get(key), found.get(key)) for key in every}
                lost = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
                self.assertEqual({}, lost, f"of {owner.app.sub} on {other.app.sub}, after {owner.done}")
            nameless = owner.app.count("t", "k IS NULL")
            self.assertEqual(owner.nameless, nameless, f"rows without a key, after {owner.done}")
            self.assert_counted(owner.app)
            verified = owner.app.verify()
            self.assertEqual(0, verified.json.get("differing"), f"{verified}")

    def moved(self, owner: RandomOwner) -> None:
        told = self.decided(owner.app)
        self.assertEqual(3 if owner.nameless else 0, told.code, f"after {owner.done}: {told}")
