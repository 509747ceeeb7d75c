"""Sockets of ill will: slow ones, half-open ones, nonsense and bombs. A client of good will is served all the same."""

from __future__ import annotations

import re
import socket
import threading
import time

from attacks.raw_requests import Attack, attacks, post
from support.pusher import Pusher
from support.report import Budget, Report
from support.server_process import ServerProcess

SERVED_WITHIN_SECONDS = 1.0
MEMORY_BOUND_MIB = 512
SLOW_SOCKETS = 200
ANSWER_SECONDS = 3


def run(report: Report, budget: Budget) -> None:
    with ServerProcess.temporary() as server:
        pusher = Pusher(server)
        _good_will(server, pusher, report, "before all")
        report.counts["MiB at first"] = server.rss_kib() // 1024
        rounds = 0
        while rounds == 0 or budget.left(0.7) > 0:
            for attack in attacks(pusher.token, budget.dice):
                for request in attack.requests:
                    _send(server, attack, request, report)
                _good_will(server, pusher, report, attack.name)
            rounds += 1
        report.add("rounds", rounds)
        _slow(server, pusher, report, max(2.0, budget.left(0.95)))
        report.require(pusher.held() == pusher.acknowledged, "what was acknowledged and what is there differ")


def _good_will(server: ServerProcess, pusher: Pusher, report: Report, after: str) -> None:
    if not server.is_up():
        raise RuntimeError(f"the server is gone after {after}: {server.log.read_text()[-2000:]}")
    began = time.monotonic()
    status, _, told = pusher.push()
    took = time.monotonic() - began
    report.require(status == 200, f"after {after} a push got {status} {told}")
    report.require(took < SERVED_WITHIN_SECONDS, f"after {after} a push took {took:.1f} s")
    report.worst("worst seconds of a push beside it", took)
    rss = server.rss_kib() // 1024
    report.worst("MiB at most", rss)
    report.require(rss < MEMORY_BOUND_MIB, f"after {after} the server holds {rss} MiB")


def _send(server: ServerProcess, attack: Attack, request: bytes, report: Report) -> None:
    report.add("attacks")
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS) as hostile:
            threading.Thread(target=_pour, args=(hostile, request), daemon=True).start()
            began = time.monotonic()
            head = hostile.recv(65_536)
            took = time.monotonic() - began
    except TimeoutError:
        # Such a request may be one that is still incomplete; the slow ones have a round of their own.
        report.add("attacks left without an answer")
        return
    except OSError:
        report.add("attacks cut off")
        return
    status = re.match(rb"HTTP/1\.[01] (\d+)", head)
    if not head or status is None:
        report.add("attacks cut off")
        return
    report.add(f"attacks answered {status[1].decode()}")
    report.worst("worst seconds to refuse", took)
    allowed = int(status[1]) in attack.allowed
    report.require(allowed, f"{attack.name}: …{request[-60:]!r} got {head.splitlines()[0]!r}")


def _pour(hostile: socket.socket, request: bytes) -> None:
    try:
        hostile.sendall(request)
    except OSError:
        pass  # because the server may hang up as soon as it has seen enough


def _slow(server: ServerProcess, pusher: Pusher, report: Report, seconds: float) -> None:
    """Headers and bodies byte by byte, connections that say nothing, that half close, and that never read."""
    body = post(b"{" * 1000, pusher.token, length="100000")
    target = (
        b"GET /sync/changes?scope=torture.full HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + pusher.token.encode()
    )
    sockets: list[tuple[socket.socket, bytes]] = []
    for number in range(SLOW_SOCKETS):
        slow = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        slow.setblocking(False)
        kind = number % 5
        if kind == 0:
            slow.send(b"GET /health HTTP/1.1\r\n")
        elif kind == 1:
            slow.send(body[: body.index(b"{") + 10])
        elif kind == 2:
            slow.shutdown(socket.SHUT_WR)
        elif kind == 3:
            # Asks for much and reads nothing of it.
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.send((target + b"\r\n\r\n") * 20)
        sockets.append((slow, (b"A", b" ", b"", b"", b"")[kind]))
    began, hung_up = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for at, (slow, drop) in enumerate(sockets):
            try:
                if drop:
                    slow.send(drop)
            except OSError:
                hung_up += 1
                sockets[at] = (slow, b"")
        _good_will(server, pusher, report, "slow sockets")
        time.sleep(0.2)
    report.add("slow sockets", SLOW_SOCKETS)
    report.add("slow sockets that were hung up on", hung_up)
    for slow, _ in sockets:
        slow.close()
