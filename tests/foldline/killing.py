"""Runs `foldline` in children and kills them: for `test_killed.py`, started as a process.

Reads lines of JSON, `{"arguments": […], "signal": 9, "delay": 0.1}`, and answers each with the
child's exit code (negative: the signal that ended it) and its seconds. Children are forked, so
that a try costs a compile and no start of Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import foldline.cli
import foldline.compiler

assert foldline.compiler, "children need not import it"


def attempt(arguments: list[str], signal: int, delay: float) -> dict[str, Any]:
    """One run, killed after a while if it takes as long."""
    start = time.perf_counter()
    child = os.fork()
    if not child:
        _run(arguments)
    if signal:
        time.sleep(delay)
        os.kill(child, signal)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.perf_counter() - start}


def _run(arguments: list[str]) -> None:
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.argv = ["foldline", *arguments]
        foldline.cli.main()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    finally:
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(attempt(**json.loads(line))), flush=True)
