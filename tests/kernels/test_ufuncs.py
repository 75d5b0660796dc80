import ml_dtypes
import numpy as np
import onnx.defs
import pytest

import foldline.kernels  # noqa: F401
from foldline.kernels.registry import compute, find_kernel
from foldline.kernels.ufuncs import (
    aligned,
    bound_ufuncs,
    bounds,
    clip,
    constant,
    following_recipe,
    is_native,
    positive_part,
)


@pytest.mark.parametrize(
    ("b_shape", "axis", "expected"),
    [
        ((), None, ()),
        ((1, 1), None, (1, 1)),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((5,), -1, (5,)),
    ],
)
def test_aligned_follows_the_examples_of_opset_1(b_shape, axis, expected):
    a = np.zeros((2, 3, 4, 5))
    b = aligned(a, np.zeros(b_shape), axis, 1)
    assert b.shape == expected
    assert (a + b).shape == a.shape


def test_aligned_refuses_other_shapes_without_broadcast():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3,\) differ and broadcast is 0"):
        aligned(np.zeros((2, 3)), np.zeros(3), None, 0)


BEFORE_7 = [
    ("Add", np.add, np.float32), ("Sub", np.subtract, np.float32), ("Mul", np.multiply, np.float32),
    ("Div", np.divide, np.float32), ("Pow", np.power, np.float32), ("Equal", np.equal, np.int32),
    ("Greater", np.greater, np.float32), ("Less", np.less, np.float32),
    ("And", np.logical_and, np.bool_), ("Or", np.logical_or, np.bool_),
    ("Xor", np.logical_xor, np.bool_),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "function", "dtype"), BEFORE_7)
@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize(
    ("b_shape", "axis", "spread"),
    [
        ((2,), 0, (2, 1, 1)),
        ((3,), 1, (3, 1)),
        ((2, 3), 0, (2, 3, 1)),
        ((3, 3), 1, (3, 3)),
        ((3,), None, (3,)),
        ((), None, ()),
    ],
)
def test_operators_before_7_place_their_second_operand(
    op_type, function, dtype, version, b_shape, axis, spread
):
    a = (np.arange(18).reshape(2, 3, 3) % 4).astype(dtype)
    b = (np.arange(np.prod(b_shape, dtype=int)).reshape(b_shape) % 3).astype(dtype)
    entry = find_kernel("", op_type, version)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = function(a, b.reshape(spread))
        result = compute(entry, (a, b), axis=axis, broadcast=1)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(ValueError, match="broadcast is 0"):
        compute(entry, (a, b), axis=axis, broadcast=0)


X = np.array([[[0.25, 0.5, 1], [1, 2, 4]]], np.float32)
FACTORS = np.array([0.5, 2], np.float32)
INPUTS = {
    "BatchNormalization": [X, *[FACTORS] * 4],
    "InstanceNormalization": [X, FACTORS, FACTORS],
    "PRelu": [-X, FACTORS[:, None]],
}
OPTIONS = {
    "BatchNormalization": {"is_test": 1},
    "Dropout": {"is_test": 1},
    "Reshape": {"shape": (3, 2)},
}


@pytest.mark.parametrize(
    "schema",
    [s for s in onnx.defs.get_all_schemas_with_history() if "consumed_inputs" in s.attributes],
    ids=lambda schema: schema.name,
)
def test_which_inputs_may_be_consumed_is_a_hint_without_effect(schema):
    inputs = INPUTS.get(schema.name, [X, X + 1][: schema.min_input])
    before = [x.copy() for x in inputs]
    entry = find_kernel("", schema.name, schema.since_version)
    options = OPTIONS.get(schema.name, {})
    plain = compute(entry, inputs, **options)
    hinted = compute(entry, inputs, consumed_inputs=(1,) * len(inputs), **options)
    for result, wanted in zip(
        *(x if isinstance(x, tuple) else (x,) for x in (hinted, plain)), strict=True
    ):
        np.testing.assert_array_equal(result, wanted)
    for x, kept in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, kept)


def test_constants_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        constant(2.0, np.dtype(np.float32))[...] = 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_clip_keeps_nan_of_any_operand(dtype):
    x = np.array([np.nan, 1, 5, -5], dtype)
    low, high, nan = (np.array(v, dtype) for v in (-1, 3, np.nan))
    assert np.asarray(clip(x, low, high)).dtype == dtype
    assert np.asarray(clip(x, low, high)).astype(float).tolist()[1:] == [1, 3, -1]
    assert np.isnan(clip(x, low, high)[0])
    assert np.isnan(clip(x, nan, high)).all()
    assert np.isnan(clip(x, low, nan)).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, ml_dtypes.bfloat16])
def test_positive_part_passes_the_extremes(dtype):
    low, high = bounds(np.dtype(dtype))
    assert positive_part(high) == high
    assert positive_part(low) == 0


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float16, np.float32, np.float64])
def test_copies_of_native_dtypes_are_native(dtype):
    """Arrays that were pickled, or read as little endian, have one, and the same bits come out."""
    copy = np.dtype(dtype).newbyteorder("=")
    assert copy is not np.dtype(dtype)
    assert is_native(copy)
    plain, x = (np.array([-0.0, -1, 1]).astype(each) for each in (np.dtype(dtype), copy))
    if dtype != np.bool_:
        assert positive_part(x).tobytes() == positive_part(plain).tobytes()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e5m2])
def test_registered_dtypes_are_not_native(dtype):
    assert not is_native(np.dtype(dtype))
    assert not is_native(np.dtype(dtype).newbyteorder("="))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid", "Neg", "Exp", "Add", "Sub", "Mul"])
@pytest.mark.parametrize("over_the_input", [False, True])
def test_bound_ufuncs_give_the_bits_of_the_kernel(op_type, dtype, over_the_input):
    kernel = find_kernel("", op_type, 14)
    x = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 90, -90], dtype)
    arrays = [x.copy(), x[::-1].copy()][: 1 if op_type in ("Relu", "Sigmoid", "Neg", "Exp") else 2]
    expected = compute(kernel, [array.copy() for array in arrays])
    out = arrays[0] if over_the_input else np.full_like(x, 7)
    calls = bound_ufuncs(kernel.function, arrays, out)
    assert calls is not None
    for call in calls:
        call()
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("op_type", "dtype"), [("Sigmoid", np.float16), ("Relu", np.int32)])
def test_what_takes_more_than_ufuncs_is_left_to_the_kernel(op_type, dtype):
    x = np.ones(3, dtype)
    assert bound_ufuncs(find_kernel("", op_type, 14).function, [x], np.empty_like(x)) is None
    assert bound_ufuncs(find_kernel("", "Elu", 6).function, [x], np.empty_like(x)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op_type", ["Relu", "Sigmoid"])
def test_a_recipe_gives_the_bits_of_the_kernel(op_type, dtype):
    kernel = find_kernel("", op_type, 14)
    run = following_recipe(kernel.function, np.dtype(dtype))
    x = np.array([[0.0, -0.0, 1.5, -2.5], [np.inf, -np.inf, np.nan, 90]], dtype)
    expected = compute(kernel, [x.copy()])
    out = np.full_like(x, 7)
    assert run(x, out=out) is out
    assert out.tobytes() == expected.tobytes()
    assert run(x, out=x).tobytes() == expected.tobytes()
    assert following_recipe(kernel.function, np.dtype(np.float16)) is None
    assert following_recipe(find_kernel("", "Elu", 6).function, np.dtype(dtype)) is None
