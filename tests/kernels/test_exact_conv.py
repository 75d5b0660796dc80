"""Convolutions in exact mode against the definition, a number at a time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import exact_conv
from foldline.kernels.col2im import conv_transpose_reference
from foldline.kernels.exact_conv import conv, conv_integer, conv_transpose, qlinear_conv
from foldline.kernels.parallel import use_threads
from foldline.kernels.quantised_conv import conv_integer_reference, qlinear_conv_reference


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def by_definition(
    x: np.ndarray,
    w: np.ndarray,
    group: int,
    pads: list[int],
    strides: list[int],
    dilations: list[int],
) -> np.ndarray:
    """Two spatial axes; zeros in the padding, (c, kh, kw) ascending."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    extent = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    sizes = [(x.shape[2 + a] - extent[a]) // strides[a] + 1 for a in range(2)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), np.float32)
    maps = w.shape[0] // group
    for n, m, i, j in np.ndindex(out.shape):
        total = np.float32(0)
        for c, kh, kw in np.ndindex(w.shape[1:]):
            channel = m // maps * w.shape[1] + c
            at = i * strides[0] + kh * dilations[0], j * strides[1] + kw * dilations[1]
            total = total + x[n, channel, at[0], at[1]] * w[m, c, kh, kw]
        out[n, m, i, j] = total
    return out


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": ((1, 3, 6, 5), (4, 3, 3, 2), {}),
    "pads": ((2, 2, 5, 5), (3, 2, 3, 3), {"pads": [1, 0, 2, 1]}),
    "strides": ((1, 2, 7, 8), (3, 2, 3, 3), {"strides": [2, 3], "dilations": [2, 1]}),
    "groups": ((1, 4, 5, 5), (6, 2, 2, 2), {"group": 2, "pads": [1, 1, 1, 1]}),
    "depthwise": ((2, 4, 5, 6), (4, 1, 3, 3), {"group": 4, "pads": [1] * 4, "strides": [2, 1]}),
    "multiplier": ((1, 2, 4, 4), (6, 1, 2, 2), {"group": 2}),
    "pointwise": ((2, 5, 3, 3), (4, 5, 1, 1), {}),
    "strided pointwise": ((1, 3, 5, 5), (2, 3, 1, 1), {"strides": [2, 2]}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_definition(case: str) -> None:
    x_shape, w_shape, attributes = CASES[case]
    x, w, b = numbers(*x_shape), numbers(*w_shape), numbers(w_shape[0])
    expected = by_definition(
        x,
        w,
        attributes.get("group", 1),
        attributes.get("pads", [0] * 4),
        attributes.get("strides", [1, 1]),
        attributes.get("dilations", [1, 1]),
    )
    assert conv(x, w, **attributes).tobytes() == expected.tobytes()
    biased = expected + b.reshape(-1, 1, 1)
    assert conv(x, w, b, **attributes).tobytes() == biased.tobytes()


def test_images_maps_and_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = numbers(2, 4, 9, 9), numbers(6, 4, 3, 3)
    whole = conv(x, w, pads=[1, 1, 1, 1])
    assert conv(x[1:], w, pads=[1, 1, 1, 1]).tobytes() == whole[1:].tobytes()
    assert conv(x, w[2:3], pads=[1, 1, 1, 1]).tobytes() == whole[:, 2:3].tobytes()
    monkeypatch.setattr(exact_conv, "COLUMN_ELEMENTS", 500)
    for threads in (1, 3):
        with use_threads(threads):
            assert conv(x, w, pads=[1, 1, 1, 1]).tobytes() == whole.tobytes()


def test_depthwise_tiles_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = numbers(2, 16, 9, 9), numbers(16, 1, 3, 3)
    whole = conv(x, w, group=16)
    monkeypatch.setattr(exact_conv, "TAP_ELEMENTS", 200)
    for threads in (1, 2, 3):
        with use_threads(threads):
            assert conv(x, w, group=16).tobytes() == whole.tobytes()


@pytest.mark.parametrize(("group", "depth"), [(1, 4), (2, 2), (4, 1)])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
def test_images_groups_and_rows_go_through_in_any_number(
    group: int, depth: int, strides: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w, b = numbers(3, 4, 5, 4), numbers(4, depth, 3, 3), numbers(4)
    given: dict[str, Any] = {"group": group, "pads": [1, 1, 1, 1], "strides": strides}
    expected = by_definition(x, w, group, [1, 1, 1, 1], strides, [1, 1]) + b.reshape(-1, 1, 1)
    for most in (1, 300, 900, 1 << 20):
        monkeypatch.setattr(exact_conv, "COLUMN_ELEMENTS", most)
        monkeypatch.setattr(exact_conv, "TAP_ELEMENTS", most)
        for row in (0, 512):
            monkeypatch.setattr(exact_conv, "SHORT_ROW", row)
            for threads in (1, 2):
                with use_threads(threads):
                    assert conv(x, w, b, **given).tobytes() == expected.tobytes()
                    one = [conv(image[None], w, b, **given) for image in x]
                    assert np.concatenate(one).tobytes() == expected.tobytes()


def test_one_and_three_axes() -> None:
    x, w = numbers(1, 2, 6), numbers(3, 2, 3)
    line = conv(x, w, pads=[1, 1])
    plane = conv(x[:, :, None], w[:, :, None], pads=[0, 1, 0, 1])
    cube = conv(x[:, :, None, None], w[:, :, None, None], pads=[0, 0, 1, 0, 0, 1])
    assert line.tobytes() == plane.tobytes() == cube.tobytes()


def test_padding_is_zero_in_the_product() -> None:
    x, w = np.ones((1, 1, 1, 1), np.float32), np.full((1, 1, 1, 3), np.inf, np.float32)
    for group in (1,):
        result = conv(x, w, pads=[0, 1, 0, 1], group=group)
        assert (result.view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_widen_and_round_once(dtype: Any) -> None:
    x, w, b = (v.astype(dtype) for v in (numbers(1, 3, 5, 5), numbers(2, 3, 3, 3), numbers(2)))
    wide = conv(*(v.astype(np.float32) for v in (x, w, b)))
    assert conv(x, w, b).tobytes() == wide.astype(dtype).tobytes()
    turned = conv_transpose(*(v.astype(np.float32) for v in (x, w.swapaxes(0, 1), b)))
    assert conv_transpose(x, w.swapaxes(0, 1), b).tobytes() == turned.astype(dtype).tobytes()


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2], "pads": [1, 0, 0, 1]},
        {"group": 2, "output_padding": [1, 0], "strides": [2, 1]},
    ],
)
def test_conv_transpose(attributes: dict[str, Any]) -> None:
    group = attributes.get("group", 1)
    x, w, b = numbers(2, 4, 3, 4), numbers(4, 3, 2, 3), numbers(3 * group)
    result = conv_transpose(x, w, b, **attributes)
    np.testing.assert_allclose(result, conv_transpose_reference(x, w, b, **attributes), atol=1e-5)
    single = conv_transpose(x[1:], w, b, **attributes)
    assert single.tobytes() == result[1:].tobytes()


