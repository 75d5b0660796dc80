"""The node tests of the suite in other shapes: inputs baked in, sizes unknown, through a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test import runner
from onnx.backend.test.case.test_case import TestCase as Case

import foldline
from tests.conformance import suite

FOLDER = Path(__file__).parent
FIRST_IR_WITH_DEFAULTS = 4
DEFAULT = ("", "ai.onnx")


def cases() -> list[Case]:
    """The node tests whose expected values can be known."""
    return [case for case in suite.node_cases() if not suite.UNKNOWABLE.search(f"{case.name}_cpu")]


def reasons(file: str) -> list[tuple[re.Pattern[str], str]]:
    """A list of exceptions: a pattern on the names of tests, and the reason."""
    lines = (FOLDER / file).read_text().splitlines()
    rows = (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
    return [(re.compile(pattern), reason) for pattern, reason in rows]


def inputs(case: Case) -> list[Any]:
    """What the test feeds."""
    ((values, _),) = case.data_sets or ()
    return [_array(value) for value in values]


def check_outputs(case: Case, outputs: Sequence[Any]) -> None:
    """The outputs are what the test expects, in the suite's own comparison."""
    ((_, values),) = case.data_sets or ()
    expected = [_array(value) for value in values]
    runner.Runner.assert_similar_outputs(expected, list(outputs), case.rtol, case.atol)


def run_as_imported(model: onnx.ModelProto, values: Sequence[Any]) -> list[Any]:
    """The outputs of a model that nothing optimises."""
    session = foldline.compile(model, options={"oo.level": "O0"}).session()
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, values, strict=True)))


def check_exported(original: onnx.ModelProto, exported: onnx.ModelProto) -> None:
    """The checker takes it, with full inference where that takes the original.

    Below opset 9 inference takes a Constant for a float, though all readers know better.
    """
    is_old = any(row.domain in DEFAULT and row.version < 9 for row in exported.opset_import)
    full = not is_old and _passes_full_check(original)
    onnx.checker.check_model(exported, full_check=full)


def baked_in(case: Case) -> onnx.ModelProto | None:
    """The model with all inputs as initializers; None where one is no tensor."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for info, given in zip(case.model.graph.input, inputs(case), strict=True):
        if not isinstance(given, np.ndarray | np.generic):
            return None
        tensor = numpy_helper.from_array(np.asarray(given), info.name)
        model.graph.initializer.append(tensor)
    if model.ir_version >= FIRST_IR_WITH_DEFAULTS:
        del model.graph.input[:]
    return model


def symbolic(case: Case) -> onnx.ModelProto:
    """The model with a name for each size of its inputs, and none known of other values."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in model.graph.input:
        for axis, dim in enumerate(_dims(value.type)):
            dim.dim_param = f"{re.sub('[^0-9a-zA-Z]', '_', value.name)}_{axis}"
    for value in model.graph.output:
        for dim in _dims(value.type):
            dim.Clear()
    del model.graph.value_info[:]
    return model


def _dims(type_: onnx.TypeProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    if type_.HasField("tensor_type"):
        yield from type_.tensor_type.shape.dim
    elif type_.HasField("sequence_type"):
        yield from _dims(type_.sequence_type.elem_type)
    elif type_.HasField("optional_type"):
        yield from _dims(type_.optional_type.elem_type)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _passes_full_check(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True
