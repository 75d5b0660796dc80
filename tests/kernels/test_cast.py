import itertools

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.cast import (
    bit_cast,
    cast,
    cast_like_rounding,
    cast_like_saturating,
    cast_rounding,
    cast_saturating,
    cast_to_name,
    convert,
)
from foldline.kernels.half import LEAST_SIZE
from foldline.support.dtypes import BY_NAME, ELEMENT_TYPES

INF, NAN = np.inf, np.nan
NUMBERS = [row for row in ELEMENT_TYPES if row.name != "string"]


def dtype_of(name: str) -> np.dtype:
    return BY_NAME[name].numpy


def to(name: str, values, source=np.float32, **options) -> np.ndarray:
    with np.errstate(all="ignore"):
        return convert(np.array(values).astype(source), dtype_of(name), **options)


def numbers(array: np.ndarray) -> list[float]:
    return array.astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("source", "target"),
    list(itertools.product(NUMBERS, ELEMENT_TYPES)),
    ids=lambda row: row.name,
)
def test_one_survives_every_conversion(source, target):
    ones = convert(np.ones((1, 2), np.float32), source.numpy)
    result = convert(ones, target.numpy)
    assert result.dtype == target.numpy
    assert result.shape == (1, 2)
    assert not np.may_share_memory(result, ones)
    as_number = result if target.name != "string" else convert(result, np.dtype(np.complex64))
    assert as_number.astype(np.complex64).tolist() == [[1, 1]]

    out = np.empty((1, 2), target.numpy)
    assert convert(ones, target.numpy, out=out) is out
    assert (out == result).all()
    assert convert(ones[0, 0:0], target.numpy).shape == (0,)
    assert type(convert(np.asarray(ones[0, 0]), target.numpy)) is np.ndarray


