"""Bodies of control flow, local functions, sequences and optionals."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.failures.building import (
    BOOL,
    FLOAT,
    INT64,
    integers,
    model,
    node,
    random,
    relu,
    subgraph,
    tensor,
    value,
)
from tests.failures.case import Expected, Made, case


@case("subgraph", "onnxsim/onnxsim#204")
def loop_no_carry() -> Made:
    """Loop with constant trip count and condition and no carried value has only constant
    explicit inputs, yet its body reads an outer tensor: not a constant."""
    body = subgraph(
        [
            node("Gather", ["x", "it"], ["row"], axis=0),
            node("Mul", ["row", "row"], ["sq"]),
            node("Identity", ["ci"], ["co"]),
        ],
        [value("it", INT64, []), value("ci", BOOL, [])],
        [value("co", BOOL, []), value("sq", FLOAT, [3])],
    )
    m = model(
        [node("Loop", ["trip", "go"], ["y"], body=body)],
        [value("x", FLOAT, [4, 3])],
        [value("y", FLOAT, [4, 3])],
        [tensor("trip", np.int64(4)), tensor("go", np.array(True))],
    )
    x = random(4, 3)
    return m, {"x": x}, Expected(outputs=[x * x], inputs_kept=True)


@case("subgraph", "microsoft/onnxscript#2810")
def if_const_squeeze() -> Made:
    """If with a foldable condition inlines its branch; the branch's own initialiser (Squeeze
    axes) was lost on the way."""
    then = subgraph(
        [node("Squeeze", ["x", "ax"], ["t0"])], [], [value("t0", FLOAT, None)], [integers("ax", 1)]
    )
    els = subgraph([node("Identity", ["x"], ["e0"])], [], [value("e0", FLOAT, None)])
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "one"], ["d"], axis=0),
            node("Equal", ["d", "k1"], ["cnd"]),
            node("If", ["cnd"], ["sq"], then_branch=then, else_branch=els),
            node("Relu", ["sq"], ["y"]),
        ],
        [value("x", FLOAT, [2, 1, 3])],
        [value("y", FLOAT, ["a", "b"])],
        [tensor("one", np.int64(1)), tensor("k1", np.int64(1))],
    )
    x = random(2, 1, 3)
    return m, {"x": x}, Expected(outputs=[relu(x[:, 0])], operators_gone=["If"])


@case("subgraph", "microsoft/onnxruntime#11536", "microsoft/onnxruntime#11638")
def if_returns_outer() -> Made:
    """A branch that returns an outer value through Identity must not have that Identity removed
    (a subgraph output has to be produced inside)."""
    then = subgraph([node("Identity", ["r"], ["t0"])], [], [value("t0", FLOAT, [3])])
    els = subgraph([node("Identity", ["x"], ["e0"])], [], [value("e0", FLOAT, [3])])
    m = model(
        [
            node("Relu", ["x"], ["r"]),
            node("If", ["cond"], ["y"], then_branch=then, else_branch=els),
        ],
        [value("x", FLOAT, [3]), value("cond", BOOL, [])],
        [value("y", FLOAT, [3])],
    )
    x = random(3)
    return (
        m,
        [{"x": x, "cond": np.array(True)}, {"x": x, "cond": np.array(False)}],
        Expected(outputs=[[relu(x)], [x]]),
    )


@case("subgraph", "onnx/onnx#2082", "microsoft/onnxruntime#25510")
def loop_twin_names() -> Made:
    """Two loop bodies using the same local names (legal: sibling scopes), one also holding its
    own initialiser of that name; lifting constants to the outer graph must rename."""

    def body(k):
        return subgraph(
            [
                node("Identity", ["ci"], ["co"]),
                node("Mul", ["acc", "k"], ["tmp"]),
                node("Add", ["tmp", "k"], ["acc2"]),
            ],
            [value("it", INT64, []), value("ci", BOOL, []), value("acc", FLOAT, [2])],
            [value("co", BOOL, []), value("acc2", FLOAT, [2])],
            [tensor("k", np.float32(k))],
        )

    m = model(
        [
            node("Loop", ["trip", "go", "x"], ["a"], body=body(2)),
            node("Loop", ["trip", "go", "a"], ["y"], body=body(3)),
        ],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        [tensor("trip", np.int64(2)), tensor("go", np.array(True))],
    )
    x = np.array([1, -1], np.float32)
    r = x
    for k in (2, 2, 3, 3):
        r = r * k + k
    return m, {"x": x}, Expected(outputs=[r])


@case("subgraph", "onnx/onnx#5750", "microsoft/onnxruntime#4210")
def loop_iter_num_output() -> Made:
    """A scan output that is the iteration number itself must hold each iteration's own value."""
    body = subgraph(
        [
            node("Identity", ["ci"], ["co"]),
            node("Add", ["acc", "x"], ["acc2"]),
            node("Identity", ["it"], ["ito"]),
        ],
        [value("it", INT64, []), value("ci", BOOL, []), value("acc", FLOAT, [2])],
        [value("co", BOOL, []), value("acc2", FLOAT, [2]), value("ito", INT64, [])],
    )
    m = model(
        [node("Loop", ["trip", "", "x"], ["y", "its"], body=body)],
        [value("x", FLOAT, [2]), value("trip", INT64, [])],
        [value("y", FLOAT, [2]), value("its", INT64, ["n"])],
    )
    x = np.array([1, 2], np.float32)
    return m, {"x": x, "trip": np.int64(3)}, Expected(outputs=[4 * x, np.arange(3)])


