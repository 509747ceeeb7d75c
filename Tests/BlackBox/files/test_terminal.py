"""What a person sees on a terminal, and a script on a pipe: colours, and a line that tells how far a sync has come."""

from __future__ import annotations

import os
import pty
import re
import subprocess

from files.app_file import AppFile
from files.file_test_case import FileTestCase
from support.server_process import binary

SCHEMA = "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT)"
FILL = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
    INSERT INTO t SELECT 'k' || i, 'a value' FROM n
"""
COLOR = re.compile("\x1b\\[[0-9;]+m")
SECONDS = 120


class TerminalTests(FileTestCase):
    def on_terminal(self, app: AppFile, *words: str, **variables: str) -> str:
        """Both streams of a command that has a terminal of 200 columns."""
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        environment |= {"TERM": "xterm", "COLUMNS": "200", "TIDEMARK_TOKEN": app.token, **variables}
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                [binary(), *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
            )
        finally:
            os.close(theirs)
        told = b""
        try:
            # Linux answers EIO once nobody has the other end any more.
            while part := os.read(ours, 65_536):
                told += part
        except OSError:
            pass
        finally:
            os.close(ours)
        process.wait(SECONDS)
        return told.decode()

    def refused(self) -> AppFile:
        app = self.app("a", SCHEMA)
        app.script("INSERT INTO t VALUES(NULL, 'stays'), ('k', 'goes')")
        app.sync()
        return app

    def test_colours_on_a_terminal_only(self) -> None:
        app = self.refused()
        words = ("status", str(app.path))
        self.assertRegex(self.on_terminal(app, *words), COLOR)
        self.assertNotRegex(self.on_terminal(app, *words, NO_COLOR="1"), COLOR)
        self.assertNotRegex(self.on_terminal(app, *words, TERM="dumb"), COLOR)
        self.assertNotRegex(app.status(as_json=False).text, COLOR)

    def test_progress_on_a_terminal_only(self) -> None:
        app = self.app("a", SCHEMA)
        app.script(FILL)
        words = ("sync", str(app.path), "--server", app.url, "--scope", app.scope, "--table", "t")
        told = self.on_terminal(app, *words)
        self.assertRegex(told, r"\rsent \d+ of 4000, [\d,. ]+ a second", "no line tells how far it has come")
        self.assertNotIn("\r", self.app("b", SCHEMA).sync().text)
