"""Everything that was ever sent, and the verdicts on it: what any reader's view is measured by."""

from __future__ import annotations

import json
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from protocol.violation import Violation

Json = dict[str, Any]
Key = tuple[str, str]
REGISTER = "register"
# A name that needs escapes wherever it stands.
NOTE = 'Note "1/2" é\\'


@dataclass
class Write:
    """One operation. Registers grow by `seq`, which counts a client's writes in a scope; notes come, change and go."""

    client: int
    scope: str
    seq: int
    operation: Json
    causes: dict[int, int]
    doomed: bool = False
    group_end: int = 0
    result: Json | None = None

    @property
    def key(self) -> Key:
        return self.operation["entity"], self.operation["id"]

    @property
    def took_effect(self) -> bool:
        return self.result is not None and self.result["status"] in ("applied", "merged")

    def __str__(self) -> str:
        sent = json.dumps(self.operation, ensure_ascii=False)
        return f"client {self.client} pushed {sent} → {json.dumps(self.result, ensure_ascii=False)}"


@dataclass(frozen=True)
class Sighting:
    """What a reader held when its state was whole as of `head`."""

    reader: str
    head: int
    rows: dict[Key, tuple[int, Json]]
    shown_by: str


@dataclass
class ScopeLedger:
    name: str
    marker: str = field(default_factory=lambda: secrets.token_hex(8))
    writes: list[Write] = field(default_factory=list)
    registers: dict[int, list[Write]] = field(default_factory=dict)
    sightings: list[Sighting] = field(default_factory=list)
    # Of each version: which row it is and when it was made. Two readers can not be told different things about it.
    versions: dict[int, tuple[str, str]] = field(default_factory=dict)
    taken: dict[int, Write] = field(default_factory=dict)
    gone: dict[Key, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, write: Write) -> None:
        with self.lock:
            self.writes.append(write)
            if write.seq:
                self.registers.setdefault(write.client, []).append(write)

    def note_verdict(self, write: Write, result: Json, shown_by: str) -> None:
        """Remembers a verdict. `settled` tells nothing new; anything else has to be what was told before."""
        if result["status"] == "settled":
            return
        with self.lock:
            told = {k: v for k, v in result.items() if k != "replayed"}
            if write.result is None:
                write.result = told
                self._own_version(write, shown_by)
            elif write.result != told:
                raise Violation(
                    "replay_differs",
                    f"the same key got another verdict: {told} after {write.result} (W33)",
                    [str(write), shown_by],
                )

    def _own_version(self, write: Write, shown_by: str) -> None:
        # A delete that met nothing has the version of somebody else's write.
        if not write.took_effect or write.operation["type"] == "delete":
            return
        other = self.taken.setdefault((write.result or {})["version"], write)
        if other is not write:
            raise Violation("version_reused", "two writes have one version (W11)", [str(other), str(write), shown_by])

    def saw(self, change: Json, shown_by: str) -> None:
        """One row of a page: the same version is the same row for every reader."""
        version = change["version"]
        row = json.dumps([change["type"], change["entity"], change["id"], change.get("data")], sort_keys=True)
        stamp = change.get("updatedAt") or change.get("deletedAt") or ""
        with self.lock:
            first = self.versions.setdefault(version, (row, stamp))
            if first != (row, stamp):
                raise Violation("version_reused", f"version {version} is {row} and was {first[0]} (W11)", [shown_by])
            key = (change["entity"], change["id"])
            if change["type"] == "delete":
                self.gone[key] = version
            elif self.gone.get(key, version) < version:
                raise Violation("resurrected", f"{key} was deleted at {self.gone[key]} and is back (I6)", [shown_by])

    def saw_whole(self, sighting: Sighting) -> None:
        with self.lock:
            self.sightings.append(sighting)

    def text(self, record: str, client: int, seq: int) -> str:
        """A value that names its scope, record, writer and place: whatever is moved or mixed up shows it."""
        return f"{self.marker}/{record}/{client}/{seq}"