@case("function", "microsoft/onnxscript#2673", "microsoft/onnxscript#2679")
def fn_const_fold() -> Made:
    """Folding inside a model-local function made an initialiser, which functions cannot hold."""
    f = helper.make_function(
        "loc",
        "Half",
        ["a"],
        ["b"],
        [
            node("Constant", [], ["i"], value_int=1),
            node("Cast", ["i"], ["one"], to=FLOAT),
            node("Sub", ["one", "a"], ["b"]),
        ],
        [helper.make_opsetid("", 17)],
    )
    m = model(
        [node("Half", ["x"], ["h"], domain="loc"), node("Half", ["h"], ["y"], domain="loc")],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
        functions=[f],
        opsets=[helper.make_opsetid("loc", 1)],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[x])


@case("function", "microsoft/onnxruntime#16330")
def fn_with_subgraph() -> Made:
    """A function holding an If, called twice under different flags: constants lifted from the
    body must not be defined twice once inlined."""
    then = subgraph(
        [node("Constant", [], ["k"], value_floats=[1.0, 2.0]), node("Add", ["a", "k"], ["t"])],
        [],
        [value("t", FLOAT, [2])],
    )
    els = subgraph(
        [node("Constant", [], ["k2"], value_floats=[3.0, 4.0]), node("Mul", ["a", "k2"], ["e"])],
        [],
        [value("e", FLOAT, [2])],
    )
    f = helper.make_function(
        "loc",
        "Br",
        ["a", "p"],
        ["b"],
        [node("If", ["p"], ["b"], then_branch=then, else_branch=els)],
        [helper.make_opsetid("", 17)],
    )
    m = model(
        [
            node("Br", ["x", "p"], ["h"], domain="loc"),
            node("Not", ["p"], ["np_"]),
            node("Br", ["h", "np_"], ["y"], domain="loc"),
        ],
        [value("x", FLOAT, [2]), value("p", BOOL, [])],
        [value("y", FLOAT, [2])],
        functions=[f],
        opsets=[helper.make_opsetid("loc", 1)],
    )
    x = np.array([1, -1], np.float32)
    k, k2 = (np.array([1, 2], np.float32), np.array([3, 4], np.float32))
    return (
        m,
        [{"x": x, "p": np.array(True)}, {"x": x, "p": np.array(False)}],
        Expected(outputs=[[(x + k) * k2], [x * k2 + k]]),
    )


@case("sequence", "onnx/onnx#6656")
def seq_keepdims0() -> Made:
    """SplitToSequence with keepdims=0 and no split input drops the axis; inferred shapes kept
    it."""
    m = model(
        [
            node("SplitToSequence", ["x"], ["sq"], axis=1, keepdims=0),
            node("SequenceAt", ["sq", "i1"], ["t"]),
            node("Shape", ["t"], ["s"]),
            node("Unsqueeze", ["t", "ax"], ["y"]),
        ],
        [value("x", FLOAT, [2, 3, 4])],
        [value("y", FLOAT, ["p", "q", "r"]), value("s", INT64, ["k"])],
        [tensor("i1", np.int64(1)), integers("ax", 0)],
    )
    x = random(2, 3, 4)
    return m, {"x": x}, Expected(outputs=[x[None, :, 1], np.array([2, 4])])


@case("sequence", "onnx/optimizer#134", "onnxsim/onnxsim#287")
def seq_typed_values() -> Made:
    """Value infos of sequence type were written back without a type."""
    sv = helper.make_tensor_sequence_value_info("sq", FLOAT, None)
    m = model(
        [
            node("Identity", ["x"], ["xi"]),
            node("SequenceConstruct", ["xi", "w"], ["sq"]),
            node("SequenceLength", ["sq"], ["n"]),
            node("ConcatFromSequence", ["sq"], ["y"], axis=0),
        ],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [4]), value("n", INT64, [])],
        [tensor("w", np.array([1, 2], np.float32))],
        value_info=[sv],
    )
    x = random(2)
    return (
        m,
        {"x": x},
        Expected(outputs=[np.concatenate([x, [1, 2]]).astype(np.float32), np.int64(2)]),
    )


@case("sequence", "microsoft/onnxruntime#11717", "onnxsim/onnxsim#287")
def optional_has_element_none() -> Made:
    """OptionalHasElement with no input at all is a zero-input foldable node: false."""
    then = subgraph([node("Neg", ["x"], ["t0"])], [], [value("t0", FLOAT, [2])])
    els = subgraph([node("Exp", ["x"], ["e0"])], [], [value("e0", FLOAT, [2])])
    m = model(
        [
            node("OptionalHasElement", [], ["has"]),
            node("If", ["has"], ["y"], then_branch=then, else_branch=els),
        ],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        opset=18,
    )
    x = random(2)
    return m, {"x": x}, Expected(outputs=[np.exp(x)])
