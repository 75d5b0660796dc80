"""Exact mode: the same bits at every level, for any number of threads, on any machine."""

import hashlib

import numpy as np
from onnx import numpy_helper, parser

import foldline

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 64] x) => (float[N, 10] y) {
        p = MatMul(x, w)
        a = Add(p, b)
        h = Erf(a)
        y = Softmax <axis = 1> (h)
    }
""")
RANDOM = np.random.default_rng(7)
MODEL.graph.initializer.extend(
    [
        numpy_helper.from_array(RANDOM.standard_normal((64, 10), np.float32), "w"),
        numpy_helper.from_array(RANDOM.standard_normal(10, np.float32), "b"),
    ]
)
X = RANDOM.standard_normal((33, 64), np.float32)


def digest(level: str, threads: int, mode: str) -> str:
    """Of the bits of the output."""
    compiled = foldline.compile(MODEL, options={"oo.level": level, "mode": mode})
    (y,) = compiled.session(threads=threads).run(None, {"x": X})
    return hashlib.blake2b(y.tobytes(), digest_size=8).hexdigest()


def main() -> None:
    """One digest for all settings."""
    digests = {
        (level, threads): digest(level, threads, "exact")
        for level in ("O0", "O1", "O3")
        for threads in (1, 2, 3)
    }
    for (level, threads), bits in digests.items():
        print(level, threads, bits)
    assert len(set(digests.values())) == 1
    print("fast mode for comparison:", digest("O3", 2, "fast"))


if __name__ == "__main__":
    main()
