"""A promise that was broken, with the few requests that show it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Violation(Exception):
    kind: str
    reason: str
    evidence: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.reason}", *(f"    {line}" for line in self.evidence)])


class Verdict:
    """What all threads of a run report to. The first violation ends the run: what follows may only be its echo."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def report(self, violation: Violation) -> None:
        with self._lock:
            self.violations.append(violation)
        self.over.set()

    def count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + by

    @property
    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(sorted(self._counts.items()))
