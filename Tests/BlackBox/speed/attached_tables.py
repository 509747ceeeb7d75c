"""What tables of the operator's own cost, measured in one run: edits of devices into the log alone, into an attached
table one row after the other, and together; a program's update until the log has it; and a server with nothing to do.
Machines differ; the ratios are what to compare, and the targets are for two cores that do nothing else. Exit code 1
where the table and the log do not hold what was sent."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from support.postgres_server import NotInstalled, PostgresFolder, PostgresServer
from support.server_process import ServerProcess, binary
from support.tokens import mint

DEVICES = 4
BATCH = 500
REFUSED_BATCH = 100  # so that no request ends before it is through
IDLE_SECONDS = 10
WAIT_SECONDS = 600
# For 100,000 rows on two cores, the client's work among theirs.
EDITS_PER_SECOND, UPDATE_SECONDS, IDLE_SHARE = 10_000, 6, 0.01
TICKS = os.sysconf("SC_CLK_TCK")


def edits_of(entity: str, device: int, first: int, count: int, refused: bool) -> list[dict[str, Any]]:
    """A device's next edits; where one of them is refused, the others are written one after the other."""
    return [
        {
            "lane": f"lane-{entity}",
            "number": first + index + 1,
            "type": "upsert",
            "entity": entity,
            "id": f"{entity}-{device}-{first + index}",
            "fields": {
                "title": "no" if refused and index == 0 else f"row {first + index}",
                "list_id": device,
                "done": 0,
            },
        }
        for index in range(count)
    ]


def request(scope: str, device: int, operations: list[dict[str, Any]]) -> bytes:
    return json.dumps(
        {"scope": scope, "clientId": f"device-{device:04}", "acked": {}, "operations": operations}
    ).encode()


class Device(threading.Thread):
    def __init__(self, server: ServerProcess, entity: str, number: int, rows: int, refused: bool):
        super().__init__(daemon=True)
        self.scope, self.wrong = f"list:{number}", 0
        self.token = mint(server.secret, f"user-{number}", {self.scope: "rw"})
        self.port, self.number, self.refused = server.port, number, refused
        size = REFUSED_BATCH if refused else BATCH
        self.batches = [edits_of(entity, number, first, size, refused) for first in range(0, rows, size)]
        self.bodies = [request(self.scope, number, batch) for batch in self.batches]

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        for batch, body in zip(self.batches, self.bodies):
            said: list[str] = []
            while len(said) < len(batch):
                connection.request("POST", "/sync/push", body, headers)
                results = json.loads(connection.getresponse().read()).get("results", [])
                said += [result.get("status") for result in results]
                if not results:
                    break
                # A push may be ended early where others wait.
                body = request(self.scope, self.number, batch[len(said) :])
            self.wrong += abs(said.count("applied") - len(batch) + (1 if self.refused else 0))
        connection.close()