def test_conv_transpose_by_definition() -> None:
    x, w = numbers(1, 3, 2, 2), numbers(3, 1, 2, 2)
    out = np.zeros((1, 1, 3, 3), np.float32)
    for kh, kw in np.ndindex(2, 2):
        for i, j in np.ndindex(2, 2):
            total = np.float32(0)
            for c in range(3):
                total = total + w[c, 0, kh, kw] * x[0, c, i, j]
            out[0, 0, i + kh, j + kw] += total
    assert conv_transpose(x, w).tobytes() == out.tobytes()


def test_integers() -> None:
    generator = np.random.default_rng(3)
    x = generator.integers(0, 256, (2, 4, 6, 6), dtype=np.uint8)
    w = generator.integers(-128, 128, (4, 2, 3, 3), dtype=np.int8)
    zero, zeros = np.uint8(7), np.arange(4, dtype=np.int8)
    attributes: dict[str, Any] = {"group": 2, "pads": [1, 1, 1, 1]}
    found = conv_integer(x, w, np.asarray(zero), zeros, **attributes)
    expected = conv_integer_reference(x, w, np.asarray(zero), zeros, **attributes)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    scales = [np.asarray(s, np.float32) for s in (0.1, 0.02, 3.0)]
    given = (x, scales[0], np.asarray(zero), w, scales[1], np.asarray(np.int8(3)), scales[2])
    b = np.arange(4, dtype=np.int32) * 100
    last = (np.asarray(np.uint8(128)), b)
    np.testing.assert_array_equal(
        qlinear_conv(*given, *last, **attributes),
        qlinear_conv_reference(*given, *last, **attributes),
    )


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit together with group=1"):
        conv(numbers(1, 3, 4, 4), numbers(2, 2, 3, 3))


def test_nothing_to_compute() -> None:
    assert conv(numbers(0, 3, 4, 4), numbers(2, 3, 3, 3)).shape == (0, 2, 2, 2)
