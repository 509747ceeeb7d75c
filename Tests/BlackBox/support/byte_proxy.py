"""A TCP proxy that cuts connections after any byte, holds one direction back, delays, and resets."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST_STALL_SECONDS = 1.5
CHUNK_BYTES = 65_536


@dataclass
class Fault:
    """What happens to one connection. Counts are of bytes in one direction."""

    up_to: int | None = None
    down_to: int | None = None
    reset: bool = False
    stall_seconds: float = 0
    delay_seconds: float = 0


def draw(dice: random.Random) -> Fault:
    fault = Fault(reset=dice.random() < 0.5)
    # Powers, so that headers, short and long bodies are all cut often enough.
    at = int(2 ** dice.uniform(0, 14))
    kind = dice.random()
    if kind < 0.3:
        fault.up_to = at
    elif kind < 0.6:
        fault.down_to = at
    elif kind < 0.7:
        fault.down_to, fault.stall_seconds = at, dice.uniform(0.1, LONGEST_STALL_SECONDS)
    elif kind < 0.75:
        fault.up_to, fault.stall_seconds = at, dice.uniform(0.1, LONGEST_STALL_SECONDS)
    elif kind < 0.85:
        fault.delay_seconds = dice.uniform(0, 0.1)
    return fault


@dataclass
class ByteProxy:
    upstream_port: int
    dice: random.Random
    faults_ended: bool = False
    fault: Callable[[random.Random], Fault] = draw
    counts: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> ByteProxy:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            fault = Fault() if self.faults_ended else self.fault(self.dice)
            try:
                far = socket.create_connection(("127.0.0.1", self.upstream_port), timeout=10)
            except OSError:
                near.close()
                continue
            self._count("made")
            threading.Thread(target=self._pump, args=(near, far, fault.up_to, fault), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, fault.down_to, fault), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, until: int | None, fault: Fault) -> None:
        passed = 0
        try:
            source.settimeout(60)
            while chunk := source.recv(CHUNK_BYTES):
                time.sleep(fault.delay_seconds)
                if until is not None and passed + len(chunk) >= until:
                    sink.sendall(chunk[: until - passed])
                    time.sleep(fault.stall_seconds)
                    self._count("stalled" if fault.stall_seconds else "reset" if fault.reset else "cut")
                    break
                sink.sendall(chunk)
                passed += len(chunk)
        except OSError:
            pass  # because the other direction has ended this one
        for end in (source, sink):
            _close(end, fault.reset and until is not None)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def _close(end: socket.socket, reset: bool) -> None:
    try:
        if reset:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Wakes the thread that waits here; until it does, the reset would not leave.
            end.shutdown(socket.SHUT_RD)
        else:
            end.shutdown(socket.SHUT_RDWR)
        end.close()
    except OSError:
        pass
