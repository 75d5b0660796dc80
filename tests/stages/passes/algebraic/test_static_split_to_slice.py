"""static-split-to-slice: rows A06 to A15."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, parser

import foldline
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.stages.passes.algebraic.gather_slice_to_split_fusion import GatherSliceToSplitFusion
from foldline.stages.passes.algebraic.static_split_to_slice import StaticSplitToSlice
from foldline.support.errors import InvalidModel
from tests.stages.check import run_pass, values
from tests.stages.passes.algebraic.graphs import (
    SIZES,
    check_linear,
    compare,
    feeds,
    folded,
    initial,
    model,
    operators,
    overridable,
    ready,
    unchanged,
)

PASS = StaticSplitToSlice()


def split(
    text: str = "p, q = Split <axis = 1> (x, k)",
    outputs: str = "float[1,2,2] p, float[1,4,2] q",
    inputs: str = "float[1,6,2] x",
    opset: int = 17,
    ir: int = 8,
    **constants: npt.ArrayLike,
) -> ModelProto:
    """A Split and what follows."""
    given = constants or ({"k": [2, 4]} if "k)" in text else {})
    return model(f"g ({inputs}) => ({outputs}) {{ {text} }}", opset=opset, ir=ir, **given)


EQUAL = "p, q = Split <axis = 1> (x)"
EQUAL_OUTPUTS = "float[1,3,2] p, float[1,3,2] q"


def test_row_A06_given_sizes() -> None:
    module = folded(PASS, split(), ["Slice", "Slice"], rtol=0)
    assert "k" not in initial(module)
    assert [op.results[0].type for op in operators(module)]
    written = export_model(module)
    assert {"p", "q"} == {node.output[0] for node in written.graph.node if node.op_type == "Slice"}


def test_row_A07_equal_parts_and_unique_node_names() -> None:
    text = f"[algebraic_split_slice] {EQUAL} [other] y = Relu(p)"
    given = split(text, f"{EQUAL_OUTPUTS}, float[1,3,2] y")
    options = {"passes.enable": ["static-split-to-slice"], "oo.level": "O1"}
    written = foldline.optimize(given, options=options)
    names = [node.name for node in written.graph.node if node.op_type != "Constant"]
    assert len(names) == len(set(names)) == 3
    assert [node.op_type for node in written.graph.node].count("Slice") == 2


def test_row_A08_unknown_sizes_and_wrong_sums() -> None:
    given = split(EQUAL, "float[1,P,2] p, float[1,Q,2] q", "float[1,N,2] x")
    unchanged(PASS, given, "the size N of axis 1 is not a number")
    with pytest.raises(InvalidModel):
        ready(split(outputs="float[1,P,2] p, float[1,Q,2] q", k=[2, 3]))


def test_row_A09_sizes_that_are_overridable() -> None:
    unchanged(PASS, overridable(split(), "k"), "its sizes are not constant")


@pytest.mark.parametrize("domain", ["", "ai.onnx"], ids=["A10a", "A10b"])
def test_row_A10_the_default_domain(domain: str) -> None:
    given = split()
    given.graph.node[0].domain = domain
    folded(PASS, given, ["Slice", "Slice"], rtol=0)


def test_row_A10c_another_domain() -> None:
    unchanged(PASS, split("p, q = com.example.Split <axis = 1> (x, k)"))


def test_row_A11_ir_version_3() -> None:
    given = split("p, q = Split <axis = 1, split = [2, 4]> (x)", opset=12, ir=3)
    unchanged(PASS, given, "IR version 4 is needed, the model has 3")


def test_row_A12a_a_result_that_is_left_out() -> None:
    given = split(EQUAL, EQUAL_OUTPUTS)
    given.graph.node[0].output[0] = ""
    del given.graph.output[0]
    unchanged(PASS, given, "a result is left out")


@pytest.mark.parametrize("results", ["p, p", "x, q"], ids=["A12b", "A12c"])
def test_row_A12_results_defined_twice(results: str) -> None:
    """No pass sees such models: the importer refuses them."""
    given = split(f"{results} = Split <axis = 1> (x) y = Relu(x)", "float[1,6,2] y")
    with pytest.raises(InvalidModel, match="twice"):
        import_model(given, [])


def test_row_A13_a_result_without_readers() -> None:
    module = folded(PASS, split(outputs="float[1,2,2] p"), ["Slice"], rtol=0)
    assert len(operators(module)[0].operands) == 5
    assert len([op for op in module.walk() if op.name == "onnx.Constant"]) == 4


def test_row_A14_results_that_branches_read() -> None:
    text = f"""{EQUAL} y = If (t)
        <then_branch = a () => (float[1,3,2] e) {{ e = Neg(p) }},
         else_branch = a () => (float[1,3,2] f) {{ f = Abs(q) }}>"""
    given = split(text, "float[1,3,2] y", "float[1,6,2] x, bool t")
    folded(PASS, given, ["Slice", "Slice", "If"], rtol=0)
    module = ready(given)
    before = module.clone()
    run_pass(PASS, module)
    for choice in (False, True):
        fed = {**feeds(given), "t": np.asarray(choice)}
        compare(values(before, fed), values(module, fed), rtol=0)


def test_row_A15_twice_is_once() -> None:
    options = {"passes.enable": ["static-split-to-slice"]}
    once = foldline.optimize(split(), options=options)
    assert [node.op_type for node in once.graph.node].count("Slice") == 2
    twice = foldline.optimize(once, options=options)
    assert twice.SerializeToString() == once.SerializeToString()


def test_the_last_part_may_be_smaller() -> None:
    text = "p, q = Split <axis = 0, num_outputs = 2> (x)"
    given = split(text, "float[3] p, float[2] q", "float[5] x", opset=18)
    folded(PASS, given, ["Slice", "Slice"], rtol=0)


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 23])
def test_every_form(opset: int) -> None:
    attribute = "p, q = Split <axis = -2, split = [2, 4]> (x)"
    given = split(attribute, opset=opset) if opset < 13 else split(opset=opset)
    folded(PASS, given, ["Slice", "Slice"], rtol=0)


def test_guard_1_operator_set_9() -> None:
    given = split("p, q = Split <axis = 1, split = [2, 4]> (x)", opset=9)
    unchanged(PASS, given, "operator set 10 is needed, the model has 9")


def test_guard_21_parts_of_no_size() -> None:
    given = split(outputs="float[1,0,2] p, float[1,6,2] q", k=[0, 6])
    unchanged(PASS, given, "are not 2 that add up to 6")


def test_guard_21_parts_that_are_not_equal() -> None:
    given = split("p, q = Split <axis = 1> (x)", "float[1,P,2] p, float[1,Q,2] q", "float[1,5,2] x")
    with pytest.raises(InvalidModel):
        ready(given)


def test_other_sizes_may_be_unknown() -> None:
    given = split(outputs="float[N,2,M] p, float[N,4,M] q", inputs="float[N,6,M] x")
    folded(PASS, given, ["Slice", "Slice"], rtol=0)


def test_nothing_to_slice() -> None:
    given = split(EQUAL, "float[0,3,2] p, float[0,3,2] q", "float[0,6,2] x")
    folded(PASS, given, ["Slice", "Slice"], rtol=0)


def test_inside_of_a_body() -> None:
    text = """y = If (t) <
        then_branch = a () => (float[1,3,2] e) { p, q = Split <axis = 1> (x) e = Add(p, q) },
        else_branch = a () => (float[1,3,2] f) { f, r = Split <axis = 1> (x) }>"""
    given = split(text, "float[1,3,2] y", "float[1,6,2] x, bool t")
    module = folded(PASS, given, ["If"], rtol=0)
    assert not any(op.name == "onnx.Split" for op in module.walk())


@SIZES
def test_work_is_linear(nodes: int) -> None:
    """Python calls a node do not grow with the number of nodes."""

    def splits(count: int) -> ModelProto:
        body = " ".join(f"p{n}, q{n} = Split <axis = 0> (x)" for n in range(count))
        outputs = ", ".join(f"float[3] p{n}, float[3] q{n}" for n in range(count))
        return model(f"g (float[6] x) => ({outputs}) {{ {body} }}", opset=17)

    check_linear(PASS, splits, nodes // 5)


def test_an_axis_that_callers_give() -> None:
    """Inside a function whose parameter it is, nothing is known of it."""
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[6,6] x) => (float[6,3] y) { y = local.half <axis = 1> (x) }
    <domain: "local", opset_import: ["" : 17]>
    half <axis> (x) => (p) { p, q = Split <axis: int = @axis> (x) }"""
    unchanged(PASS, parser.parse_model(text), "given by the callers")
    for other in (GatherSliceToSplitFusion(), ConvChannelAffineFolding()):
        unchanged(other, parser.parse_model(text))
