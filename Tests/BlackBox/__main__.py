"""Runs one of these programs, with the modules of all folders in reach: `python3 Tests/BlackBox torture.runner`."""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python3 Tests/BlackBox FOLDER.PROGRAM [OPTION…]; README.md there lists the programs")
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
