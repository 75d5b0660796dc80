"""The backend suite of the onnx package in exact mode: at O3, and that levels agree to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.test_case import TestCase as Case

import foldline
from tests.conformance import suite, variants

globals().update(suite.unittest_classes(suite.ExactBackend, __name__))

REFUSED = ("ImageDecoder", "Gradient")
CASES = [c for c in variants.cases() if not {n.op_type for n in c.model.graph.node} & {*REFUSED}]
FOLDED = {"fold.graphOutputs": True, "export.grow": True}


def _results(model: onnx.ModelProto, values: list[Any], **options: Any) -> list[Any]:
    session = foldline.compile(model, options={"mode": "exact", **options}).session(threads=1)
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, values, strict=True)))


def _bits(value: Any) -> Any:
    if isinstance(value, list):
        return [_bits(part) for part in value]
    if value is None or value.dtype == object:
        return value if value is None else value.tolist()
    return value.dtype.name, value.shape, np.ascontiguousarray(value).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_t1_every_operator_has_the_same_bits_at_every_level_and_folded(case: Case) -> None:
    values = variants.inputs(case)
    expected = _bits(_results(case.model, values, **{"oo.level": "O0"}))
    assert _bits(_results(case.model, values)) == expected
    baked = variants.baked_in(case)
    if baked is not None:
        assert _bits(_results(baked, [], **FOLDED)) == expected
