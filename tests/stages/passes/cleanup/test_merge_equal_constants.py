"""merge-equal-constants: the same type and bits, where the one is in sight of the other."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.tensor import Tensor
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    parse,
    run_pass,
    splat,
)

PASS = MergeEqualConstants()


def pair(one: str, other: str) -> ModuleOp:
    return parse(
        f"""%a = {one}
        %b = {other}
        %y = onnx.Shape(%a) : !onnx.unknown
        %z = onnx.Shape(%b) : !onnx.unknown
        return(%y, %z)""",
        "",
    )


def test_equal_constants_merge_into_the_first() -> None:
    one = constant([1, 2])
    after = parse(
        f"""%a = {one}
        %y = onnx.Shape(%a) : !onnx.unknown
        %z = onnx.Shape(%a) : !onnx.unknown
        return(%y, %z)""",
        "",
    )
    check_pass(PASS, pair(one, one), after)


NAN = np.uint32([0x7FC00000, 0x7FC00001]).view(np.float32)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (constant([1]), constant(1)),
        (constant([1], np.int32), constant([1], np.float32)),
        (constant([0.0], np.float32), constant([-0.0], np.float32)),
        (constant(NAN[0], np.float32), constant(NAN[1], np.float32)),
        (constant([2], np.float32), constant([4], np.float32)),
        (constant(np.empty((0, 2))), constant(np.empty((2, 0)))),
        (splat(1, (4, 4), np.float32), splat(2, (4, 4), np.float32)),
        (constant([*range(40), 1]), constant([*range(40), 2])),
    ],
)
def test_other_constants_do_not(one: str, other: str) -> None:
    check_unchanged(PASS, pair(one, other))


@pytest.mark.parametrize(
    "same",
    [
        constant(NAN[1], np.float32),
        constant(np.empty((0, 2))),
        splat(1, (1000, 1000), np.float32),
        constant(range(40)),
    ],
)
def test_bits_decide(same: str) -> None:
    module = pair(same, same)
    run_pass(PASS, module)
    assert sum(map(is_constant, module.walk())) == 1


def test_initializers_merge_and_overridable_ones_do_not() -> None:
    module = from_onnx("""g (float[2] x, float[2] d) => (float[2] y)
    <float[2] w = {1, 2}, float[2] v = {1, 2}, float[2] d = {1, 2}> {
        a = Add(x, w) b = Mul(a, v) y = Sub(b, d)
    }""")
    check_values(PASS, module, {"x": np.float32([3, 4]), "d": np.float32([5, 6])})
    assert [result_names(op) for op in module.walk() if is_constant(op)] == [("w",)]


def test_bodies_use_the_constant_around_them_but_not_one_of_a_sibling() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) {{
        {outer}
        y = If(c) <then_branch = t () => (float[2] u) {{ k = Constant<value = float {{3}}>()
                       u = Mul(x, k) }},
                   else_branch = e () => (float[2] v) {{ l = Constant<value = float {{3}}>()
                       v = Sub(x, l) }}>
    }}"""
    outer = "o = Constant<value = float {3}>() z = Add(x, o)"
    module = from_onnx(text.format(outer=outer))
    check_values(PASS, module, {"c": np.array(True), "x": np.float32([3, 4])})
    assert sum(map(is_constant, module.walk())) == 1
    check_unchanged(PASS, from_onnx(text.format(outer="")))


def test_outputs_keep_their_own_constant() -> None:
    check_unchanged(
        PASS,
        from_onnx("""g (float[2] x) => (float[2] y, float[2] k)
        <float[2] w = {1, 2}, float[2] k = {1, 2}> { y = Add(x, w) }"""),
    )


def test_functions_are_scopes_of_their_own() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) <float w = {3}> {
        a = Add(x, w) y = local.f(a)
    }
    <opset_import: ["" : 21], domain: "local"> f (p) => (q) {
        k = Constant<value = float {3}>() l = Constant<value = float {3}>()
        r = Add(p, k) q = Mul(r, l)
    }""")
    run_pass(PASS, module)
    assert sum(map(is_constant, module.walk())) == 2


def test_digests_are_taken_only_of_constants_that_begin_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Tensor, "digest", property(lambda _: pytest.fail("read all bytes")))
    check_unchanged(PASS, pair(constant(range(40)), constant(range(1, 41))))
