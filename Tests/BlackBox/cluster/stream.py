"""A scope in which every version is a new record, so that a reader who counts notices each row that it was not shown.

A writer's records bear its number and go up by one. Whoever reads therefore needs to remember the last version and the
last record of each writer, and nothing else: a row that is skipped, that comes twice or late is out of its turn.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.wire import Lost
from support.tokens import mint

PAGE = 2_000
RETRY_SECONDS = 0.1
IDLE_SECONDS = 0.02
PULLS_PER_NODE = 20


@dataclass
class Setup:
    ports: Sequence[int]
    secret: bytes
    batch: int = 100  # operations of a push
    patience: float = 20  # seconds that an answer is waited for
    pause: float = 0  # of a writer, between pushes
    page: int = PAGE


@dataclass
class Tally:
    """What became of one scope."""

    scope: str
    acknowledged: dict[int, int] = field(default_factory=dict)  # of each writer, its last record
    faults: list[str] = field(default_factory=list)

    def fault(self, reason: str) -> None:
        if len(self.faults) < 20:
            self.faults.append(reason)


class Caller(threading.Thread):
    """One device: a connection to one node, and to another one when that fails."""

    def __init__(self, setup: Setup, tally: Tally, name: str, grant: str, seed: object):
        super().__init__(name=name, daemon=True)
        self.setup, self.tally = setup, tally
        self.dice = random.Random(f"{seed}/{name}")
        self.client = f"{name}-{uuid.UUID(int=self.dice.getrandbits(128)).hex[:8]}"
        self.token = mint(setup.secret, name, {tally.scope: grant})
        self.seconds: list[float] = []  # of each answer
        self.lost = 0
        self.stopping = threading.Event()
        self.place: str | None = None  # what the last answer named as the place to go on from
        self._port = self.dice.choice(setup.ports)
        self._connection: http.client.HTTPConnection | None = None

    def move(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        others = [port for port in self.setup.ports if port != self._port]
        self._port = self.dice.choice(others or [self._port])

    def take_over(self, other: Caller) -> None:
        """Goes on with another one's connection."""
        self._port, self._connection = other._port, other._connection

    def ask(self, method: str, target: str, body: bytes | None = None) -> dict[str, Any]:
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {self.token}", "Tidemark-Client": self.client}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self.setup.patience)
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Lost(type(error).__name__) from error
        if response.status in (429, 503):
            raise Lost(str(response.status))
        if response.status >= 500:
            # A fault of the server, and no reason to stop looking for worse.
            self.tally.fault(f"{self.name}: {method} {target[:40]}… is {response.status} {raw[:200]!r}")
            raise Lost(str(response.status))
        if response.status != 200:
            raise RuntimeError(f"{self.name}: {method} {target[:200]} is {response.status} {raw[:400]!r}")
        self.seconds.append(time.monotonic() - began)
        self.place = response.getheader("Tidemark-Checkpoint")
        found: dict[str, Any] = json.loads(raw)
        return found

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                if not self.act():
                    return
            except Lost:
                self.lost += 1
                self.move()
                self.stopping.wait(self.dice.uniform(0, 2 * RETRY_SECONDS))
            except Exception as error:
                self.tally.fault(f"{type(error).__name__}: {error}")
                return
        self.move()

    def act(self) -> bool:
        raise NotImplementedError


