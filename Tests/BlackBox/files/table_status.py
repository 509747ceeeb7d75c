"""What `status --json` says of every table (I13), and the words of the command that stand for a decision.

The shape of that answer is read here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Lets go out what was inferred and is held back for being so much; the other way round; and the local rows go.
CONFIRM = "--confirm"
TAKE_SERVERS = "--take-servers"
DISCARD_LOCAL = "--discard-local"


@dataclass(frozen=True)
class Counts:
    rows: int
    confirmed: int
    outgoing: int
    stalled: int
    unable: int
    # Beside the rows: deletes that the server has not taken, and rows that are kept outside of the table.
    deletes: int
    quarantined: int

    @property
    def of_rows(self) -> int:
        return self.confirmed + self.outgoing + self.stalled + self.unable

    @property
    def held_up(self) -> int:
        """What does not travel with the next sync by itself."""
        return self.stalled + self.unable


class Untold(AssertionError):
    """The status does not say how the rows of a table stand."""


def counts(report: dict[str, Any]) -> dict[str, Counts]:
    """By table name in lower case."""
    tables = report.get("tables")
    entries: dict[str, dict[str, Any]] = {}
    if isinstance(tables, dict):
        entries = {name: entry for name, entry in tables.items() if isinstance(entry, dict)}
    elif isinstance(tables, list):
        entries = {str(entry.get("table", entry.get("name"))): entry for entry in tables if isinstance(entry, dict)}
    if tables and not entries:
        raise Untold(f"status counts no rows: {report}")
    return {name.lower(): _counts(name, entry) for name, entry in entries.items()}


def _counts(name: str, entry: dict[str, Any]) -> Counts:
    missing = [word for word in Counts.__dataclass_fields__ if not isinstance(entry.get(word), int)]
    if missing:
        raise Untold(f"status does not count {missing} of {name}: {entry}")
    return Counts(**{word: entry[word] for word in Counts.__dataclass_fields__})


def names(report: dict[str, Any]) -> set[str]:
    """Of the tables that the status speaks of, whether it counts their rows or not."""
    tables = report.get("tables") or []
    found = [entry.get("table", entry.get("name")) if isinstance(entry, dict) else entry for entry in tables]
    return {str(name).lower() for name in found}


def orphaned(report: dict[str, Any]) -> int:
    """Rows and edits that are kept outside of all tables."""
    return int(report.get("orphaned", 0))


def waits(report: dict[str, Any]) -> int:
    """Edits without a verdict."""
    return sum(int(report.get(name, 0)) for name in ("pending", "sent", "blocked"))


def conflicts(report: dict[str, Any], table: str) -> list[dict[str, Any]]:
    return [each for each in report.get("conflicts", []) if each["table"].lower() == table.lower()]


def open_conflicts(report: dict[str, Any], table: str) -> set[str]:
    return {conflict["record"] for conflict in conflicts(report, table) if conflict["isOpen"]}
