"""How long `tidemark devices` takes on a PostgreSQL store that knows many devices, in every order. Their rows are
written by SQL: the exchanges that would write them are not what is measured. Machines differ; the target is for two
cores that do nothing else. Exit code 1 where a list is not as long as it has to be."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.postgres_server import NotInstalled, PostgresFolder, PostgresServer
from support.server_process import ServerProcess, binary
from support.tokens import mint

SCOPES = 50
CHANGES = 20
LISTED = 100
SECONDS = 1
DEVICES = f"""
    INSERT INTO tidemark_log.device (version, seen_at, scope, principal, client, reported_at, pending, oldest_edit,
        refused, quarantined, app, library)
    SELECT i %% {CHANGES}, 1700000000000 + i, 's:' || i %% {SCOPES}, convert_to('u' || i, 'UTF8'), md5(i::text),
        1700000000000 + i, i %% 7, i %% 1000, i %% 50 / 49, 0, '1.0', '0.1' FROM generate_series(1, %d) i;
    ANALYZE tidemark_log.device
    """


def write(server: ServerProcess, scope: str) -> None:
    operations = [
        {"lane": "1" * 32, "number": n + 1, "type": "upsert", "entity": "task", "id": f"t{n}", "fields": {"title": "x"}}
        for n in range(CHANGES)
    ]
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {
        "Authorization": f"Bearer {mint(server.secret, 'ada', {scope: 'rw'})}",
        "Content-Type": "application/json",
        "Tidemark-Protocol": "1",
    }
    body = {"clientId": "1" * 32, "scope": scope, "operations": operations}
    connection.request("POST", "/sync", json.dumps(body), headers)
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(answer.read().decode())
    connection.close()


def fill(server: ServerProcess, database: PostgresServer, devices: int) -> None:
    for scope in range(SCOPES):
        write(server, f"s:{scope}")
    database.psql(DEVICES % devices, "log")


def listed(url: str, *words: str) -> tuple[float, int]:
    began = time.monotonic()
    command = [binary(), "devices", "--store", url, "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return time.monotonic() - began, len(json.loads(done.stdout)["devices"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=50_000)
    devices = parser.parse_args().devices
    with PostgresFolder(durable=False) as folder, tempfile.TemporaryDirectory() as home:
        database = folder.primary()
        url = folder.url([database])
        with ServerProcess(Path(home), store=url) as server:
            server.start()
            fill(server, database, devices)
        print(f"{devices} devices in {SCOPES} scopes, the first {LISTED} of them")
        held = True
        for words in ([], ["--sort", "seen"], ["--sort", "pending"], ["--sort", "oldest"], ["--with-errors"]):
            seconds, count = listed(url, *words)
            held = held and count == LISTED
            verdict = "held" if seconds <= SECONDS else "MISSED"
            print(f"  {' '.join(words) or 'behind':<20} {seconds:6.2f} s   target {SECONDS} s: {verdict}")
        seconds, count = listed(url, "--limit", str(devices))
        print(f"  {'all of them':<20} {seconds:6.2f} s")
        return 0 if held and count >= devices else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotInstalled as problem:
        sys.exit(str(problem))
