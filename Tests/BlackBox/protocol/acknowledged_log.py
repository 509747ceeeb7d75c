"""After the run: the log as the verdicts tell it, and every whole state that a reader held, as of its version."""

from __future__ import annotations

from protocol.ledger import Json, Key, ScopeLedger, Write
from protocol.violation import Violation

Rows = dict[Key, tuple[int, Json]]


class Log:
    """The acknowledged writes of a scope in the order of their versions, folded one after the other."""

    def __init__(self, scope: ScopeLedger):
        self.scope = scope
        self.rows: Rows = {}
        self.deleted: dict[Key, Write] = {}
        self._fields: dict[tuple[Key, str], int] = {}
        self._last: Write | None = None
        effects = [write for write in scope.writes if write.took_effect]
        # A delete that met nothing has the version of somebody else's write, and no effect.
        self._effects = sorted(effects, key=lambda w: (_version(w), w.operation["type"] == "delete"))

    def check(self) -> int:
        """Every sighting against the fold as of its head; how many there were."""
        for write in self.scope.writes:
            if write.result is None and not write.doomed:
                raise Violation("unanswered", "an operation has no verdict in the end (I10)", [str(write)])
            if write.doomed and write.took_effect:
                raise Violation("atomic_group", "an operation of a refused group took effect (W59)", [str(write)])
        sightings, at = sorted(self.scope.sightings, key=lambda sighting: sighting.head), 0
        for sighting in sightings:
            while at < len(self._effects) and _version(self._effects[at]) <= sighting.head:
                self._take(self._effects[at])
                at += 1
            difference = self.difference(sighting.rows)
            if difference:
                raise Violation(
                    "log_agreement",
                    f"{sighting.reader}, whole as of {sighting.head}, {difference} (I3)",
                    [self._last_on(difference), sighting.shown_by],
                )
        for write in self._effects[at:]:
            self._take(write)
        self._check_stamps()
        return len(sightings)

    def difference(self, rows: Rows) -> str:
        """The first thing that differs, in words; empty if nothing does."""
        for key in sorted(self.rows.keys() | rows.keys()):
            mine, theirs = self.rows.get(key), rows.get(key)
            if mine != theirs:
                return f"has {key} as {theirs} where the acknowledged writes make {mine}"
        return ""

    def _take(self, write: Write) -> None:
        key, version, result = write.key, _version(write), write.result or {}
        if write.operation["type"] == "delete":
            if key not in self.rows:
                return
            self._check_version(write)
            del self.rows[key]
            self.deleted[key] = write
            return
        self._check_version(write)
        if key in self.deleted:
            raise Violation(
                "resurrected", "an edit was taken after the delete (W37)", [str(self.deleted[key]), str(write)]
            )
        before, fields = self.rows.get(key, (0, {}))[1], write.operation["fields"]
        self._check_overwrote(write, before)
        self.rows[key] = version, {**before, **fields}
        self._fields |= {(key, name): version for name in fields if name not in before or before[name] != fields[name]}
        record = result.get("record")
        if record is not None and (record["version"], record.get("data")) != self.rows[key]:
            raise Violation("wrong_verdict", f"the record is {self.rows[key]} by then (W36)", [str(write)])

    def _check_overwrote(self, write: Write, before: Json) -> None:
        for entry in (write.result or {}).get("overwrote", []):
            name = entry["field"]
            if name not in before and entry["theirs"] is None:
                # An insert that meets a live record replaces the absence of a field, which has no writer.
                continue
            if (entry["version"], entry["theirs"]) != (self._fields.get((write.key, name)), before.get(name)):
                was = f"{before.get(name)!r} of {self._fields.get((write.key, name))}"
                raise Violation("wrong_verdict", f"overwrote {entry}; {name} was {was} (W36)", [str(write)])

    def _check_version(self, write: Write) -> None:
        if self._last is not None and _version(self._last) >= _version(write):
            raise Violation("version_reused", "two writes have one version (W11)", [str(self._last), str(write)])
        self._last = write

    def _check_stamps(self) -> None:
        told = sorted((version, stamp, row) for version, (row, stamp) in self.scope.versions.items())
        for (_, earlier, _), (version, later, row) in zip(told, told[1:]):
            if not earlier < later:
                raise Violation("stamp_order", f"{version} was made at {later}, after {earlier} (W16)", [row])

    def _last_on(self, difference: str) -> str:
        for write in reversed(self._effects):
            if repr(write.key) in difference:
                return f"last on it: {write}"
        return "no acknowledged write on it"


def _version(write: Write) -> int:
    return int((write.result or {})["version"])
