"""Is the output a fixed point, and the same in every process?

    python -m benchmarks.stability [--only id,id] [--models DIR] [--level O2]

Each model is optimised in two processes with other hash seeds: the bytes must be the same, and
optimising the result again must change nothing. Ends with 1 if any differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.common import selected_models, table, write_results
from benchmarks.zoo import model_path

TIMEOUT = 600.0


def main() -> int:
    """Check what was asked for; returns 1 if a model is not stable."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=Path, help="a folder of models instead of the zoo")
    parser.add_argument("--level", default="O2")
    parser.add_argument("--digests", metavar="FILE", help="what a child does")
    arguments = parser.parse_args()
    if arguments.digests:
        print(*digests(Path(arguments.digests), arguments.level))
        return 0
    paths = (
        sorted(arguments.models.glob("*.onnx"))
        if arguments.models
        else [model_path(model) for model in selected_models(arguments.only)]
    )
    rows = [(path.stem, *_stable(path, arguments.level)) for path in paths]
    print(table(("model", "same in two processes", "same when done twice"), rows))
    write_results("stability", rows)
    return int(any("NO" in row for row in rows))


def digests(path: Path, level: str) -> tuple[str, str]:
    """Digests of the optimised model, and of the same optimised again."""
    import foldline

    once = foldline.compile(path, options={"oo.level": level}).to_bytes()
    twice = foldline.compile(once, options={"oo.level": level}).to_bytes()
    return hashlib.sha256(once).hexdigest(), hashlib.sha256(twice).hexdigest()


def _stable(path: Path, level: str) -> tuple[str, str]:
    first, second = (_in_process(path, level, seed) for seed in ("1", "2"))
    if len(first) != 2 or len(second) != 2:
        return "NO (failed)", "NO (failed)"
    return _word(first[0] == second[0]), _word(first[0] == first[1])


def _in_process(path: Path, level: str, seed: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.stability", "--digests", str(path)]
    done = subprocess.run(
        [*command, "--level", level],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return done.stdout.split() if done.returncode == 0 else []


def _word(equal: bool) -> str:
    return "yes" if equal else "NO"


if __name__ == "__main__":
    raise SystemExit(main())
