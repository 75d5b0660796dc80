"""Compiles mutants one after another, and says for each what came of it, a line of JSON each.

    python -m tests.fuzz.worker FIRST END

A mutant that takes too long or too much memory ends the process: its line is missing then.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from time import process_time

MAX_SECONDS = 10
"""Of computing; a machine that does other things too takes longer."""
MAX_WAIT = 120
"""Seconds after which a process that computes nothing is stuck."""
MAX_BYTES = 2 << 30


def main(first: int, end: int, make: Callable[[int], tuple[str, bytes]]) -> None:
    """Work through some numbers; `make` gives the name and the bytes of a mutant."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    faulthandler.enable()
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        faulthandler.register(alarm, chain=True)
    for number in range(first, end):
        name, data = make(number)
        print(json.dumps({"number": number, "name": name}), flush=True)
        start = process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        signal.alarm(MAX_WAIT)
        outcome, detail = attempted(number, data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        seconds = round(process_time() - start, 3)
        row = {"number": number, "outcome": outcome, "detail": detail, "seconds": seconds}
        print(json.dumps(row), flush=True)


def attempted(number: int, data: bytes) -> tuple[str, str]:
    """`compiled`, `refused` with the message, or `fault` with the traceback."""
    import foldline
    from foldline.importer import import_model
    from foldline.support.errors import FoldlineError

    options = {"mode": "exact"} if number % 8 == 7 else {}
    try:
        compiled = foldline.compile(data, options=options)
        written = compiled.to_bytes()
    except FoldlineError as error:
        return "refused", f"{type(error).__name__}: {error}"
    except Exception:
        return "fault", traceback.format_exc()
    try:
        import_model(written)
        compiled.session(threads=1)
    except FoldlineError as error:
        kind = "compiled" if type(error).__name__ == "UnsupportedOperator" else "fault"
        return kind, traceback.format_exc()
    except Exception:
        return "fault", traceback.format_exc()
    return "compiled", ""


if __name__ == "__main__":
    from tests.fuzz.mutations import mutant

    main(int(sys.argv[1]), int(sys.argv[2]), mutant)
