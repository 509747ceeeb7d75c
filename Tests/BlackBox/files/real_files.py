"""Databases that other people made. `Scripts/setup` installs what they come from; nothing of them is kept here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

PROJ = Path("/usr/share/proj/proj.db")
ANKI = Path(__file__).parents[3] / ".build-files" / "python"
# Larger tables of proj.db are left out, for time: its own triggers look through most of the file for every row that
# comes. One large table has none.
ROWS_AT_MOST = int(os.environ.get("TIDEMARK_REAL_ROWS", "500"))
LARGE = "extent"
ANKI_SECONDS = 60


def proj(folder: Path, name: str) -> Path:
    if not PROJ.exists():
        raise unittest.SkipTest(f"no {PROJ}: Scripts/setup installs proj-data")
    return Path(shutil.copyfile(PROJ, folder / f"{name}.db"))


def anki(act: str, file: Path, *words: str) -> str:
    if not (ANKI / "anki" / "collection.py").exists():
        raise unittest.SkipTest(f"no {ANKI}/anki: Scripts/setup installs it")
    program = Path(__file__).with_name("anki_collection.py")
    done = subprocess.run(
        [sys.executable, str(program), str(ANKI), act, str(file), *words],
        capture_output=True,
        text=True,
        timeout=ANKI_SECONDS,
    )
    if done.returncode:
        raise AssertionError(f"anki {act} {file.name}: {done.stdout} {done.stderr[-2000:]}")
    return done.stdout


def unicase(first: str, second: str) -> int:
    """Anki's collation, near enough to compare what two files hold."""
    one, other = first.casefold(), second.casefold()
    return (one > other) - (one < other)