def edits(server: ServerProcess, entity: str, rows: int, refused: bool = False) -> int:
    """How many edits were not answered as they should."""
    devices = [Device(server, entity, number, rows // DEVICES, refused) for number in range(DEVICES)]
    for device in devices:
        device.start()
    for device in devices:
        device.join()
    return sum(device.wrong for device in devices)


def drained(postgres: PostgresServer) -> float:
    began = time.monotonic()
    while time.monotonic() - began < WAIT_SECONDS:
        if postgres.psql("SELECT count(*) FROM (SELECT 1 FROM tidemark_log.capture LIMIT 1) AS c", "log") == "0":
            return time.monotonic() - began
        time.sleep(0.05)
    raise SystemExit("the log does not come up with the table")


def ticks(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass  # it has ended
    return total


def worked(server: ServerProcess, postgres: PostgresServer) -> tuple[float, float]:
    """Seconds of a core that the server and PostgreSQL have taken: a busy machine changes them little."""
    asked = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    backends = [int(pid) for pid in postgres.psql(asked, "log").split()]
    return ticks([server.pid]) / TICKS, ticks(backends) / TICKS


class Figure:
    """What one kind of work takes, on the clock and of both programs."""

    def __init__(self, name: str, server: ServerProcess, postgres: PostgresServer):
        self.name, self.server, self.postgres = name, server, postgres
        self.began, self.before = time.monotonic(), worked(server, postgres)

    def tell(self, count: int) -> float:
        each = (time.monotonic() - self.began) / count
        after = worked(self.server, self.postgres)
        cores = [1e6 * (end - start) / count for start, end in zip(self.before, after)]
        print(
            f"{self.name:<52} {1 / each:8,.0f}/s {1e6 * each:6.0f} us each; "
            f"of a core {cores[0]:.0f} us the server, {cores[1]:.0f} us PostgreSQL",
            flush=True,
        )
        return each


def target(name: str, value: float, limit: float, is_held: bool, unit: str) -> None:
    print(f"{name:<52} {value:10,.2f} {unit}; target {limit:,g}: {'held' if is_held else 'MISSED'}", flush=True)


def attach(folder: PostgresFolder, primary: PostgresServer, table: str) -> None:
    words = ["attach", "--store", folder.url([primary]), "--table", table, "--scope-column", "list_id"]
    words += ["--scope-prefix", "list:", "--all-columns"]
    done = subprocess.run([binary(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows // (DEVICES * BATCH) * DEVICES * BATCH
    try:
        folder = PostgresFolder(connections=100)
    except NotInstalled as missing:
        print(f"not run: {missing}")
        return 0
    with folder, tempfile.TemporaryDirectory() as place:
        primary = folder.primary()
        for table in ("together", "apart"):
            primary.psql(
                f"CREATE TABLE {table} (id text PRIMARY KEY, list_id int NOT NULL, done int, "
                f"title text CHECK (title <> 'no')); ALTER TABLE {table} OWNER TO app",
                "log",
            )
        print(f"load at the start: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
        with ServerProcess(Path(place), store=folder.url([primary])) as server:
            server.start()
            for table in ("together", "apart"):
                attach(folder, primary, table)
            wrong, seconds = 0, []
            for name, entity, count, refused in [
                ("edits into the log alone", "plain", rows, False),
                ("edits into an attached table, one after the other", "apart", rows // 5, True),
                ("edits into an attached table, together", "together", rows, False),
            ]:
                figure = Figure(name, server, primary)
                wrong += edits(server, entity, count, refused)
                seconds.append(figure.tell(count))
                drained(primary)
            print(f"together takes {seconds[2] / seconds[1]:.2f} of one after the other")
            figure = Figure("rows of one UPDATE until the log has them", server, primary)
            primary.psql("UPDATE together SET done = 1", "log")
            wrote = time.monotonic() - figure.began
            drained(primary)
            updated = figure.tell(rows) * rows
            print(f"{updated:.1f} s in all, of these {wrote:.1f} s in the program's own statement")
            time.sleep(2)
            before = worked(server, primary)
            time.sleep(IDLE_SECONDS)
            shares = [(end - start) / IDLE_SECONDS for start, end in zip(before, worked(server, primary))]
            print(f"with nothing to do: the server {shares[0]:.2%} of a core, PostgreSQL {shares[1]:.2%}")
            found = primary.psql(
                "SELECT (SELECT count(*) FROM together WHERE done = 1), (SELECT count(*) FROM tidemark_log.change "
                "WHERE entity = 'together' AND superseded_by IS NULL AND kind = 0 "
                "AND convert_from(payload, 'UTF8') LIKE '%\"done\":1%')",
                "log",
            )
            print(f"rows in the table and in the log: {found}")
            rate = 1 / seconds[2]
            target("edits into an attached table", rate, EDITS_PER_SECOND, rate >= EDITS_PER_SECOND, "/s")
            scaled = UPDATE_SECONDS * rows / 100_000
            target("one UPDATE until the log has it", updated, scaled, updated <= scaled, "s")
            for name, share in zip(("the server", "PostgreSQL"), shares):
                target(f"{name} with nothing to do", 100 * share, 100 * IDLE_SHARE, share < IDLE_SHARE, "% of a core")
            return 0 if wrong == 0 and found == f"{rows}|{rows}" else 1


if __name__ == "__main__":
    sys.exit(main())