class TestIntegers:
    def test_higher_bits_are_lost(self):
        assert to("int8", [200, -129, 256], np.int16).tolist() == [-56, 127, 0]
        assert to("uint8", [-1, 300], np.int64).tolist() == [255, 44]
        assert to("int4", [7, 8, 20, -9], np.int32).astype(int).tolist() == [7, -8, 4, 7]
        assert to("uint4", [15, 16, -1], np.int8).astype(int).tolist() == [15, 0, 15]
        assert to("int2", [1, 2, -3], np.int8).astype(int).tolist() == [1, -2, 1]
        assert to("uint2", [3, 4, -1], np.int8).astype(int).tolist() == [3, 0, 3]

    def test_between_sub_byte_types(self):
        four = convert(np.arange(-8, 8, dtype=np.int8), dtype_of("int4"))
        assert convert(four, dtype_of("uint4")).astype(int).tolist() == [*range(8, 16), *range(8)]
        assert convert(four, dtype_of("int2")).astype(int).tolist() == [0, 1, -2, -1] * 4

    def test_int64_to_int64_types_is_exact(self):
        assert to("uint64", [-1], np.int64).tolist() == [2**64 - 1]
        assert to("int64", [2**63 + 1], np.uint64).tolist() == [-(2**63) + 1]

    def test_floats_truncate_toward_zero(self):
        assert to("int32", [-1.9, 1.9, -0.5]).tolist() == [-1, 1, 0]
        assert to("int4", [-1.9, 1.9, 6.7]).astype(int).tolist() == [-1, 1, 6]

    def test_bool(self):
        for source in (np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
            result = to("bool", [0.0, -0.0, 0.25, NAN, INF], source)
            assert result.tolist() == [False, False, True, True, True]
        assert to("bool", [0, 2, -1], np.int64).tolist() == [False, True, True]
        assert numbers(to("float16", [True, False], np.bool_)) == [1, 0]


class TestFloats:
    def test_out_of_range_is_infinite(self):
        assert to("float16", [70000, -70000]).tolist() == [INF, -INF]
        assert to("float", [1e300, -1e300], np.float64).tolist() == [INF, -INF]
        assert numbers(to("bfloat16", [1e39, -1e39], np.float64)) == [INF, -INF]
        assert to("float16", [2**40], np.int64).tolist() == [INF]

    @pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
    @pytest.mark.parametrize(
        ("name", "largest", "infinity", "negative_zero"),
        [
            ("float8e4m3fn", 448, NAN, True),
            ("float8e4m3fnuz", 240, NAN, False),
            ("float8e5m2", 57344, INF, True),
            ("float8e5m2fnuz", 57344, NAN, False),
        ],
    )
    def test_float8_tables(self, name, largest, infinity, negative_zero, source):
        x = [0.0, -0.0, NAN, INF, -INF, 65000, -65000, 0.3]
        kept = numbers(to(name, x, source))
        np.testing.assert_array_equal(kept[:7], [0, 0, NAN, largest, -largest, largest, -largest])
        assert kept[7] == 0.3125
        lost = numbers(to(name, x, source, saturate=False))
        np.testing.assert_array_equal(
            lost[:7], [0, 0, NAN, infinity, -infinity, infinity, -infinity]
        )
        assert np.signbit(to(name, x, source)[1]) == negative_zero

    @pytest.mark.parametrize("source", [np.int8, np.int64, np.uint64, np.bool_])
    def test_integers_to_float8(self, source):
        x = np.array([1, 0, 1], source)
        assert numbers(convert(x, dtype_of("float8e4m3fn"))) == [1, 0, 1]
        if source == np.int64:
            assert numbers(to("float8e4m3fn", [10**12, -(10**12)], source)) == [448, -448]
            assert numbers(to("float8e5m2", [10**12], source, saturate=False)) == [INF]

    def test_float4_and_float6_saturate(self):
        x = [0.25, 0.75, -100, INF, 2.5]
        assert numbers(to("float4e2m1", x)) == [0, 1, -6, 6, 2]
        assert numbers(to("float6e2m3", x)) == [0.25, 0.75, -7.5, 7.5, 2.5]
        assert numbers(to("float6e3m2", x)) == [0.25, 0.75, -28, 28, 2.5]

    def test_complex(self):
        assert to("complex64", [1.5], ml_dtypes.bfloat16).tolist() == [1.5 + 0j]
        assert to("complex64", [1 + 2j], np.complex128).dtype == np.complex64
        assert to("float", [1 + 2j], np.complex64).tolist() == [1]


@pytest.mark.parametrize("special", [[], [np.nan, np.inf, -np.inf, 65520, -0.0, 1e-8]])
def test_many_halves(special):
    x = (np.random.default_rng(0).standard_normal((LEAST_SIZE, 3)) * 1e-3).astype(np.float32)
    x[: len(special), 0] = special
    for source in (x, x[::2, ::-1]):
        with np.errstate(all="ignore"):
            wanted = source.astype(np.float16)
        for given, dtype in ((source, np.float16), (wanted, np.float32)):
            expected = wanted.astype(dtype)
            for out in (None, np.empty(expected.shape, dtype)):
                found = to_same(given, dtype, out)
                np.testing.assert_array_equal(found.view(np.uint8), expected.copy().view(np.uint8))


def to_same(given, dtype, out):
    result = np.ascontiguousarray(convert(given, np.dtype(dtype), out=out))
    assert result.dtype == dtype
    return result


class TestFloat8E8M0:
    SMALLEST, LARGEST = 2.0**-127, 2.0**127

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [("up", [1, 2, 2, 2, 2, 4]), ("down", [1, 1, 1, 1, 2, 2]), ("nearest", [1, 1, 2, 2, 2, 2])],
    )
    @pytest.mark.parametrize("source", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
    def test_modes(self, mode, expected, source):
        x = [1, 1.25, 1.5, 1.75, 2, 2.5]
        assert numbers(to("float8e8m0", x, source, round_mode=mode)) == expected

    @pytest.mark.parametrize("source", [np.float32, np.float64])
    def test_special_values(self, source):
        x = [0.0, NAN, INF, 1.5 * self.LARGEST, self.SMALLEST, self.SMALLEST / 4]
        saturated = numbers(to("float8e8m0", x, source))
        np.testing.assert_array_equal(
            saturated,
            [self.SMALLEST, NAN, self.LARGEST, self.LARGEST, self.SMALLEST, self.SMALLEST],
        )
        lost = numbers(to("float8e8m0", x, source, saturate=False, round_mode="nearest"))
        np.testing.assert_array_equal(lost, [NAN, NAN, NAN, NAN, self.SMALLEST, NAN])

    def test_integers(self):
        assert numbers(to("float8e8m0", [1, 3, 100], np.int64)) == [1, 4, 128]

    def test_unknown_mode(self):
        with pytest.raises(ValueError, match="'even', expected 'up', 'down' or 'nearest'"):
            to("float8e8m0", [1], round_mode="even")


class TestStrings:
    def test_to_floats(self):
        texts = np.array(["3.14", "1e-5", "1E8", "+INF", "inf", "-Inf", "NaN", " 7 "], object)
        for dtype in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
            result = convert(texts, np.dtype(dtype))
            assert result.dtype == dtype
            expected = np.array([3.14, 1e-5, 1e8, INF, INF, -INF, NAN, 7]).astype(dtype)
            np.testing.assert_array_equal(result.astype(float), expected.astype(float))

    def test_to_integers(self):
        texts = np.array([["100"], ["100.5"], ["-1"], ["1e3"]], object)
        assert convert(texts, np.dtype(np.int64)).tolist() == [[100], [100], [-1], [1000]]
        assert convert(texts, np.dtype(np.uint8)).tolist() == [[100], [100], [255], [232]]
        exact = np.array(["9007199254740993", "-9223372036854775808"], object)
        assert convert(exact, np.dtype(np.int64)).tolist() == [2**53 + 1, -(2**63)]
        most = np.array("18446744073709551615", object)
        assert convert(most, np.dtype(np.uint64)).tolist() == 2**64 - 1

    def test_to_bool(self):
        texts = np.array(["0", "1", "0.0", "-2"], object)
        assert convert(texts, np.dtype(bool)).tolist() == [False, True, False, True]

    def test_what_is_no_number_is_refused(self):
        with pytest.raises(ValueError, match="Hello"):
            convert(np.array(["Hello"], object), np.dtype(np.float32))

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
    def test_from_floats_reads_back(self, dtype):
        x = np.array([0.1, 314.15926, 1e-5, -0.0, INF, -INF, NAN], dtype)
        texts = convert(x, np.dtype(object))
        assert texts.dtype == object
        assert all(type(text) is str for text in texts)
        assert texts[4:].tolist() == ["INF", "-INF", "NaN"]
        back = convert(texts, np.dtype(dtype))
        np.testing.assert_array_equal(back.astype(float), x.astype(float))
        assert np.signbit(back[3])

    def test_spelling(self):
        assert to("string", [0.1, 314.15926]).tolist() == ["0.1", "314.15927"]
        assert to("string", [-5, 2**60], np.int64).tolist() == ["-5", str(2**60)]
        assert to("string", [True, False], np.bool_).tolist() == ["1", "0"]
        assert to("string", 7, np.uint8).shape == ()


class TestKernels:
    def test_versions_take_their_attributes(self):
        x = np.array([1000.0], np.float32)
        assert cast(x, to=10).dtype == np.float16
        assert cast_to_name(x, to="INT32").tolist() == [1000]
        like = np.empty((0,), dtype_of("float8e4m3fn"))
        for saturated in (cast_saturating, cast_rounding):
            assert numbers(saturated(x, to=17, saturate=1)) == [448]
            assert np.isnan(numbers(saturated(x, to=17, saturate=0))).all()
        for saturated in (cast_like_saturating, cast_like_rounding):
            assert numbers(saturated(x, like, saturate=1)) == [448]
            assert np.isnan(numbers(saturated(x, like, saturate=0))).all()

    @pytest.mark.parametrize(("mode", "expected"), [("up", 2), ("down", 1), ("nearest", 1)])
    def test_round_modes(self, mode, expected):
        x = np.array([1.25], np.float32)
        like = np.empty((0,), dtype_of("float8e8m0"))
        assert numbers(cast_rounding(x, to=24, round_mode=mode)) == [expected]
        assert numbers(cast_like_rounding(x, like, round_mode=mode)) == [expected]

    def test_same_type_is_a_copy(self):
        x = np.array([1.0], np.float32)
        assert not np.may_share_memory(cast(x, to=1), x)


class TestBitCast:
    @pytest.mark.parametrize(
        ("source", "target"),
        [
            ("float", "int32"),
            ("double", "uint64"),
            ("float16", "bfloat16"),
            ("complex64", "int64"),
            ("float8e4m3fn", "uint8"),
            ("uint4", "float4e2m1"),
            ("int2", "uint2"),
            ("int8", "float8e8m0"),
        ],
    )
    def test_bits_survive_the_way_and_back(self, source, target):
        bits = BY_NAME[source].bits
        count = 2 ** min(bits, 8)
        raw = np.arange(count, dtype=np.uint8)
        raw = np.repeat(raw, max(bits, 8) // 8) if bits > 8 else raw
        x = raw.view(dtype_of(source))
        there = bit_cast(x, to=BY_NAME[target].code)
        assert there.dtype == dtype_of(target)
        assert there.tobytes() == x.tobytes()
        assert bit_cast(there, to=BY_NAME[source].code).tobytes() == x.tobytes()
        assert not np.may_share_memory(there, x)

    def test_known_pattern(self):
        assert bit_cast(np.array(1.0, np.float32), to=6).tolist() == 0x3F800000
        assert bit_cast(np.array([0, 1, 2], np.uint8), to=9).tolist() == [False, True, True]

    def test_strided_input(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3).T
        assert bit_cast(x, to=6).shape == (3, 2)

    def test_refuses_other_widths_and_strings(self):
        with pytest.raises(ValueError, match=r"float \(32 bits\) to double \(64 bits\)"):
            bit_cast(np.array([1.0], np.float32), to=11)
        with pytest.raises(ValueError, match=r"uint8 \(8 bits\) to uint4 \(4 bits\)"):
            bit_cast(np.array([1], np.uint8), to=21)
        with pytest.raises(ValueError, match="not strings"):
            bit_cast(np.array(["a"], object), to=8)
