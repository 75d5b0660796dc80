"""group-normalization: InstanceNormalization between Reshapes."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.group_normalization import GroupNormalization
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results, typed
from tests.stages.passes.fusion.rows import row_bound, vector

RNG = np.random.default_rng(5)
W, B = RNG.normal(size=6), RNG.normal(size=6)

NORMAL = "s = Reshape(x, split) n = InstanceNormalization<epsilon = 1e-6>(s, ones, zeros)"
AFFINE = "j = Reshape(n, whole) t = Mul(j, w) y = Add(t, b)"
PARTS = f"{NORMAL} whole = Shape(x) {AFFINE}"


def model(
    body: str = PARTS,
    opset: int = 18,
    shape: str = "N, 6, H, W",
    affine: str = "6, 1, 1",
    split: tuple[int, ...] = (0, 3, -1),
    one: float = 1,
    outputs: str = "",
) -> ModuleOp:
    constants = [
        vector("float", "w", W, affine),
        vector("float", "b", B, affine),
        vector("float", "ones", np.array([1, one, 1])),
        vector("float", "zeros", np.zeros(3)),
        f"int64[{len(split)}] split = {{{', '.join(map(str, split))}}}",
    ]
    text = (
        f"g (float[{shape}] x) => (float[{shape}] y{outputs}) <{', '.join(constants)}> {{ {body} }}"
    )
    return typed(from_onnx(text, opset=opset))


@pytest.mark.parametrize(("opset", "name"), [(8, "fused"), (18, "fused"), (21, "onnx")])
def test_operator_of_the_model_version(opset: int, name: str):
    module = model(opset=opset)
    run_pass(GroupNormalization(), module)
    (node,) = (op for op in module.walk() if op.name == f"{name}.GroupNormalization")
    assert node.attribute_values()["num_groups"] == 3
    assert node.attribute_values()["epsilon"] == np.float32(1e-6)


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 18, 21])
@pytest.mark.parametrize("shape", ["N, 6, H, W", "2, 6, 4, 5"])
def test_within_the_stated_bound(shape: str, opset: int, run: Any):
    x = (RNG.normal(size=(2, 6, 4, 5)) * 2 + 3).astype(np.float32)
    found = run(GroupNormalization(), model(opset=opset, shape=shape), {"x": x})
    groups = row_bound(x.reshape(2, 3, -1), found.parts.reshape(2, 3, -1), 2**-23).max(-1)
    found.check(groups.max())


@pytest.mark.parametrize("shape", ["N, 6, H, W", "2, 6, 4, 5"])
def test_file_has_no_more_nodes_than_before(shape: str):
    module = model(shape=shape)
    before = len(op_types(module))
    run_pass(GroupNormalization(), module)
    nodes = [n.op_type for n in export_model(module).graph.node if n.op_type != "Constant"]
    assert len(nodes) <= before


def test_three_axes_and_a_scale_of_full_rank():
    module = model(shape="N, 6, L", affine="1, 6, 1")
    run_pass(GroupNormalization(), module)
    assert op_types(module).count("GroupNormalization") == 1


def test_readers_of_the_shape_of_the_rows_read_that_of_the_input():
    module = model(f"{PARTS} z = Shape(j)", opset=21, outputs=", int64[4] z")
    run_pass(GroupNormalization(), module)
    assert sorted(op_types(module)) == ["GroupNormalization", "Shape"]


def test_zero_size():
    found = results(GroupNormalization(), model(), {"x": np.zeros((0, 6, 4, 5), "f")})
    assert found.fused.shape == (0, 6, 4, 5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"split": (-1, 3, 40)}, None),
        ({"one": 2}, None),
        ({"affine": "1, 1, 6"}, "the scale is of shape (1, 1, 6) instead of (6, 1, 1)"),
        ({"outputs": ", float[N, 6, H, W] j"}, "read outside"),
        ({"outputs": ", float[N, 3, K] n"}, "read outside"),
    ],
)
def test_declines(changes: dict[str, Any], reason: str | None):
    check_unchanged(GroupNormalization(), model(**changes), reason)


def test_declines_a_reshape_to_another_shape():
    body = f"{NORMAL} whole = Constant<value_ints = [0, 6, 4, -1]>() {AFFINE}"
    check_unchanged(
        GroupNormalization(), model(body), "not known to give the shape of the input back"
    )
