"""Runs workers over mutants, watches over them, and gathers what came of each.

python -m tests.fuzz.campaign FIRST END     prints the faults and how many there were of each
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Campaign:
    """What came of mutants."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    """A text for each: its number, its name, what happened."""

    def add(self, row: dict[str, Any]) -> None:
        """Count a mutant by what the lines about it say."""
        self.outcomes[row["outcome"]] += 1
        if row["outcome"] == "fault":
            self.faults.append(f"{row['number']} {row['name']}\n{row['detail']}")


WORKER = ("-m", "tests.fuzz.worker")


def campaign(first: int, end: int, worker: Sequence[str] = WORKER) -> Campaign:
    """Compile the mutants of some numbers in processes of their own, run by Python as `worker`."""
    result = Campaign()
    while first < end:
        first = _worked(first, end, worker, result)
    return result


def _worked(first: int, end: int, module: Sequence[str], result: Campaign) -> int:
    """Run a worker until it ends; the number to go on with."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *module, str(first), str(end)]
    running: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        worker = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, cwd=ROOT
        )
        assert worker.stdout is not None
        for row in map(json.loads, worker.stdout):
            running |= row
            if "outcome" in row:
                result.add(running)
                first, running = row["number"] + 1, {}
        code = worker.wait()
        errors.seek(0)
        trace = errors.read()
    if running:
        result.add(running | {"outcome": "fault", "detail": f"exit {code}\n{trace[-5000:]}"})
        return running["number"] + 1
    if first < end:
        raise RuntimeError(f"a worker ended before its work, with {code}: {trace}")
    return first


if __name__ == "__main__":
    found = campaign(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(found.faults))
    print(dict(found.outcomes))
