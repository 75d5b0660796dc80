"""The Attention that files get: where it is ONNX's, and what stands around it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import foldline
from tests.stages.passes.fusion.graphs import normal
from tests.stages.passes.fusion.random_checks import runtime

O3 = {"oo.level": "O3"}


def model(q: str, k: str, key: str = "Transpose<perm=[0,1,3,2]>(k)") -> onnx.ModelProto:
    """Attention in parts, of operator set 23."""
    return parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 23]>
        g (float[{q}] q, float[{k}] k, float[{k}] v) => (float[A,B,C,D] y) {{
            t = {key}
            s = MatMul(q, t)
            p = Softmax<axis=-1>(s)
            y = MatMul(p, v) }}""")


def operators(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


@pytest.mark.parametrize(
    ("q", "shape"),
    [("N,3,4,2", (1, 3, 4, 2)), ("1,3,4,2", (1, 3, 4, 2)), ("2,1,4,2", (2, 1, 4, 2))],
)
def test_images_and_heads_that_are_broadcast_are_none_of_onnx(
    q: str, shape: tuple[int, ...]
) -> None:
    """Its Attention does not broadcast them: what is not known to be alike stays in parts."""
    given = model(q, "2,3,5,2")
    written = foldline.optimize(given, options=O3)
    assert "Attention" not in operators(written)
    feed = {"q": normal(*shape), "k": normal(2, 3, 5, 2, seed=1), "v": normal(2, 3, 5, 2, seed=2)}
    np.testing.assert_allclose(runtime(written, feed)[0], runtime(given, feed)[0], atol=1e-5)


def test_what_is_known_to_be_alike_is_attention_of_onnx() -> None:
    assert operators(foldline.optimize(model("N,3,4,2", "N,3,S,2"), options=O3)) == ["Attention"]


def test_a_transpose_that_moves_nothing_is_not_written() -> None:
    """Keys of one row and one column: the file was another one after it was compiled again."""
    given = model("2,3,1,1", "2,3,1,1")
    written = foldline.optimize(given, options=O3)
    assert operators(written) == ["Attention"]
    again = foldline.optimize(written, options=O3)
    assert again.SerializeToString() == written.SerializeToString()
