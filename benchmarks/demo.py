"""Compile a real model through all stages, write the result, and compare the two files.

The model is ResNet-50 as it ships inside the onnx package, with constants for weights.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnx

import foldline
from benchmarks.common import table
from benchmarks.zoo import ROOT
from benchmarks.zoo_inputs import make_inputs
from tests.zoo.limits import limit, worst_error

NAME = "light_resnet50"
SOURCE = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"{NAME}.onnx"
RESULT = ROOT / "build" / "demo" / f"{NAME}.opt.onnx"


def main() -> int:
    """Print what happens; returns 1 if the outputs differ."""
    print(f"Compiling {SOURCE.name} from the onnx package at level O3\n")
    compiled = foldline.compile(SOURCE, options={"oo.level": "O3"})
    rows = [
        (
            f"{row.stage}/{row.name}",
            str(row.nodes_before),
            str(row.nodes_after),
            f"{row.seconds:.3f}",
        )
        for row in compiled.report.rows
    ]
    print(table(["stage/pass", "nodes before", "after", "seconds"], rows))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    compiled.save(RESULT, force=True)
    print(f"\nWritten: {RESULT.relative_to(ROOT)}")
    print("Running both files on the NumPy kernels, as they are (O0):")
    original, optimised = _run(SOURCE), _run(RESULT)
    error = worst_error(optimised, original)
    agree = error <= limit("float32")
    print(f"The outputs {'agree' if agree else 'DIFFER'}: error {error:.1e}")
    return int(not agree)


def _run(path: Path) -> list[np.ndarray]:
    session = foldline.compile(path, options={"oo.level": "O0"}).session()
    start = time.perf_counter()
    outputs = session.run(None, make_inputs(NAME))
    print(f"  {path.name}: {time.perf_counter() - start:.2f} s")
    return outputs


if __name__ == "__main__":
    sys.exit(main())
