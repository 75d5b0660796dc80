"""Make the derived models of the zoo: float16 inside, and int8 QuantizeLinear/DequantizeLinear.

python -m benchmarks.derive_zoo

Uses the tools that come with ONNX Runtime; the bytes differ between its versions, so no sha256.
"""

from __future__ import annotations

import sys
from typing import Any

import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

from benchmarks.zoo import DerivedModel, derived, model_path
from benchmarks.zoo_inputs import make_inputs


class _Calibration(CalibrationDataReader):
    """Four seeded inputs of a model."""

    def __init__(self, model_id: str) -> None:
        self.inputs = iter([make_inputs(model_id, seed) for seed in range(1, 5)])

    def get_next(self) -> Any:
        return next(self.inputs, None)


def _float16(model: DerivedModel) -> None:
    source = onnx.load(model_path(model.source))
    onnx.save(convert_float_to_float16(source, keep_io_types=True), model_path(model.id))


def _qdq(model: DerivedModel) -> None:
    quantize_static(
        model_path(model.source),
        model_path(model.id),
        _Calibration(model.source),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
    )


MAKERS = {"float16": _float16, "qdq": _qdq}


def main() -> int:
    """Make what is missing; returns the number of models whose source is missing."""
    missing = 0
    for model in derived():
        if model_path(model.id).exists():
            print(f"{model.id}: up to date", flush=True)
        elif not model_path(model.source).exists():
            print(f"{model.id}: {model.source} is missing, run make zoo", flush=True)
            missing += 1
        else:
            MAKERS[model.by](model)
            print(f"{model.id}: made", flush=True)
    return missing


if __name__ == "__main__":
    sys.exit(main())
