"""Days on which owners do anything at all to their files. `TIDEMARK_STRANGE_SEEDS=7-200` plays those."""

from __future__ import annotations

import os
import random
import unittest

from story import Story
from strange_days import COLUMNS, StrangeDay, rows

STEPS = 25


def seeds() -> range:
    first, _, last = os.environ.get("TIDEMARK_STRANGE_SEEDS", "1-4").partition("-")
    return range(int(first), int(last or first) + 1)


class StrangeDayTests(Story):
    def test_nothing_of_it_is_lost(self) -> None:
        for seed in seeds():
            with self.subTest(seed=seed):
                self.play(seed)

    def play(self, seed: int) -> None:
        dice = random.Random(seed)
        days: list[StrangeDay] = []
        for name in ("a", "b"):
            app = self.app(
                f"{name}{seed}", f"CREATE TABLE t({COLUMNS}); CREATE TABLE u(id TEXT PRIMARY KEY)", ("t", "u")
            )
            app.in_scope(f"days:{seed}")
            days.append(StrangeDay(app, dice))
        for day in days:
            day.write(20)
            self.moved(day)
        for _ in range(STEPS):
            day = dice.choice(days)
            day.act()
            if dice.random() < 0.4:
                self.assert_counted(day.app)
            if dice.random() < 0.5:
                day.done.append("sync")
                self.moved(day)
        for day in [*days, *days]:
            self.moved(day)
        for day in days:
            for other in days:
                found = rows(other.app, day.app.sub)
                every = day.expected.keys() | found.keys()
                pairs = {key: (day.expected.get(key), found.get(key)) for key in every}
                lost = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
                self.assertEqual({}, lost, f"of {day.app.sub} on {other.app.sub}, after {day.done}")
            self.assertEqual(day.nameless, day.app.count("t", "k IS NULL"), f"rows without a key, after {day.done}")
            self.assert_counted(day.app)
            verified = day.app.verify()
            self.assertEqual(0, verified.json.get("differing"), f"{verified}")

    def moved(self, day: StrangeDay) -> None:
        told = self.decided(day.app)
        self.assertEqual(3 if day.nameless else 0, told.code, f"after {day.done}: {told}")


if __name__ == "__main__":
    unittest.main()
