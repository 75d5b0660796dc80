"""How the algebraic rewrites are tested: models from text and arrays, and what must hold after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.observers import module_text
from foldline.stages.pass_base import Pass
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewriting import count_nodes
from tests.stages.check import op_types, values
from tests.stages.passes.structure.own import own_values

Array = npt.NDArray[Any]

RUNTIME = (np.float32, np.int64, np.bool_)
"""What ONNX Runtime has convolutions of, and what else inputs hold."""


def model(text: str, opset: int = 17, ir: int = 8, **constants: npt.ArrayLike) -> ModelProto:
    """A model of ONNX's own text of a graph, and initializers; floats are float32."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "com.example" : 1]>'
    found = parser.parse_model(f"{head}\n{text}")
    for name, value in constants.items():
        found.graph.initializer.append(numpy_helper.from_array(_array(value), name))
    return found


def _array(value: npt.ArrayLike) -> Array:
    array = np.asarray(value)
    if isinstance(value, np.ndarray | np.generic):
        return array
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int64)


def draw(*shape: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Numbers around 0."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def overridable(given: ModelProto, name: str) -> ModelProto:
    """The model with an initializer that is a graph input as well."""
    tensor = next(t for t in given.graph.initializer if t.name == name)
    info = onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
    given.graph.input.append(info)
    return given


def ready(given: ModelProto) -> ModuleOp:
    """The module with inferred types, as stages have it."""
    module = import_model(given, [])
    InferShapes().run(PassContext(module))
    return module


def unchanged(a_pass: Pass, given: ModelProto | ModuleOp, reason: str | None = None) -> PassContext:
    """The pass changes nothing, and says why if `reason` is given."""
    module = ready(given) if isinstance(given, ModelProto) else given
    before = module_text(module)
    context = PassContext(module)
    a_pass.run(context)
    assert module_text(module) == before, op_types(module)
    declined = [remark.message for remark in context.remarks if remark.kind == "declined"]
    if reason is not None:
        assert any(reason in message for message in declined), declined
    return context


def folded(
    a_pass: Pass,
    given: ModelProto,
    operators: Sequence[str],
    rtol: float = 2e-5,
    feed: Mapping[str, Array] | None = None,
) -> ModuleOp:
    """The pass leaves these operators; the model is valid, alike outside, and computes the same.

    A second run, on the written model, changes nothing.
    """
    module = ready(given)
    before = module.clone()
    context = PassContext(module)
    a_pass.run(context)
    verify_model(module)
    assert op_types(module) == list(operators), module_text(module)
    assert context.rewriter.nodes == count_nodes(module)
    assert any(remark.kind == "applied" for remark in context.remarks) or operators == []
    written = export_model(module)
    onnx.checker.check_model(written, full_check=True)
    assert interface(written) == interface(given)
    fed = feeds(given) if feed is None else feed
    if fed or not given.graph.input:
        run = values if all(a.dtype in RUNTIME for a in fed.values()) else own_values
        compare(run(before, fed), run(module, fed), rtol)
    unchanged(a_pass, written)
    InferShapes().run(after := PassContext(module))
    assert after.rewriter.changes == 0, "inference would change types"
    return module


def compare(old: Sequence[Array], new: Sequence[Array], rtol: float) -> None:
    """Equal to within a part of the largest value; bit for bit where that is 0."""
    for a, b in zip(old, new, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if rtol == 0:
            assert a.tobytes() == b.tobytes()
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a)
        scale = np.abs(a[finite]).max(initial=1e-3)
        np.testing.assert_array_equal(finite, np.isfinite(b))
        np.testing.assert_allclose(b[finite], a[finite], rtol=0, atol=rtol * scale)


def interface(given: ModelProto) -> list[bytes]:
    """Inputs and outputs as bytes."""
    return [info.SerializeToString() for info in (*given.graph.input, *given.graph.output)]


def feeds(given: ModelProto, seed: int = 1) -> dict[str, Array]:
    """Random inputs; unknown sizes are 2."""
    found: dict[str, Array] = {}
    constants = {tensor.name for tensor in given.graph.initializer}
    for info in given.graph.input:
        if info.name not in constants:
            kind = info.type.tensor_type
            shape = [dim.dim_value if dim.HasField("dim_value") else 2 for dim in kind.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            array = np.random.default_rng(seed).standard_normal(shape)
            found[info.name] = np.asarray(array > 0 if dtype == np.bool_ else array.astype(dtype))
    return found


def operators(module: ModuleOp) -> list[NodeOp]:
    """The nodes of the main graph but for constants."""
    ops = [op for op in main_graph(module).body.block.ops if isinstance(op, NodeOp)]
    return [op for op in ops if op.op_type != "Constant"]


def initial(module: ModuleOp) -> dict[str, Array]:
    """The initializers and constants of the written model by name."""
    found: dict[str, Array] = {}
    for op in main_graph(module).body.block.ops:
        tensor = constant_tensor(op.results[0]) if op.results else None
        if tensor is not None:
            found[result_names(op)[0]] = tensor.array
    return found


def calls(a_pass: Pass, module: ModuleOp) -> int:
    """How many Python functions a pass calls: its work, whatever the machine."""
    found = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        a_pass.run(PassContext(module))
    finally:
        sys.setprofile(None)
    return found


SIZES = pytest.mark.parametrize("nodes", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
"""Of the larger of two models, of which the smaller has a tenth."""


def check_linear(a_pass: Pass, made: Callable[[int], ModelProto], count: int) -> None:
    """Ten times the nodes are not much more than ten times the work."""
    small, large = (calls(a_pass, ready(made(n))) for n in (count // 10, count))
    assert large < 11 * small, (small, large)