class Writer(Caller):
    """Sends the same bytes until they have their verdicts, through whichever node answers."""

    def __init__(self, setup: Setup, tally: Tally, number: int, rows: int | None = None, seed: object = 0):
        super().__init__(setup, tally, f"writer{number}", "rw", seed)
        self.number, self.rows = number, rows
        self.sent = self.done = self.repeats = 0
        self.lane = uuid.UUID(int=self.dice.getrandbits(128)).hex
        self.finishing = threading.Event()  # ends once the last batch has its verdicts
        self._body: bytes | None = None
        self._top = 0

    def act(self) -> bool:
        if self._body is None:
            if self.finishing.is_set() or self.done == self.rows:
                return False
            self._body = self._seal()
        results = self.ask("POST", "/sync/push", self._body)["results"]
        numbers = [result["number"] for result in results]
        taken = self.done + len(numbers)
        if not numbers or taken > self.sent or numbers != list(range(self.done + 1, taken + 1)):
            raise RuntimeError(f"{self.name}: verdicts {numbers[:3]}… for {self.done + 1} to {self.sent}")
        for result in results:
            version = result.get("version", 0)
            if result["status"] != "applied" or version <= self._top:
                raise RuntimeError(f"{self.name}: {result} after version {self._top}")
            self._top = version
        self.repeats += bool(results[0].get("replayed"))
        self.done, self._body = taken, self._rest(self._body, len(numbers)) if taken < self.sent else None
        self.tally.acknowledged[self.number] = self.done
        if self.setup.pause:
            self.finishing.wait(self.dice.uniform(0, 2 * self.setup.pause))
        return True

    def _rest(self, body: bytes, taken: int) -> bytes:
        """A request may end behind any of its operations (W76): the others are sent again."""
        request = json.loads(body)
        return json.dumps(request | {"operations": request["operations"][taken:]}).encode()

    def _seal(self) -> bytes:
        count = self.setup.batch if self.rows is None else min(self.setup.batch, self.rows - self.done)
        operations = []
        for number in range(self.done + 1, self.done + count + 1):
            operations.append(
                f'{{"lane":"{self.lane}","number":{number},"type":"upsert","entity":"item",'
                f'"id":"{self.number}-{number}","fields":{{"text":"written by {self.number}","n":{number}}}}}'
            )
        self.sent = self.done + count
        head = f'{{"scope":"{self.tally.scope}","clientId":"{self.client}","operations":['
        return (head + ",".join(operations) + "]}").encode()


class Reader(Caller):
    """Pulls from one node after the other and expects each version and each record in its turn."""

    def __init__(self, setup: Setup, tally: Tally, number: int, seed: object = 0):
        super().__init__(setup, tally, f"reader{number}", "r", seed)
        self.since: str | None = None
        self.version = 0
        self.seen: dict[int, int] = {}
        self.missed = self.twice = self.pulls = 0
        self.whole_at = 0.0

    @property
    def rows(self) -> int:
        return sum(self.seen.values())

    def act(self) -> bool:
        since = f"&since={self.since}" if self.since else ""
        page = self.ask("GET", f"/sync/changes?scope={self.tally.scope}&limit={self.setup.page}{since}")
        for change in page["changes"]:
            self._take(change)
        self.since = page["nextSince"]
        self.pulls += 1
        if not page["hasMore"]:
            self.whole_at = time.monotonic()
            if page["head"] != self.version:
                self.missed += max(0, page["head"] - self.version)
                self.tally.fault(f"{self.name}: the head is {page['head']} and the last row {self.version}")
            self.stopping.wait(IDLE_SECONDS)
        if self.pulls % PULLS_PER_NODE == 0:
            self.move()
        return True

    def _take(self, change: dict[str, Any]) -> None:
        version = change["version"]
        writer, number = (int(part) for part in change["id"].split("-"))
        last = self.seen.get(writer, 0)
        if version != self.version + 1 or number != last + 1:
            self.missed += max(0, version - self.version - 1, number - last - 1)
            self.twice += number <= last or version <= self.version
            self.tally.fault(f"{self.name}: {change['id']} at {version} after {writer}-{last} at {self.version}")
        self.version, self.seen[writer] = version, number

    def holds(self) -> bool:
        """Whether everything that was acknowledged is here."""
        return all(self.seen.get(writer, 0) >= number for writer, number in list(self.tally.acknowledged.items()))


