"""Small models with control flow and functions through whole compiles: O0 to O2, one set of bits.

The models are the failure cases of optimisers that have to do with bodies, functions and names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, parser

import foldline
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import functions
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.cleanup.remove_isolated_constants import RemoveIsolatedConstants
from foldline.stages.passes.control.inline_functions import InlineFunctions
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.run import run_pipeline
from foldline.stages.stage import Stage, traversal, whole
from foldline.support.options import resolve
from tests.stages.check import Array

STAGES = (
    Stage(
        "control",
        "nothing that is decided is left",
        (
            traversal(
                (InferShapes(), "types"), (RemoveConditionals(), ""), (ConstantFolding(), "")
            ),
            whole(InlineFunctions(), "before what it makes is looked at"),
            traversal(
                (InferShapes(trusted=True), "types"),
                (EliminateIdentity(), ""),
                (ConstantFolding(), ""),
                (RemoveConditionals(), ""),
            ),
            whole(MergeEqualConstants(), ""),
            whole(CommonSubexpressions(), ""),
            whole(RemoveIsolatedConstants(), ""),
            whole(Prune(), ""),
        ),
    ),
)
"""The passes of control flow in their order, whatever the pipeline holds."""

X = np.float32([np.nan, np.inf, -0.0, 2.5])


def model(graph: str, *bodies: str, opset: int = 17) -> ModelProto:
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>'
    proto = parser.parse_model(f"{head}\n{graph}")
    for body in bodies:
        function = f'<domain: "local", opset_import: ["" : {opset}, "local" : 1]>'
        proto.functions.append(parser.parse_function(f"{function}\n{body}"))
    return proto


LOOP_NO_CARRY = model(
    """g (float[4, 3] x) => (float[4, 3] y) <int64 n = {4}, bool c = {1}> {
        y = Loop(n, c) <body = b (int64 it, bool ci) => (bool co, float[3] sq) {
            row = Gather(x, it) sq = Mul(row, row) co = Identity(ci)
        }>
    }"""
)
IF_CONST_SQUEEZE = model(
    """g (float[2, 1, 2] x) => (float[a, b] y) <int64 one = {1}> {
        s = Shape(x) d = Gather(s, one) c = Equal(d, one)
        q = If(c) <then_branch = t () => (float[] t0) <int64[1] ax = {1}> { t0 = Squeeze(x, ax) },
            else_branch = e () => (float[] e0) { e0 = Identity(x) }>
        y = Relu(q)
    }"""
)
IF_RETURNS_OUTER = model(
    """g (float[4] x, bool p) => (float[4] y) {
        r = Relu(x)
        y = If(p) <then_branch = t () => (float[4] t0) { t0 = Identity(r) },
            else_branch = e () => (float[4] e0) { e0 = Identity(x) }>
    }"""
)
LOOP_TWIN_NAMES = model(
    """g (float[4] x) => (float[4] y) <int64 n = {2}, bool c = {1}> {
        a = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] acc) => (bool co, float[4] acc2)
            <float k = {2}> { co = Identity(ci) tmp = Mul(acc, k) acc2 = Add(tmp, k) }>
        y = Loop(n, c, a) <body = b (int64 i, bool ci, float[4] acc) => (bool co, float[4] acc2)
            <float k = {3}> { co = Identity(ci) tmp = Mul(acc, k) acc2 = Add(tmp, k) }>
    }"""
)
LOOP_ITERATIONS = model(
    """g (float[4] x) => (float[4] y, int64[k] its) <int64 n = {3}> {
        y, its = Loop(n, , x) <body = b (int64 i, bool ci, float[4] acc) =>
            (bool co, float[4] acc2, int64 ito) {
            co = Identity(ci) acc2 = Add(acc, x) ito = Identity(i)
        }>
    }"""
)
LOOP_OF_ANY_LENGTH = model(
    """g (float[4] x, int64 n) => (float[4] y, int64[k] its) {
        y, its = Loop(n, , x) <body = b (int64 i, bool ci, float[4] acc) =>
            (bool co, float[4] acc2, int64 ito) {
            co = Identity(ci) acc2 = Add(acc, x) ito = Identity(i)
        }>
    }"""
)
LOOP_NEVER_ENTERED = model(
    """g (float[4] x) => (float[4] y, float[k, 4] rows) <int64 n = {0}, bool c = {1}> {
        y, rows = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] acc) =>
            (bool co, float[4] acc2, float[4] row) {
            co = Identity(ci) acc2 = Add(acc, x) row = Neg(acc)
        }>
    }"""
)
FUNCTION_CALLED_TWICE = model(
    "g (float[4] x) => (float[4] y) { h = local.Half(x) y = local.Half(h) }",
    """Half (a) => (b) {
        i = Constant <value_int = 1> () one = Cast <to = 1> (i) b = Sub(one, a)
    }""",
)
FUNCTION_WITH_BODIES = model(
    """g (float[4] x, bool p) => (float[4] y) {
        h = local.Br(x, p) np = Not(p) y = local.Br(h, np)
    }""",
    """Br (a, p) => (b) {
        b = If(p) <then_branch = t () => (float[4] t0) {
            k = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> () t0 = Add(a, k)
        }, else_branch = e () => (float[4] e0) {
            k2 = Constant <value_floats = [3.0, 4.0, 5.0, 6.0]> () e0 = Mul(a, k2)
        }>
    }""",
)
FUNCTION_DECIDED_BY_ITS_CALL = model(
    """g (float[4] x) => (float[4] y, float[4] z) {
        y = local.Act <kind = 0> (x) z = local.Act <kind = 1> (x)
    }""",
    """Act <kind> (a) => (b) {
        k = Constant <value_int: int = @kind> () zero = Constant <value_int = 0> ()
        c = Equal(k, zero)
        b = If(c) <then_branch = t () => (t0) { t0 = Relu(a) },
            else_branch = e () => (e0) { e0 = Sigmoid(a) }>
    }""",
)
FUNCTION_WITH_UNTYPED_BODIES = model(
    "g (float[4] x, bool p) => (float[4] y) { h = Neg(x) y = local.F(h, p) }",
    """F (a, p) => (b) {
        b = If(p) <then_branch = t () => (h) { h = Relu(a) },
            else_branch = e () => (h) { h = Sigmoid(a) }>
    }""",
)
TWO_EQUAL_OUTPUTS = model(
    """g (float[4] x) => (float[4] a, float[4] b, float[4] d) {
        a = Relu(x) b = Relu(x) d = Neg(b)
    }"""
)
INPUT_TO_OUTPUT = model(
    """g (float[4] x) => (float[4] y0, float[4] y1, float[4] y2) {
        y0 = Identity(x) r = Relu(x) y1 = Identity(r) y2 = Identity(r)
    }"""
)
HELD = [{"x": X, "p": np.array(p)} for p in (True, False)]
CASES: dict[str, tuple[ModelProto, list[dict[str, Array]], list[str]]] = {
    "loop_no_carry": (LOOP_NO_CARRY, [{"x": np.resize(X, (4, 3))}], ["Loop"]),
    "if_const_squeeze": (IF_CONST_SQUEEZE, [{"x": X.reshape(2, 1, 2)}], []),
    "if_returns_outer": (IF_RETURNS_OUTER, HELD, []),
    "loop_twin_names": (LOOP_TWIN_NAMES, [{"x": X}], ["Loop"]),
    "loop_iterations": (LOOP_ITERATIONS, [{"x": X}], ["Loop"]),
    "loop_of_any_length": (
        LOOP_OF_ANY_LENGTH,
        [{"x": X, "n": np.array(n)} for n in (3, 1, 0)],
        [],
    ),
    "loop_never_entered": (LOOP_NEVER_ENTERED, [{"x": X}], ["Loop"]),
    "function_called_twice": (FUNCTION_CALLED_TWICE, [{"x": X}], ["Half", "Cast"]),
    "function_with_bodies": (FUNCTION_WITH_BODIES, HELD, ["Br"]),
    "function_decided_by_its_call": (
        FUNCTION_DECIDED_BY_ITS_CALL,
        [{"x": X}],
        ["Act", "If", "Equal", "Constant"],
    ),
    "function_with_untyped_bodies": (FUNCTION_WITH_UNTYPED_BODIES, HELD, ["F"]),
    "two_equal_outputs": (TWO_EQUAL_OUTPUTS, [{"x": X}], []),
    "input_to_output": (INPUT_TO_OUTPUT, [{"x": X}], []),
}
"""Model, inputs, and operators that are gone once control flow is dealt with."""


def interface(proto: ModelProto) -> tuple[list[str], list[str]]:
    return [i.name for i in proto.graph.input], [o.name for o in proto.graph.output]


def check_in_onnxruntime(
    proto: ModelProto, feed: Mapping[str, Array], expected: list[Array]
) -> None:
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    for new, old in zip(session.run(None, dict(feed)), expected, strict=True):
        assert new.shape == old.shape
        np.testing.assert_allclose(new, old, rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_levels_give_one_set_of_bits(name: str, level: str) -> None:
    proto, feeds, _ = CASES[name]
    plain = foldline.compile(proto, options={"oo.level": "O0"})
    compiled = foldline.compile(proto, options={"oo.level": level})
    optimised = compiled.to_proto()
    assert interface(optimised) == interface(proto)
    for feed in feeds:
        expected = plain.session().run(None, feed)
        got = compiled.session().run(None, feed)
        for old, new in zip(expected, got, strict=True):
            assert (new.dtype, new.shape) == (old.dtype, old.shape)
            assert new.tobytes() == old.tobytes()
        check_in_onnxruntime(optimised, feed, expected)


@pytest.mark.parametrize("name", CASES)
def test_what_is_decided_is_gone(name: str) -> None:
    proto, feeds, gone = CASES[name]
    module = import_model(proto, [])
    report = run_pipeline(module, resolve({"oo.level": "O2"}), stages=STAGES)
    assert not report.bounds
    assert not functions(module)
    left = {op.op_type for op in module.walk() if isinstance(op, NodeOp)}
    assert left.isdisjoint(gone)
    optimised = export_model(module, value_info="all")
    assert interface(optimised) == interface(proto)
    for feed in feeds:
        expected = foldline.compile(proto, options={"oo.level": "O0"}).session().run(None, feed)
        check_in_onnxruntime(optimised, feed, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_second_compile_changes_nothing(name: str) -> None:
    once = foldline.optimize(CASES[name][0], options={"oo.level": "O2"})
    twice = foldline.optimize(once, options={"oo.level": "O2"})
    assert twice.SerializeToString() == once.SerializeToString()
