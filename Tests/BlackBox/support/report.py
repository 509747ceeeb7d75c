"""What a scenario did and found. What did not run is said too, since silence would read as success."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Report:
    name: str
    counts: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def ran(self) -> bool:
        """Whether anything was done but to look at the clock."""
        return not self.not_run or len(self.counts.keys() - {"seconds"}) > 0

    def add(self, what: str, by: float = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def worst(self, what: str, value: float) -> None:
        self.counts[what] = max(self.counts.get(what, 0), round(value, 3))

    def fail(self, reason: str) -> None:
        if reason not in self.failures:
            self.failures.append(reason)

    def require(self, holds: bool, reason: str) -> None:
        if not holds:
            self.fail(reason)


@dataclass
class Budget:
    """A scenario goes on while `left()`; what it has begun it ends, so budgets are kept by and large."""

    seconds: float
    dice: random.Random
    began: float = field(default_factory=time.monotonic)

    def left(self, share: float = 1.0) -> float:
        return self.began + self.seconds * share - time.monotonic()


Scenario = Callable[[Report, Budget], None]


def patiently(act: Callable[[], bool], seconds: float, pause: float = 0.1) -> float | None:
    """How long it took until it held; None if it never did."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if act():
            return time.monotonic() - began
        time.sleep(pause)
    return None
