"""The attention that those of com.microsoft are made of in exact mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import foldline
from foldline.kernels.attention import attention_reference
from foldline.kernels.attention import softmax_rows as softmax_of_numpy
from foldline.kernels.exact_attention import attention, softmax_rows
from foldline.kernels.exact_softmax import softmax
from tests.kernels.both_modes import numbers

Q, K, V = numbers(2, 4, 5, 8), numbers(2, 2, 7, 8) * 2, numbers(2, 2, 7, 3)
MASK = np.where(numbers(5, 7) > 0.9, np.float32(-np.inf), numbers(5, 7))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"is_causal": 1}, {"softcap": 2.0, "scale": 0.3}, {"output_count": 4}],
    ids=str,
)
def test_values(dtype: Any, attributes: dict[str, Any]) -> None:
    given = [x.astype(dtype) for x in (Q, K, V, MASK)]
    found, expected = attention(*given, **attributes), attention_reference(*given, **attributes)
    if "output_count" not in attributes:
        found, expected = (found,), (expected,)
    tolerance = 4e-3 if dtype == np.float16 else 1e-5
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        wide = (x.astype(np.float64) for x in (a, b))
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


def test_rows_are_those_of_softmax() -> None:
    scores = numbers(3, 5, 33) * 10
    assert softmax_rows(scores).tobytes() == softmax(scores).tobytes()
    scores[0, 0], scores[1, 2, 7] = -np.inf, np.inf
    found = softmax_rows(scores)
    assert not found[0, 0].any()
    assert np.isnan(found[1, 2]).any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(softmax_of_numpy(scores)))
    assert softmax_rows(scores[..., :0]).shape == (3, 5, 0)


@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"softcap": 2.0}], ids=str)
def test_bits_are_those_of_the_function_of_onnx(attributes: dict[str, Any]) -> None:
    """Exact mode runs ONNX's own operator as its function."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v"], ["y"], **attributes)],
        "g",
        [value(name, 1, x.shape) for name, x in zip("qkv", (Q, K, V), strict=True)],
        [value("y", 1, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    session = foldline.compile(model, options={"mode": "exact"}).session()
    (expected,) = session.run(None, {"q": Q, "k": K, "v": V})
    assert attention(Q, K, V, **attributes).tobytes() == expected.tobytes()


def test_a_query_stands_alone() -> None:
    """Its result hangs on it and the keys only: rows may be cut anywhere."""
    whole = attention(Q, K, V)
    for row in range(5):
        assert attention(Q[:, :, row : row + 1], K, V).tobytes() == (
            whole[:, :, row : row + 1].tobytes()
        )
