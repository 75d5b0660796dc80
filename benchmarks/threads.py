"""How much two threads gain over one: best of pairs of runs in turns, by the wall clock.

    python -m benchmarks.threads [--only id,id] [--pairs 20]

Without names, the five models of the zoo that take longest. ONNX Runtime's gain stands beside, for
a machine that others use lends a second core to nobody.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import geometric_mean, in_child, installed, ort_session, table, write_results
from benchmarks.zoo import model_path
from benchmarks.zoo_inputs import make_inputs

LARGEST = "rxnmap,eeg_spindle_unet,light_vgg19,light_resnet50,ddddocr_det"
TIMEOUT = 600.0


def main() -> None:
    """Time what was asked for; print a table and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=LARGEST, help="identifiers, with commas between")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--time", metavar="ID", help="what a child does: one model, as JSON")
    arguments = parser.parse_args()
    if arguments.time:
        print(json.dumps(gains(arguments.time, arguments.pairs)))
        return
    results: dict[str, Any] = {}
    for model_id in arguments.only.split(","):
        words = ("--time", model_id, "--pairs", str(arguments.pairs))
        results[model_id] = in_child("benchmarks.threads", *words, seconds=TIMEOUT)
    timed = {model_id: row for model_id, row in results.items() if "failure" not in row}
    names = list(next(iter(timed.values()), {}))
    rows = [[model_id, *(f"{row[name]:.2f}" for name in names)] for model_id, row in timed.items()]
    means = [geometric_mean(row[name] for row in timed.values()) for name in names]
    rows.append(["geometric mean", *(f"{mean:.2f}" for mean in means)])
    print(table(["one thread / two", *names], rows))
    write_results("threads", results)


def gains(model_id: str, pairs: int) -> dict[str, float]:
    """Best seconds with one thread by best seconds with two."""
    import foldline

    feed = make_inputs(model_id)
    compiled = foldline.compile(model_path(model_id))
    ours = [compiled.session(threads=count) for count in (1, 2)]
    found = {"foldline": _gain([lambda own=own: own.run(None, feed) for own in ours], pairs)}
    if installed("onnxruntime"):
        peers = [ort_session(model_path(model_id), "all", count) for count in (1, 2)]
        found["onnxruntime"] = _gain(
            [lambda peer=peer: peer.run(None, feed) for peer in peers], pairs
        )
    return found


def _gain(runs: list[Callable[[], Any]], pairs: int) -> float:
    best = [float("inf")] * len(runs)
    for run in runs:
        run()
    for _ in range(pairs):
        for index, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[index] = min(best[index], time.perf_counter() - start)
    return best[0] / best[1]


if __name__ == "__main__":
    main()
