"""Normalisations of com.microsoft in exact mode: the values of fast mode, the one NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.exact_contrib_normalisation import skip_layer_normalization
from foldline.kernels.exact_normalisation import layer_normalization
from foldline.kernels.registry import GRADES
from tests.kernels.both_modes import Case, agree, codes, has_the_one_nan, numbers, run, scalar


def embedded(quantised: bool, **left_out: int) -> list[Any]:
    """Ids, tables and a mask, without what `left_out` names by its place."""
    ids = np.array([[3, 0, 9], [1, 1, 4]], np.int32)
    kinds = np.array([[0, 1, 1], [1, 0, 0]], np.int32)
    shapes = [(10, 8), (4, 8), (2, 8), (8,), (8,)]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    made = [codes(*shape) if quantised else numbers(*shape) for shape in shapes]
    given = [ids, kinds, *made, mask]
    for place in left_out.values():
        given[place] = None
    if quantised:
        given += [scalar(0.01 * (i + 1)) for i in range(5)]
        given += [scalar(2 * i, np.int8) for i in range(5)]
    return given


EMBEDDED: dict[str, Case] = {
    "embedded": ("EmbedLayerNormalization", embedded(False), {}),
    "no mask": ("EmbedLayerNormalization", embedded(False, mask=7), {"epsilon": 1e-3}),
    "no segments": ("EmbedLayerNormalization", embedded(False, kinds=1, table=4), {}),
    "places": ("EmbedLayerNormalization", [*embedded(False), np.array([[2, 0, 1]], np.int32)], {}),
    "quantised": ("QEmbedLayerNormalization", embedded(True), {"epsilon": 1e-3}),
}
CASES: dict[str, Case] = {
    "skip": (
        "SkipLayerNormalization",
        [numbers(2, 3, 8), numbers(2, 3, 8) * 2, numbers(8), numbers(8), numbers(8)],
        {"output_count": 4},
    ),
    "skip simplified": (
        "SkipSimplifiedLayerNormalization",
        [numbers(2, 3, 8), numbers(2, 3, 8) * 2, numbers(8), numbers(8)],
        {"output_count": 4},
    ),
    **EMBEDDED,
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    agree(CASES[case])


@pytest.mark.parametrize("case", [case for case in CASES if case != "quantised"])
def test_nan(case: str) -> None:
    op_type, inputs, attributes = CASES[case]
    if op_type == "EmbedLayerNormalization":  # A row that is read.
        inputs = [x if i != 2 else x[::-1].copy() for i, x in enumerate(inputs)]
    has_the_one_nan((op_type, inputs, attributes))


def test_a_half_embedding_is_rounded_once() -> None:
    op_type, inputs, _ = EMBEDDED["embedded"]
    half = [x.astype(np.float16) if x.dtype == np.float32 else x for x in inputs]
    wide = [x.astype(np.float32) if x.dtype == np.float16 else x for x in half]
    (y, counts, total), (exact, *_) = (run("exact", op_type, *x) for x in (half, wide))
    assert y.tobytes() == exact.astype(np.float16).tobytes()
    assert (total.dtype, counts.tolist()) == (np.float16, [2, 3])


@pytest.mark.parametrize("count", [1, 2])
def test_simplified_layer_normalisation(count: int) -> None:
    given = (numbers(2, 3, 4), numbers(4))
    found, expected = (
        run(mode, "SimplifiedLayerNormalization", *given, domain="", output_count=count)
        for mode in GRADES
    )
    assert len(found) == len(expected) == count
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_it_is_what_its_parts_are() -> None:
    a, b = numbers(3, 7), numbers(7, 4)
    y, *_ = skip_layer_normalization(a, a * 2, b[:, 0], b[:, 1], output_count=1)
    expected, *_ = layer_normalization(a + a * 2, b[:, 0], b[:, 1], epsilon=1e-12)
    assert y.tobytes() == expected.tobytes()
