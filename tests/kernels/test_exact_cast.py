"""Cast in exact mode: what is out of range is defined, all else is as the reference has it."""

import ml_dtypes
import numpy as np
import onnx.helper
import pytest

from foldline.kernels.exact_cast import settled
from foldline.kernels.registry import compute, find_kernel
from foldline.support.dtypes import BY_NAME, ELEMENT_TYPES

VERSIONS = [6, 9, 13, 19, 21, 23, 24, 25]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def cast(x, to, version=25, **attributes):
    entry = find_kernel("", "Cast", version, ("exact",))
    return compute(entry, [x], to=BY_NAME[to].code, **attributes)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float", "double"])
@pytest.mark.parametrize(
    ("to", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int16", -32768, 32767),
        ("int32", -(2**31), 2**31 - 1),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64 - 1),
    ],
)
def test_floats_saturate(source, to, low, high):
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.9, -1.9, -0.0], BY_NAME[source].numpy)
    result = cast(x, to)
    assert result.dtype == BY_NAME[to].numpy
    assert [int(v) for v in result] == [0, 0, high, low, 1, max(low, -1), 0]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float", "double"])
@pytest.mark.parametrize(
    ("to", "low", "high", "wrapped"),
    [
        ("int4", -8, 7, [-1, -8, 7]),
        ("uint4", 0, 15, [15, 8, 7]),
        ("int2", -2, 1, [-1, 0, -1]),
        ("uint2", 0, 3, [3, 0, 3]),
    ],
)
def test_floats_beyond_a_few_bits_wrap_around(source, to, low, high, wrapped):
    x = np.array([np.nan, np.inf, -np.inf, -1.9, 8, -9, 1.9], BY_NAME[source].numpy)
    assert [int(v) for v in cast(x, to)] == [0, high, low, *wrapped, 1]


def test_the_greatest_floats_that_fit():
    x = np.array([2.0**63, 2.0**63 - 1024, -(2.0**63), -(2.0**63) - 2048])
    assert cast(x, "int64").tolist() == [2**63 - 1, 2**63 - 1024, -(2**63), -(2**63)]
    assert cast(np.array([2.0**64 - 2048, 2.0**64]), "uint64").tolist() == [
        2**64 - 2048,
        2**64 - 1,
    ]
    assert cast(np.array([127.99, 128, -128.99, -129]), "int8").tolist() == [127, 127, -128, -128]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("source", [e.name for e in ELEMENT_TYPES if e.name != "string"])
def test_in_range_it_is_the_reference(source, version):
    # float8e8m0 has no zero.
    x = np.array([source == "float8e8m0", 1, 1]).astype(BY_NAME[source].numpy)
    for element in ELEMENT_TYPES:
        if element.name == "string":
            continue
        entry = find_kernel("", "Cast", version, ("reference",))
        expected = compute(entry, [x], to=element.code)
        result = cast(x, element.name, version)
        assert result.dtype == expected.dtype
        assert result.tobytes() == expected.tobytes(), element.name
        assert not np.may_share_memory(result, x)


@pytest.mark.parametrize(
    ("to", "bits"),
    [
        ("float16", 0x7E00),
        ("bfloat16", 0x7FC0),
        ("float", 0x7FC00000),
        ("double", 0x7FF8000000000000),
        ("float8e4m3fn", 0x7F),
        ("float8e5m2", 0x7E),
        ("float8e4m3fnuz", 0x80),
    ],
)
def test_nan_is_canonical(to, bits):
    for source in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        x = np.array([-np.nan, np.nan], source)
        x.view(f"u{x.itemsize}")[0] |= 1
        result = cast(x, to)
        if x.dtype != result.dtype:
            assert result.view(f"u{result.itemsize}").tolist() == [bits, bits]


def test_the_same_type_is_a_copy():
    x = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
    result = cast(x, "float")
    assert result.tobytes() == x.tobytes()
    assert not np.may_share_memory(result, x)


def test_integers_wrap_and_strings_are_parsed():
    assert cast(np.array([300, -129]), "int8").tolist() == [44, 127]
    assert cast(np.array(["2.5", "NaN", "-INF"], object), "float").tolist()[::2] == [2.5, -np.inf]
    assert cast(np.array([1.5, np.nan]), "string").tolist() == ["1.5", "NaN"]
    assert cast(np.array([2.5 + 3j, 300]), "int8").tolist() == [2, 127]
    assert cast(np.array([0.5, 0.0, np.nan]), "bool").tolist() == [True, False, True]


def test_attributes_names_and_destination():
    x = np.array([1e6, np.nan], np.float32)
    assert np.isnan(cast(x, "float8e4m3fn", saturate=0).astype(float)).all()
    assert float(cast(x, "float8e4m3fn", saturate=1)[0]) == 448
    up, down = (cast(np.float32([3]), "float8e8m0", round_mode=m) for m in ("up", "down"))
    assert (float(up[0]), float(down[0])) == (4, 2)
    legacy = find_kernel("", "Cast", 1, ("exact",))
    assert compute(legacy, [x], to="INT16").tolist() == [32767, 0]
    out = np.empty(2, np.int16)
    assert compute(legacy, [x], to="INT16", out=out) is out
    assert out.tolist() == [32767, 0]


@pytest.mark.parametrize("version", [15, 19, 21, 24])
def test_cast_like(version):
    entry = find_kernel("", "CastLike", version, ("exact",))
    x = np.array([1e9, -7.5, np.nan], np.float32)
    result = compute(entry, [x, np.zeros(1, np.int16)])
    assert result.tolist() == [32767, -7, 0]
    assert onnx.helper.np_dtype_to_tensor_dtype(result.dtype) == onnx.TensorProto.INT16


def test_settled_leaves_what_is_defined():
    x = np.array([1, 2])
    assert settled(x, np.dtype(np.float32)) is x
    assert settled(np.array([1e300, np.nan]), np.dtype(np.int8)).tolist() == [127, 0]


def test_doubles_of_a_copied_dtype_keep_their_digits():
    """Pickled arrays have one: they were rounded to float32 first."""
    x = np.array([2.0**53 - 1, 16777217.0]).astype(np.dtype(np.float64).newbyteorder("="))
    np.testing.assert_array_equal(cast(x, "int64"), [2**53 - 1, 16777217])
