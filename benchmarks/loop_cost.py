"""What a Loop of many turns with growing state costs, against the same steps in NumPy.

python -m benchmarks.loop_cost [TURNS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import parser

import foldline

GROWING = """<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, float[K, 16] x, float[1, 16] row) => (float[L, 16] y, float[n, 1, 16] s)
<int64[1] minus_one = {-1}, int64[1] end = {9223372036854775807}, float[1] half = {0.5}> {
    y, s = Loop(n, , x) <
        body = b (int64 turn, bool going, float[A, 16] state)
            => (bool next, float[B, 16] new, float[1, 16] seen) {
            next = Identity(going)
            last = Slice(state, minus_one, end)
            scaled = Mul(last, half)
            seen = Add(scaled, row)
            new = Concat<axis = 0>(state, seen)
        }
    >
}"""


def in_numpy(n: int, x: Any, row: Any) -> tuple[Any, Any]:
    """The same steps, as one would write them."""
    half = np.array([0.5], np.float32)
    state = x
    seen: list[Any] = []
    for _ in range(n):
        new = state[-1:] * half + row
        seen.append(new)
        state = np.concatenate((state, new), axis=0)
    return state, np.stack(seen)


def best(body: Callable[[], Any], repeats: int = 7) -> float:
    """The least of a few times, in seconds."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        body()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print both times and their ratio, for the turns asked for and a tenth of them."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    session = foldline.compile(parser.parse_model(GROWING), options={"oo.level": "O0"}).session(
        threads=1
    )
    x = np.ones((1, 16), np.float32)
    for n in (turns // 10, turns):
        feed = {"n": np.array(n), "x": x, "row": x}
        for actual, expected in zip(session.run(None, feed), in_numpy(n, x, x), strict=True):
            np.testing.assert_array_equal(actual, expected)
        ours = best(lambda feed=feed: session.run(None, feed))
        theirs = best(lambda n=n: in_numpy(n, x, x))
        print(f"{n} turns: {ours:.4f} s, NumPy {theirs:.4f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