class CursorReader(Reader):
    """Scans the entity's cursor delta instead (E1): the times grow strictly, and a cursor in the middle of a scan gives
    the same page through every node."""

    def __init__(self, setup: Setup, tally: Tally, number: int, seed: object = 0):
        super().__init__(setup, tally, number, seed)
        self.updated = ""
        self.in_scan = False

    def act(self) -> bool:
        page = self._page(self.since)
        if self.pulls % PULLS_PER_NODE == 0 and self.in_scan:
            self.move()
            if (again := self._page(self.since)) != page:
                self.tally.fault(f"{self.name}: the same cursor gave {len(again['upserts'])} other rows")
        for record in page["upserts"]:
            if record["updatedAt"] <= self.updated:
                self.tally.fault(f"{self.name}: {record['id']} at {record['updatedAt']} after {self.updated}")
            self.updated = record["updatedAt"]
            # Each version is a record, so that their number is the version.
            self._take({"id": record["id"], "version": self.version + 1})
        if page["tombstones"]:
            self.tally.fault(f"{self.name}: nobody has deleted {page['tombstones'][:3]}")
        self.pulls += 1
        self.since, self.in_scan = page["nextCursor"] or self.place, page["nextCursor"] is not None
        if page["nextCursor"] is None:
            self.whole_at = time.monotonic()
            self.stopping.wait(IDLE_SECONDS)
        return True

    def _page(self, cursor: str | None) -> dict[str, Any]:
        place = f"&cursor={cursor}" if cursor else ""
        return self.ask("GET", f"/item/delta?scope={self.tally.scope}&limit={self.setup.page}{place}")


class Stream:
    """Writers and readers of one scope, on some nodes; with `cursors` every second reader scans a cursor delta."""

    def __init__(
        self,
        setup: Setup,
        scope: str,
        writers: int,
        readers: int,
        rows: int | None = None,
        seed: object = 0,
        cursors: bool = False,
    ):
        self.tally = Tally(scope)
        each = None if rows is None else rows // writers
        self.writers = [Writer(setup, self.tally, number, each, f"{seed}/{scope}") for number in range(writers)]
        kinds = (Reader, CursorReader if cursors else Reader)
        self.readers = [kinds[number % 2](setup, self.tally, number, f"{seed}/{scope}") for number in range(readers)]

    def start(self) -> None:
        for caller in [*self.writers, *self.readers]:
            caller.start()

    @property
    def acknowledged(self) -> int:
        return sum(writer.done for writer in self.writers)

    def finish(self, seconds: float) -> float | None:
        """Lets everybody come to an end. Returns how long it took, `None` if somebody did not get there."""
        began = time.monotonic()
        for writer in self.writers:
            writer.finishing.set()
        for writer in self.writers:
            writer.join(max(0.0, began + seconds - time.monotonic()))
        while not self._is_done() and time.monotonic() - began < seconds:
            time.sleep(0.02)
        took = time.monotonic() - began if self._is_done() else None
        for caller in [*self.writers, *self.readers]:
            caller.stopping.set()
        for reader in self.readers:
            reader.join(self.readers[0].setup.patience)
        return took

    def _is_done(self) -> bool:
        written = not any(writer.is_alive() for writer in self.writers)
        return written and all(reader.holds() for reader in self.readers)

    @property
    def lost(self) -> int:
        """Acknowledged rows that the worst reader does not hold, or passed over."""
        wanted = self.tally.acknowledged
        short = [sum(max(0, n - r.seen.get(w, 0)) for w, n in wanted.items()) + r.missed for r in self.readers]
        return max(short, default=0)

    @property
    def twice(self) -> int:
        return max((reader.twice for reader in self.readers), default=0)

    def verify(self) -> list[str]:
        """What is wrong in the end, in words."""
        wrong = list(self.tally.faults)
        for reader in self.readers:
            if reader.rows != self.acknowledged or reader.version != self.acknowledged:
                wrong.append(
                    f"{reader.name} holds {reader.rows} rows and {reader.version} versions of {self.acknowledged}"
                )
        for writer in self.writers:
            if writer.done != writer.sent:
                wrong.append(f"{writer.name} has no verdict on {writer.done + 1} to {writer.sent}")
        return wrong[:20]
