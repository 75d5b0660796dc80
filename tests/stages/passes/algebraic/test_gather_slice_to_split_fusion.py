"""gather-slice-to-split-fusion: rows A16 to A21, and Gathers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper, parser

import foldline
from foldline.exporter import export_model
from foldline.stages.passes.algebraic.gather_slice_to_split_fusion import GatherSliceToSplitFusion
from tests.stages.check import run_pass
from tests.stages.passes.algebraic.graphs import (
    SIZES,
    check_linear,
    folded,
    initial,
    model,
    operators,
    ready,
    unchanged,
)

PASS = GatherSliceToSplitFusion()
HUGE = 2**63 - 1
TILES = "do not tile axis 1 of size 6"


def cut(
    *bounds: tuple[list[int], ...], opset: int = 17, size: str = "6", readers: bool = True
) -> ModelProto:
    """Slices of `x` by starts, ends, axes and steps, with a Relu behind each."""
    constants: dict[str, list[int]] = {}
    body: list[str] = []
    for number, given in enumerate(bounds):
        names = [f"{letter}{number}" for letter in "beat"[: len(given)]]
        constants.update(zip(names, given, strict=True))
        body.append(f"s{number} = Slice(x, {', '.join(names)})")
    results = [f"s{number}" for number in range(len(bounds))]
    if readers:
        body += [f"y{number} = Relu(s{number})" for number in range(len(bounds))]
        results = [f"y{number}" for number in range(len(bounds))]
    outputs = ", ".join(f"float[1,{name.upper()},2] {name}" for name in results)
    text = f"g (float[1,{size},2] x) => ({outputs}) {{ {' '.join(body)} }}"
    return model(text, opset=opset, **constants)


def test_row_A16_two_slices() -> None:
    given = cut(([0], [2], [1]), ([2], [6], [1]))
    module = folded(PASS, given, ["Split", "Relu", "Relu"], rtol=0)
    (sizes,) = initial(module).values()
    assert sizes.tolist() == [2, 4]


def test_row_A17_operator_set_12() -> None:
    given = cut(([0], [2], [1]), ([2], [6], [1]), opset=12)
    unchanged(PASS, given, "operator set 13 is needed, the model has 12")


@pytest.mark.parametrize(
    "domains", [pytest.param(("ai.onnx", ""), id="A18a"), pytest.param(("", ""), id="A18b")]
)
def test_row_A18_ambiguous_operator_sets(domains: tuple[str, str]) -> None:
    given = cut(([0], [2], [1]), ([2], [6], [1]))
    del given.opset_import[:]
    versions = zip(domains, (17, 12), strict=True)
    given.opset_import.extend(helper.make_opsetid(*pair) for pair in versions)
    unchanged(PASS, given, "versions [17, 12] of one operator set are imported")


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        pytest.param([([0], [2], [1]), ([3], [6], [1])], TILES, id="A19a"),
        pytest.param([([0], [3], [1]), ([2], [6], [1])], TILES, id="A19b"),
        pytest.param([([1], [2], [1]), ([2], [6], [1])], TILES, id="A19c"),
        pytest.param([([0], [2], [1], [1]), ([2], [6], [1], [2])], None, id="A19d"),
        pytest.param([([0], [2], [1]), ([2, 0], [6, 1], [1, 2])], None, id="A19e"),
        pytest.param([([0], [2], [1]), ([2], [5], [1])], TILES, id="not-to-the-end"),
    ],
)
def test_row_A19_slices_that_do_not_tile(
    bounds: list[tuple[list[int], ...]], reason: str | None
) -> None:
    unchanged(PASS, cut(*bounds), reason)


def test_row_A20_negative_bounds_and_defaults() -> None:
    given = cut(([-6], [-4], [-2], [1]), ([2], [HUGE], [1]))
    folded(PASS, given, ["Split", "Relu", "Relu"], rtol=0)
    text = "g (float[6] x) => (float[2] p, float[4] q) { p = Slice(x, z, t) q = Slice(x, t, n) }"
    folded(PASS, model(text, z=[0], t=[2], n=[HUGE]), ["Split"], rtol=0)


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ([([0], [2], [1]), ([2], [6], [1]), ([0], [6], [1])], TILES),
        ([([0], [2], [1]), ([2], [6], [1]), ([0], [2], [1])], TILES),
        ([([0], [6], [1])], None),
    ],
    ids=["full", "duplicate", "alone"],
)
def test_row_A21_too_many_and_too_few(
    bounds: list[tuple[list[int], ...]], reason: str | None
) -> None:
    unchanged(PASS, cut(*bounds), reason)


def test_results_that_are_outputs_out_of_order() -> None:
    given = cut(([2], [6], [1]), ([0], [2], [1]), readers=False)
    module = folded(PASS, given, ["Split"], rtol=0)
    assert len(operators(module)) == 1


def gathers(indices: dict[str, object], outputs: str, body: str) -> ModelProto:
    """Gathers, and what else is said, of an input with 3 rows."""
    text = f"g (float[3,N] x) => ({outputs}) {{ {body} }}"
    return model(text, **{name: np.asarray(value, np.int64) for name, value in indices.items()})


def test_gathers_by_lists_of_one_index() -> None:
    given = gathers(
        {"i": [0], "j": [-1], "k": [1]},
        "float[1,N] p, float[1,N] q, float[1,N] r",
        "p = Gather(x, i) q = Gather(x, j) r = Gather(x, k)",
    )
    folded(PASS, given, ["Split"], rtol=0)


def test_gathers_by_scalars_drop_the_axis() -> None:
    given = gathers(
        {"i": 0, "j": -1, "k": 1},
        "float[N] p, float[N] q, float[N] r",
        "p = Gather(x, i) q = Gather(x, j) r = Gather(x, k)",
    )
    folded(PASS, given, ["Split", "Squeeze", "Squeeze", "Squeeze"], rtol=0)


def test_gathers_and_slices_together() -> None:
    given = gathers(
        {"i": 2, "b": [0], "e": [2]},
        "float[2,N] p, float[N] q",
        "q = Gather(x, i) p = Slice(x, b, e)",
    )
    folded(PASS, given, ["Split", "Squeeze"], rtol=0)


@pytest.mark.parametrize(
    "indices",
    [{"i": 0, "j": 0, "k": 1}, {"i": 0, "j": 1, "k": 1}, {"i": 0, "j": 1, "k": [0, 2]}],
    ids=["twice", "gap", "list"],
)
def test_gathers_that_do_not_tile(indices: dict[str, object]) -> None:
    given = gathers(
        indices,
        "float[...] p, float[...] q, float[...] r".replace("...", "A"),
        "p = Gather(x, i) q = Gather(x, j) r = Gather(x, k)",
    )
    for output in given.graph.output:
        output.type.tensor_type.ClearField("shape")
    unchanged(PASS, given)


def test_guard_15_unknown_sizes_of_the_axis() -> None:
    unchanged(PASS, cut(([0], [2], [1]), ([2], [6], [1]), size="N"))


def test_guard_3_overridable_bounds() -> None:
    given = cut(([0], [2], [1]), ([2], [6], [1]))
    given.graph.input.append(helper.make_tensor_value_info("b1", 7, [1]))
    unchanged(PASS, given)


def test_groups_of_other_blocks_are_others() -> None:
    text = """g (float[6] x, bool t) => (float[2] p, float[4] y) {
        p = Slice(x, z, two)
        y = If (t) <then_branch = a () => (float[4] e) { e = Slice(x, two, six) },
                    else_branch = a () => (float[4] f) { f = Slice(x, two, six) }> }"""
    unchanged(PASS, model(text, z=[0], two=[2], six=[6]))


def test_no_elements() -> None:
    text = """g (float[0,6] x) => (float[0,2] p, float[0,4] q) {
        p = Slice(x, z, t, o) q = Slice(x, t, n, o) }"""
    folded(PASS, model(text, z=[0], t=[2], n=[6], o=[1]), ["Split"], rtol=0)


BOTH = {"passes.enable": ["gather-slice-to-split-fusion", "static-split-to-slice"]}


@pytest.mark.parametrize("level", ["O0", "O1", "O3"])
def test_with_static_split_to_slice_slices_are_the_last_word(level: str) -> None:
    """P2: both flags on gives Slices, and the two do not go on undoing each other."""
    given = cut(([0], [2], [1]), ([2], [6], [1]))
    compiled = foldline.compile(given, options={**BOTH, "oo.level": level})
    once = compiled.to_proto()
    kinds = [node.op_type for node in once.graph.node if node.op_type != "Constant"]
    assert sorted(kinds) == ["Relu", "Relu", "Slice", "Slice"]
    assert not compiled.report.bounds
    twice = foldline.optimize(once, options={**BOTH, "oo.level": level})
    assert twice.SerializeToString() == once.SerializeToString()


def test_with_static_split_to_slice_gathers_become_slices() -> None:
    given = gathers(
        {"i": 2, "b": [0], "e": [2]},
        "float[2,N] p, float[N] q",
        "q = Gather(x, i) p = Slice(x, b, e)",
    )
    compiled = foldline.compile(given, options={**BOTH, "oo.level": "O1"})
    kinds = [n.op_type for n in compiled.to_proto().graph.node if n.op_type != "Constant"]
    assert sorted(kinds) == ["Slice", "Slice", "Squeeze"]
    assert not compiled.report.bounds


@SIZES
def test_work_is_linear(nodes: int) -> None:
    """Python calls a node do not grow with the number of nodes."""

    def halves(count: int) -> ModelProto:
        body = " ".join(
            f"r{n} = Relu(x) p{n} = Slice(r{n}, z, t) q{n} = Slice(r{n}, t, s)"
            for n in range(count)
        )
        outputs = ", ".join(f"float[2] p{n}, float[4] q{n}" for n in range(count))
        return model(f"g (float[6] x) => ({outputs}) {{ {body} }}", z=[0], t=[2], s=[6])

    check_linear(PASS, halves, nodes // 3)


@SIZES
def test_one_value_with_many_slices_is_linear_too(nodes: int) -> None:
    def parts(count: int) -> ModelProto:
        body = " ".join(f"p{n} = Slice(x, c{n}, c{n + 1})" for n in range(count))
        outputs = ", ".join(f"float[1] p{n}" for n in range(count))
        places = {f"c{n}": [n] for n in range(count + 1)}
        return model(f"g (float[{count}] x) => ({outputs}) {{ {body} }}", **places)

    check_linear(PASS, parts, nodes)


def test_names_stay() -> None:
    module = ready(cut(([0], [2], [1]), ([2], [6], [1]), readers=False))
    run_pass(PASS, module)
    (split,) = (node for node in export_model(module).graph.node if node.op_type == "Split")
    assert list(split.output) == ["s0", "s1"]


def test_an_axis_that_callers_give() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[2,2] x) => (float[2] y) { y = local.first <axis = 1> (x) }
    <domain: "local", opset_import: ["" : 17]>
    first <axis> (x) => (p) {
        i = Constant <value_int = 0> () j = Constant <value_int = 1> ()
        p = Gather <axis: int = @axis> (x, i) q = Gather <axis: int = @axis> (x, j) }"""
    unchanged(PASS, parser.parse_model(text))
