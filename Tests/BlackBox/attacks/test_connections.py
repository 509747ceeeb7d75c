"""Connections that once shut others out, or left something behind."""

from __future__ import annotations

import resource
import socket
import time
import unittest
from pathlib import Path

from support.pusher import Pusher
from support.report import patiently
from support.server_process import ServerProcess

PATIENCE_SECONDS = 20
# No connection ends because its time is over, so that a slow machine can be waited for.
FOR_EVER = "limits: {firstRequestTimeout: 10m, idleTimeout: 10m, requestTimeout: 10m}\n"


class ConnectionTests(unittest.TestCase):
    def test_whoever_is_idle_shuts_nobody_out(self) -> None:
        """More connections that say nothing than `limits.connections`, and nobody waits for them."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        with ServerProcess.temporary(FOR_EVER) as server:
            pusher = Pusher(server)
            idle = [socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) for _ in range(1200)]
            self.assertEqual(200, pusher.push()[0])
            for each in idle:
                each.close()

    @unittest.skipUnless(Path("/proc/self/fd").exists(), "descriptors are counted in /proc")
    def test_a_request_line_of_200_kb_leaves_nothing_behind(self) -> None:
        """It is refused like any other request, and its descriptor comes back although the caller stays (W5, W7)."""
        with ServerProcess.temporary(FOR_EVER) as server:
            Pusher(server).push()
            time.sleep(1)  # until that connection is gone, which would be counted in place of the next one
            before = server.descriptors()
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as caller:
                caller.sendall(b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = caller.recv(65_536)
                self.assertIn(b"application/problem+json", answer)
                self.assertIn(b"Tidemark-Protocol: 1", answer)
                self.assertIsNotNone(patiently(lambda: server.descriptors() <= before, PATIENCE_SECONDS))
