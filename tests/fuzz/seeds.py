"""What mutants are made of: the small models that other tests hold, and the backend suite's."""

from __future__ import annotations

import functools

import numpy as np
import onnx
from onnx import numpy_helper

from tests.conformance.suite import fast_cases
from tests.failures import (  # noqa: F401
    control,
    elements,
    folding,
    fusion,
    interface,
    quantisation,
    shapes,
)
from tests.failures.case import CASES
from tests.foldline.importer.test_mutation import base_model
from tests.golden.models import MODELS
from tests.properties.rewrite_models import SAMPLES

MAX_BYTES = 100_000
"""Larger models are mostly weights, and slow."""


@functools.cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """Names and serialised models, in an order that is the same on every machine."""
    models = {"every message": base_model()}
    models |= {f"golden {name}": make().model for name, make in MODELS.items()}
    models |= {f"rewrite {name}": make().proto for name, make in SAMPLES.items()}
    models |= {f"failure {name}": case.make()[0] for name, case in CASES.items()}
    for case in fast_cases():
        models[case.name] = case.model
        if case.data_sets and (folded := _with_constants(case.model, case.data_sets[0][0])):
            models[f"{case.name} of constants"] = folded
    found = ((name, model.SerializeToString()) for name, model in models.items())
    return tuple((name, data) for name, data in found if len(data) <= MAX_BYTES)


def _with_constants(model: onnx.ModelProto, values: list[object]) -> onnx.ModelProto | None:
    """The model with its tensor inputs as constants, so that it is computed while compiled."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    kept: list[onnx.ValueInfoProto] = []
    for info, value in zip(made.graph.input, values, strict=False):
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            value = numpy_helper.from_array(value, info.name)
        if isinstance(value, onnx.TensorProto) and info.type.HasField("tensor_type"):
            made.graph.initializer.add().CopyFrom(value)
            made.graph.initializer[-1].name = info.name
        else:
            kept.append(info)
    if not made.graph.initializer:
        return None
    del made.graph.input[:]
    made.graph.input.extend(kept)
    return made
