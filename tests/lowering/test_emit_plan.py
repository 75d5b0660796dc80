from __future__ import annotations

import numpy as np
import pytest

import foldline.lowering.emit_plan as emit
from foldline.dialects.plan import CallOp
from foldline.importer import import_model
from foldline.lowering import Program, lower
from foldline.support.errors import ResourceLimit
from tests.lowering.models import assert_same, every_kind, model, program

HEAD = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>'

GREETED = """<domain: "local", opset_import: ["" : 17]>
scaled <axis, alpha: float = 0.5> (x, extra) => (y) {
    g = Concat<axis: int = @axis>(x, x)
    y = LeakyRelu<alpha: float = @alpha>(g)
}"""


def _calls(ready: Program) -> list[CallOp]:
    return [op for op in ready.source.walk() if isinstance(op, CallOp)]


def test_the_module_is_only_read() -> None:
    graph = """g (float[2, 2] x, bool c) => (float[4, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
        a = local.scaled<axis = 0>(w)
        b = If(c) <
            then_branch = t () => (float[4, 2] p) { p = Add(a, x2) },
            else_branch = e () => (float[4, 2] q) { q = Neg(a) }
        >
        x2 = Concat<axis = 0>(x, x)
        y = Neg(b) }"""
    graph = (
        graph.replace("b = If", "x3 = Identity(x2) b = If")
        .replace("        x2 = Concat<axis = 0>(x, x)\n", "")
        .replace("a = local", "x2 = Concat<axis = 0>(x, x)\n        a = local")
    )
    module = import_model(model(graph, HEAD, GREETED))
    before = str(module)
    ready = lower(module)
    for c in (True, False):
        every_kind(ready, [np.ones((2, 2), np.float32), np.array(c)])
    assert str(module) == before


def test_references_take_the_callers_value_else_the_default() -> None:
    ready = program(
        """g (float[1, 2] x) => (float[2, 2] a, float[1, 4] b) {
            a = local.scaled<axis = 0, alpha = 2.0>(x)
            b = local.scaled<axis = 1>(x) }""",
        HEAD,
        GREETED,
    )
    x = np.array([[-1, 1]], np.float32)
    for a, b in every_kind(ready, [x]):
        assert_same([a], [np.array([[-2, 1], [-2, 1]], np.float32)])
        assert_same([b], [np.array([[-0.5, 1, -0.5, 1]], np.float32)])


def test_a_reference_without_value_leaves_the_attribute_out() -> None:
    functions = """<domain: "local", opset_import: ["" : 17]>
        flipped <perm> (x) => (y) { y = Transpose<perm: ints = @perm>(x) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        outer <order> (x) => (y) { y = local.flipped<perm: ints = @order>(x) }"""
    ready = program(
        """g (float[2, 3] x) => (float[3, 2] a, float[2, 3] b) {
            a = local.outer(x)
            b = local.outer<order = [0, 1]>(x) }""",
        HEAD,
        functions,
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for result in every_kind(ready, [x]):
        assert_same(result, [x.T, x])


def test_a_referenced_constant_takes_its_value() -> None:
    functions = """<domain: "local", opset_import: ["" : 17]>
        plus <by: float = 1.5> (x) => (y) {
            c = Constant<value_float: float = @by>()
            y = Add(x, c) }"""
    ready = program(
        "g (float[2] x) => (float[2] a, float[2] b)"
        " { a = local.plus(x) b = local.plus<by = 3.0>(x) }",
        HEAD,
        functions,
    )
    x = np.zeros(2, np.float32)
    for result in every_kind(ready, [x]):
        assert_same(result, [x + np.float32(1.5), x + np.float32(3)])


def test_a_functions_own_imports_bind() -> None:
    functions = """<domain: "local", opset_import: ["" : 11]>
        squeezed (x) => (y) { y = Squeeze<axes = [0]>(x) }"""
    ready = program("g (float[1, 2] x) => (float[2] y) { y = local.squeezed(x) }", HEAD, functions)
    x = np.ones((1, 2), np.float32)
    for result in every_kind(ready, [x]):
        assert_same(result, [x[0]])
    assert _calls(ready)[0].operator == ("", "Squeeze", 11)


def test_absent_inputs_of_functions_and_nodes() -> None:
    functions = """<domain: "local", opset_import: ["" : 17]>
        bounded (x, low, high) => (y) { y = Clip(x, low, high) }"""
    ready = program(
        """g (float[3] x) => (float[3] a, float[3] b) <float one = {1}> {
            a = local.bounded(x, , one)
            b = local.bounded(x, one) }""",
        HEAD,
        functions,
    )
    x = np.array([0, 1, 2], np.float32)
    for result in every_kind(ready, [x]):
        assert_same(result, [np.minimum(x, 1), np.maximum(x, 1)])


def test_inlining_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = 12
    functions = "\n".join(
        f"""<domain: "local", opset_import: ["" : 17, "local" : 1]>
        f{i} (x) => (y) {{ a = {"Neg" if i == 0 else f"local.f{i - 1}"}(x)
                           y = {"Neg" if i == 0 else f"local.f{i - 1}"}(a) }}"""
        for i in range(levels)
    )
    module = import_model(
        model(f"g (float[2] x) => (float[2] y) {{ y = local.f{levels - 1}(x) }}", HEAD, functions)
    )
    monkeypatch.setattr(emit, "MOST_CALLS", 4095)
    with pytest.raises(ResourceLimit, match="4095"):
        lower(module)
    monkeypatch.setattr(emit, "MOST_CALLS", 4096)
    assert len(_calls(lower(module))) == 4096


def test_bodies_are_closed_and_constants_are_not_captured() -> None:
    ready = program(
        """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
            a = Neg(x)
            y = If(c) <
                then_branch = t () => (float[2] p) { k = Add(a, w) p = Mul(k, a) },
                else_branch = e () => (float[2] q) { q = Sub(x, w) }
            > }""",
    )
    (branch,) = [op for op in _calls(ready) if op.regions]
    assert branch.capture_count == 2
    assert branch.positions("frees") == (0, 1, 2)
    ready.source.verify()
    x = np.array([3, 4], np.float32)
    w = np.array([1, 2], np.float32)
    for result in every_kind(ready, [x, np.array(True)]):
        assert_same(result, [(-x + w) * -x])
    for result in every_kind(ready, [x, np.array(False)]):
        assert_same(result, [x - w])
