"""Checks a running server from outside, by the protocol's document alone. Exit code 1: it broke a promise."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from protocol import convergence
from protocol.client import Client, Reader
from protocol.ledger import ScopeLedger
from protocol.scope_client import ScopeClient
from protocol.violation import Verdict, Violation
from protocol.wire import Wire
from support.tokens import mint


@dataclass
class Settings:
    url: str
    secret: bytes
    seconds: float = 30
    clients: int = 8
    scopes: int = 3
    rate: float = 100
    seed: int = 0
    others: Sequence[str] = ()  # further nodes of the same server


class Run:
    def __init__(self, settings: Settings):
        self.settings, self.verdict = settings, Verdict()
        self.run_id = uuid.uuid4().hex[:8]
        self.ledgers = [ScopeLedger(f"box.{self.run_id}.{n:04d}") for n in range(settings.scopes)]
        self.secrets = {ledger.name: ledger.marker.encode() for ledger in self.ledgers}
        readers = max(1, settings.clients // 4)
        pause = (settings.clients + readers) / settings.rate
        self.clients: list[Client] = [self._client(n, pause) for n in range(settings.clients)]
        self.clients += [self._reader(settings.clients + n, pause) for n in range(readers)]

    def _client(self, number: int, pause: float) -> Client:
        # With two scopes or more each writer is kept out of one.
        count = len(self.ledgers)
        foreign = self.ledgers[number % count].name if count > 1 else None
        scopes = [ledger for ledger in self.ledgers if ledger.name != foreign]
        wire = self._wire(number, {ledger.name: "rw" for ledger in scopes})
        return Client(number, wire, scopes, foreign, pause, f"{self.settings.seed}/{number}")

    def _reader(self, number: int, pause: float) -> Client:
        wire = self._wire(number, {f"box.{self.run_id}.*": "r"})
        return Reader(number, wire, self.ledgers, None, pause, f"{self.settings.seed}/{number}")

    def _wire(self, number: int, grants: dict[str, str]) -> Wire:
        token = mint(self.settings.secret, f"user-{self.run_id}-{number}", grants)
        dice = random.Random(f"{self.settings.seed}/wire/{number}")
        urls = [self.settings.url, *self.settings.others]
        return Wire(urls, token, f"box-{self.run_id}-{number:03d}", self.secrets, self.verdict, dice)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.verdict.over.set()

    def start(self) -> None:
        wire = self.clients[0].wire
        declared = wire.get("/sync/declarations", None).expect(200)["entities"]
        for client in self.clients:
            client.priorities = {name: rules.get("priority", 0) for name, rules in declared.items()}
            client.start()

    def stop(self) -> None:
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join()
        self._every_client(lambda client: client.finish)
        self._every_client(lambda client: client.catch_up)
        for ledger in self.ledgers:
            if not self.verdict.over.is_set():
                self.clients[-1].attempt(lambda: convergence.check(ledger, self.clients))
        for client in self.clients:
            client.wire.close()

    def _every_client(self, step: Callable[[Client], Callable[[ScopeClient], None]]) -> None:
        if self.verdict.over.is_set():
            return
        threads = [threading.Thread(target=client.every_scope, args=(step(client),)) for client in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def check(settings: Settings) -> Verdict:
    run = Run(settings)
    if run.clients[0].attempt(run.start):
        run.verdict.over.wait(settings.seconds)
    elif not run.verdict.violations:
        run.verdict.report(Violation("not_recovered", f"{settings.url} does not answer"))
    run.stop()
    return run.verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of a server that runs, for example http://127.0.0.1:8080")
    parser.add_argument("--secret-file", help="the secret that tokens are signed with; without it TIDEMARK_SECRET")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8, help="that write; a quarter as many only read")
    parser.add_argument("--scopes", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100, help="actions a second of all clients together")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.secret_file:
        with open(options.secret_file, "rb") as file:
            secret = file.read().strip()
    else:
        secret = os.environ.get("TIDEMARK_SECRET", "").strip().encode()
    if not secret:
        parser.error("no secret: give --secret-file or TIDEMARK_SECRET")
    asked = (options.seconds, options.clients, options.scopes, options.rate, options.seed)
    verdict = check(Settings(options.url, secret, *asked))
    tell(verdict, options.seed, options.json)
    return 1 if verdict.violations else 0


def tell(verdict: Verdict, seed: int, as_json: bool) -> None:
    if as_json:
        violations = [{"kind": v.kind, "reason": v.reason, "evidence": v.evidence} for v in verdict.violations]
        print(json.dumps({"seed": seed, "violations": violations, "counts": verdict.counts}))
        return
    for what, count in verdict.counts.items():
        print(f"  {count:>9,}  {what}")
    for violation in verdict.violations:
        print(f"\nVIOLATION {violation}", file=sys.stderr)
    print(f"seed {seed}: " + ("every promise kept" if not verdict.violations else "BROKEN"))


if __name__ == "__main__":
    sys.exit(main())
